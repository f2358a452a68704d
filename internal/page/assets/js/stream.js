// The line to the service: one stream of events, and questions beside it.

import { store, takeConditions, takeDeliveries, takeDelta, takeGrid } from './store.js';
import { heartbeat } from './words.js';

const missed = 2 * heartbeat + 1000; // ms without an event after which the page warns its reader
const giveUp = 2 * missed; // ms after which it opens another stream

/** Follows the stream for as long as the page is open. on has a function for
 * each thing that can happen. */
export function follow(on) {
  let source = connect(on);
  let tried = Date.now();
  setInterval(() => {
    const silent = Date.now() - (store.heard ?? tried);
    if (silent > missed && store.connection === 'live') {
      store.connection = 'silent';
      on.changed();
    }
    const closed = source.readyState === EventSource.CLOSED; // the service refused, and the browser gave up
    if ((closed && Date.now() - tried > heartbeat) || (silent > giveUp && Date.now() - tried > giveUp)) {
      source.close(); // a connection may be dead and look open, as after a laptop slept
      source = connect(on);
      tried = Date.now();
    }
  }, 1000);
}

function connect(on) {
  const source = new EventSource('page/stream');
  let failing = 0;
  const hear = (event, take) => source.addEventListener(event, (message) => {
    store.heard = Date.now();
    if (store.connection !== 'live') {
      store.connection = 'live';
      on.changed();
    }
    take(JSON.parse(message.data));
  });
  source.onopen = () => {
    clearTimeout(failing);
    failing = 0;
    store.heard = Date.now();
    store.connection = 'live';
    on.changed();
  };
  source.onerror = () => { // also when the service ends an old stream, and the browser opens the next
    failing ||= setTimeout(() => {
      failing = 0;
      if (source.readyState !== EventSource.OPEN) { store.connection = 'lost'; on.changed(); }
    }, 3000);
  };
  hear('heartbeat', () => {});
  hear('standing', (standing) => {
    store.standing = standing;
    if (!standing.here) store.rules = null;
    on.changed();
  });
  hear('conditions', (conditions) => { takeConditions(conditions); on.changed(); });
  hear('deliveries', (deliveries) => { if (takeDeliveries(deliveries)) on.marked(); on.changed(); });
  hear('grid', (grid) => { takeGrid(grid); on.rearranged(); on.changed(); });
  hear('delta', (delta) => {
    const { rearranged, changed } = takeDelta(delta);
    if (rearranged) on.rearranged(); else on.cells(changed);
    on.changed();
  });
  hear('happened', (notes) => {
    for (const [kind, all] of Object.entries(notes)) store.happened.set(kind, all);
    on.changed();
  });
  return source;
}

async function ask(path, query) {
  const answer = await fetch(`page/${path}?${new URLSearchParams(query)}`);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

/** Asks for groups of the clones that the filter chooses; with the key of one,
 * for that one and more of its clones. */
export const askList = ({ rule, text, states }, key = '') => ask('list', { rule, text, states: [...states].join(','), key });

/** Asks what a rule has in a namespace. */
export const askCell = ({ rule, namespace }) => ask('cell', { rule, namespace });
