/** The styles of boards. A page loads the module of a style when it shows a game that is drawn so. */

import {layOutSquares, styleOf} from './geometry.js';

/**
 * @typedef {import('../shared/types.js').Board} Board
 * @typedef {import('../shared/types.js').Cell} Cell
 * @typedef {import('./geometry.js').Geometry} Geometry
 * @typedef {import('./geometry.js').Style} Style
 * @typedef {import('./board.js').Shown} Shown
 * @typedef {import('./board.js').Setting} Setting
 *
 * @typedef {object} Drawing what the module of a style exports, but for text, which is drawn by `drawText`
 * @property {(board: Board) => Geometry} [layOut] by default square cells with room for names
 * @property {(geometry: Geometry, board: Board, names: string[]) => {behind: SVGElement[], front?: SVGElement[]}}
 *     drawBoard draw the empty board, behind the pieces and in front of them; the names are those of moves by column
 * @property {(mark: string) => SVGElement[]} drawShape draw a piece around the origin; missing where `drawState` is there
 * @property {(moving: SVGGElement, geometry: Geometry, cell: Cell, source: Cell | null) => void} animateEntry animate a
 *     new piece; one that moved comes from its source
 * @property {boolean} [turns] whether a piece that takes the place of another is the same piece turned over
 * @property {(layer: SVGGElement, geometry: Geometry, shown: Shown, setting: Setting) => void} [drawState] draw the
 *     position in place of pieces in cells
 * @property {(label: string) => Element[]} [drawOutcome] draw an outcome of chance on its button
 * @property {(board: Board, cell: Cell, names: string[]) => string} [describe] say what is in a cell, if not as elsewhere
 * @property {(text: string) => Element[]} drawText
 */

/** @type {Map<Style, Drawing>} */
const drawings = new Map();

/**
 * Load what draws the boards of a game.
 * @param {Board | null} board of its first position
 * @returns {Promise<Style>}
 * @throws {TypeError} the server is gone
 */
export async function loadStyle(board) {
  const style = styleOf(board);
  drawings.set(style, await import(`./styles/${style}.js`));
  return style;
}

/**
 * @param {Style} style that is loaded
 * @returns {Drawing}
 */
export const drawingOf = (style) => /** @type {Drawing} */ (drawings.get(style));

/**
 * @param {Style} style that is loaded
 * @param {Board} board
 * @returns {Geometry}
 */
export const layOut = (style, board) => drawingOf(style).layOut?.(board) ?? layOutSquares(style, board);
