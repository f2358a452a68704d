// The cells of one rule, drawn on a canvas: there may be ten thousand.

import { byName, states } from './words.js';
import { revisionAt, revisionMark, store } from './store.js';

const freshFor = 1400; // ms that a cell glows that changed
const calm = matchMedia('(prefers-reduced-motion: reduce)');
const pixelsMost = 16_000; // of a canvas in one direction; browsers draw nothing on a larger one

/** Whether cells have to be large enough for a finger. */
export const touched = matchMedia('(max-width: 640px), (pointer: coarse)');

/** How many cells have their names on them. */
export const namedMost = 60;

/** How cells are laid out: as large as fits, and with names while there are few. */
export function layoutFor(width, cells, rules) {
  if (cells <= namedMost) {
    const columns = Math.max(1, Math.min(cells, Math.floor((width + 6) / 158)));
    return { columns, wide: Math.floor((width + 6) / columns), high: 34, gap: 6, named: true };
  }
  if (touched.matches) return { columns: Math.max(1, Math.floor(width / 27)), wide: 27, high: 27, gap: 3 };
  const room = Math.max(90, Math.min(420, (innerHeight * 0.75) / rules));
  for (const pitch of [26, 22, 18, 16, 14, 12, 10, 8, 7, 6, 5]) {
    const columns = Math.floor(width / pitch);
    if (Math.ceil(cells / columns) * pitch <= room) return { columns, wide: pitch, high: pitch, gap: pitch > 12 ? 3 : pitch > 7 ? 2 : 1 };
  }
  return { columns: Math.floor(width / 4), wide: 4, high: 4, gap: 1 };
}

/** The colours of the states, as the style sheet has them for now. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    states: states.map(({ name }) => read(`--${name}`)),
    ink: read('--ink'), empty: read('--soft'), fresh: read('--fresh'), glow: read('--glow'), focus: read('--focus'), panel: read('--panel'), tile: read('--tile'), back: read('--back'), line: read('--line'),
    font: `13px ${read('--font')}`,
  };
}

/** Draws one rule's row of the store. */
export class Band {
  constructor(canvas, row) {
    this.canvas = canvas;
    this.row = row;
    this.fresh = new Map(); // slot: when it changed
    this.cursor = -1; // in store.order
    this.frame = 0;
  }

  /** Draws every cell. */
  arrange(width, rules, colours) {
    Object.assign(this, { colours, layout: layoutFor(width, store.order.length, rules) });
    const { columns, wide, high } = this.layout;
    const lines = Math.max(1, Math.ceil(store.order.length / columns));
    const dense = Math.min(devicePixelRatio || 1, pixelsMost / (lines * high));
    this.canvas.width = columns * wide * dense;
    this.canvas.height = lines * high * dense;
    this.canvas.dataset.cell = `${wide - (this.layout.named ? 0 : this.layout.gap)}x${high - (this.layout.named ? 0 : this.layout.gap)}`;
    this.canvas.style.width = `${columns * wide}px`;
    this.canvas.style.height = `${lines * high}px`;
    this.pen = this.canvas.getContext('2d');
    this.pen.scale(dense, dense);
    this.at = new Map(store.order.map((slot, at) => [slot, at]));
    this.cursor = Math.min(this.cursor, store.order.length - 1);
    for (let at = 0; at < store.order.length; at++) this.draw(at, 0);
  }

  /** Draws the cells of these slots, which changed now. */
  change(slots, now) {
    for (const slot of slots) {
      const at = this.at.get(slot);
      if (at === undefined) continue;
      if (calm.matches) this.draw(at, 0); else this.fresh.set(slot, now);
    }
    if (this.fresh.size > 0 && this.frame === 0) this.frame = requestAnimationFrame((time) => this.glow(time));
  }

  glow(time) {
    this.frame = 0;
    for (const [slot, since] of this.fresh) {
      const left = 1 - (time - since) / freshFor;
      const at = this.at.get(slot);
      if (at !== undefined) this.draw(at, Math.max(0, Math.min(1, left)));
      if (left <= 0) this.fresh.delete(slot);
    }
    if (this.fresh.size > 0) this.frame = requestAnimationFrame((next) => this.glow(next));
  }

  draw(at, glow) {
    const { columns, wide, high, gap, named } = this.layout;
    const slot = store.order[at];
    const state = store.cells[this.row][slot];
    const [x, y, w, h] = [(at % columns) * wide, Math.floor(at / columns) * high, wide - gap, high - gap];
    const pen = this.pen;
    pen.clearRect(x, y, wide, high);
    const chosen = store.filter.states;
    const shown = chosen.size === 0 || chosen.has(states[state].name);
    pen.globalAlpha = shown ? 1 : 0.18;
    if (named) this.tile(x, y, w, h, state, slot);
    else this.square(x, y, w, h, state);
    this.notch(x, y, w, h, revisionMark(this.row, slot));
    if (glow > 0) {
      pen.globalAlpha *= glow * 0.75;
      pen.fillStyle = this.colours.glow;
      pen.beginPath();
      pen.roundRect(x, y, w, h, named ? 6 : Math.min(3, w / 5));
      pen.fill();
    }
    pen.globalAlpha = 1;
    const selected = store.selected;
    const isSelected = selected && selected.rule === store.rules[this.row] && selected.namespace === store.names[slot];
    if (at === this.cursor || isSelected) this.ring(x, y, w, h, at === this.cursor);
  }

