// How the last change reached the clones: how many were written by when.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { clock, count, many, span } from './words.js';

const html = htm.bind(h);
const [wide, high, left, bottom, top] = [340, 168, 8, 22, 14];

/** When a share of the clones was written. */
function by(points, share) {
  const wanted = share * points.at(-1).n;
  return points.find((point) => point.n >= wanted && point.n > 0)?.s;
}

export function Curve({ spread }) {
  return html`<section class="panel" id="spread" aria-labelledby="spread-title">
    <h2 id="spread-title">Last change</h2>
    ${spread ? html`<${Drawn} spread=${spread} />` : html`<p class="none">No source has changed since this replica started to lead.</p>`}
  </section>`;
}

function Drawn({ spread }) {
  const { points, places, written, looked, seconds, late } = spread;
  const done = seconds > 0;
  const last = points.at(-1);
  const end = Math.max(done ? Math.min(seconds, last.s * 1.02 || seconds) : last.s, 0.001);
  const full = Math.max(written, done ? written : places, 1);
  const x = (s) => left + (Math.min(s, end) / end) * (wide - 2 * left);
  const y = (n) => high - bottom - (n / full) * (high - bottom - top);
  const line = `M${left} ${y(0)}` + points.slice(1).map(({ s, n }) => `H${x(s).toFixed(1)}V${y(n).toFixed(1)}`).join('') + `H${x(end).toFixed(1)}`;
  const within = (s) => Math.min(s, seconds); // a point is at the end of its step, which may be later
  const marks = done && written > 1 ? [['half', by(points, 0.5)], ['99 %', by(points, 0.99)], ['last', last.s]].map(([name, s]) => [name, within(s)]) : [];
  let said = `${count(looked)} of ${count(places)} so far`;
  if (done) said = `${many(written, 'clone')} written in ${span(within(last.s))}${late > 0 ? `, ${count(late)} later` : ''}`;
  if (done && written === 0) said = `${many(late, 'clone')} written after failing first`;
  return html`
    <p class="about"><b>${spread.rule}</b> <span>${spread.source} at ${clock(spread.began)}</span></p>
    <svg viewBox="0 0 ${wide} ${high}" role="img" aria-label=${said}>
      ${[0, 0.5, 1].map((share) => html`<line key=${share} class="rule" x1=${left} x2=${wide - left} y1=${y(full * share)} y2=${y(full * share)} />`)}
      <text class="tick" x=${left} y=${top - 4}>${count(full)}</text>
      <path class="area" d="${line}V${y(0)}Z" />
      <path class="line" d=${line} />
      <circle class="dot" cx=${x(end)} cy=${y(last.n)} r="3.5" data-done=${done} />
      <text class="tick" x=${left} y=${high - 6}>0</text>
      <text class="tick end" x=${wide - left} y=${high - 6}>${span(end)}</text>
    </svg>
    <p class="said" aria-live="polite">${said}</p>
    ${marks.length > 0 && html`<dl class="marks">${marks.map(([name, s]) => html`<div key=${name}><dt>${name}</dt><dd>${span(s)}</dd></div>`)}</dl>`}`;
}
