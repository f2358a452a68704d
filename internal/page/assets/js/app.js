// The page: draws what the store knows, and keeps it current.

import { h, render } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { arrange, latestSpread, store } from './store.js';
import { askCell, askList, follow } from './stream.js';
import { Bands } from './bands.js';
import { File, Protection, Waits } from './conditions.js';
import { Curve } from './curve.js';
import { Filters, Header, Summary } from './head.js';
import { Detail, Notes, Problems } from './panels.js';
import { version } from './words.js';

const html = htm.bind(h);
const root = document.getElementById('app');
const bands = new Set(); // those that are on the page, to draw on

/** What the parts of the page may do. */
const act = {
  join: (band) => { bands.add(band); return () => bands.delete(band); },
  filter(change) {
    Object.assign(store.filter, change);
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
};

function App() {
  const elsewhere = store.standing && !store.standing.here;
  const { conditions } = store;
  return html`
    <${Header} />
    ${conditions?.file && html`<${File} file=${conditions.file} />`}
    ${elsewhere && html`<${Elsewhere} standing=${store.standing} />`}
    ${!elsewhere && store.rules === null && html`<p class="notice" role="status">Reading how things stand…</p>`}
    ${store.rules !== null && html`
      <${Summary} act=${act} />
      <${Filters} act=${act} />
      <div class="columns">
        <main>
          <${Bands} act=${act} />
          <${Problems} act=${act} />
        </main>
        <aside>
          ${store.selected && html`<${Detail} act=${act} />`}
          ${conditions && html`<${Protection} />`}
          <${Curve} spread=${latestSpread()} />
          <${Notes} title="Refused" id="denials" notes=${store.denials} none="Nothing of late."
            about="Only by the webhook of this replica. Where the API server takes policies, Headwater’s refuse first: see its audit log." />
          ${conditions?.waits.total > 0 && html`<${Waits} waits=${conditions.waits} />`}
          <${Notes} title="Reloaded" id="reloads" notes=${store.reloads} none="Nothing of late." />
        </aside>
      </div>`}
    <footer>Headwater ${version} · read only · no values, names alone</footer>`;
}

function Elsewhere({ standing }) {
  const { leader, itself, replica, namespace } = standing;
  return html`<section class="notice" role="status" id="elsewhere">
    <h2>${leader === '' || itself ? 'Nobody leads yet' : 'Another replica leads'}</h2>
    <p>This replica, <code>${replica}</code>, ${itself ? 'is about to.' : 'answers the API server, but writes nothing.'}
      ${leader === '' && ' One of the replicas is about to take the lead.'}
      ${leader !== '' && !itself && html` <strong id="leader">${leader}</strong> leads, and shows what there is to see:`}</p>
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

/** Asks for the list anew, once for all that happens within a moment. */
function askSoon() {
  if (asking) return;
  asking = setTimeout(async () => {
    asking = 0;
    try {
      store.list = await askList(store.filter);
      draw();
    } catch { /* the stream tells that the line is down */ }
  }, 400);
}

async function askDetail() {
  const asked = store.selected;
  try {
    const detail = await askCell(asked);
    if (store.selected === asked) { store.detail = detail; draw(); }
  } catch { /* the stream tells that the line is down */ }
}

const isSelected = (row, slot) => store.rules[row] === store.selected?.rule && store.names[slot] === store.selected.namespace;

follow({
  changed: draw,
  rearranged() { rearrange(); askSoon(); if (store.selected) askDetail(); },
  cells(changed) {
    const now = performance.now();
    bands.forEach((band) => { if (changed.has(band.row)) band.change(changed.get(band.row), now); });
    askSoon();
    if (store.selected && [...changed].some(([row, slots]) => slots.some((slot) => isSelected(row, slot)))) askDetail();
  },
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', rearrange);
addEventListener('resize', rearrange);
setInterval(draw, 10_000); // what says how long ago something was
draw();
