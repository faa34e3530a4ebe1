/** A race of points: a track for each player, and a die between them. */

import {html, svg} from '../../shared/dom.js';
import {CELL} from '../geometry.js';
import {mayAnimate} from '../drawing.js';

/**
 * @typedef {import('../../shared/types.js').Board} Board
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../styles.js').Shown} Shown
 * @typedef {import('../styles.js').Setting} Setting
 */

const WIDTH = 520;
const RISE = 84; // from a track to the next, where there are more than two: then the die is below them
const [TRACK_LEFT, TRACK_WIDTH, TRACK_HEIGHT] = [16, 488, 34];

/** The places of pips on a face of three rows and columns, from 0 to 8. */
const PIPS = [[], [4], [2, 6], [2, 4, 6], [0, 2, 6, 8], [0, 2, 4, 6, 8], [0, 2, 3, 5, 6, 8]];

/**
 * @param {Board} board
 * @returns {Geometry}
 */
export function layOut({tracks = []}) {
  const [top, height] = tracks.length > 2 ? [RISE * tracks.length + 12, RISE * tracks.length + 120] : [120, 340];
  const left = (WIDTH - CELL) / 2;
  return {style: 'race', rows: 1, columns: 1, left, top, half: CELL / 2, rise: CELL, shift: 0, width: WIDTH, height, nameSize: 22};
}

export const drawBoard = () => ({behind: []});

/**
 * @param {SVGGElement} layer
 * @param {Geometry} geometry
 * @param {Shown} shown
 * @param {Setting} setting
 */
export function drawState(layer, {top, height}, {board, to_play: mover}, {names, animate, move = '', rolled = ''}) {
  const tracks = board?.tracks ?? [];
  const mine = mover < 0 ? tracks.findIndex(([, stake]) => stake > 0) : mover;
  const placeOf = (/** @type {number} */ player) => (player && tracks.length === 2 ? height - 42 : 44 + RISE * player);
  const drawn = tracks.map((track, player) => {
    return svg('g', {class: `player-${player}`}, ...drawTrack(track, placeOf(player), names[player], player === mine));
  });
  const die = svg('g', {transform: `translate(${WIDTH / 2} ${top + CELL / 2})`}, drawDie(Number(rolled), mover < 0));
  layer.replaceChildren(...drawn, die);
  if (animate && rolled && move === rolled) animateRoll(die);
}

/** @param {SVGElement} die around the origin of what holds it */
export function animateRoll({firstElementChild: die}) {
  const frames = [
    {transform: 'translate(-120px, -30px) rotate(-400deg)'},
    {transform: 'translate(12px, 0) rotate(14deg)', offset: 0.8},
    {transform: 'none'},
  ];
  if (mayAnimate()) die?.animate(frames, {duration: 480, easing: 'ease-out'});
}

export const describe = () => 'Roll the die';

/**
 * @param {string} label
 * @returns {Element[]} the face of a die with so many pips
 */
export function drawOutcome(label) {
  if (!(Number(label) in PIPS)) return [html('span', {}, label)];
  return [svg('svg', {viewBox: '-50 -50 100 100', width: 40, height: 40, 'aria-hidden': 'true'}, drawDie(Number(label), false))];
}

/**
 * @param {number} face 0 for none
 * @param {boolean} isRolling
 * @param {{body: string, pips: string}} [colors]
 * @returns {SVGGElement}
 */
export function drawDie(face, isRolling, {body: color, pips: ink} = {body: '#fdfdfb', pips: '#232838'}) {
  const pips = (isRolling ? [] : PIPS[face] ?? []).map((place) =>
    svg('circle', {cx: 26 * ((place % 3) - 1), cy: 26 * (Math.floor(place / 3) - 1), r: 9, style: `fill: ${ink}`}),
  );
  const body = {x: -46, y: -46, width: 92, height: 92, rx: 18, style: `fill: ${color}; stroke: var(--outline); stroke-width: 3`};
  return svg('g', {}, svg('rect', {...body, 'stroke-dasharray': isRolling ? '9 7' : null}), ...pips);
}

/**
 * @param {[points: number, stake: number, goal: number]} track
 * @param {number} y of its upper edge
 * @param {string} name
 * @param {boolean} isTurn
 * @returns {SVGElement[]}
 */
function drawTrack([points, stake, goal], y, name, isTurn) {
  const toWidth = (/** @type {number} */ count) => (TRACK_WIDTH * Math.min(count, goal)) / goal;
  const line = {x: TRACK_LEFT, y, height: TRACK_HEIGHT, rx: 12};
  const above = y - 24;
  const text = (/** @type {number} */ x, /** @type {string} */ anchor, /** @type {string} */ content, /** @type {number} */ size) =>
    svg('text', {x, y: above, style: `text-anchor: ${anchor}; font-size: ${size}px; font-weight: 700; fill: var(--ink)`}, content);
  return [
    svg('rect', {...line, width: TRACK_WIDTH, style: 'fill: var(--panel); stroke: var(--outline); stroke-width: 2'}),
    svg('rect', {...line, width: toWidth(points + stake), style: 'fill: var(--stone); fill-opacity: 0.4'}),
    svg('rect', {...line, width: toWidth(points), style: 'fill: var(--stone)'}),
    text(TRACK_LEFT, 'start', name, 24),
    text(WIDTH / 2, 'middle', isTurn && stake ? `+${stake} this turn` : '', 24),
    text(TRACK_LEFT + TRACK_WIDTH, 'end', `${points} / ${goal}`, 30),
  ];
}
