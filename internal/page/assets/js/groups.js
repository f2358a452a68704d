// Clones that are not in sync, one entry for all with the same problem.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { Detail, Since, State } from './detail.js';
import { called, store, totals } from './store.js';
import { byName, count, many } from './words.js';

const html = htm.bind(h);

/** The clones that need attention, or those in the states that the filter names. */
export function Problems({ act }) {
  const { problems, filter } = store;
  const title = filter.states.size === 0 ? 'Needs attention' : [...filter.states].map((name) => byName[name].text).join(', ');
  const nowhere = store.selected?.from && !anywhere(store.selected.from);
  return html`<section class="problems" id="problems" tabindex="-1" aria-labelledby="problems-title" hidden=${problems.total === 0 && filter.states.size === 0 && !nowhere}>
    <h2 id="problems-title">${title} <span class="number">${many(problems.total, 'clone')}</span></h2>
    <p class="spoken" role="status">${title}: ${many(problems.total, 'clone')}</p>
    ${problems.total === 0 && html`<p class="none">None${filter.rule || filter.text ? ' of what is shown' : ''}.</p>`}
    <${Groups} list=${problems} act=${act} />
    ${nowhere && html`<${Detail} act=${act} />`}
  </section>`;
}

/** Whether a list has the group of this key. */
const anywhere = (key) => [...store.problems.groups, ...store.retained.groups].some((group) => group.key === key);

/** The clones that stay behind on purpose. They are no problem. */
export function Retained({ act }) {
  const n = totals()[byName.retained.at];
  if (n === 0) return null;
  return html`<details class="panel retained" id="retained">
    <summary><h2>Retained clones <span class="number">${count(n)}</span></h2></summary>
    <p class="hint">Kept on purpose when their rule, source or namespace stopped matching. Headwater no longer updates them.</p>
    <${Groups} list=${store.retained} act=${act} />
  </details>`;
}

function Groups({ list, act }) {
  if (list.groups.length === 0) return null;
  return html`<ul class="groups">
    ${list.groups.map((group) => html`<${Group} key=${group.key} group=${group} act=${act} />`)}
    ${list.hidden > 0 && html`<li class="none">and ${many(list.hidden, 'more problem')}: filter by rule, namespace or state to see them.</li>`}
  </ul>`;
}

function Group({ group, act }) {
  const places = store.expanded.get(group.key) ?? group.places;
  const more = group.total - places.length;
  const [first] = group.places;
  const isOpen = store.expanded.has(group.key);
  const isSelected = store.selected?.from === group.key;
  return html`<li data-state=${group.state}>
    <p class="line"><${State} state=${group.state} />
      <b>${group.rules === 1 ? called(first.rule) : many(group.rules, 'rule')}</b>
      <span class="number">${many(group.total, 'clone')}</span> <${Since} place=${group} /></p>
    <p class="why">${group.why}</p>
    <ul class="names">${places.map((place) => html`<li key=${`${place.rule} ${place.kind} ${place.namespace} ${place.name}`}>
      <button type="button" class="link" onClick=${() => act.select({ rule: place.rule, namespace: place.namespace, from: group.key })}>${place.namespace}</button>
      ${group.rules > 1 && html`<small>${called(place.rule)}</small>`}</li>`)}
      ${(more > 0 || isOpen) && html`<li><button type="button" class="quiet more" aria-expanded=${isOpen} onClick=${() => act.expand(group)}>
        ${isOpen ? 'Show fewer' : `and ${count(more)} more`}</button></li>`}
      ${isOpen && more > 0 && html`<li class="none">and ${count(more)} more: filter by rule or namespace to see them.</li>`}
    </ul>
    ${isSelected && html`<${Detail} act=${act} />`}
  </li>`;
}
