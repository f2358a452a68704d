// Words and numbers for people.

/** What the service says of itself: its version, its cluster, the states, and
 * how often it sends an event at least, in ms. */
export const { version, cluster, states, heartbeat } = JSON.parse(document.getElementById('about').textContent);

/** The states by name, each with its number as `at`. */
export const byName = Object.fromEntries(states.map((state, at) => [state.name, { ...state, at }]));

const number = new Intl.NumberFormat('en');
export const count = (n) => number.format(n);

export const many = (n, one, more = one + 's') => `${count(n)} ${n === 1 ? one : more}`;

/** What there is to say of cells, given how many are in each state. Retained
 * clones are counted apart: Headwater does not keep them in sync any more. */
export function weigh(sums) {
  const sum = (from, to) => sums.slice(from, to).reduce((a, b) => a + b, 0);
  const attention = sum(byName.held.at);
  const moving = sum(byName.removing.at, byName.held.at);
  const current = sums[byName.current.at];
  const words = [];
  if (attention > 0) words.push(`${count(attention)} ${attention === 1 ? 'needs' : 'need'} attention`);
  if (moving > 0) words.push(`${count(moving)} in progress`);
  let is = 'good';
  if (moving > 0) is = 'moving';
  if (attention > 0) is = 'trouble';
  return { all: current + moving + attention, current, attention, moving, retained: sums[byName.retained.at], words, is };
}

/** The time of day; with the date where that is another one. */
export function clock(time) {
  const at = new Date(time);
  const day = at.toDateString() === new Date().toDateString() ? '' : at.toLocaleDateString('en-CA') + ' ';
  return day + at.toLocaleTimeString('en-GB');
}

/** How long ago, in the largest unit that fits. */
export function ago(time) {
  const seconds = Math.max(0, (Date.now() - new Date(time)) / 1000);
  for (const [unit, length] of [['d', 86400], ['h', 3600], ['min', 60]]) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit} ago`;
  }
  return seconds < 5 ? 'just now' : `${Math.floor(seconds)} s ago`;
}

/** A length of time that is left, in its two largest units. */
export function left(seconds) {
  const all = Math.max(0, Math.round(seconds));
  const parts = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]].map(([unit, length], at, units) => {
    const n = Math.floor((at === 0 ? all : all % units[at - 1][1]) / length);
    return n > 0 && `${n} ${unit}`;
  }).filter(Boolean);
  return parts.slice(0, 2).join(' ') || '0 s';
}
