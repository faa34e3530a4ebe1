/** The board and its pieces as SVG. The style sheet sets the colors. */

import {svg} from '../shared/dom.js';
import {CELL, CHUTE, SIDE, center, hasStones} from './geometry.js';

/**
 * @typedef {import('./geometry.js').Geometry} Geometry
 * @typedef {import('../shared/types.js').Board} Board
 * @typedef {import('../shared/types.js').Cell} Cell
 */

const HOLE = 41; // radius of a hole of the rack
const DISC = 44; // a disc is held by the rim of its hole
const FRAME = 26; // of the rack around its holes

/** @returns {boolean} whether the user's settings allow animations */
export const mayAnimate = () => !window.matchMedia('(prefers-reduced-motion: reduce)').matches;

/**
 * Draw the empty board: the parts behind the pieces and those in front of them.
 * @param {Geometry} geometry
 * @param {string[]} names of the columns, for a rack
 * @param {Board} board
 * @returns {{behind: SVGElement[], front: SVGElement[]}}
 */
export function drawBoard(geometry, names, board) {
  if (geometry.style === 'rack') return {behind: drawFeet(geometry), front: drawRack(geometry, names)};
  if (geometry.style === 'hexagons') return {behind: [...drawHexagons(geometry), ...drawEdgeNames(geometry, board)], front: []};
  const behind = geometry.style === 'lines' ? drawLines(geometry) : drawSquares(geometry);
  return {behind: [...behind, ...drawEdgeNames(geometry, board)], front: []};
}

/**
 * Draw a piece.
 * @param {Geometry} geometry
 * @param {number} mark index of the piece
 * @param {string} text the mark itself
 * @param {Cell} cell
 * @returns {SVGGElement}
 */
export function drawPiece(geometry, mark, text, cell) {
  const [x, y] = center(geometry, cell);
  const shape = hasStones(geometry.style) ? drawDisc() : drawMark(geometry.style, mark, text);
  const place = svg('g', {transform: `translate(${x} ${y})`}, svg('g', {class: 'moving'}, ...shape));
  place.classList.add('piece', `player-${mark}`);
  return place;
}

/**
 * Animate a new piece: it drops, grows, or is drawn stroke by stroke.
 * @param {SVGGElement} piece
 * @param {Geometry} geometry
 * @param {Cell} cell where it lands
 */
export function animateEntry(piece, geometry, [row]) {
  const moving = /** @type {SVGGElement} */ (piece.firstElementChild);
  if (!mayAnimate()) return;
  if (geometry.style === 'stones' || geometry.style === 'hexagons') {
    moving.animate([{transform: 'scale(0.6)', opacity: 0}, {transform: 'none', opacity: 1}], {duration: 140, easing: 'ease-out'});
    return;
  }
  if (geometry.style !== 'rack') {
    for (const stroke of moving.querySelectorAll('[pathLength]')) {
      const delay = stroke.previousElementSibling ? 110 : 0;
      const timing = /** @type {const} */ ({duration: 190, delay, easing: 'ease-out', fill: 'backwards'});
      stroke.animate([{strokeDashoffset: 1}, {strokeDashoffset: 0}], timing);
    }
    return;
  }
  const height = row * CELL + CELL / 2 + CHUTE / 2 + FRAME;
  const frames = [
    {transform: `translateY(${-height}px)`, easing: 'cubic-bezier(0.4, 0, 0.9, 0.6)'},
    {transform: 'translateY(0)', offset: 0.72, easing: 'cubic-bezier(0.1, 0.5, 0.5, 1)'},
    {transform: `translateY(${-height * 0.05}px)`, offset: 0.86, easing: 'cubic-bezier(0.5, 0, 0.9, 0.5)'},
    {transform: 'translateY(0)'},
  ];
  moving.animate(frames, {duration: 130 + 13 * Math.sqrt(height)});
}

/**
 * Animate a piece that takes the place of another: it is turned over.
 * @param {SVGGElement} piece
 * @param {number} distance from the cell of the move, in cells
 */
export function animateFlip(piece, distance) {
  const moving = /** @type {SVGGElement} */ (piece.firstElementChild);
  if (!mayAnimate()) return;
  const timing = /** @type {const} */ ({duration: 190, delay: 70 * distance, easing: 'ease-out', fill: 'backwards'});
  moving.animate([{transform: 'scaleX(0)'}, {transform: 'scaleX(1)'}], timing);
}

/**
 * @param {Geometry} geometry
 * @param {Board} board
 * @returns {SVGElement[]} the names of rows and columns, in corners of the cells at the left and at the bottom;
 *     of hexagons at the left and above
 */
function drawEdgeNames(geometry, {row_names: rows = [], column_names: columns = []}) {
  const hexagons = geometry.style === 'hexagons';
  const inset = CELL / 2 - 13;
  const inRows = rows.map((name, row) => {
    const [x, y] = center(geometry, [row, 0]);
    const place = hexagons ? {x: x - CELL / 2 - 20, y} : {x: x - inset, y: y - inset};
    return svg('text', {...place, class: 'edge-name'}, name);
  });
  const inColumns = columns.map((name, column) => {
    const [x, y] = center(geometry, [hexagons ? 0 : geometry.rows - 1, column]);
    const place = hexagons ? {x, y: y - SIDE - 18} : {x: x + inset, y: y + inset};
    return svg('text', {...place, class: 'edge-name'}, name);
  });
  return [...inRows, ...inColumns];
}

