// What Headwater did recently.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { First } from './first.js';
import { ago, clock, count } from './words.js';

const html = htm.bind(h);

export function Notes({ title, id, notes, about }) {
  return html`<section class="panel notes" id=${id} aria-labelledby=${`${id}-title`}>
    <h2 id=${`${id}-title`}>${title}</h2>
    ${notes.length === 0 && html`<p class="none">Nothing recently.</p>`}
    ${notes.length > 0 && html`<${First} items=${notes} draw=${(note) => html`<li key=${note.at + note.names[0]}>
      <p><b>${note.what}</b> ${note.names[0]}${note.count > 1 && html` <span class="number">and ${count(note.count - 1)} more</span>`}</p>
      <p class="why">${note.by && `by ${note.by}. `}${note.why}</p>
      <p class="by">${note.rule && `rule ${note.rule} · `}<time dateTime=${note.at} title=${clock(note.at)}>${ago(note.at)}</time></p>
    </li>`} />`}
    ${about && html`<p class="hint">${about}</p>`}
  </section>`;
}
