// What the page knows: the grid, kept current by the stream, and what the
// person looking chose.

import { byName, states } from './words.js';

export const store = {
  connection: 'connecting', // then live; silent while no event comes; lost while there is no stream
  heard: null, // when the last event came, in ms
  standing: null,
  rules: null, // null until the grid is there
  names: [], // of namespaces, by slot
  cells: [], // a Uint8Array of states for each rule, by slot
  revisions: new Map(), // those of the clones by slot, by row, for rules with any
  counts: [], // of each state, for each rule
  order: [], // the slots that are shown, by name
  deliveries: new Map(), // a list for each rule that has any
  moreDeliveries: {}, // how many others there are, by rule
  conditions: null, // null until they are there
  ruleByName: new Map(), // those of conditions
  happened: new Map(), // the latest notes of each kind
  filter: filterOf(new URLSearchParams(location.search)),
  selected: null, // {rule, namespace, from}: from is the key of a group, or empty for the grid
  detail: null,
  problems: { total: 0, hidden: 0, groups: [] },
  retained: { total: 0, hidden: 0, groups: [] },
  expanded: new Map(), // by the key of a group: those of its clones that are listed
  opened: new Set(), // rules of which a phone shows the cells
};

/** What the address asks for. */
function filterOf(query) {
  const named = (query.get('states') ?? '').split(',').filter((name) => name in byName);
  return { rule: query.get('rule') ?? '', text: (query.get('text') ?? '').trim().toLowerCase(), states: new Set(named) };
}

/** Has the address say what is chosen, so that it can be sent to somebody. */
export function keepFilter() {
  const { rule, text, states: chosen } = store.filter;
  const query = new URLSearchParams(Object.entries({ rule, text, states: [...chosen].join(',') }).filter(([, value]) => value));
  history.replaceState(null, '', query.size > 0 ? `?${query}` : location.pathname);
}

/** Takes in the state of everything but clones. */
export function takeConditions(conditions) {
  store.conditions = conditions;
  store.ruleByName = new Map(conditions.rules.map((rule) => [rule.name, rule]));
}

/** Takes in the deliveries. Returns whether cells look different. */
export function takeDeliveries({ all, more = {} }) {
  const marks = () => JSON.stringify([...store.deliveries.values()].flat().map(({ rule, verdict, revision, wanted, stable }) => [rule, verdict, revision, wanted, stable]));
  const before = marks();
  store.deliveries = new Map();
  for (const delivery of all) store.deliveries.set(delivery.rule, [...(store.deliveries.get(delivery.rule) ?? []), delivery]);
  store.moreDeliveries = more;
  return marks() !== before;
}

/** Whether a delivery is on its way, or held there. */
export const isUnderWay = ({ verdict }) => verdict === 'Delivering' || verdict === 'Held';

/** The revision that a clone has; 0 where none is known. */
export const revisionAt = (row, slot) => store.revisions.get(row)?.[slot] ?? 0;

/** What is special about a clone's revision: new while it is being delivered, and
 * other when it is neither that nor the stable one. Sources count their revisions
 * apart, so that nothing is said of a rule with several. */
export function revisionMark(row, slot) {
  const revision = revisionAt(row, slot);
  const all = store.deliveries.get(store.rules[row]) ?? [];
  if (revision === 0 || all.length !== 1 || store.moreDeliveries[store.rules[row]]) return '';
  const [delivery] = all;
  if (isUnderWay(delivery) && revision === delivery.revision) return 'new';
  return revision === delivery.wanted || revision === delivery.stable ? '' : 'other';
}

/** Whether clones name a rule that is not in the configuration any more. */
export const isRemoved = (rule) => store.conditions !== null && !store.ruleByName.get(rule)?.syncs;

/** What a rule of the grid is called. */
export const called = (rule) => (isRemoved(rule) ? `${rule} (removed)` : rule);

const collator = new Intl.Collator('en', { numeric: true });

/** Chooses and sorts the namespaces that are shown. */
export function arrange() {
  const text = store.filter.text;
  const order = [];
  for (let slot = 0; slot < store.names.length; slot++) {
    const name = store.names[slot];
    if (name !== '' && name.includes(text)) order.push(slot);
  }
  order.sort((a, b) => collator.compare(store.names[a], store.names[b]));
  store.order = order;
}

function recount(row) {
  const counts = new Array(states.length).fill(0);
  for (const state of store.cells[row]) counts[state]++;
  store.counts[row] = counts;
}

/** Takes in a whole grid. */
export function takeGrid({ rules, namespaces, cells, revisions = {} }) {
  store.rules = rules;
  store.names = namespaces;
  store.cells = cells.map((letters) => Uint8Array.from(letters, (letter) => letter.charCodeAt(0) - 97));
  store.revisions = new Map(Object.entries(revisions).map(([row, bySlot]) => [Number(row), bySlot]));
  store.counts = [];
  rules.forEach((_, row) => recount(row));
  arrange();
}

function grow(length) {
  store.cells = store.cells.map((row) => {
    if (row.length >= length) return row;
    const longer = new Uint8Array(Math.ceil(length * 1.25));
    longer.set(row);
    return longer;
  });
}

/** Takes in what changed. Returns whether namespaces came or went, and the
 * slots that changed in each row. */
export function takeDelta({ namespaces = {}, cells = {}, revisions = {} }) {
  const renamed = Object.entries(namespaces);
  for (const [slot, name] of renamed) {
    while (store.names.length <= slot) store.names.push('');
    store.names[slot] = name;
  }
  grow(store.names.length);
  const changed = new Map();
  for (const [row, pairs] of Object.entries(cells)) {
    const slots = [];
    for (let i = 0; i < pairs.length; i += 2) {
      const [slot, state] = [pairs[i], pairs[i + 1]];
      const counts = store.counts[row];
      counts[store.cells[row][slot]]--;
      counts[state]++;
      store.cells[row][slot] = state;
      slots.push(slot);
    }
    changed.set(Number(row), slots);
  }
  for (const [row, pairs] of Object.entries(revisions)) {
    const at = Number(row);
    if (!store.revisions.has(at)) store.revisions.set(at, []);
    for (let i = 0; i < pairs.length; i += 2) store.revisions.get(at)[pairs[i]] = pairs[i + 1];
    changed.set(at, [...new Set([...(changed.get(at) ?? []), ...pairs.filter((_, i) => i % 2 === 0)])]);
  }
  if (renamed.length > 0) {
    store.rules.forEach((_, row) => recount(row));
    arrange();
  }
  return { rearranged: renamed.length > 0, changed };
}

/** How many cells of each state there are, in the rows that are shown. A cell
 * that no rule selects is only counted with empty. */
export function totals({ empty = false } = {}) {
  const sums = new Array(states.length).fill(0);
  (store.rules ?? []).forEach((rule, row) => {
    if (shows(rule)) store.counts[row].forEach((n, state) => { sums[state] += n; });
  });
  if (!empty) sums[0] = 0;
  return sums;
}

export const shows = (rule) => store.filter.rule === '' || store.filter.rule === rule;
