// The page: draws what the store knows, and keeps it current.

import { h, render } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { arrange, keepFilter, store } from './store.js';
import { askCell, askList, follow } from './stream.js';
import { Bands } from './bands.js';
import { touched } from './band.js';
import { isSoaking } from './deliveries.js';
import { File, Protection, Todos, Waits } from './conditions.js';
import { Problems, Retained } from './groups.js';
import { Filters, Header, stale, Summary } from './head.js';
import { Timeline } from './timeline.js';
import { clock, version } from './words.js';

const html = htm.bind(h);
const root = document.getElementById('app');
const bands = new Set(); // those that are on the page, to draw on

/** What the parts of the page may do. */
const act = {
  join: (band) => { bands.add(band); return () => bands.delete(band); },
  filter(change) {
    Object.assign(store.filter, change);
    keepFilter();
    clearTimeout(sifting);
    sifting = setTimeout(sift, 'text' in change ? 150 : 0); // once for all that is typed
    draw();
  },
  select(selected) {
    store.selected = selected;
    store.detail = null;
    repaint();
    if (selected) askDetail();
    draw();
  },
  expand(group) {
    if (!store.expanded.delete(group.key)) askGroup(group.key, group.state);
    draw();
  },
  open(rule) {
    if (!store.opened.delete(rule)) store.opened.add(rule);
    draw();
  },
};

function App() {
  const elsewhere = store.standing && !store.standing.here;
  const { conditions } = store;
  return html`
    <${Header} />
    ${conditions?.file && html`<${File} file=${conditions.file} />`}
    ${elsewhere && html`<${Elsewhere} standing=${store.standing} />`}
    ${!elsewhere && store.rules === null && html`<p class="notice" role="status">Reading the state of the cluster…</p>`}
    ${store.rules !== null && html`<div class="state-of-things" data-stale=${Boolean(stale())}>
      <${Summary} act=${act} />
      ${conditions && html`<${Todos} act=${act} />`}
      <${Filters} act=${act} />
      <${Problems} act=${act} />
      <div class="columns">
        <main>
          <${Bands} act=${act} />
          <${Retained} act=${act} />
        </main>
        <aside>
          ${conditions && html`<${Protection} />`}
          ${conditions?.waits.total > 0 && html`<${Waits} waits=${conditions.waits} />`}
          <${Timeline} />
        </aside>
      </div></div>`}
    <footer>Headwater ${version} · read only · shows names, never values</footer>`;
}

function Elsewhere({ standing }) {
  const { leader, itself, replica, namespace, unconfirmed } = standing;
  return html`<section class="notice" role="status" id="elsewhere">
    <h2>${leader === '' || itself ? 'No replica leads yet' : 'Another replica leads'}</h2>
    <p>This replica, <code>${replica}</code>, ${itself ? 'is about to lead.' : 'answers the API server, but writes nothing.'}
      ${leader === '' && ' One of the replicas is about to lead.'}
      ${leader !== '' && !itself && html` <strong id="leader">${leader}</strong> leads, and serves the page with content:`}</p>
    ${unconfirmed && html`<p id="unconfirmed">Nothing confirms that since ${clock(unconfirmed)}: nobody is seen to renew the Lease. Does the API server answer?</p>`}
    ${leader !== '' && !itself && html`<pre><code>kubectl --namespace ${namespace} port-forward pod/${leader} 8080</code></pre>`}
  </section>`;
}

let drawn = 0;

/** Draws at the next frame, once for all that happens until then. */
function draw() {
  if (drawn) return;
  drawn = requestAnimationFrame(() => { drawn = 0; render(html`<${App} />`, root); });
}

const repaint = () => bands.forEach((band) => band.paint());
const rearrange = () => bands.forEach((band) => band.rearrange());

let sifting = 0;

/** Shows what the filter chooses. */
function sift() {
  arrange();
  rearrange();
  askSoon();
  draw();
}

let asking = 0;

const retained = { states: new Set(['retained']) };

/** Asks for the lists, once for all that happens within a moment. */
function askSoon() {
  if (asking) return;
  asking = setTimeout(async () => {
    asking = 0;
    try {
      store.problems = await askList(store.filter);
      store.retained = await askList({ ...store.filter, ...retained });
      const shown = [...store.problems.groups, ...store.retained.groups];
      for (const key of store.expanded.keys()) {
        const group = shown.find((one) => one.key === key);
        if (group) await askGroup(key, group.state); else store.expanded.delete(key);
      }
      draw();
    } catch { /* the header says that the connection is lost */ }
  }, 400);
}

/** Asks for more of the clones of a group. */
async function askGroup(key, state) {
  try {
    const { groups } = await askList({ ...store.filter, states: [state] }, key);
    if (groups.length > 0) store.expanded.set(key, groups[0].places);
    draw();
  } catch { /* the header says that the connection is lost */ }
}

async function askDetail() {
  const asked = store.selected;
  try {
    const detail = await askCell(asked);
    if (store.selected === asked) { store.detail = detail; draw(); }
  } catch { /* the header says that the connection is lost */ }
}

const isSelected = (row, slot) => store.rules[row] === store.selected?.rule && store.names[slot] === store.selected.namespace;

follow({
  changed: draw,
  marked: repaint,
  rearranged() { rearrange(); askSoon(); if (store.selected) askDetail(); },
  cells(changed) {
    const now = performance.now();
    bands.forEach((band) => { if (changed.has(band.row)) band.change(changed.get(band.row), now); });
    askSoon();
    if (store.selected && [...changed].some(([row, slots]) => slots.some((slot) => isSelected(row, slot)))) askDetail();
  },
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', rearrange);
touched.addEventListener('change', () => { draw(); rearrange(); });
addEventListener('resize', rearrange);
setInterval(draw, 10_000); // for how long ago something was
setInterval(() => { if (isSoaking()) draw(); }, 1000);
draw();
