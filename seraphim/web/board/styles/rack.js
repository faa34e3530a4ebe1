/** A rack that stones drop into. */

import {svg} from '../../shared/dom.js';
import {CELL, center, layOutSquares} from '../geometry.js';
import {drawDisc as drawShape, mayAnimate} from '../drawing.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 * @typedef {import('../../shared/types.js').Cell} Cell
 */

const HOLE = 41; // radius of a hole of the rack
const FRAME = 26; // of the rack around its holes
const CHUTE = 86; // the space above the rack, where a stone waits to be dropped

export {drawShape};

/**
 * @param {Board} board
 * @returns {Geometry}
 */
export const layOut = (board) => layOutSquares('rack', board, {left: 26, top: CHUTE + 26, bottom: 92});

/**
 * @param {Geometry} geometry
 * @param {Board} board
 * @param {string[]} names
 */
export const drawBoard = (geometry, board, names) => ({behind: drawFeet(geometry), front: drawRack(geometry, names)});

/**
 * Let a stone drop.
 * @param {SVGGElement} moving
 * @param {Geometry} geometry
 * @param {Cell} cell where it lands
 */
export function animateEntry(moving, geometry, [row]) {
  if (!mayAnimate()) return;
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
