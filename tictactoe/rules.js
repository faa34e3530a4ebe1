/**
 * The rules of tic-tac-toe for the engine in the browser: the same as tictactoe/game.py, one position at a time.
 *
 * A state is {cells, toPlay, result}: the nine cells in the order of the actions, each EMPTY or the player whose stone
 * stands there; the player to move; and the result for player 0 once the game has ended, else null.
 */

const EMPTY = -1;
const FEWEST_PLIES = 5; // that a game may have
const MARKS = ['X', 'O'];
const LINES = [
  [0, 1, 2], [3, 4, 5], [6, 7, 8],
  [0, 3, 6], [1, 4, 7], [2, 5, 8],
  [0, 4, 8], [2, 4, 6],
];
const ROW_NAMES = ['1', '2', '3'];
const COLUMN_NAMES = ['a', 'b', 'c'];
const LABELS = ROW_NAMES.flatMap((row) => COLUMN_NAMES.map((column) => column + row));

/** The lines that are full of one player's stones. */
const fullLines = (cells) => LINES.filter(([a, b, c]) => cells[a] !== EMPTY && cells[a] === cells[b] && cells[a] === cells[c]);

function toState(cells) {
  const stones = [0, 1].map((player) => cells.filter((cell) => cell === player).length);
  const [line] = fullLines(cells);
  const isFull = stones[0] + stones[1] === cells.length;
  const result = line !== undefined ? (cells[line[0]] === 0 ? 1 : -1) : isFull ? 0 : null;
  return {cells, toPlay: stones[0] > stones[1] ? 1 : 0, result};
}

const placeOf = (cell) => [Math.floor(cell / 3), cell % 3];

/** The cells of a drawing, three rows of three, with or without the names of rows and columns. */
function cellsOf(text) {
  const rows = text.replaceAll('/', '\n').split('\n').map((row) => row.replace(/\s/g, '').toUpperCase());
  const cells = rows.map((row) => row.replace(/^[ABC123]+/, '')).join('');
  if (!/^[XO·._-]{9}$/.test(cells)) {
    throw new Error('a board of tic-tac-toe has three rows of three cells, each of them X, O or . where it is empty');
  }
  return [...cells].map((mark) => MARKS.indexOf(mark));
}

export default {
  name: 'tictactoe',
  goal: 'Get three of your marks in a row.',
  numActions: 9,
  observationShape: [3, 3, 2],
  maxPlies: 9,
  labels: LABELS,

  initial: () => toState(new Array(9).fill(EMPTY)),

  step: (state, action) => toState(state.cells.with(action, state.toPlay)),

  legal: ({cells, result}) => (result === null ? [...cells.keys()].filter((cell) => cells[cell] === EMPTY) : []),

  toPlay: ({toPlay}) => toPlay,

  outcome: ({result}) => ({ended: result !== null, result: result ?? 0}),

  /** How far a game has got: 0 at the fewest plies that one may have, 1 at the most. */
  progress({cells}) {
    return (cells.filter((cell) => cell !== EMPTY).length - FEWEST_PLIES) / (this.maxPlies - FEWEST_PLIES);
  },

  /** Fills `out` with the mover's stones and the opponent's, as two planes of the board. */
  observe({cells, toPlay}, out) {
    cells.forEach((player, cell) => {
      out[2 * cell] = player === toPlay ? 1 : 0;
      out[2 * cell + 1] = player === 1 - toPlay ? 1 : 0;
    });
  },

  key: ({cells}) => cells.join(),

  board(state) {
    const cells = [0, 3, 6].map((start) => state.cells.slice(start, start + 3));
    const targets = Object.fromEntries(this.legal(state).map((cell) => [cell, [placeOf(cell)]]));
    return {rows: 3, columns: 3, cells, marks: MARKS, targets, row_names: ROW_NAMES, column_names: COLUMN_NAMES};
  },

  text({cells}) {
    const rows = ROW_NAMES.map((name, row) => {
      const marks = cells.slice(3 * row, 3 * row + 3).map((player) => MARKS[player] ?? '·');
      return [name, ...marks].join(' ');
    });
    return [`  ${COLUMN_NAMES.join(' ')}`, ...rows].join('\n');
  },

  line: ({cells}) => [...new Set(fullLines(cells).flat())].sort((a, b) => a - b).map(placeOf),

  fromWords(words) {
    const [crosses, noughts] = words.map(Number);
    return toState(LABELS.map((_, cell) => ((crosses >> cell) & 1 ? 0 : (noughts >> cell) & 1 ? 1 : EMPTY)));
  },

  toWords: ({cells}) =>
    MARKS.map((_, player) => String(cells.reduce((stones, cell, place) => stones + (cell === player ? 1 << place : 0), 0))),

  /** The state that a drawing shows, written as `text` does. */
  fromDrawing(text) {
    const state = toState(cellsOf(text));
    const surplus = state.cells.reduce((sum, cell) => sum + (cell === 0 ? 1 : cell === 1 ? -1 : 0), 0);
    if (surplus !== 0 && surplus !== 1) {
      throw new Error('X moves first and the sides alternate, so there must be as many X as O, or one more');
    }
    if (fullLines(state.cells).some(([cell]) => state.cells[cell] === state.toPlay)) {
      throw new Error('three in a row of the player who did not move last: the game was over before');
    }
    return state;
  },
};
