// The grid: a band for each rule, a cell for each namespace, and the same
// namespace at the same place in every band.

import { Component, createRef, h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { Band, namedMost, palette, touched } from './band.js';
import { protects } from './conditions.js';
import { Deliveries, failures } from './deliveries.js';
import { Detail } from './detail.js';
import { Share, Sign } from './head.js';
import { called, isRemoved, isUnderWay, revisionAt, revisionMark, shows, store, totals } from './store.js';
import { count, many, states, weigh } from './words.js';

const html = htm.bind(h);

/** Whether a rule of the grid is shown: one that is removed is not, where all its
 * clones are retained. */
const isShown = (rule, row) => {
  if (!shows(rule)) return false;
  const { all, retained } = weigh(store.counts[row]);
  return all > 0 || retained === 0 || !isRemoved(rule);
};

/** How many rules are shown with their cells; of more, only those in trouble are. */
const unfoldedMost = 12;

const urgency = { trouble: 0, moving: 1, good: 2 };

/** How urgent a rule is: of its clones, its delivery, its source and its protection. */
function urgencyOf({ rule, row }) {
  const known = store.ruleByName.get(rule);
  const failed = known?.missing || known?.proof === 'unproven' || failures((name) => name === rule) > 0;
  return failed ? urgency.trouble : urgency[weigh(store.counts[row]).is];
}

export function Bands({ act }) {
  const rows = store.rules.map((rule, row) => ({ rule, row })).filter(({ rule, row }) => isShown(rule, row))
    .map((one) => ({ ...one, urgent: urgencyOf(one) })).sort((a, b) => a.urgent - b.urgent);
  const drawn = rows.filter(({ row }) => holds(row));
  return html`<section class="bands" aria-labelledby="grid-title">
    <h2 id="grid-title">Rules and namespaces</h2>
    ${drawn.length > 0 && html`<${Legend} />
      <p class="hint keys">Each cell is a namespace. With the keyboard: <kbd>Tab</kbd> to a rule, arrows to move, <kbd>n</kbd> and <kbd>p</kbd> to what is not in sync, <kbd>Enter</kbd> to see why.</p>`}
    ${store.rules.length === 0 && html`<p class="none">The configuration has no rule that syncs.</p>`}
    ${rows.map(({ rule, row, urgent }) => html`<${Rule} key=${`${row} ${rule}`} rule=${rule} row=${row} shown=${Math.min(drawn.length, unfoldedMost)} act=${act}
      folded=${drawn.length > unfoldedMost && urgent !== urgency.trouble} />`)}
    <p class="spoken" aria-live="polite" id="cursor"></p>
    <div class="tip" id="tip" hidden></div>
  </section>`;
}

/** Whether a rule has any clone. */
const holds = (row) => store.counts[row].some((n, state) => state > 0 && n > 0);

/** What the signs of the grid mean. */
function Legend() {
  const sums = totals({ empty: true });
  const delivers = [...store.deliveries].some(([rule, all]) => shows(rule) && all.length === 1 && isUnderWay(all[0]));
  return html`<ul class="legend" aria-label="Legend">
    ${states.map(({ name, text, means }, at) => sums[at] > 0 && html`<li key=${name} title=${means}><${Sign} state=${name} />${text}</li>`)}
    ${delivers && html`<li key="new" title="the clone has the revision that is being delivered"><i class="sign" data-state="current" data-mark="new" aria-hidden="true"></i>has the revision under delivery</li>`}
  </ul>`;
}

/** A rule in words, and its cells below. */
function Rule({ rule, row, shown, act, folded: quiet }) {
  const known = store.ruleByName.get(rule);
  const shield = known ? protects(known) : '';
  const { all, retained, words, is } = weigh(store.counts[row]);
  const filled = all + retained > 0;
  let state = words.length === 0 ? `all ${count(all)} in sync` : `${words.join(', ')}, of ${count(all)}`;
  if (all === 0) state = 'no clones';
  if (retained > 0) state += `, ${count(retained)} retained`;
  const folded = quiet || (touched.matches && store.order.length > namedMost);
  const isOpen = !folded || store.opened.has(rule);
  const isSelected = store.selected?.rule === rule && !store.selected.from;
  return html`<section class="band" data-rule=${rule} data-folded=${folded && !isOpen}>
    <h3>${called(rule)} <span data-is=${is}>${state}</span>
      ${shield && html`<span class="shield" data-is=${known.proof === 'unproven' ? 'trouble' : ''}>${shield}</span>`}</h3>
    <${Deliveries} rule=${rule} />
    ${known?.suspended && html`<p class="missing" role="status"><b>Suspended:</b> nothing is written for this rule; it still protects.</p>`}
    ${known?.missing && html`<p class="missing" role="status"><b>No source:</b> ${known.missing}</p>`}
    ${filled && folded && html`<${Share} sums=${store.counts[row]} />
      <button type="button" class="quiet more" aria-expanded=${isOpen} onClick=${() => act.open(rule)}>
        ${isOpen ? 'Hide the namespaces' : `Show ${many(store.order.length, 'namespace')}`}</button>`}
    ${filled && isOpen && html`<${Cells} rule=${rule} row=${row} shown=${shown} act=${act}
      label=${`Rule ${called(rule)}, ${many(store.order.length, 'namespace')}, ${state}${shield && `, ${shield}`}`} />`}
    ${isSelected && html`<${Detail} act=${act} />`}
  </section>`;
}

/** The cells of a rule. */
class Cells extends Component {
  canvas = createRef();

  componentDidMount() {
    this.band = new Band(this.canvas.current, this.props.row);
    this.leave = this.props.act.join(this);
    this.row = this.props.row;
    this.rearrange();
  }

  componentDidUpdate(before) {
    if (before.shown !== this.props.shown) this.rearrange();
  }

  componentWillUnmount() {
    cancelAnimationFrame(this.band.frame);
    this.leave();
  }

  rearrange() {
    if (store.rules === null) return;
    this.band.arrange(this.canvas.current.parentElement.clientWidth, this.props.shown, palette());
  }

  paint() { this.rearrange(); }

  change(slots, now) { this.band.change(slots, now); }

  words(at) {
    const slot = store.order[at];
    const { row } = this.props;
    const revision = revisionAt(row, slot);
    const which = { new: ', which is being delivered', other: ', which is not delivered any more', '': '' }[revisionMark(row, slot)];
    return `${store.names[slot]}: ${states[store.cells[row][slot]].text}${revision > 0 ? `, revision ${revision}${which}` : ''}`;
  }

  point(at) {
    this.band.move(at);
    if (at >= 0) document.getElementById('cursor').textContent = this.words(this.band.cursor);
  }

  open(at) {
    if (at >= 0) this.props.act.select({ rule: this.props.rule, namespace: store.names[store.order[at]], from: '' });
  }

  onKeyDown(event) {
    const { band } = this;
    const { columns } = band.layout;
    const page = columns * 10;
    const here = Math.max(0, band.cursor);
    const to = {
      ArrowLeft: here - 1, ArrowRight: here + 1, ArrowUp: here - columns, ArrowDown: here + columns,
      Home: 0, End: store.order.length - 1, PageUp: here - page, PageDown: here + page,
    }[event.key] ?? { n: band.nextProblem(1), p: band.nextProblem(-1) }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (to !== undefined) this.point(band.cursor < 0 && event.key.startsWith('Arrow') ? 0 : Math.max(0, to));
    else if (event.key === 'Enter' || event.key === ' ') this.open(band.cursor);
    else if (event.key === 'Escape') this.props.act.select(null);
    else return;
    event.preventDefault();
  }

  hover(event) {
    const at = this.band.under(event);
    const tip = document.getElementById('tip');
    tip.hidden = at < 0;
    if (at < 0) return;
    tip.textContent = this.words(at);
    tip.style.left = `${Math.min(event.pageX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.pageY + 18}px`;
  }

  render({ label }) {
    return html`<div class="holder">
      <canvas ref=${this.canvas} tabindex="0" role="application" aria-roledescription="grid of namespaces"
        aria-label=${`${label}. Arrow keys move, n and p go to what is not in sync, Enter says why.`}
        onKeyDown=${(event) => this.onKeyDown(event)} onFocus=${() => this.point(Math.max(0, this.band.cursor))} onBlur=${() => this.band.move(-1)}
        onClick=${(event) => this.open(this.band.under(event))}
        onMouseMove=${(event) => this.hover(event)} onMouseLeave=${() => { document.getElementById('tip').hidden = true; }}></canvas>
    </div>`;
  }
}
