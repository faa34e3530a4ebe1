/** Hexagons, and the sides that each player connects. */

import {svg} from '../../shared/dom.js';
import {CELL, center, toNameSize} from '../geometry.js';
import {animateStone as animateEntry, drawDisc as drawShape, drawName} from '../drawing.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 * @typedef {import('../../shared/types.js').Cell} Cell
 */

const SIDE = CELL / Math.sqrt(3); // of a hexagon as wide as a cell, with a corner at its top

export {animateEntry, drawShape};

/**
 * @param {Board} board
 * @returns {Geometry}
 */
export function layOut({rows, columns}) {
  const [rise, shift] = [1.5 * SIDE, 0.5];
  const across = (columns + shift * (rows - 1)) * CELL;
  const nameSize = toNameSize(across);
  const [left, top] = [1.7 * nameSize, 1.5 * nameSize];
  const [width, height] = [across + 2 * left, top + rows * rise + SIDE / 2 + 12];
  return {style: 'hexagons', rows, columns, left, top, half: SIDE, rise, shift, width, height, nameSize};
}

/**
 * @param {Geometry} geometry
 * @param {Board} board
 */
export const drawBoard = (geometry, board) => ({behind: [...drawHexagons(geometry), ...drawNames(geometry, board)]});

/**
 * @param {Geometry} geometry
 * @param {Board} board
 * @returns {SVGElement[]} the names of rows at the left, and of columns above
 */
function drawNames(geometry, {row_names: rows = [], column_names: columns = []}) {
  const inRows = rows.map((name, row) => {
    const [x, y] = center(geometry, [row, 0]);
    return drawName(name, x - CELL / 2 - geometry.nameSize, y);
  });
  const inColumns = columns.map((name, column) => {
    const [x, y] = center(geometry, [0, column]);
    return drawName(name, x, y - SIDE - 0.8 * geometry.nameSize);
  });
  return [...inRows, ...inColumns];
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
