// Words and numbers for people.

/** What Headwater says of itself: its version, and the states. */
export const { version, states } = JSON.parse(document.getElementById('about').textContent);

/** The states by name, each with its number as `at`. */
export const byName = Object.fromEntries(states.map((state, at) => [state.name, { ...state, at }]));

const number = new Intl.NumberFormat('en');
export const count = (n) => number.format(n);

export const many = (n, one, more = one + 's') => `${count(n)} ${n === 1 ? one : more}`;

/** Of how many cells there are in each state: all, those in sync, the words for
 * the others, the worst first, and what the worst is. */
export function weigh(sums) {
  const sum = (from, to) => sums.slice(from, to).reduce((a, b) => a + b, 0);
  const trouble = sum(byName.held.at);
  const others = [
    { is: 'trouble', n: trouble, text: `${trouble === 1 ? 'needs' : 'need'} attention` }, // a person's, or it fails
    { is: 'moving', n: sum(byName.removing.at, byName.held.at), text: 'on their way' },
    { is: 'retained', n: sums[byName.retained.at], text: 'retained' },
  ].filter(({ n }) => n > 0);
  return {
    all: sum(1), current: sums[byName.current.at],
    others: others.map(({ n, text }) => `${count(n)} ${text}`), is: others[0]?.is ?? 'good',
  };
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

/** A length of time with two digits that count. */
export function span(seconds) {
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  return seconds < 10 ? `${seconds.toFixed(1)} s` : `${count(Math.round(seconds))} s`;
}
