// The state of everything but clones: the file on disk, how the rules protect,
// and restarts that wait.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { First } from './first.js';
import { shows, store } from './store.js';
import { ago, clock, count, many } from './words.js';

const html = htm.bind(h);

/** Says what is wrong with the file on disk. */
export function File({ file }) {
  return html`<section class="notice alarm" role="alert" id="file">
    <h2>The configuration on disk is ${file.held ? 'held' : 'invalid'}</h2>
    <p>Headwater read it at <time dateTime=${file.since}>${clock(file.since)}</time> and keeps the last valid one in force.</p>
    <${First} items=${file.faults} draw=${({ line, path, message }) => html`<li key=${`${line} ${path} ${message}`}>
      ${line > 0 && html`line ${line}: `}${path && html`<code>${path}</code>: `}${message}</li>`} />
    ${!file.held && html`<p>Correct it, and try it with <code>headwater check ${file.name}</code>.</p>`}
  </section>`;
}

/** Everything that needs a person, as `headwater status` has it, with what to run. */
export function Todos({ act }) {
  const { todos, file, doubt } = store.conditions;
  if (todos === null) return html`<p class="notice" role="status" id="todo">What needs a person is not known: this replica reads no RuleStatus. Is the kind installed?</p>`;
  const refused = file && (file.held ? 'RulesHeld' : 'Invalid');
  const shown = todos.filter(({ rule, reason }) => shows(rule) && reason !== refused); // every rule is not ready for that
  const items = shown.filter(({ person }) => person);
  const waiting = shown.filter(({ person }) => !person);
  if (file) items.unshift({ rule: '', reason: refused, message: `${file.name} on disk is not in force`, command: file.held ? `headwater plan --config ${file.name}` : `headwater check ${file.name}` });
  if (!doubt && items.length + waiting.length === 0) return null;
  return html`<section class="problems" id="todo" aria-labelledby="todo-title">
    <h2 id="todo-title">To do <span class="number">${count(items.length)}</span></h2>
    ${doubt && html`<p class="notice" role="status" id="doubt">What follows may be old: ${doubt}</p>`}
    <${First} items=${items} draw=${({ rule, reason, message, command }) => html`<li key=${`${rule} ${reason}`} data-todo=${rule}>
      <p class="line">${rule && html`<button type="button" class="link" onClick=${() => act.filter({ rule })}>${rule}</button>`} <b>${reason}</b></p>
      <p class="why">${message}</p>
      <pre><code>${command}</code></pre></li>`} />
    ${waiting.length > 0 && html`<p class="hint">${many(waiting.length, 'rule')} ${waiting.length === 1 ? 'is' : 'are'} not ready and ${waiting.length === 1 ? 'goes' : 'go'} on without you: ${waiting.map(({ rule, reason }) => `${rule} (${reason})`).join(', ')}.</p>`}
  </section>`;
}

/** Whether a rule protects, in a word or two; nothing where it is not to. */
export function protects({ mode, proof }) {
  if (mode === 'Enforce') return { proven: 'protected', unproven: 'protection not verified', untried: 'protection not tried' }[proof];
  return { Warn: 'warns only', Audit: 'audits only' }[mode] ?? '';
}

const inWords = ({ mode, proof, missing, since, why }) => {
  if (mode !== 'Enforce') return 'refuses nothing';
  if (proof === 'untried') return `not tried${missing ? `: ${missing}` : ' yet'}`;
  const at = `since ${clock(since)}, ${ago(since)}`;
  return proof === 'proven' ? `verified, ${at}` : `not verified, ${at}: ${why}`;
};

const order = { unproven: 0, untried: 1, '': 2, proven: 3 };

export function Protection() {
  const rules = store.conditions.rules.filter(({ name }) => shows(name));
  const guards = rules.filter(({ mode }) => mode).sort((a, b) => order[a.proof] - order[b.proof]);
  const open = rules.filter(({ mode }) => !mode).map(({ name }) => ({ name: 'not protected', mode: '', proof: 'none', names: name }));
  const items = open.length === 0 ? guards : [...guards, { ...open[0], names: open.map(({ names }) => names).join(', ') }];
  const proven = guards.filter(({ proof }) => proof === 'proven').length;
  const enforced = guards.filter(({ mode }) => mode === 'Enforce').length;
  return html`<section class="panel notes" id="protection" aria-labelledby="protection-title">
    <h2 id="protection-title">Protection ${enforced > 0 && html`<span class="number">${count(proven)} of ${count(enforced)} verified</span>`}</h2>
    ${rules.length === 0 && html`<p class="none">The configuration has no rule.</p>`}
    <${First} items=${items} draw=${(rule) => html`<li key=${`${rule.proof} ${rule.name}`} data-proof=${rule.proof}>
      <p><b>${rule.name}</b>${rule.mode && ` ${rule.mode}`}</p><p class="why">${rule.names ?? inWords(rule)}</p>
    </li>`} />
    ${enforced > 0 && !store.conditions.refusals && html`<p class="hint" id="refusals">The API server's policies refuse writes before Headwater is asked.
      Its metric <code>apiserver_validating_admission_policy_check_total</code> counts them; its audit log names the user.</p>`}
  </section>`;
}

/** The restarts that wait. */
export function Waits({ waits }) {
  const more = waits.total - waits.first.length;
  return html`<section class="panel notes" id="waits" aria-labelledby="waits-title">
    <h2 id="waits-title">Restarts that wait <span class="number">${count(waits.total)}</span></h2>
    <${First} items=${waits.first} draw=${(wait) => html`<li key=${wait.consumer}>
      <p><b>${wait.what}</b> ${wait.consumer}</p>
      <p class="why">${wait.why}</p>
      <p class="by">${wait.rule && `rule ${wait.rule} · `}since ${clock(wait.since)} · ${wait.until ? html`until <time dateTime=${wait.until}>${clock(wait.until)}</time>` : 'until that changes'}</p>
    </li>`} />
    ${more > 0 && html`<p class="hint">and ${count(more)} more</p>`}
  </section>`;
}
