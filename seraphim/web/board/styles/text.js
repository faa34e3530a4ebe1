/** The text of a game without a board: squares with tokens if it is a grid of letters, else the text as it is. */

import {html, svg} from '../../shared/dom.js';
import {CELL, layOutSquares} from '../geometry.js';
import {drawEdgeNames, drawMark, drawSquares, toPiece} from '../drawing.js';

/**
 * @typedef {object} Grid
 * @property {string[][]} cells one character each, row by row
 * @property {string[]} [row_names]
 * @property {string[]} [column_names]
 * @property {string} rest of the text
 */

const COLOR_CODES = /\x1b\[[\d;]*m/g; // of a terminal
const CELLS = /^[\w.·+*#@●○-]$/u;
const EMPTY = ['.', '·', '_', '-', '+']; // the first of them that there is
const LEAST = 3; // rows and columns

/**
 * @param {string} text
 * @returns {Element[]}
 */
export function drawText(text) {
  const plain = text.replace(COLOR_CODES, '');
  const grid = readGrid(plain.split('\n').map((line) => line.trimEnd()));
  if (!grid) return [html('pre', {class: 'drawing'}, plain)];
  const rest = grid.rest ? [html('pre', {class: 'rest'}, grid.rest)] : [];
  return [drawGrid(grid), html('pre', {class: 'visually-hidden'}, plain), ...rest];
}

/**
 * @param {Grid} grid
 * @returns {SVGElement}
 */
function drawGrid({cells, row_names, column_names}) {
  const used = cells.flat();
  const empty = EMPTY.find((each) => used.includes(each));
  const pieces = used.filter((each) => each !== empty);
  const cases = pieces.some((each) => /[a-z]/.test(each)) && pieces.some((each) => /[A-Z]/.test(each));
  const [rows, columns] = [cells.length, cells[0].length];
  const board = {rows, columns, cells: [], marks: [], targets: {}, row_names, column_names};
  const geometry = layOutSquares('grid', board);
  const {width, height, nameSize} = geometry;
  const drawn = cells.flatMap((row, r) =>
    row.map((mark, c) => {
      if (mark === empty) return null;
      const player = 'xX'.includes(mark) || (cases && /[A-Z]/.test(mark)) ? 0 : 'oO'.includes(mark) || cases ? 1 : 2;
      const shape = drawMark(!cases && 'xo'.includes(mark) ? mark.toUpperCase() : mark);
      const piece = toPiece(geometry, player, shape, [r, c]);
      if (player === 2) piece.setAttribute('class', 'piece');
      return piece;
    }),
  );
  const image = svg(
    'svg',
    {viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true', class: 'drawing grid'},
    ...drawSquares(geometry),
    ...drawEdgeNames(geometry, board),
    ...drawn,
  );
  image.style.setProperty('--name-size', `${nameSize}px`);
  return image;
}

/**
 * Find the rows of a grid in a text: each character in a place of its own, perhaps with spaces between them, a name
 * before it or after it, and a line of letters that names the columns.
 * @param {string[]} lines
 * @returns {Grid | null} null if there is none, or more than one
 */
function readGrid(lines) {
  const named = lines.find((line) => /^\s*a\s*b\s*c[a-z\s]*$/i.test(line));
  const letters = named ? [...named.matchAll(/[a-z]/gi)] : [];
  const [left, step] = named ? [letters[0].index, letters[1].index - letters[0].index] : [0, null];
  const read = lines.map((line) => (isSame(line, named) ? null : readRow(line, left, step, letters.length)));
  const width = Math.max(...read.map((row) => row?.cells.length ?? 0));
  const places = read.flatMap((row, index) => (row && row.cells.length === width ? [index] : []));
  const [first, last] = [places[0], places.at(-1) ?? 0];
  if (width < LEAST || places.length < LEAST || last - first !== places.length - 1) return null;
  const rows = /** @type {{cells: string[], name: string}[]} */ (read.slice(first, last + 1));
  const rest = lines.filter((line, index) => (index < first || index > last) && !isSame(line, named));
  return {
    cells: rows.map(({cells}) => cells),
    row_names: rows.some(({name}) => name) ? rows.map(({name}) => name) : undefined,
    column_names: named ? letters.map(([letter]) => letter.toLowerCase()) : undefined,
    rest: rest.join('\n').trim(),
  };
}

/**
 * @param {string} line
 * @param {string | undefined} other
 * @returns {boolean} whether they are the same but for spaces
 */
const isSame = (line, other) => other !== undefined && line.trim() === other.trim();

/**
 * @param {string} line
 * @param {number} left where the first cell is
 * @param {number | null} step from a cell to the next; null if the line tells it
 * @param {number} count of cells; 0 for all of the line
 * @returns {{cells: string[], name: string} | null} null if it is no row of a grid
 */
function readRow(line, left, step, count) {
  const width = step ?? (line[1] === ' ' ? 2 : 1);
  const end = count ? left + (count - 1) * width + 1 : line.length;
  const [before, inside, after] = [line.slice(0, left), line.slice(left, end), line.slice(end)];
  const cells = [...inside].filter((_, place) => place % width === 0);
  const between = [...inside].filter((_, place) => place % width);
  const isRow = /^\s*\d*\s*$/.test(before) && /^\s*\d*\s*$/.test(after) && between.every((each) => each === ' ');
  return isRow && cells.length > 1 && cells.every((each) => CELLS.test(each)) ? {cells, name: before.trim()} : null;
}
