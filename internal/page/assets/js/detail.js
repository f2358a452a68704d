// One cell in words.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { called, store } from './store.js';
import { ago, byName, clock } from './words.js';
import { Sign } from './head.js';

const html = htm.bind(h);

export const State = ({ state }) => html`<span class="state"><${Sign} state=${state} />${byName[state].text}</span>`;

/** Since when a place is in its state. Where the cluster does not record that,
 * only when this page first saw it is known. */
export const Since = ({ place }) => html`<time dateTime=${place.since} title=${place.seen ? 'It may have begun earlier: the page does not look while nobody has it open.' : ''}>
  ${place.seen ? 'first seen by this page at ' : 'since '}${clock(place.since)}, <small>${ago(place.since)}</small></time>`;

/** Everything about the cell that was selected. */
export function Detail({ act }) {
  const { selected, detail } = store;
  return html`<section class="panel detail" id="detail" role="region" aria-live="polite" aria-labelledby="detail-title">
    <h2 id="detail-title">${selected.namespace} <button type="button" class="quiet close" aria-label="Close" onClick=${() => act.select(null)}>×</button></h2>
    <p class="about">rule <b>${called(selected.rule)}</b></p>
    ${detail === null && html`<p class="none">Asking…</p>`}
    ${detail?.length === 0 && html`<p class="none">The rule does not select this namespace.</p>`}
    ${detail?.map((place) => html`<article key=${place.kind + place.name}>
      <p><${State} state=${place.state} /> <${Since} place=${place} /></p>
      <p class="why">${place.why}</p>
      <dl><div><dt>clone</dt><dd>${place.kind} ${place.name}</dd></div><div><dt>source</dt><dd>${place.source}</dd></div>
        <div><dt>reason</dt><dd>${place.reason}</dd></div>
        ${place.revision > 0 && html`<div><dt>revision</dt><dd>${place.revision}</dd></div>`}</dl>
      <pre><code>kubectl -n ${place.namespace} events --for ${place.kind.toLowerCase()}/${place.name}</code></pre>
    </article>`)}
  </section>`;
}
