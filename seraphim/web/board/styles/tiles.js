/** Numbered tiles that slide and merge. */

import {svg} from '../../shared/dom.js';
import {CELL, center} from '../geometry.js';
import {drawEdgeNames, mayAnimate} from '../drawing.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 * @typedef {import('../../shared/types.js').Cell} Cell
 * @typedef {import('../styles.js').Shown} Shown
 * @typedef {import('../styles.js').Setting} Setting
 */

const EMPTY = -1;
const SLIDE = 130; // milliseconds
const SWIPE = 24; // pixels at least

/** Boards that take swipes. @type {WeakSet<Element>} */
const swiped = new WeakSet();

/** Of the tiles 2, 4, 8 …: from cold to warm, and dark from 2048 on. */
const COLORS = [
  '#e3e9f6', '#c9d6f2', '#9fc3ee', '#6fb3dd', '#56b9b4', '#67bd7d', '#a9c24f', '#e2bf3d', '#f0a23c', '#ee8145', '#e45f52',
  '#b3427b', '#7d3c98', '#54329a', '#33277f',
];
const FIRST_DARK = 10; // from which on numbers are white

/** @type {Record<string, [down: number, across: number]>} where tiles slide */
const WAYS = {up: [-1, 0], right: [0, 1], down: [1, 0], left: [0, -1]};

/**
 * @param {Geometry} geometry
 * @param {Board} board
 */
export function drawBoard(geometry, board) {
  const cells = board.cells.flatMap((row, r) => row.map((_, c) => drawCell(geometry, [r, c])));
  return {behind: [...cells, ...drawEdgeNames(geometry, board)]};
}

/**
 * @param {SVGGElement} layer
 * @param {Geometry} geometry
 * @param {Shown} shown
 * @param {Setting} setting
 */
export function drawState(layer, geometry, {board}, {animate, before, move = ''}) {
  const {cells, marks} = /** @type {Board} */ (board);
  /** @type {Map<string, SVGGElement>} */
  const tiles = new Map();
  cells.forEach((row, r) =>
    row.forEach((mark, c) => mark !== EMPTY && tiles.set(`${r},${c}`, drawTile(geometry, [r, c], mark, marks[mark]))),
  );
  layer.replaceChildren(...tiles.values());
  takeSwipes(/** @type {HTMLElement} */ (layer.closest('.board')));
  if (!animate || !before || !mayAnimate()) return;
  if (!(move in WAYS)) {
    const fresh = [...tiles].filter(([key]) => valueAt(before.cells, key) === EMPTY);
    for (const [, tile] of fresh) grow(tile, 0);
    return;
  }
  for (const {from, to} of slides(before.cells, WAYS[move])) {
    const tile = tiles.get(to.join());
    const mark = valueAt(before.cells, from.join());
    if (!tile || mark === EMPTY) continue;
    const merges = valueAt(cells, to.join()) !== mark;
    // Of two tiles that merge, both slide as they were; the tile that they make grows where they meet.
    const sliding = merges ? drawTile(geometry, from, mark, marks[mark]) : tile;
    const [[x0, y0], [x, y]] = [center(geometry, from), center(geometry, to)];
    const frames = [{transform: `translate(${x0 - x}px, ${y0 - y}px)`}, {transform: 'none'}];
    if (merges) {
      sliding.setAttribute('transform', `translate(${x} ${y})`);
      layer.append(sliding);
      grow(tile, SLIDE);
    }
    const done = sliding.firstElementChild?.animate(frames, {duration: SLIDE, easing: 'ease-out'});
    if (merges && done) done.onfinish = () => sliding.remove();
  }
}

/**
 * Let a swipe over a board press the button of its move.
 * @param {HTMLElement | null} board
 */
function takeSwipes(board) {
  if (!board || swiped.has(board)) return;
  swiped.add(board);
  let [x, y] = [0, 0];
  board.addEventListener('pointerdown', (event) => ([x, y] = [event.clientX, event.clientY]));
  board.addEventListener('pointerup', (event) => {
    const [across, down] = [event.clientX - x, event.clientY - y];
    if (Math.max(Math.abs(across), Math.abs(down)) < SWIPE) return;
    const way = Math.abs(across) > Math.abs(down) ? (across > 0 ? 'right' : 'left') : down > 0 ? 'down' : 'up';
    const buttons = /** @type {HTMLElement[]} */ ([...(board.parentElement?.querySelectorAll('.others .move') ?? [])]);
    buttons.find(({textContent}) => textContent === way)?.click();
  });
}

/**
 * @param {SVGGElement} tile
 * @param {number} delay milliseconds
 */
function grow(tile, delay) {
  const frames = [{transform: 'scale(0.4)', opacity: 0.2}, {transform: 'scale(1.06)', opacity: 1, offset: 0.8}, {transform: 'none'}];
  tile.firstElementChild?.animate(frames, {duration: 170, delay, easing: 'ease-out', fill: 'backwards'});
}

/**
 * @param {number[][]} cells before a move
 * @param {[down: number, across: number]} way
 * @returns {Array<{from: Cell, to: Cell}>} where each tile slides
 */
function slides(cells, [down, across]) {
  const [rows, columns] = [cells.length, cells[0].length];
  const found = /** @type {Array<{from: Cell, to: Cell}>} */ ([]);
  for (let line = 0; line < (across ? rows : columns); line++) {
    const length = across ? columns : rows;
    const at = (/** @type {number} */ along) => {
      const place = down + across > 0 ? length - 1 - along : along;
      return /** @type {Cell} */ (across ? [line, place] : [place, line]);
    };
    let [place, last] = [-1, EMPTY];
    for (let along = 0; along < length; along++) {
      const mark = valueAt(cells, at(along).join());
      if (mark === EMPTY) continue;
      const merges = mark === last;
      if (!merges) place += 1;
      last = merges ? EMPTY : mark;
      found.push({from: at(along), to: at(place)});
    }
  }
  return found;
}

/**
 * @param {number[][]} cells
 * @param {string} key of a cell
 * @returns {number}
 */
function valueAt(cells, key) {
  const [row, column] = key.split(',').map(Number);
  return cells[row][column];
}

/**
 * @param {Geometry} geometry
 * @param {Cell} cell
 * @returns {SVGElement}
 */
function drawCell(geometry, cell) {
  const [x, y] = center(geometry, cell);
  const side = CELL - 8;
  return svg('rect', {x: x - side / 2, y: y - side / 2, width: side, height: side, rx: 14, style: 'fill: var(--panel); stroke: var(--edge); stroke-width: 2'});
}

/**
 * @param {Geometry} geometry
 * @param {Cell} cell
 * @param {number} mark
 * @param {string} number
 * @returns {SVGGElement}
 */
function drawTile(geometry, cell, mark, number) {
  const [x, y] = center(geometry, cell);
  const side = CELL - 8;
  const ink = mark < FIRST_DARK ? '#14182a' : '#fff';
  const size = number.length < 3 ? 44 : number.length === 3 ? 36 : number.length === 4 ? 29 : 23;
  return svg(
    'g',
    {transform: `translate(${x} ${y})`},
    svg(
      'g',
      {},
      svg('rect', {x: -side / 2, y: -side / 2, width: side, height: side, rx: 14, style: `fill: ${COLORS[mark]}`}),
      svg('text', {style: `fill: ${ink}; font-size: ${size}px; font-weight: 750`}, number),
    ),
  );
}
