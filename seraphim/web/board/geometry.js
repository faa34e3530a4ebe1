/** The style in which a board is drawn, and where its cells lie in the drawing. */

/**
 * @typedef {import('../shared/types.js').Board} Board
 * @typedef {import('../shared/types.js').Cell} Cell
 *
 * @typedef {'rack' | 'lines' | 'grid' | 'stones' | 'hexagons' | 'text'} Style a rack that stones drop into, a few cells
 *     between lines, squares, squares with stones, hexagons, or the game's own drawing in text
 *
 * @typedef {object} Geometry in units of the drawing
 * @property {Style} style
 * @property {number} rows
 * @property {number} columns
 * @property {number} left of the cells
 * @property {number} top of the cells
 * @property {number} rise from a row to the next
 * @property {number} shift of a row to the right of the one above, in cells
 * @property {number} width of the whole drawing
 * @property {number} height of the whole drawing
 */

/** The side of a cell, in units of the drawing. */
export const CELL = 100;
/** The space above a rack, where a stone waits to be dropped. */
export const CHUTE = 86;

/** The side of a hexagon as wide as a cell, with a corner at its top. */
export const SIDE = CELL / Math.sqrt(3);

const FEW_CELLS = 25;

/**
 * Choose the style for a game.
 * @param {Board | null} board of an unfinished position; a finished one has no targets
 * @returns {Style}
 */
export function styleOf(board) {
  if (!board) return 'text';
  if (board.look === 'stones' || board.look === 'hexagons') return board.look;
  const targets = Object.values(board.targets);
  if (targets.length && targets.every((cells) => isColumn(cells, board.rows))) return 'rack';
  const single = targets.every((cells) => cells.length === 1);
  return single && board.marks.length === 2 && board.rows * board.columns <= FEW_CELLS ? 'lines' : 'grid';
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
 * @param {Style} style not text
 * @param {Board} board
 * @returns {Geometry}
 */
export function geometryOf(style, {rows, columns}) {
  const [left, top, bottom] = {
    rack: [26, CHUTE + 26, 92],
    lines: [14, 14, 14],
    grid: [8, 8, 8],
    stones: [8, 8, 8],
    hexagons: [38, 36, 12],
    text: [0, 0, 0],
  }[style];
  if (style === 'hexagons') {
    const [rise, shift] = [1.5 * SIDE, 0.5];
    const width = (columns + shift * (rows - 1)) * CELL + 2 * left;
    return {style, rows, columns, left, top, rise, shift, width, height: top + rows * rise + SIDE / 2 + bottom};
  }
  const width = columns * CELL + 2 * left;
  return {style, rows, columns, left, top, rise: CELL, shift: 0, width, height: top + rows * CELL + bottom};
}

/**
 * @param {Geometry} geometry
 * @param {Cell} cell
 * @returns {[x: number, y: number]} its center
 */
export function center({style, left, top, rise, shift}, [row, column]) {
  const first = style === 'hexagons' ? SIDE : CELL / 2;
  return [left + (column + shift * row + 0.5) * CELL, top + first + row * rise];
}

/**
 * @param {Style} style
 * @returns {boolean} whether its pieces are discs
 */
export function hasStones(style) {
  return style === 'rack' || style === 'stones' || style === 'hexagons';
}
