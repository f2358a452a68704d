// The strip of stages: how far the newest revision of a source came.

import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';
import { isUnderWay, store } from './store.js';
import { ago, clock, count, left, many } from './words.js';

const html = htm.bind(h);

/** The deliveries of a rule. */
export function Deliveries({ rule }) {
  const all = store.deliveries.get(rule) ?? [];
  const more = store.moreDeliveries[rule] ?? 0;
  return html`
    ${all.map((delivery) => html`<${Delivery} key=${delivery.source} delivery=${delivery} isNamed=${all.length + more > 1} />`)}
    ${more > 0 && html`<p class="hint">and ${many(more, 'more source')}</p>`}`;
}

/** What a delivery is, in a word that the style sheet knows as well. */
function kindOf({ verdict, paused, rolledBack }) {
  if (rolledBack) return 'RolledBack';
  return verdict === 'Delivering' && paused ? 'Paused' : verdict;
}

const signs = { Delivering: '▸', Paused: '‖', Held: '‖', Delivered: '✓', Rejected: '×', Superseded: '–', RolledBack: '↶' };

function inWords(delivery) {
  const { stage, wanted, rolledBack } = delivery;
  return {
    Delivering: `is being delivered: stage ${stage}`,
    Paused: `is paused in stage ${stage}`,
    Held: `is held in stage ${stage}`,
    Delivered: 'is delivered',
    Rejected: wanted > 0 ? `is rejected: namespaces have revision ${wanted}` : 'is rejected',
    Superseded: 'is superseded: the source was edited',
    RolledBack: `is rolled back to revision ${wanted} ${rolledBack}`,
  }[kindOf(delivery)];
}

function Delivery({ delivery, isNamed }) {
  const { source, revision, editedBy, recorded, verdict, reason, stages, waits, failsAt, gate } = delivery;
  const at = isUnderWay(delivery) ? stages.findIndex(({ name }) => name === delivery.stage) : stages.length;
  return html`<section class="delivery" data-is=${kindOf(delivery)} aria-label=${`Delivery of ${source}`}>
    <p class="line"><span role="status"><i aria-hidden="true">${signs[kindOf(delivery)]}</i><b>Revision ${revision}</b> ${inWords(delivery)}</span>
      <small>${isNamed && `${source}, `}${editedBy && `edited by ${editedBy}, `}<time dateTime=${recorded} title=${clock(recorded)}>${ago(recorded)}</time></small></p>
    <ol class="stages">${stages.map((stage, i) => html`<${Stage} key=${stage.name} stage=${stage} index=${i} at=${at} delivery=${delivery} />`)}</ol>
    ${verdict !== 'Delivered' && reason && html`<p class="why">${reason}</p>`}
    ${waits && html`<p class="why">${waits}${failsAt && html` <small>(fails at ${clock(failsAt)})</small>`}</p>`}
    ${isUnderWay(delivery) && html`<p class="hint">Gate: ${gate}.</p>`}
  </section>`;
}

/** One stage: how many of its namespaces have the revision, and how they do. */
function Stage({ stage, index, at, delivery }) {
  const { name, namespaces, have, healthy, pending, unhealthy, soak, approval } = stage;
  const is = index === at ? 'now' : index < at ? 'reached' : 'later';
  const doing = index > at || !isUnderWay(delivery) ? [] : [[healthy, 'healthy'], [pending, 'pending'], [unhealthy, 'unhealthy']].filter(([n]) => n > 0);
  const soaking = is === 'now' && delivery.soaksUntil;
  const then = [soak > 0 && `soak ${left(soak)}`, approval && 'an approval'].filter(Boolean).join(', then ');
  return html`<li data-stage=${name} data-is=${is} aria-current=${is === 'now' ? 'step' : undefined}>
    <b>${name}</b> ${isUnderWay(delivery) && html`<small>${{ reached: 'passed', now: 'now', later: 'not reached' }[is]}</small>`}
    <span>${count(have)} of ${many(namespaces, 'namespace')} at revision ${delivery.wanted}</span>
    ${doing.length > 0 && html`<span data-bad=${unhealthy > 0}>${doing.map(([n, word]) => `${count(n)} ${word}`).join(', ')}</span>`}
    ${soaking && html`<span class="soak">soaks ${left((new Date(delivery.soaksUntil) - Date.now()) / 1000)} more${approval ? ', then an approval' : ''}</span>`}
    ${!soaking && isUnderWay(delivery) && is !== 'reached' && then && html`<span>${then}</span>`}
  </li>`;
}

/** Whether a time on the page counts down. */
export const isSoaking = () => [...store.deliveries.values()].flat().some(({ soaksUntil }) => soaksUntil);

/** How many deliveries failed, of the rules that are shown. */
export const failures = (shows) => [...store.deliveries].filter(([rule]) => shows(rule)).flatMap(([, all]) => all)
  .filter(({ verdict, rolledBack }) => !rolledBack && (verdict === 'Held' || verdict === 'Rejected')).length;
