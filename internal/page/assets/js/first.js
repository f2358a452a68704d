// A list that shows its first items, and all of them when asked to.

import { Component, h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { count } from './words.js';

const html = htm.bind(h);
const shownMost = 8;

export class First extends Component {
  render({ items, draw }, { all }) {
    const more = items.length - shownMost;
    return html`
      <ol>${(all ? items : items.slice(0, shownMost)).map(draw)}</ol>
      ${more > 0 && html`<button type="button" class="quiet more" aria-expanded=${Boolean(all)} onClick=${() => this.setState({ all: !all })}>
        ${all ? 'Show fewer' : `Show ${count(more)} more`}</button>`}`;
  }
}
