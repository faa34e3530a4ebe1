/**
 * The rules of tic-tac-toe for three for the engine in the browser: the same as threes/game.py, one position at a time.
 *
 * A state is {cells}: row by row from the top, each EMPTY or the player whose stone stands there.
 */

const EMPTY = -1;
const [ROWS, COLUMNS] = [3, 4];
const MARKS = ['X', 'O', 'Z'];
const LOST = -0.5; // what each of the other two gets
const ROW_NAMES = ['1', '2', '3'];
const COLUMN_NAMES = ['a', 'b', 'c', 'd'];
const LABELS = ROW_NAMES.flatMap((row) => COLUMN_NAMES.map((column) => column + row));
const STEPS = [[0, 1], [1, 0], [1, 1], [1, -1]]; // down and right

const placeOf = (cell) => [Math.floor(cell / COLUMNS), cell % COLUMNS];

/** Three in a row, down, and both ways across. */
const LINES = LABELS.flatMap((_, cell) => {
  const [row, column] = placeOf(cell);
  const fitting = STEPS.filter(([down, right]) => row + 2 * down < ROWS && (column + 2 * right) in COLUMN_NAMES);
  return fitting.map(([down, right]) => [0, 1, 2].map((step) => cell + step * (down * COLUMNS + right)));
});

const countOf = (cells, player) => cells.filter((cell) => cell === player).length;
const moverOf = (cells) => (cells.length - countOf(cells, EMPTY)) % MARKS.length;

/** The lines that are full of one player's stones. */
const fullLines = (cells) => LINES.filter(([a, b, c]) => cells[a] !== EMPTY && cells[a] === cells[b] && cells[a] === cells[c]);

/** The cells of a drawing, with or without the names of rows and columns. */
function cellsOf(text) {
  const rows = text.replaceAll('/', '\n').split('\n').map((row) => row.replace(/\s/g, '').toUpperCase());
  const cells = rows.map((row) => row.replace(/^[ABCD123]+/, '')).join('');
  if (!/^[XOZ·._-]{12}$/.test(cells)) {
    throw new Error('a board of threes has three rows of four cells, each of them X, O, Z or . where it is empty');
  }
  return [...cells].map((mark) => MARKS.indexOf(mark));
}

export default {
  name: 'threes',
  goal: 'Get three of your marks in a row before the two others do: each plays for themselves.',
  numActions: LABELS.length,
  numPlayers: MARKS.length,
  observationShape: [ROWS, COLUMNS, MARKS.length],
  maxPlies: LABELS.length,
  labels: LABELS,

  initial: () => ({cells: new Array(LABELS.length).fill(EMPTY)}),

  step: ({cells}, action) => ({cells: cells.with(action, moverOf(cells))}),

  legal: ({cells}) => (fullLines(cells).length ? [] : [...cells.keys()].filter((cell) => cells[cell] === EMPTY)),

  toPlay: ({cells}) => moverOf(cells),

  /** The results of the three players. */
  outcome({cells}) {
    const [line] = fullLines(cells);
    const result = MARKS.map((_, player) => (line === undefined ? 0 : cells[line[0]] === player ? 1 : LOST));
    return {ended: line !== undefined || !cells.includes(EMPTY), result};
  },

  /** Fills `out` with the stones of the mover, of the next player and of the one after, as planes. */
  observe({cells}, out) {
    const mover = moverOf(cells);
    cells.forEach((player, cell) => {
      for (let seat = 0; seat < MARKS.length; seat += 1) {
        out[MARKS.length * cell + seat] = player === (mover + seat) % MARKS.length ? 1 : 0;
      }
    });
  },

  key: ({cells}) => cells.join(),

  board(state) {
    const cells = ROW_NAMES.map((_, row) => state.cells.slice(COLUMNS * row, COLUMNS * (row + 1)));
    const targets = Object.fromEntries(this.legal(state).map((cell) => [cell, [placeOf(cell)]]));
    return {rows: ROWS, columns: COLUMNS, cells, marks: MARKS, targets, row_names: ROW_NAMES, column_names: COLUMN_NAMES};
  },

  text({cells}) {
    const rows = ROW_NAMES.map((name, row) => {
      const marks = cells.slice(COLUMNS * row, COLUMNS * (row + 1)).map((player) => MARKS[player] ?? '·');
      return [name, ...marks].join(' ');
    });
    return [`  ${COLUMN_NAMES.join(' ')}`, ...rows].join('\n');
  },

  line: ({cells}) => [...new Set(fullLines(cells).flat())].sort((a, b) => a - b).map(placeOf),

  fromWords(words) {
    const stones = words.map(Number);
    return {cells: LABELS.map((_, cell) => stones.findIndex((word) => (word >> cell) & 1))};
  },

  toWords: ({cells}) =>
    MARKS.map((_, player) => String(cells.reduce((stones, cell, place) => stones + (cell === player ? 1 << place : 0), 0))),

  /** The state that a drawing shows, written as `text` does. */
  fromDrawing(text) {
    const cells = cellsOf(text);
    const plies = cells.length - countOf(cells, EMPTY);
    const inTurn = MARKS.every((_, player) => countOf(cells, player) === Math.floor((plies + 2 - player) / 3));
    if (!inTurn) throw new Error('these numbers of marks cannot come about: X, O and Z move in turn, and X begins');
    if (fullLines(cells).some(([cell]) => cells[cell] !== (plies + 2) % 3)) {
      throw new Error('three in a row of a player who did not move last: the game was over before');
    }
    return {cells};
  },
};
