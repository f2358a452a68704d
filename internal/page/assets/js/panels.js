// What is told in words: the list of what is not in sync, one cell, and notes.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { called, store } from './store.js';
import { ago, byName, clock, count, many } from './words.js';
import { Sign } from './head.js';

const html = htm.bind(h);

const State = ({ state }) => html`<span class="state"><${Sign} state=${state} />${byName[state].text}</span>`;

const Since = ({ place }) => html`<time dateTime=${place.since} title=${place.seen ? 'this page saw it so first then; while nobody looks, it does not' : ''}>
  ${place.seen ? 'seen since ' : ''}${clock(place.since)} <small>${ago(place.since)}</small></time>`;

export function Problems({ act }) {
  const { list, filter } = store;
  const title = filter.states.size === 0 ? 'Not in sync' : [...filter.states].map((name) => byName[name].text).join(', ');
  const more = list.total - list.places.length;
  return html`<section class="problems" id="problems" tabindex="-1" aria-labelledby="problems-title">
    <h2 id="problems-title">${title} <span class="number">${count(list.total)}</span></h2>
    <p class="spoken" role="status">${many(list.total, 'clone')} ${title.toLowerCase()}</p>
    ${list.total === 0 && html`<p class="none">None${filter.rule || filter.text ? ' of what is shown' : ''}.</p>`}
    ${list.total > 0 && html`<div class="scroll"><table>
      <thead><tr><th scope="col">State</th><th scope="col">Namespace</th><th scope="col">Rule</th><th scope="col">Why</th><th scope="col">Since</th></tr></thead>
      <tbody>${list.places.map((place) => html`
        <tr key=${`${place.rule} ${place.kind} ${place.namespace} ${place.name}`} data-state=${place.state}>
          <td><${State} state=${place.state} /></td>
          <th scope="row"><button type="button" class="link" onClick=${() => act.select({ rule: place.rule, namespace: place.namespace })}>${place.namespace}</button></th>
          <td>${called(place.rule)}</td><td class="why">${place.why}</td><td><${Since} place=${place} /></td>
        </tr>`)}</tbody>
    </table></div>`}
    ${more > 0 && html`<p class="none">and ${count(more)} more: filter by rule, namespace or state to see them.</p>`}
  </section>`;
}

/** Everything about the cell that was selected. */
export function Detail({ act }) {
  const { selected, detail } = store;
  return html`<section class="panel detail" id="detail" role="region" aria-live="polite" aria-labelledby="detail-title">
    <h2 id="detail-title">${selected.namespace} <button type="button" class="quiet" aria-label="Close" onClick=${() => act.select(null)}>×</button></h2>
    <p class="about">rule <b>${called(selected.rule)}</b></p>
    ${detail === null && html`<p class="none">Asking…</p>`}
    ${detail?.length === 0 && html`<p class="none">The rule has nothing here.</p>`}
    ${detail?.map((place) => html`<article key=${place.kind + place.name}>
      <p><${State} state=${place.state} /> <${Since} place=${place} /></p>
      <p class="why">${place.why}</p>
      <dl><div><dt>clone</dt><dd>${place.kind} ${place.name}</dd></div><div><dt>source</dt><dd>${place.source}</dd></div>
        <div><dt>reason</dt><dd>${place.reason}</dd></div></dl>
      <pre><code>kubectl -n ${place.namespace} describe ${place.kind.toLowerCase()} ${place.name}</code></pre>
    </article>`)}
  </section>`;
}

/** What was done of late. */
export function Notes({ title, id, notes, none, about }) {
  return html`<section class="panel notes" id=${id} aria-labelledby=${`${id}-title`}>
    <h2 id=${`${id}-title`}>${title}</h2>
    ${notes.length === 0 && html`<p class="none">${none}</p>`}
    ${notes.length > 0 && html`<ol>${notes.map((note) => html`<li key=${note.at + note.names[0]}>
      <p><b>${note.what}</b> ${note.names[0]}${note.count > 1 && html` <span class="number">and ${count(note.count - 1)} more</span>`}</p>
      <p class="why">${note.by && html`by ${note.by}. `}${note.why}</p>
      <p class="by">${note.rule && `rule ${note.rule} · `}<time dateTime=${note.at} title=${clock(note.at)}>${ago(note.at)}</time></p>
    </li>`)}</ol>`}
    ${about && html`<p class="hint">${about}</p>`}
  </section>`;
}
