// The line to the service: one stream of events, and questions beside it.

import { store, takeConditions, takeDelta, takeGrid } from './store.js';

/** Follows the stream for as long as the page is open. on has a function for
 * each thing that can happen. */
export function follow(on) {
  const source = new EventSource('page/stream');
  let failing = 0;
  const hear = (event, take) => source.addEventListener(event, (message) => {
    store.heard = new Date();
    take(JSON.parse(message.data));
  });
  source.onopen = () => {
    clearTimeout(failing);
    failing = 0;
    store.connection = 'live';
    on.changed();
  };
  source.onerror = () => { // also when the service ends a stream that has lasted long, and takes the next
    failing ||= setTimeout(() => { store.connection = 'lost'; on.changed(); }, 3000);
    if (source.readyState === EventSource.CLOSED) { // refused: the browser has given up
      setTimeout(() => { clearTimeout(failing); follow(on); }, 5000);
    }
  };
  hear('standing', (standing) => {
    store.standing = standing;
    if (!standing.here) store.rules = null;
    on.changed();
  });
  hear('conditions', (conditions) => { takeConditions(conditions); on.changed(); });
  hear('grid', (grid) => { takeGrid(grid); on.rearranged(); on.changed(); });
  hear('delta', (delta) => {
    const { rearranged, changed } = takeDelta(delta);
    if (rearranged) on.rearranged(); else on.cells(changed);
    on.changed();
  });
  hear('spreads', (spreads) => {
    for (const spread of spreads) store.spreads.set(`${spread.rule} ${spread.source}`, spread);
    on.changed();
  });
  hear('denials', (notes) => { store.denials = notes; on.changed(); });
  hear('reloads', (notes) => { store.reloads = notes; on.changed(); });
}

async function ask(path, query) {
  const answer = await fetch(`page/${path}?${new URLSearchParams(query)}`);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

/** Asks for the clones that the filter chooses. */
export const askList = ({ rule, text, states }) => ask('list', { rule, text, states: [...states].join(',') });

/** Asks what a rule has in a namespace. */
export const askCell = ({ rule, namespace }) => ask('cell', { rule, namespace });
