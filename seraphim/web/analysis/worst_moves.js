/** The moves of each side that lost most in a game that was analyzed, each a button. */

import {formatShare, formatValue} from '../shared/format.js';
import {html, keepFocus} from '../shared/dom.js';
import {MISTAKE, playerOf} from './values.js';
import {announce} from '../shared/notices.js';

/**
 * @typedef {import('../explorer/game_tree.js').GameNode} GameNode
 * @typedef {ReturnType<typeof import('./values.js').reviewLine>} Line
 */

const MOST_LISTED = 3; // of each side
const NOTE = `Each lost at least ${formatShare(MISTAKE)} of a win, where a draw is half a win, and a better move is known.`;
const NOTE_FOR_MANY = `Each lost its player at least ${2 * MISTAKE} of the expected result, and a better move is known.`;

/** @type {WeakMap<GameNode, HTMLElement>} which stay the same elements, so that they keep focus */
const buttons = new WeakMap();

/**
 * @param {Line} line
 * @param {number} player
 * @returns {Array<{node: GameNode, lost: number, better: string}>} the mistakes of the player that lost most
 */
export function worstMoves(line, player) {
  return line
    .flatMap(({node, mistake}) => (mistake && playerOf(node) === player ? [{node, ...mistake}] : []))
    .sort((one, other) => other.lost - one.lost)
    .slice(0, MOST_LISTED);
}

/**
 * @param {HTMLElement} element is filled
 * @param {Line} line empty if the game was not analyzed
 * @param {string[]} names of the players
 * @param {GameNode} current
 * @param {(node: GameNode) => void} choose
 */
export function showWorst(element, line, names, current, choose) {
  const worst = line.length ? names.map((_, player) => worstMoves(line, player)) : [];
  const key = JSON.stringify([names, worst.map((moves) => moves.map(({node, ...mistake}) => [node.id, mistake]))]);
  if (worst.length && !element.hasChildNodes()) announce('The worst moves of each side are listed.');
  if (key !== element.dataset.shown) {
    const sides = worst.map((moves, player) => {
      const title = html('h3', {}, html('span', {class: `dot player-${player}`}), `${names[player]}’s worst moves`);
      const items = moves.map((mistake) => html('li', {}, toButton(mistake, choose, names.length > 2)));
      return html('div', {}, title, items.length ? html('ol', {}, ...items) : html('p', {}, 'none'));
    });
    keepFocus(element, () => element.replaceChildren(...sides, ...(sides.length ? [html('p', {}, names.length > 2 ? NOTE_FOR_MANY : NOTE)] : [])));
  }
  element.dataset.shown = key;
  for (const {node} of worst.flat()) buttons.get(node)?.setAttribute('aria-current', String(node === current));
}

/**
 * @param {{node: GameNode, lost: number, better: string}} mistake
 * @param {(node: GameNode) => void} choose
 * @param {boolean} many whether there are more than two players
 * @returns {HTMLElement}
 */
function toButton({node, lost, better}, choose, many) {
  const button = buttons.get(node) ?? html('button', {type: 'button', onclick: () => choose(node)});
  buttons.set(node, button);
  const parts = [`move ${node.ply} `, html('strong', {}, node.label), html('em', {}, ` lost ${many ? formatValue(2 * lost).slice(1) : formatShare(lost)}`), `, better ${better}`];
  button.replaceChildren(...parts);
  return button;
}
