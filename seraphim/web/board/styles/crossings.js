/** Stones on the crossings of lines, as in Go. */

import {svg} from '../../shared/dom.js';
import {center} from '../geometry.js';
import {animateStone as animateEntry, drawDisc as drawShape, drawEdgeNames, drawFrame} from '../drawing.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 * @typedef {import('../../shared/types.js').Cell} Cell
 */

export {animateEntry, drawShape};

/**
 * @param {Geometry} geometry
 * @param {Board} board
 */
export function drawBoard(geometry, board) {
  const {rows, columns} = geometry;
  const line = (/** @type {Cell} */ from, /** @type {Cell} */ to) =>
    svg('path', {d: `M ${center(geometry, from)} L ${center(geometry, to)}`, class: 'crossing-line'});
  const lines = [
    ...Array.from({length: rows}, (_, row) => line([row, 0], [row, columns - 1])),
    ...Array.from({length: columns}, (_, column) => line([0, column], [rows - 1, column])),
  ];
  const points = pointsOf(geometry).map((cell) => {
    const [cx, cy] = center(geometry, cell);
    return svg('circle', {cx, cy, r: 9, class: 'crossing-point'});
  });
  return {behind: [drawFrame(geometry), ...lines, ...points, ...drawEdgeNames(geometry, board)]};
}

/**
 * @param {Geometry} geometry
 * @returns {Cell[]} the crossings that are marked to find one's way
 */
function pointsOf({rows, columns}) {
  if (rows !== columns || rows < 9 || rows % 2 === 0) return [];
  const [near, middle] = [rows < 13 ? 2 : 3, (rows - 1) / 2];
  const places = [near, middle, rows - 1 - near];
  const cells = places.flatMap((row) => places.map((column) => /** @type {Cell} */ ([row, column])));
  return rows < 19 ? cells.filter(([row, column]) => (row === middle) === (column === middle)) : cells;
}
