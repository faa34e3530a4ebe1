/** Squares with marks or tokens. */

import {animateMark as animateEntry, drawEdgeNames, drawMark as drawShape, drawSquares} from '../drawing.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 */

export {animateEntry, drawShape};

/**
 * @param {Geometry} geometry
 * @param {Board} board
 */
export const drawBoard = (geometry, board) => ({behind: [...drawSquares(geometry), ...drawEdgeNames(geometry, board)]});
