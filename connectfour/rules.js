/**
 * The rules of connect four for the engine in the browser: the same as connectfour/game.py, one position at a time.
 *
 * A state is {cells, toPlay, result}: 42 cells row by row from the top, each EMPTY or the player whose stone lies
 * there; the player to move; and the result for player 0 once the game has ended, else null.
 */

const ROWS = 6;
const COLUMNS = 7;
const CELLS = ROWS * COLUMNS;
const STRIDE = ROWS + 1; // bits of a column in the words of a state: its cells from the bottom, and one above them
const PLANES = 6; // of an observation
const EMPTY = -1;
const FEWEST_PLIES = 7; // that a game may have
const MARKS = ['X', 'O'];
const LABELS = ['1', '2', '3', '4', '5', '6', '7'];
const DIRECTIONS = [[1, 0], [0, 1], [1, 1], [1, -1]];

const placeOf = (cell) => [Math.floor(cell / COLUMNS), cell % COLUMNS];

/** The cells of a player that stand in a row with `cell` if it is theirs too, in one direction and back. */
function cellsInRow(cells, cell, player, [down, right]) {
  const [row, column] = placeOf(cell);
  const found = [cell];
  for (const sign of [1, -1]) {
    let r = row + sign * down;
    let c = column + sign * right;
    while (r >= 0 && r < ROWS && c >= 0 && c < COLUMNS && cells[r * COLUMNS + c] === player) {
      found.push(r * COLUMNS + c);
      r += sign * down;
      c += sign * right;
    }
  }
  return found;
}

/** The cells of all lines of four or more of a player through a cell, if it is theirs too. */
function cellsOfLines(cells, cell, player = cells[cell]) {
  const rows = DIRECTIONS.map((direction) => cellsInRow(cells, cell, player, direction));
  return rows.filter(({length}) => length >= 4).flat();
}

/** The lowest empty cell of a column, or a negative number if it is full. */
function landing(cells, column) {
  let cell = CELLS - COLUMNS + column;
  while (cell >= 0 && cells[cell] !== EMPTY) cell -= COLUMNS;
  return cell;
}

/** The state of cells of which only the one named may have completed a line, or any if none is named. */
function toState(cells, last) {
  let stones = 0;
  let winner = EMPTY;
  for (let cell = 0; cell < CELLS; cell += 1) {
    if (cells[cell] !== EMPTY) stones += 1;
  }
  for (const cell of last === undefined ? cells.keys() : [last]) {
    if (cells[cell] !== EMPTY && cellsOfLines(cells, cell).length) winner = cells[cell];
  }
  const result = winner !== EMPTY ? 1 - 2 * winner : stones === CELLS ? 0 : null;
  return {cells, toPlay: stones % 2, result};
}

/** The cells of a drawing, six rows of seven, with or without the line of digits above. */
function cellsOf(text) {
  const rows = text.replaceAll('/', '\n').split('\n').map((row) => row.replace(/\s/g, '').toUpperCase());
  const marks = rows.map((row) => row.replace(/^[1-7]+/, '')).join('');
  if (!/^[XO·._-]{42}$/.test(marks)) {
    throw new Error('a board of connect four has six rows of seven cells, each of them X, O or . where it is empty');
  }
  return Int8Array.from([...marks], (mark) => MARKS.indexOf(mark));
}

/**
 * Whether some order of moves leads to the stones: takes them off again, the last player's first. Only the last stone
 * can complete a line, so no line may be left without it.
 */
function canBePlayed(cells) {
  const top = (column, height) => (ROWS - height) * COLUMNS + column;
  const full = Array.from({length: COLUMNS}, (_, column) => ROWS - 1 - Math.floor(landing(cells, column) / COLUMNS));
  const seen = new Set();
  const pending = [full];
  for (let heights = pending.pop(); heights; heights = pending.pop()) {
    const stones = heights.reduce((sum, height) => sum + height);
    if (!stones) return true;
    const player = stones % 2 ? 0 : 1;
    for (const [column, height] of heights.entries()) {
      if (!height || cells[top(column, height)] !== player) continue;
      const before = heights.with(column, height - 1);
      const key = before.reduce((sum, each) => STRIDE * sum + each);
      const rest = heights === full ? cells.with(top(column, height), EMPTY) : null;
      if (seen.has(key) || rest?.some((each, cell) => each === player && cellsOfLines(rest, cell).length)) continue;
      seen.add(key);
      pending.push(before);
    }
  }
  return false;
}