  /** A corner that says that the revision is not the stable one: filled while it is
   * being delivered. */
  notch(x, y, w, h, mark) {
    if (mark === '') return;
    const { pen } = this;
    const side = Math.max(2, Math.round(Math.min(w, h) * 0.45));
    pen.beginPath();
    pen.moveTo(x + w - side, y);
    pen.lineTo(x + w, y);
    pen.lineTo(x + w, y + side);
    pen.closePath();
    pen.fillStyle = this.colours.fresh;
    pen.strokeStyle = this.colours.fresh;
    pen.lineWidth = 1;
    if (mark === 'new') pen.fill(); else pen.stroke();
  }

  tile(x, y, w, h, state, slot) {
    const { pen, colours } = this;
    const empty = states[state].name === 'empty';
    pen.fillStyle = empty ? colours.back : colours.tile;
    pen.beginPath();
    pen.roundRect(x, y, w, h, 6);
    pen.fill();
    this.square(x + 8, y + (h - 12) / 2, 12, 12, state);
    pen.fillStyle = empty ? colours.empty : colours.ink;
    pen.font = colours.font;
    pen.textBaseline = 'middle';
    let text = store.names[slot];
    const revision = revisionAt(this.row, slot);
    const aside = revision > 0 ? `r${revision}` : '';
    const taken = aside ? pen.measureText(aside).width + 20 : 0;
    if (aside) {
      pen.textAlign = 'right';
      pen.fillText(aside, x + w - 16, y + h / 2 + 0.5);
      pen.textAlign = 'left';
    }
    while (text.length > 3 && pen.measureText(text).width > w - 34 - taken) text = text.slice(0, -2).replace(/…?$/, '…');
    pen.fillText(text, x + 28, y + h / 2 + 0.5);
  }

  /** A cell's state has a form as well as a colour. */
  square(x, y, w, h, state) {
    const { pen } = this;
    const colour = this.colours.states[state];
    const name = states[state].name;
    pen.fillStyle = colour;
    pen.strokeStyle = colour;
    if (name === 'empty') { // dim, and smaller than a clone
      const side = Math.max(2, Math.round(w * 0.5));
      pen.fillRect(x + Math.round((w - side) / 2), y + Math.round((h - side) / 2), side, side);
      return;
    }
    const hollow = name === 'behind' || name === 'removing' || name === 'retained';
    const thick = Math.max(1, Math.min(2, w / 6));
    pen.beginPath();
    if (hollow) pen.roundRect(x + thick / 2, y + thick / 2, w - thick, h - thick, Math.min(3, w / 5));
    else pen.roundRect(x, y, w, h, Math.min(3, w / 5));
    pen.lineWidth = thick;
    if (hollow) pen.stroke(); else pen.fill();
    if (w >= 8) this.sign(x, y, w, h, name, hollow ? colour : this.colours.panel);
  }

  /** The sign inside of a cell that is not in sync. */
  sign(x, y, w, h, name, colour) {
    const { pen } = this;
    const [a, b, c] = [x + w * 0.28, x + w * 0.5, x + w * 0.72];
    const [d, e, f] = [y + h * 0.28, y + h * 0.5, y + h * 0.72];
    const lines = {
      behind: [[b, d, b, e], [b, e, c, e]],
      removing: [[a, e, c, e]],
      drifting: [[a, f, c, d]],
      fighting: [[a, f, c, d], [a, y + h * 0.4, c, y + h * 0.4], [a, y + h * 0.6, c, y + h * 0.6]],
      held: [[x + w * 0.38, d, x + w * 0.38, f], [x + w * 0.62, d, x + w * 0.62, f]],
      refused: [[a, e, c, e]],
      conflict: [[a, d, c, f], [a, f, c, d]],
      failed: [[b, y + h * 0.2, b, y + h * 0.55], [b, y + h * 0.74, b, y + h * 0.8]],
    }[name] ?? [];
    pen.strokeStyle = colour;
    pen.lineWidth = Math.max(1, w / 8);
    pen.beginPath();
    for (const [x1, y1, x2, y2] of lines) { pen.moveTo(x1, y1); pen.lineTo(x2, y2); }
    pen.stroke();
  }

  ring(x, y, w, h, strong) {
    const { pen } = this;
    pen.strokeStyle = strong ? this.colours.focus : this.colours.ink;
    pen.lineWidth = w > 8 ? 2 : 1;
    pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  }

  /** Moves the cursor; -1 takes it away. */
  move(at) {
    const before = this.cursor;
    this.cursor = Math.max(-1, Math.min(store.order.length - 1, at));
    for (const cell of [before, this.cursor]) if (cell >= 0 && cell < store.order.length) this.draw(cell, 0);
  }

  /** The place in store.order under a pointer, or -1. */
  under(event) {
    const { columns, wide, high } = this.layout;
    const [column, line] = [Math.floor(event.offsetX / wide), Math.floor(event.offsetY / high)];
    const at = line * columns + column;
    return column < columns && at < store.order.length ? at : -1;
  }

  /** The next cell after the cursor that is neither in sync nor retained, in a
   * direction. */
  nextProblem(step) {
    const cells = store.cells[this.row];
    for (let at = this.cursor + step; at >= 0 && at < store.order.length; at += step) {
      if (cells[store.order[at]] > byName.retained.at) return at;
    }
    return this.cursor;
  }
}
