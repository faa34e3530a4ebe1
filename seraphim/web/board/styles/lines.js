/** A few cells between lines. */

import {svg} from '../../shared/dom.js';
import {CELL} from '../geometry.js';
import {animateMark as animateEntry, drawEdgeNames, drawMark as drawShape} from '../drawing.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 */

export {animateEntry, drawShape};

/**
 * @param {Geometry} geometry
 * @param {Board} board
 */
export const drawBoard = (geometry, board) => ({behind: [...drawLines(geometry), ...drawEdgeNames(geometry, board)]});

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
