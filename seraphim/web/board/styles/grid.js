/** Squares with marks or tokens. */

import {layOutSquares} from '../geometry.js';
import {animateMark as animateEntry, drawEdgeNames, drawMark as drawShape, drawSquares} from '../pieces.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 */

export {animateEntry, drawShape};

/**
 * @param {Board} board
 * @returns {Geometry}
 */
export const layOut = (board) => layOutSquares('grid', board);

/**
 * @param {Geometry} geometry
 * @param {Board} board
 */
export const drawBoard = (geometry, board) => ({behind: [...drawSquares(geometry), ...drawEdgeNames(geometry, board)]});