/** @returns {SVGElement[]} a stone of the rack, around the origin */
function drawDisc() {
  return [
    svg('circle', {r: DISC, class: 'disc'}),
    svg('circle', {r: 31, class: 'disc-ridge'}),
    svg('path', {d: 'M -25 -14 A 29 29 0 0 1 2 -29', class: 'disc-shine'}),
  ];
}

/**
 * @param {string} style
 * @param {number} mark
 * @param {string} text
 * @returns {SVGElement[]}
 */
function drawMark(style, mark, text) {
  if (text === 'X') {
    return ['M -26 -26 L 26 26', 'M 26 -26 L -26 26'].map((d) => svg('path', {d, class: 'stroke', pathLength: 1}));
  }
  if (text === 'O') return [svg('circle', {r: 29, class: 'stroke', pathLength: 1, transform: 'rotate(-90)'})];
  return [svg('circle', {r: 38, class: 'token'}), svg('text', {class: 'token-text'}, text)];
}

/**
 * @param {Geometry} geometry
 * @param {string[]} names
 * @returns {SVGElement[]}
 */
function drawRack(geometry, names) {
  const {rows, columns, left, top, width} = geometry;
  const [x, y, height] = [left - FRAME + 4, top - FRAME + 8, rows * CELL + 2 * FRAME + 20];
  const holes = [];
  const rims = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [cx, cy] = center(geometry, [row, column]);
      holes.push(`M ${cx - HOLE} ${cy} a ${HOLE} ${HOLE} 0 1 0 ${2 * HOLE} 0 a ${HOLE} ${HOLE} 0 1 0 ${-2 * HOLE} 0 Z`);
      rims.push(svg('circle', {cx, cy, r: HOLE, class: 'rim'}));
    }
  }
  const plate = `${roundedRectangle(x, y, width - 2 * x, height, 30)} ${holes.join(' ')}`;
  const labels = names.map((name, column) => {
    const [cx] = center(geometry, [0, column]);
    return svg('text', {x: cx, y: top + rows * CELL + 22, class: 'rack-label'}, name);
  });
  return [
    svg('path', {d: plate, class: 'rack', 'fill-rule': 'evenodd'}),
    svg('path', {d: `M ${x + 26} ${y + 5} H ${width - x - 26}`, class: 'rack-shine'}),
    ...rims,
    ...labels,
  ];
}

/**
 * @param {Geometry} geometry
 * @returns {SVGElement[]}
 */
function drawFeet({rows, top, width}) {
  const y = top + rows * CELL;
  return [22, width - 68].map((x) => svg('path', {d: `M ${x} ${y} h 46 l 14 90 h -74 Z`, class: 'foot'}));
}

/**
 * @param {Geometry} geometry
 * @returns {SVGElement[]}
 */
function drawLines({rows, columns, left, top}) {
  const [right, bottom] = [left + columns * CELL, top + rows * CELL];
  const lines = [];
  for (let row = 1; row < rows; row++) lines.push(`M ${left} ${top + row * CELL} H ${right}`);
  for (let column = 1; column < columns; column++) lines.push(`M ${left + column * CELL} ${top} V ${bottom}`);
  return lines.map((d) => svg('path', {d, class: 'board-line'}));
}

/**
 * @param {Geometry} geometry
 * @returns {SVGElement[]}
 */
function drawSquares({rows, columns, left, top}) {
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
 * @param {Geometry} geometry
 * @returns {SVGElement[]} the cells, and the sides that each player connects
 */
function drawHexagons(geometry) {
  const {rows, columns} = geometry;
  const corner = (/** @type {Cell} */ cell, /** @type {number} */ number) => {
    const [[x, y], angle] = [center(geometry, cell), (Math.PI / 3) * number - Math.PI / 2];
    return `${(x + SIDE * Math.cos(angle)).toFixed(1)} ${(y + SIDE * Math.sin(angle)).toFixed(1)}`;
  };
  const hexagons = [];
  /** @type {string[][]} */
  const sides = [[], [], [], []];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const points = [0, 1, 2, 3, 4, 5].map((number) => corner([row, column], number));
      hexagons.push(svg('path', {d: `M ${points.join(' L ')} Z`, class: 'square'}));
    }
  }
  for (let column = 0; column < columns; column++) {
    sides[0].push(...[5, 0, 1].map((number) => corner([0, column], number)));
    sides[1].push(...[4, 3, 2].map((number) => corner([rows - 1, column], number)));
  }
  for (let row = 0; row < rows; row++) {
    sides[2].push(...[5, 4].map((number) => corner([row, 0], number)));
    sides[3].push(...[1, 2].map((number) => corner([row, columns - 1], number)));
  }
  const paths = sides.map((points, index) =>
    svg('path', {d: `M ${points.join(' L ')}`, class: `border player-${index < 2 ? 0 : 1}`}),
  );
  return [...hexagons, ...paths];
}

/**
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {number} r radius of the corners
 * @returns {string} path data
 */
function roundedRectangle(x, y, width, height, r) {
  const [across, down] = [width - 2 * r, height - 2 * r];
  const corner = (/** @type {number} */ dx, /** @type {number} */ dy) => `a ${r} ${r} 0 0 1 ${dx * r} ${dy * r}`;
  return [
    `M ${x + r} ${y} h ${across} ${corner(1, 1)} v ${down} ${corner(-1, 1)}`,
    `h ${-across} ${corner(-1, -1)} v ${-down} ${corner(1, -1)} Z`,
  ].join(' ');
}
