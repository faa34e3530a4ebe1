/** A board of backgammon from White's side: points, the bar, trays, and the dice. */

import {svg} from '../../shared/dom.js';
import {CELL, toNameSize} from '../geometry.js';
import {mayAnimate} from '../drawing.js';
import {animateRoll, drawDie} from './race.js';

/**
 * @typedef {import('../../shared/types.js').Board} Board
 * @typedef {import('../../shared/types.js').Cell} Cell
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../styles.js').Shown} Shown
 * @typedef {import('../styles.js').Setting} Setting
 */

const [CHECKERS, MOST_STACKED] = [15, 5];
const [BAR, TRAY] = [6, 13]; // columns
const [LEFT, TOP, POINTS, MIDDLE] = [24, 60, 480, 140]; // the margins, and the heights of rows
const HEIGHT = 2 * POINTS + MIDDLE;
const [DISTANCE, SLAB] = [92, 30]; // from a checker to the next in a stack, and in a tray
const DICE = [10, 3]; // the column in whose left edge the dice of each player have their middle
const COLORS = {frame: '#6b4226', field: '#e8d6b3', dark: '#b5653a', light: '#f7ecd4', tray: '#4d2e1a', ink: '#fff6e6'};

/**
 * @param {string} color
 * @returns {string} a style that is darker in the dark
 */
const fill = (color) => `fill: color-mix(in srgb, ${color} 86%, var(--page))`;

/** @returns {Geometry} */
export function layOut() {
  const [rise, width, height] = [HEIGHT / 3, 14 * CELL + 2 * LEFT, HEIGHT + 2 * TOP];
  const rows = {rows: 3, columns: 14, left: LEFT, top: TOP, half: rise / 2, rise, shift: 0};
  return {style: 'backgammon', ...rows, width, height, nameSize: toNameSize(14 * CELL)};
}

/** @param {Geometry} geometry */
export function drawBoard({width, height, nameSize}) {
  const behind = [svg('rect', {width, height, rx: 22, style: fill(COLORS.frame)})];
  for (const column of [0, BAR + 1])
    behind.push(svg('rect', {x: toX(column), y: TOP, width: 6 * CELL, height: HEIGHT, style: fill(COLORS.field)}));
  for (const row of [0, 2]) {
    const y = row ? TOP + POINTS + MIDDLE : TOP;
    behind.push(svg('rect', {x: toX(TRAY) + 10, y, width: CELL - 10, height: POINTS, rx: 8, style: fill(COLORS.tray)}));
    for (let column = 0; column < TRAY; column++) {
      if (column === BAR) continue;
      const [x, edge, tip] = row ? [toX(column), TOP + HEIGHT, -420] : [toX(column), TOP, 420];
      const tone = (column + row / 2 + Number(column > BAR)) % 2 ? COLORS.light : COLORS.dark;
      const font = {style: `fill: ${COLORS.ink}; font-size: ${nameSize}px; font-weight: 600`};
      const name = svg('text', {x: x + CELL / 2, y: row ? height - TOP / 2 : TOP / 2, ...font}, toPoint([row, column]));
      behind.push(svg('path', {d: `M ${x + 3} ${edge} l 47 ${tip} l 47 ${-tip} Z`, style: fill(tone)}), name);
    }
  }
  return {behind};
}

/**
 * @param {SVGGElement} layer
 * @param {Geometry} _geometry
 * @param {Shown} shown
 * @param {Setting} setting
 */
export function drawState(layer, _geometry, {board, to_play: mover}, {animate, before, last, playable, move, rolled = ''}) {
  const {cells} = /** @type {Board} */ (board);
  const [landing, source] = (last !== null && before?.targets[last]) || [];
  const checkers = cells.flatMap((row, r) => row.flatMap((mark, c) => (r === 1 || mark < 0 ? [] : drawStack([r, c], mark))));
  const moved = source && landing[0] !== 1 ? checkers.find(({cell, isTop}) => isTop && String(cell) === String(landing)) : null;
  const dice = drawDice(/** @type {Board} */ (board), rolled, mover, playable);
  layer.replaceChildren(...checkers.map(({element}) => element), ...dice);
  if (animate && rolled && move === rolled) dice.filter((die) => !die.hasAttribute('opacity')).forEach(animateRoll);
  if (!moved) return;
  layer.append(moved.element); // over the others
  const [[x, y], [x0, y0]] = [moved.place, placeOf(source, countOf(/** @type {Board} */ (before), source) - 1)];
  if (moved.isBare) moved.element.append(svg('circle', {r: 11, style: 'fill: var(--other); fill-opacity: 0.75'}));
  if (animate && mayAnimate()) {
    const frames = [{transform: `translate(${x0 - x}px, ${y0 - y}px)`}, {transform: 'none'}];
    moved.element.firstElementChild?.animate(frames, {duration: 220, easing: 'ease-out'});
  }
}

/**
 * @param {string} label
 * @returns {Element[]} two dice; of the first roll one in the color of each player, and the higher one begins
 */
export function drawOutcome(label) {
  const [, begins, high, low] = /^([XO]?)(\d)(\d)$/.exec(label) ?? [];
  const faces = begins === 'O' ? [low, high] : [high, low];
  const dice = faces.map((face, index) => {
    const place = {transform: `translate(${112 * index} 0)`, class: begins ? `player-${index}` : 'dice'};
    return svg('g', place, begins ? drawDie(Number(face), false, OWN) : drawDie(Number(face), false));
  });
  return [svg('svg', {viewBox: '-50 -50 212 100', width: 52, height: 25, 'aria-hidden': 'true'}, ...dice)];
}

