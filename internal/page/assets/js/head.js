// The top of the page: is it live, how do things stand, what is shown of it.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { called, shows, store, totals } from './store.js';
import { clock, count, many, states, weigh } from './words.js';

const html = htm.bind(h);

export function Header() {
  const words = { connecting: 'connecting', live: 'live', lost: `connection lost${store.heard ? `, as of ${clock(store.heard)}` : ''}` };
  return html`<header class="top">
    <h1><img src="page/icon.svg" alt="" width="26" height="26" />Headwater</h1>
    ${store.standing?.here && html`<span class="where">${store.standing.replica}</span>`}
    <span class="connection" data-is=${store.connection} role="status"><i></i>${words[store.connection]}</span>
  </header>`;
}

/** What weigh says of the clones, and what there is to say of the rules. */
function summarize(sums) {
  const weighed = weigh(sums);
  const shown = (store.conditions?.rules ?? []).filter(({ name }) => shows(name));
  const rules = [
    { n: shown.filter(({ missing }) => missing).length, text: 'without a source' },
    { n: shown.filter(({ proof }) => proof === 'unproven').length, text: 'not proven to protect' },
  ].filter(({ n }) => n > 0).map(({ n, text }) => `${many(n, 'rule')} ${text}`);
  if (rules.length === 0) return weighed;
  const others = [...weighed.others];
  others.splice(weighed.is === 'trouble' ? 1 : 0, 0, ...rules);
  return { ...weighed, others, is: 'trouble' };
}

export function Summary({ act }) {
  const sums = totals();
  const { all, current, others, is } = summarize(sums);
  const { filter } = store;
  const toggle = (name) => {
    const chosen = new Set(filter.states);
    if (!chosen.delete(name)) chosen.add(name);
    act.filter({ states: chosen });
  };
  return html`<section class="summary" aria-label="How things stand">
    <p class="headline" id="headline" data-is=${is}>
      <strong>${others[0] ?? (all === 0 ? 'Nothing to sync' : 'All in sync')}</strong>
      <span>${count(current)} of ${count(all)} in sync${others.slice(1).map((other) => ` · ${other}`)} · ${many(store.rules.length, 'rule')} · ${many(store.names.filter(Boolean).length, 'namespace')}
        ${all > current && html` · <a href="#problems">what is not</a>`}</span>
    </p>
    <div class="chips" role="group" aria-label="Show only some states">
      ${states.map(({ name, text, means }, at) => at > 0 && (sums[at] > 0 || filter.states.has(name)) && html`
        <button type="button" class="chip" data-state=${name} title=${means} aria-pressed=${filter.states.has(name)} onClick=${() => toggle(name)}>
          <${Sign} state=${name} />${text} <b>${count(sums[at])}</b>
        </button>`)}
    </div>
    <div class="share" aria-hidden="true">
      ${sums.map((n, at) => n > 0 && html`<i data-state=${states[at].name} ref=${(bar) => { if (bar) bar.style.flexGrow = n; }}></i>`)}
    </div>
  </section>`;
}

const signs = { current: '', retained: '', removing: '–', behind: '…', drifting: '/', held: '‖', refused: '–', conflict: '×', failed: '!' };

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
