// The top of the page: is it live, what is the state, what is shown of it.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { failures } from './deliveries.js';
import { called, isRemoved, shows, store, totals } from './store.js';
import { clock, cluster, count, many, states, weigh } from './words.js';

const html = htm.bind(h);

/** Since when nothing confirms what the page shows: nobody renews the leader's lease, or the page is not live. */
export const stale = () => store.standing?.unconfirmed ?? ((store.connection === 'silent' || store.connection === 'lost') && store.heard);

export function Header() {
  const silence = store.heard === null ? '' : `no update since ${clock(store.heard)}`;
  const words = { connecting: 'connecting', live: 'live', silent: silence, lost: `connection lost${silence && `, ${silence}`}` };
  return html`<header class="top">
    <h1><img src="page/icon.svg" alt="" width="26" height="26" />Headwater</h1>
    ${cluster && html`<strong class="cluster" id="cluster">${cluster}</strong>`}
    ${store.standing?.here && html`<span class="where" title="the replica that leads">${store.standing.replica}</span>`}
    <span class="connection" data-is=${store.connection} role="status"><i></i>${words[store.connection]}</span>
  </header>`;
}

/** What needs attention beside clones. */
function troubles() {
  const shown = (store.conditions?.rules ?? []).filter(({ name }) => shows(name));
  const missing = shown.filter(({ missing }) => missing).length;
  const unproven = shown.filter(({ proof }) => proof === 'unproven').length;
  const failed = failures(shows);
  const file = store.conditions?.file ? 1 : 0;
  const doubt = store.conditions?.doubt ? 1 : 0;
  const words = [];
  if (doubt > 0) words.push('RuleStatuses may be old');
  if (file > 0) words.push(`the configuration on disk is ${store.conditions.file.held ? 'held' : 'invalid'}`);
  if (missing > 0) words.push(`${many(missing, 'rule')} without a source`);
  if (unproven > 0) words.push(`${many(unproven, 'rule')} not verified to protect`);
  if (failed > 0) words.push(`${many(failed, 'delivery', 'deliveries')} failed`);
  return { n: doubt + file + missing + unproven + failed, words };
}

/** What the headline says, and in which colour. */
function headline({ all, attention, moving, is }, others) {
  const n = attention + others.n;
  if (n > 0) return { text: `${count(n)} ${n === 1 ? 'needs' : 'need'} attention`, is: 'trouble' };
  const waiting = (store.conditions?.todos ?? []).filter(({ rule, person }) => person && shows(rule)).length;
  if (waiting > 0) return { text: `${many(waiting, 'rule')} ${waiting === 1 ? 'needs' : 'need'} a person`, is: 'trouble' };
  if (moving > 0) return { text: `${count(moving)} in progress`, is };
  if (all > 0) return { text: 'All in sync', is };
  return { text: store.rules.length === 0 ? 'No rule syncs' : 'No clones yet', is: 'none' };
}

function facts(weighed, others) {
  const { all, current, attention, moving, retained } = weighed;
  const filled = store.names.filter(Boolean).length;
  const there = store.conditions?.namespaces ?? 0;
  return [
    all > 0 && `${count(current)} of ${count(all)} in sync`,
    attention > 0 && others.n > 0 && `${many(attention, 'clone')} need${attention === 1 ? 's' : ''} attention`,
    ...others.words,
    attention + others.n > 0 && moving > 0 && `${count(moving)} in progress`,
    retained > 0 && `${count(retained)} retained`,
    many(store.rules.filter((rule) => !isRemoved(rule)).length, 'rule'),
    filled > 0 ? `${many(filled, 'namespace')} with clones` : there > 0 && `${many(there, 'namespace')}, none with clones`,
  ].filter(Boolean);
}

export function Summary({ act }) {
  const sums = totals();
  const weighed = weigh(sums);
  const others = troubles();
  const { text, is } = headline(weighed, others);
  const { filter } = store;
  const toggle = (name) => {
    const chosen = new Set(filter.states);
    if (!chosen.delete(name)) chosen.add(name);
    act.filter({ states: chosen });
  };
  return html`<section class="summary" aria-label="Summary">
    <p class="headline" id="headline" data-is=${stale() ? 'stale' : is}>
      <strong>${stale() && html`<small>As of ${clock(stale())}: </small>`}${text}</strong>
      <span>${facts(weighed, others).join(' · ')}</span>
    </p>
    <div class="chips" role="group" aria-label="Show only some states">
      ${states.map(({ name, text: word, means }, at) => at > 0 && (sums[at] > 0 || filter.states.has(name)) && html`
        <button type="button" class="chip" data-state=${name} title=${means} aria-pressed=${filter.states.has(name)} onClick=${() => toggle(name)}>
          <${Sign} state=${name} />${word} <b>${count(sums[at])}</b>
        </button>`)}
    </div>
    <${Share} sums=${sums} />
  </section>`;
}

/** How the states share a bar. */
export const Share = ({ sums }) => html`<div class="share" aria-hidden="true">
  ${sums.map((n, at) => at > 0 && n > 0 && html`<i key=${at} data-state=${states[at].name} ref=${(bar) => { if (bar) bar.style.flexGrow = n; }}></i>`)}
</div>`;

const signs = { empty: '', current: '', retained: '', removing: '–', behind: '…', drifting: '/', fighting: '≠', held: '‖', refused: '–', conflict: '×', failed: '!' };

/** The sign of a state, as the grid has it. */
export const Sign = ({ state }) => html`<i class="sign" data-state=${state} aria-hidden="true">${signs[state]}</i>`;

export function Filters({ act }) {
  const { filter } = store;
  const any = filter.rule || filter.text || filter.states.size > 0;
  return html`<form class="filters" role="search" aria-label="Filter" onSubmit=${(event) => event.preventDefault()}>
    <label>Rule
      <select id="filter-rule" value=${filter.rule} onChange=${(event) => act.filter({ rule: event.target.value })}>
        <option value="">all</option>
        ${store.rules.map((rule) => html`<option key=${rule} value=${rule}>${called(rule)}</option>`)}
      </select>
    </label>
    <label>Namespace
      <input id="filter-text" type="search" placeholder="part of its name" spellcheck=${false} autocomplete="off"
        value=${filter.text} onInput=${(event) => act.filter({ text: event.target.value.trim().toLowerCase() })} />
    </label>
    ${any && html`<button type="button" class="quiet" onClick=${() => act.filter({ rule: '', text: '', states: new Set() })}>Show all</button>`}
  </form>`;
}
