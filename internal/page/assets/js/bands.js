// The grid: a band for each rule, a cell for each namespace, and the same
// namespace at the same place in every band.

import { Component, createRef, h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { Band, palette } from './band.js';
import { protects } from './conditions.js';
import { called, shows, store } from './store.js';
import { count, many, states, weigh } from './words.js';

const html = htm.bind(h);

export function Bands({ act }) {
  const shown = store.rules.filter(shows);
  return html`<section class="bands" aria-labelledby="grid-title">
    <h2 id="grid-title">Rules and namespaces</h2>
    <p class="hint">Each cell is a namespace. With the keyboard: <kbd>Tab</kbd> to a rule, arrows to move, <kbd>n</kbd> and <kbd>p</kbd> to what is not in sync, <kbd>Enter</kbd> to see why.</p>
    ${store.rules.length === 0 && html`<p class="none">The configuration has no rule that syncs.</p>`}
    ${store.rules.map((rule, row) => shows(rule) && html`<${BandView} key=${`${row} ${rule}`} rule=${rule} row=${row} shown=${shown.length} act=${act} />`)}
    <p class="spoken" aria-live="polite" id="cursor"></p>
    <div class="tip" id="tip" hidden></div>
  </section>`;
}

class BandView extends Component {
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
    return `${store.names[slot]}: ${states[store.cells[this.props.row][slot]].text}`;
  }

  point(at) {
    this.band.move(at);
    if (at >= 0) document.getElementById('cursor').textContent = this.words(this.band.cursor);
  }

  open(at) {
    if (at >= 0) this.props.act.select({ rule: this.props.rule, namespace: store.names[store.order[at]] });
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

  render({ rule, row }) {
    const { all, others, is } = weigh(store.counts[row]);
    const known = store.ruleByName.get(rule);
    const shield = known ? protects(known) : '';
    let standing = others.length === 0 ? `all ${count(all)} in sync` : `${others.join(', ')}, of ${count(all)}`;
    if (all === 0) standing = 'no clones';
    return html`<section class="band" data-rule=${rule}>
      <h3>${called(rule)} <span data-is=${is}>${standing}</span>
        ${shield && html`<span class="shield" data-is=${known.proof === 'unproven' ? 'trouble' : ''}>${shield}</span>`}</h3>
      ${known?.missing && html`<p class="missing" role="status"><b>No source:</b> ${known.missing}</p>`}
      <div class="holder">
        <canvas ref=${this.canvas} tabindex="0" role="application" aria-roledescription="grid of namespaces"
          aria-label=${`Rule ${called(rule)}, ${many(store.order.length, 'namespace')}, ${standing}${shield && `, ${shield}`}. Arrow keys move, n and p go to what is not in sync, Enter tells why.`}
          onKeyDown=${(event) => this.onKeyDown(event)} onFocus=${() => this.point(Math.max(0, this.band.cursor))} onBlur=${() => this.band.move(-1)}
          onClick=${(event) => this.open(this.band.under(event))}
          onMouseMove=${(event) => this.hover(event)} onMouseLeave=${() => { document.getElementById('tip').hidden = true; }}></canvas>
      </div>
    </section>`;
  }
}
