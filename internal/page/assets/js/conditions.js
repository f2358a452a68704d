// What holds beside the grid: the file on disk, how the rules protect, and
// restarts that wait.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { shows, store } from './store.js';
import { ago, clock, count } from './words.js';

const html = htm.bind(h);
const faultsMost = 8;

/** Says where the file on disk is not valid, and never what is written there. */
export function File({ file }) {
  const more = file.faults.length - faultsMost;
  return html`<section class="notice alarm" role="alert" id="file">
    <h2>The configuration on disk is not valid</h2>
    <p>The last good one stays in force. This one was read at <time dateTime=${file.since}>${clock(file.since)}</time>${file.faults.length > 0 ? '; it is wrong in' : '.'}</p>
    ${file.faults.length > 0 && html`<ul>${file.faults.slice(0, faultsMost).map(({ line, path }) => html`
      <li key=${`${line} ${path}`}>line ${line}${path && html`: <code>${path}</code>`}</li>`)}
      ${more > 0 && html`<li>and ${count(more)} more</li>`}</ul>`}
    <p><code>headwater check ${file.name}</code> says what is wrong.</p>
  </section>`;
}

/** Whether a rule protects, in a word or two; nothing where it is not to. */
export function protects({ mode, proof }) {
  if (mode === 'Enforce') return { proven: 'protected', unproven: 'protection not proven', untried: 'protection not tried' }[proof];
  return { Warn: 'warns only', Audit: 'audits only' }[mode] ?? '';
}

const standing = ({ mode, proof, missing, since, why }) => {
  if (mode !== 'Enforce') return 'refuses nothing';
  if (proof === 'untried') return `not tried${missing ? `: ${missing}` : ' yet'}`;
  const at = `since ${clock(since)}, ${ago(since)}`;
  return proof === 'proven' ? `proven, ${at}` : `not proven, ${at}: ${why}`;
};

const order = { unproven: 0, untried: 1, proven: 2, '': 3 };

export function Protection() {
  const rules = store.conditions.rules.filter(({ name }) => shows(name));
  const guards = rules.filter(({ mode }) => mode).sort((a, b) => order[a.proof] - order[b.proof]);
  const open = rules.filter(({ mode }) => !mode);
  const proven = guards.filter(({ proof }) => proof === 'proven').length;
  const enforced = guards.filter(({ mode }) => mode === 'Enforce').length;
  return html`<section class="panel notes" id="protection" aria-labelledby="protection-title">
    <h2 id="protection-title">Protection ${enforced > 0 && html`<span class="number">${count(proven)} of ${count(enforced)} proven</span>`}</h2>
    ${rules.length === 0 && html`<p class="none">There is no rule.</p>`}
    ${rules.length > 0 && html`<ol tabindex="0" aria-label="How each rule protects">
      ${guards.map((rule) => html`<li key=${rule.name} data-proof=${rule.proof}>
        <p><b>${rule.name}</b> ${rule.mode}</p><p class="why">${standing(rule)}</p>
      </li>`)}
      ${open.length > 0 && html`<li key="" data-proof="none"><p><b>none</b></p><p class="why">${open.map(({ name }) => name).join(', ')}</p></li>`}
    </ol>`}
  </section>`;
}

/** The restarts that do not begin yet. */
export function Waits({ waits }) {
  const more = waits.total - waits.first.length;
  return html`<section class="panel notes" id="waits" aria-labelledby="waits-title">
    <h2 id="waits-title">Restarts that wait <span class="number">${count(waits.total)}</span></h2>
    <ol tabindex="0" aria-label="Restarts that wait">${waits.first.map((wait) => html`<li key=${wait.consumer}>
      <p><b>${wait.what}</b> ${wait.consumer}</p>
      <p class="why">${wait.why}</p>
      <p class="by">${wait.rule && `rule ${wait.rule} · `}since ${clock(wait.since)} · ${wait.until ? html`until <time dateTime=${wait.until}>${clock(wait.until)}</time>` : 'until that changes'}</p>
    </li>`)}</ol>
    ${more > 0 && html`<p class="hint">and ${count(more)} more</p>`}
  </section>`;
}