export default {
  name: 'connectfour',
  goal: 'Connect four of your discs in a row: across, down or diagonally.',
  numActions: COLUMNS,
  observationShape: [ROWS, COLUMNS, PLANES],
  maxPlies: CELLS,
  labels: LABELS,

  initial: () => toState(new Int8Array(CELLS).fill(EMPTY)),

  step(state, action) {
    const cells = state.cells.slice();
    const cell = landing(cells, action);
    cells[cell] = state.toPlay;
    return toState(cells, cell);
  },

  legal({cells, result}) {
    const actions = [];
    for (let column = 0; column < COLUMNS && result === null; column += 1) {
      if (cells[column] === EMPTY) actions.push(column);
    }
    return actions;
  },

  toPlay: ({toPlay}) => toPlay,

  outcome: ({result}) => ({ended: result !== null, result: result ?? 0}),

  /** How far a game has got: 0 at the fewest plies that one may have, 1 at the most. */
  progress({cells}) {
    return (cells.filter((cell) => cell !== EMPTY).length - FEWEST_PLIES) / (this.maxPlies - FEWEST_PLIES);
  },

  /**
   * Fills `out` with six planes: the stones of mover and opponent, the empty cells that complete four for each, those
   * where a stone can be dropped, and the mover's rows, which are, from the bottom, the odd ones for player 0.
   */
  observe({cells, toPlay}, out) {
    for (let cell = 0; cell < CELLS; cell += 1) {
      [toPlay, 1 - toPlay].forEach((player, plane) => {
        out[PLANES * cell + plane] = cells[cell] === player ? 1 : 0;
        out[PLANES * cell + 2 + plane] = cells[cell] === EMPTY && cellsOfLines(cells, cell, player).length ? 1 : 0;
      });
      const [row, column] = placeOf(cell);
      out[PLANES * cell + 4] = landing(cells, column) === cell ? 1 : 0;
      out[PLANES * cell + 5] = (ROWS - row) % 2 !== toPlay ? 1 : 0;
    }
  },

  key: ({cells}) => cells.join(''),

  board(state) {
    const cells = Array.from({length: ROWS}, (_, row) => [...state.cells.slice(row * COLUMNS, (row + 1) * COLUMNS)]);
    const targets = {};
    for (const column of this.legal(state)) {
      const [lowest] = placeOf(landing(state.cells, column));
      const others = [...cells.keys()].filter((row) => row !== lowest);
      targets[column] = [lowest, ...others].map((row) => [row, column]);
    }
    return {rows: ROWS, columns: COLUMNS, cells, marks: MARKS, targets};
  },

  text(state) {
    const rows = this.board(state).cells.map((row) => row.map((player) => MARKS[player] ?? '·').join(' '));
    return [LABELS.join(' '), ...rows].join('\n');
  },

  line({cells}) {
    const found = new Set([...cells.keys()].flatMap((cell) => (cells[cell] === EMPTY ? [] : cellsOfLines(cells, cell))));
    return [...found].sort((a, b) => a - b).map(placeOf);
  },

  fromWords(words) {
    const stones = words.map(BigInt);
    const cells = new Int8Array(CELLS);
    for (let cell = 0; cell < CELLS; cell += 1) {
      const [row, column] = placeOf(cell);
      const bit = 1n << BigInt(STRIDE * column + ROWS - 1 - row);
      cells[cell] = stones.findIndex((word) => word & bit);
    }
    return toState(cells);
  },

  toWords: ({cells}) =>
    MARKS.map((_, player) => {
      let stones = 0n;
      cells.forEach((mark, cell) => {
        const [row, column] = placeOf(cell);
        if (mark === player) stones |= 1n << BigInt(STRIDE * column + ROWS - 1 - row);
      });
      return String(stones);
    }),

  /** The state that a drawing shows, written as `text` does. */
  fromDrawing(text) {
    const cells = cellsOf(text);
    for (let cell = 0; cell < CELLS - COLUMNS; cell += 1) {
      if (cells[cell] !== EMPTY && cells[cell + COLUMNS] === EMPTY) {
        const [row, column] = placeOf(cell);
        throw new Error(`the stone in row ${row + 1} of column ${column + 1} floats: below it is an empty cell`);
      }
    }
    const surplus = cells.reduce((sum, cell) => sum + (cell === 0 ? 1 : cell === 1 ? -1 : 0), 0);
    if (surplus !== 0 && surplus !== 1) {
      throw new Error('X moves first and the sides alternate, so there must be as many X as O, or one more');
    }
    const state = toState(cells);
    if (cells.some((mark, cell) => mark === state.toPlay && cellsOfLines(cells, cell).length)) {
      throw new Error('four in a row of the player who did not move last: the game was over before');
    }
    if (!canBePlayed(cells)) throw new Error('no order of moves leads to these stones');
    return state;
  },
};
