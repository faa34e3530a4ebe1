/** What styles of boards share: discs and marks, squares, the names at the edge, animations. CSS sets the colors. */

import {svg} from '../shared/dom.js';
import {CELL, center} from './geometry.js';

/**
 * @typedef {import('./geometry.js').Geometry} Geometry
 * @typedef {import('../shared/types.js').Board} Board
 * @typedef {import('../shared/types.js').Cell} Cell
 */

const DISC = 44; // as wide as the holes of a rack, and their rims
const HALF_TURN = 110; // milliseconds

/** @returns {boolean} whether the user's settings allow animations */
export const mayAnimate = () => !window.matchMedia('(prefers-reduced-motion: reduce)').matches;

/**
 * Put a piece into its cell.
 * @param {Geometry} geometry
 * @param {number} mark index of the piece: those of the players alternate
 * @param {SVGElement[]} shape
 * @param {Cell} cell
 * @param {number} players how many there are, or two
 * @returns {SVGGElement}
 */
export function toPiece(geometry, mark, shape, cell, players) {
  const [x, y] = center(geometry, cell);
  const moving = svg('g', {class: 'moving'}, ...shape);
  return svg('g', {transform: `translate(${x} ${y})`, class: `piece player-${mark % players}`}, moving);
}

/**
 * Turn a piece over: the old one shrinks to its edge, then the new one grows.
 * @param {SVGGElement} old is removed at its turn
 * @param {SVGGElement} piece
 * @param {number} distance from the cell of the move, in cells
 */
export function animateTurn(old, piece, distance) {
  const delay = 70 * distance;
  const moving = [old, piece].map((each) => /** @type {SVGGElement} */ (each.firstElementChild));
  const flat = [{transform: 'scaleX(1)'}, {transform: 'scaleX(0)'}];
  const away = moving[0].animate(flat, {duration: HALF_TURN, delay, easing: 'ease-in', fill: 'forwards'});
  away.onfinish = () => old.remove();
  const timing = /** @type {const} */ ({duration: HALF_TURN, delay: delay + HALF_TURN, easing: 'ease-out'});
  moving[1].animate(flat.reverse(), {...timing, fill: 'backwards'});
}

/**
 * Let a stone appear.
 * @param {SVGGElement} moving
 */
export function animateStone(moving) {
  if (!mayAnimate()) return;
  const frames = [{transform: 'scale(0.6)', opacity: 0}, {transform: 'none', opacity: 1}];
  moving.animate(frames, {duration: 140, easing: 'ease-out'});
}

/**
 * Draw a mark stroke by stroke, or let a piece move.
 * @param {SVGGElement} moving
 * @param {Geometry} geometry
 * @param {Cell} cell
 * @param {Cell | null} source
 */
export function animateMark(moving, geometry, cell, source) {
  if (!mayAnimate()) return;
  if (source) {
    const [[x0, y0], [x, y]] = [center(geometry, source), center(geometry, cell)];
    const frames = [{transform: `translate(${x0 - x}px, ${y0 - y}px)`}, {transform: 'none'}];
    moving.animate(frames, {duration: 180, easing: 'ease-out'});
    return;
  }
  for (const stroke of moving.querySelectorAll('[pathLength]')) {
    const delay = stroke.previousElementSibling ? 110 : 0;
    const timing = /** @type {const} */ ({duration: 190, delay, easing: 'ease-out', fill: 'backwards'});
    stroke.animate([{strokeDashoffset: 1}, {strokeDashoffset: 0}], timing);
  }
}

/**
 * Draw the names of rows at the left, and those of columns beside the row with the lowest name.
 * @param {Geometry} geometry
 * @param {Board} board
 * @returns {SVGElement[]}
 */
export function drawEdgeNames(geometry, {row_names: rows = [], column_names: columns = []}) {
  const {left, top, nameSize, height} = geometry;
  const away = Math.min(left / 2, nameSize);
  const y = rows[0] === '1' ? top - away : height - top + away;
  const inRows = rows.map((name, row) => drawName(name, left - away, center(geometry, [row, 0])[1]));
  return [...inRows, ...columns.map((name, column) => drawName(name, center(geometry, [0, column])[0], y))];
}

/**
 * @param {string} name
 * @param {number} x
 * @param {number} y
 * @returns {SVGElement}
 */
export const drawName = (name, x, y) => svg('text', {x, y, class: 'edge-name'}, name);

/** @returns {SVGElement[]} a stone around the origin */
export function drawDisc() {
  return [
    svg('circle', {r: DISC, class: 'disc'}),
    svg('circle', {r: 35, class: 'disc-ridge'}),
    svg('path', {d: 'M -25 -14 A 29 29 0 0 1 2 -29', class: 'disc-shine'}),
  ];
}

/**
 * @param {string} text
 * @returns {SVGElement[]} X, O and Z in strokes, another mark as a token
 */
export function drawMark(text) {
  if (text === 'X') {
    return ['M -26 -26 L 26 26', 'M 26 -26 L -26 26'].map((d) => svg('path', {d, class: 'stroke', pathLength: 1}));
  }
  if (text === 'O') return [svg('circle', {r: 29, class: 'stroke', pathLength: 1, transform: 'rotate(-90)'})];
  if (text === 'Z') return [svg('path', {d: 'M -25 -26 H 25 L -25 26 H 25', class: 'stroke', pathLength: 1})];
  return [svg('circle', {r: 38, class: 'token'}), svg('text', {class: 'token-text'}, text)];
}

/**
 * @param {Pick<Geometry, 'rows' | 'columns' | 'left' | 'top'>} geometry
 * @returns {SVGElement[]}
 */
export function drawSquares({rows, columns, left, top}) {
  const squares = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [x, y] = [left + column * CELL, top + row * CELL];
      squares.push(svg('rect', {x, y, width: CELL, height: CELL, class: (row + column) % 2 ? 'square odd' : 'square'}));
    }
  }
  return squares;
}

/**
 * @param {Pick<Geometry, 'width' | 'height'>} geometry
 * @returns {SVGElement} what lies under cells and names
 */
export const drawFrame = ({width, height}) => svg('rect', {width, height, rx: 14, class: 'frame'});
