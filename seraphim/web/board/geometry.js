/** The style in which a board is drawn, and where its cells lie in the drawing. */

/**
 * @typedef {import('../shared/types.js').Board} Board
 * @typedef {import('../shared/types.js').Cell} Cell
 *
 * @typedef {'rack' | 'lines' | 'grid' | 'stones' | 'hexagons' | 'pieces' | 'crossings' | 'race' | 'tiles' |
 *     'net' | 'backgammon' | 'text'} Style a rack that stones drop into, a few cells between lines, squares, squares with stones,
 *     hexagons, squares with pieces of chess or checkers, stones on the crossings of lines, a race of points around a
 *     die, tiles that slide, the net of a cube, a board of backgammon, or the game's own drawing in text
 *
 * @typedef {object} Geometry in units of the drawing
 * @property {Style} style
 * @property {number} rows
 * @property {number} columns
 * @property {number} left of the cells
 * @property {number} top of the cells
 * @property {number} half from there to the centers of the first row
 * @property {number} rise from a row to the next
 * @property {number} shift of a row to the right of the one above, in cells
 * @property {number} width of the whole drawing
 * @property {number} height of the whole drawing
 * @property {number} nameSize font size of the names at the edge
 */

/** The side of a cell, in units of the drawing. */
export const CELL = 100;

const FEW_CELLS = 25;
const NAME = 0.031; // font size by the width of the cells: 10 pixels on a phone

/**
 * Choose the style for a game.
 * @param {Board | null} board of an unfinished position; a finished one has no targets
 * @returns {Style}
 */
export function styleOf(board) {
  if (!board) return 'text';
  if (board.look && board.look !== 'marks') return board.look;
  const targets = Object.values(board.targets);
  if (targets.length && targets.every((cells) => isColumn(cells, board.rows))) return 'rack';
  const single = targets.every((cells) => cells.length === 1);
  return single && board.marks.length <= 3 && board.rows * board.columns <= FEW_CELLS ? 'lines' : 'grid';
}

/**
 * @param {Board} board
 * @param {Cell[]} cells that name an action
 * @returns {Cell | null} where the piece that moves stands; null if none does
 */
export function sourceOf({cells: pieces}, cells) {
  if (cells.length !== 2) return null;
  const [row, column] = cells[1];
  return pieces[row][column] < 0 ? null : cells[1];
}

/**
 * @param {Cell[]} cells
 * @param {number} rows of the board
 * @returns {boolean} whether they are one whole column
 */
function isColumn(cells, rows) {
  return rows > 1 && cells.length === rows && cells.every(([, column]) => column === cells[0][1]);
}

/**
 * @param {number} width of the cells
 * @returns {number} font size of the names at their edge
 */
export const toNameSize = (width) => Math.max(14, NAME * width);

/**
 * Lay out square cells, with room for the names around them.
 * @param {Style} style
 * @param {Board} board
 * @param {{left: number, top: number, bottom: number}} [room] around the cells, by default for names if there are any
 * @returns {Geometry}
 */
export function layOutSquares(style, {rows, columns, column_names: names}, room) {
  const nameSize = toNameSize(columns * CELL);
  const margin = names ? 1.7 * nameSize : 8;
  const {left, top, bottom} = room ?? {left: margin, top: margin, bottom: margin};
  const [width, height] = [columns * CELL + 2 * left, top + rows * CELL + bottom];
  return {style, rows, columns, left, top, half: CELL / 2, rise: CELL, shift: 0, width, height, nameSize};
}

/**
 * @param {Geometry} geometry
 * @param {Cell} cell
 * @returns {[x: number, y: number]} its center
 */
export function center({left, top, half, rise, shift}, [row, column]) {
  return [left + (column + shift * row + 0.5) * CELL, top + half + row * rise];
}

/**
 * @param {Style} style
 * @returns {boolean} whether its moves are placed in cells, where numbers about them can stand
 */
export const hasPlaces = (style) => !['race', 'tiles', 'net'].includes(style);

/**
 * @param {Style} style
 * @returns {boolean} whether its pieces are discs
 */
export const hasStones = (style) => ['rack', 'stones', 'hexagons', 'crossings'].includes(style);
