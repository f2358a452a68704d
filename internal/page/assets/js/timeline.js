// What happened since this replica started to lead, the latest first.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { First } from './first.js';
import { shows, store } from './store.js';
import { ago, clock, count } from './words.js';

const html = htm.bind(h);

/** The reason of an Event as words: StagePassed is Stage passed. */
const inWords = (reason) => reason.replace(/(?<=.)[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

export function Timeline() {
  const notes = [...store.happened.values()].flat().filter(({ rule }) => shows(rule));
  notes.sort((a, b) => new Date(b.at) - new Date(a.at));
  return html`<section class="panel notes" id="timeline" aria-labelledby="timeline-title">
    <h2 id="timeline-title">What happened</h2>
    ${notes.length === 0 && html`<p class="none">Nothing yet, since this replica started.</p>`}
    ${notes.length > 0 && html`<${First} items=${notes} draw=${(note) => html`<li key=${note.what + note.at + note.names[0]} data-warning=${Boolean(note.warning)}>
      <p><b>${inWords(note.what)}</b> ${note.names[0]}${note.count > 1 && html` <span class="number">and ${count(note.count - 1)} more</span>`}</p>
      <p class="why">${note.why}</p>
      <p class="by">${note.rule && `rule ${note.rule} · `}<time dateTime=${note.at} title=${clock(note.at)}>${ago(note.at)}</time></p>
    </li>`} />`}
    <p class="hint">Of refused writes, those that the webhook of this replica refused.</p>
  </section>`;
}
