/** Squares with stones that are turned over. */

import {animateStone as animateEntry, drawDisc as drawShape, drawEdgeNames, drawFrame, drawSquares} from '../drawing.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 */

export {animateEntry, drawShape};
export const turns = true;

/**
 * @param {Geometry} geometry
 * @param {Board} board
 */
export const drawBoard = (geometry, board) => ({
  behind: [drawFrame(geometry), ...drawSquares(geometry), ...drawEdgeNames(geometry, board)],
});
