/** The players of a game for more than two: who plays them, and what each can expect. */

import {html} from '../shared/dom.js';
import {formatWorth} from '../shared/format.js';
import {showPlayers} from './controls.js';

/**
 * @typedef {import('../analysis/scheduler.js').Player} Player
 *
 * @typedef {object} Seats
 * @property {string[]} names
 * @property {Player[]} players who plays them
 * @property {string | null} program of the server that may play
 * @property {number | null} mover null if nobody is to move
 * @property {number[] | null} values expected results in [-1, 1]; null if they are not known
 * @property {boolean} exact whether these are proven
 * @property {number | null} points that a result of 1 is for people, if it is some
 */

/**
 * @param {HTMLElement} element is filled
 * @param {Seats} seats
 * @param {(player: number, choice: Player) => void} choose who plays a player
 */
export function showSeats(element, {names, players, program, mover, values, exact, points}, choose) {
  if (element.dataset.shown !== names.join()) {
    element.dataset.shown = names.join();
    element.replaceChildren(...names.map((name, player) => toSeat(name, player, choose)));
  }
  [...element.children].forEach((seat, player) => {
    const [select, meter, fill, worth] = ['select', '.meter', '.fill', '.worth'].map((each) => seat.querySelector(each));
    showPlayers(/** @type {HTMLSelectElement} */ (select), program);
    /** @type {HTMLSelectElement} */ (select).value = players[player];
    seat.classList.toggle('to-move', player === mover);
    const value = values?.[player] ?? 0;
    const text = values ? formatWorth(value, points) : '';
    Object.assign(/** @type {HTMLElement} */ (fill).style, {left: `${50 + Math.min(0, 50 * value)}%`, width: `${Math.abs(50 * value)}%`});
    meter?.setAttribute('aria-valuenow', value.toFixed(2));
    meter?.setAttribute('aria-valuetext', values ? `${text}${exact ? ', exact' : ''}` : 'not analyzed');
    worth?.replaceChildren(text);
    worth?.classList.toggle('proven', values !== null && exact);
  });
}

/**
 * @param {string} name
 * @param {number} player
 * @param {(player: number, choice: Player) => void} choose
 * @returns {HTMLElement}
 */
function toSeat(name, player, choose) {
  const label = `${name} is played by`;
  const select = html('select', {'aria-label': label, onchange: () => choose(player, /** @type {Player} */ (select.value))});
  const range = {'aria-valuemin': -1, 'aria-valuemax': 1, 'aria-label': `Expected result of ${name}`};
  return html(
    'div',
    {class: `seat player-${player}`},
    html('span', {class: 'who'}, html('span', {class: `dot player-${player}`}), html('strong', {}, name)),
    select,
    html('div', {class: 'meter', role: 'meter', ...range}, html('div', {class: 'fill'})),
    html('span', {class: 'worth', 'aria-hidden': 'true'}),
  );
}