/**
 * @param {Board} board
 * @param {Cell} cell
 * @param {string[]} names of the players
 * @returns {string} `Point 6: 5 × White`
 */
export function describe(board, [row, column], names) {
  const mark = board.cells[row][column];
  if (row === 1) {
    if (Object.values(board.targets).some((cells) => cells.some(([r, c]) => r === 1 && c === column))) return 'Roll the dice';
    return `Dice of ${names[column > BAR ? 0 : 1]}: ${board.marks[mark] ?? 'none'}`;
  }
  const place = column === BAR ? 'Bar' : column === TRAY ? 'Borne off' : `Point ${toPoint([row, column])}`;
  if (mark >= 0) return `${place}: ${countOf(board, [row, column])} × ${names[ownerOf(mark)]}`;
  return `${place}${column === BAR || column === TRAY ? ` of ${names[row ? 0 : 1]}` : ''}: empty`;
}

const OWN = {body: 'var(--stone)', pips: 'var(--other)'}; // the colors of a player's dice
const toX = (/** @type {number} */ column) => LEFT + column * CELL;
const ownerOf = (/** @type {number} */ mark) => (mark < CHECKERS ? 0 : 1);
const countOf = (/** @type {Board} */ {cells}, /** @type {Cell} */ [row, column]) => (cells[row][column] % CHECKERS) + 1;
const toPoint = (/** @type {Cell} */ [row, column]) =>
  row ? 12 - column + Number(column > BAR) : 13 + column - Number(column > BAR);

/**
 * @param {Cell} cell
 * @param {number} index of a checker in it
 * @returns {[x: number, y: number]} its center
 */
function placeOf([row, column], index) {
  const along = column === TRAY ? 26 + SLAB * index : 48 + DISTANCE * Math.min(index, MOST_STACKED - 1);
  const fromEdge = column === BAR ? POINTS - along : along; // on the bar, from the middle
  return [toX(column) + (column === TRAY ? 55 : CELL / 2), row ? TOP + HEIGHT - fromEdge : TOP + fromEdge];
}

/**
 * @param {Cell} cell
 * @param {number} mark
 * @returns {Array<{element: SVGGElement, cell: Cell, place: [number, number], isTop: boolean, isBare: boolean}>} the
 *     checkers in a cell; the last of many has their number
 */
function drawStack(cell, mark) {
  const [number, isTray] = [(mark % CHECKERS) + 1, cell[1] === TRAY];
  const shown = isTray ? number : Math.min(number, MOST_STACKED);
  return Array.from({length: shown}, (_, index) => {
    const place = placeOf(cell, index);
    const style = `fill: var(--stone); stroke: #1b140e; stroke-width: ${isTray ? 2 : 3}`;
    const isBare = !isTray && (index < shown - 1 || number === shown);
    const shape = isTray
      ? [svg('rect', {x: -36, y: -13, width: 72, height: 26, rx: 5, style})]
      : [
          svg('circle', {r: 44, style}),
          svg('circle', {r: 33, style: 'fill: none; stroke: var(--other); stroke-opacity: 0.3; stroke-width: 4'}),
          isBare ? null : svg('text', {y: 2, style: 'fill: var(--other); font-size: 46px; font-weight: 750'}, number),
        ];
    const moving = svg('g', {}, ...shape);
    const element = svg('g', {transform: `translate(${place.join(' ')})`, class: `player-${ownerOf(mark)}`}, moving);
    return {element, cell, place, isTop: index === shown - 1, isBare};
  });
}

/**
 * @param {Board} board
 * @param {string} rolled the last roll, which may be that of the player before
 * @param {number} mover -1 where chance moves
 * @param {boolean} playable whether the user rolls
 * @returns {SVGGElement[]} the dice of this turn: those played are faint, as are those of the turn before
 */
function drawDice({cells, marks}, rolled, mover, playable) {
  const left = [0, 1].map((player) => cells[1].flatMap((mark, c) => (mark >= 0 && c > BAR === !player ? [marks[mark]] : [])));
  const [, high, low] = /(\d)(\d)$/.exec(rolled) ?? [];
  const whole = !high ? [] : high === low ? [high, high, high, high] : [high, low];
  return left.flatMap((own, player) => {
    const isUnrolled = own[0] === '?';
    if (isUnrolled && mover >= 0 && playable) return [drawRoll(player)];
    const isEarlier = !own.length && left[1 - player][0] === '?';
    const faces = isEarlier || whole.includes(own[0]) ? whole : own;
    const unplayed = [...own];
    return faces.map((face, index) => {
      const at = unplayed.indexOf(face);
      if (at >= 0) unplayed.splice(at, 1);
      const x = toX(DICE[player]) + 104 * (index - (faces.length - 1) / 2);
      const place = {transform: `translate(${x} ${TOP + HEIGHT / 2})`, class: `player-${player}`, opacity: at < 0 ? 0.3 : null};
      return svg('g', place, drawDie(Number(face), isUnrolled, OWN));
    });
  });
}

/**
 * @param {number} player
 * @returns {SVGGElement} what looks like a button
 */
function drawRoll(player) {
  return svg(
    'g',
    {transform: `translate(${toX(DICE[player])} ${TOP + HEIGHT / 2})`},
    svg('rect', {x: -100, y: -50, width: 200, height: 100, rx: 24, style: 'fill: var(--accent)'}),
    svg('text', {y: 2, style: 'fill: var(--on-accent); font-size: 56px; font-weight: 700'}, 'Roll'),
  );
}
