/**
 * The rules of Othello for the engine in the browser: the same as othello/game.py, one position at a time.
 *
 * A state is {cells, toPlay, result}: 64 cells row by row from the top, each EMPTY or the player whose stone lies there;
 * the player to move; and the result for player 0 once the game has ended, else null.
 */

const SIZE = 8;
const CELLS = SIZE * SIZE;
const PASS = CELLS;
const EMPTY = -1;
const PLANES = 4; // of an observation
const D4 = 27;
const CENTER = [D4, D4 + 1, D4 + SIZE, D4 + SIZE + 1];
const LATE = 8; // empty cells at most, of a position whose result `knownResult` tells
const MARKS = ['X', 'O'];
const ROW_NAMES = ['1', '2', '3', '4', '5', '6', '7', '8'];
const COLUMN_NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const DIRECTIONS = [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]];

const placeOf = (cell) => [Math.floor(cell / SIZE), cell % SIZE];
const nameOf = (cell) => COLUMN_NAMES[cell % SIZE] + ROW_NAMES[Math.floor(cell / SIZE)];

/** The opponent's stones that a player's stone in an empty cell flips. */
function flipsOf(cells, player, cell) {
  const [row, column] = placeOf(cell);
  const flips = [];
  for (const [down, right] of DIRECTIONS) {
    const line = [];
    let [r, c] = [row + down, column + right];
    while (r >= 0 && r < SIZE && c >= 0 && c < SIZE && cells[r * SIZE + c] === 1 - player) {
      line.push(r * SIZE + c);
      r += down;
      c += right;
    }
    if (r >= 0 && r < SIZE && c >= 0 && c < SIZE && cells[r * SIZE + c] === player) flips.push(...line);
  }
  return flips;
}

/** The cells where a player's stone flips something. */
function movesOf(cells, player) {
  const moves = [];
  for (let cell = 0; cell < CELLS; cell += 1) {
    if (cells[cell] === EMPTY && flipsOf(cells, player, cell).length) moves.push(cell);
  }
  return moves;
}

const countOf = (cells, player) => cells.reduce((sum, cell) => sum + (cell === player ? 1 : 0), 0);

/** The result for the player to move under best play, at least `alpha` and at most `beta`; changes `cells` meanwhile. */
function solve(cells, empty, player, alpha, beta, passed = false) {
  let best = null;
  for (const cell of empty) {
    if (cells[cell] !== EMPTY) continue;
    const flips = flipsOf(cells, player, cell);
    if (!flips.length) continue;
    for (const each of flips) cells[each] = player;
    cells[cell] = player;
    best = Math.max(best ?? alpha, -solve(cells, empty, 1 - player, -beta, -(best ?? alpha)));
    cells[cell] = EMPTY;
    for (const each of flips) cells[each] = 1 - player;
    if (best >= beta) return best;
  }
  if (best !== null) return best;
  if (passed) return Math.sign(countOf(cells, player) - countOf(cells, 1 - player));
  return -solve(cells, empty, 1 - player, -beta, -alpha, true);
}

function toState(cells, toPlay) {
  const ended = !movesOf(cells, toPlay).length && !movesOf(cells, 1 - toPlay).length;
  return {cells, toPlay, result: ended ? Math.sign(countOf(cells, 0) - countOf(cells, 1)) : null};
}

/** Whether the center is full and the other stones are in touch with these: play leads to no other states. */
function canBePlayed(cells) {
  const reached = CENTER.filter((cell) => cells[cell] !== EMPTY);
  if (reached.length < CENTER.length) return false;
  const seen = new Set(reached);
  for (const cell of reached) {
    for (const [down, right] of DIRECTIONS) {
      const [row, column] = [Math.floor(cell / SIZE) + down, (cell % SIZE) + right];
      const other = SIZE * row + column;
      if (row < 0 || row >= SIZE || column < 0 || column >= SIZE || cells[other] === EMPTY || seen.has(other)) continue;
      seen.add(other);
      reached.push(other);
    }
  }
  return cells.every((player, cell) => player === EMPTY || seen.has(cell));
}

export default {
  name: 'othello',
  goal: "Enclose your opponent's discs in a line to turn them over: most discs win.",
  numActions: CELLS + 1,
  observationShape: [SIZE, SIZE, PLANES],
  maxPlies: 120,
  labels: [...Array.from({length: CELLS}, (_, cell) => nameOf(cell)), 'pass'],

  initial() {
    const cells = new Int8Array(CELLS).fill(EMPTY);
    [cells[D4], cells[D4 + 1], cells[D4 + SIZE], cells[D4 + SIZE + 1]] = [1, 0, 0, 1];
    return toState(cells, 0);
  },

  step({cells, toPlay}, action) {
    const next = cells.slice();
    if (action !== PASS) for (const cell of [action, ...flipsOf(cells, toPlay, action)]) next[cell] = toPlay;
    return toState(next, 1 - toPlay);
  },

  legal({cells, toPlay, result}) {
    if (result !== null) return [];
    const moves = movesOf(cells, toPlay);
    return moves.length ? moves : [PASS];
  },

  toPlay: ({toPlay}) => toPlay,

  outcome: ({result}) => ({ended: result !== null, result: result ?? 0}),

  /** The result for player 0 under best play, or null if more than LATE cells are empty. */
  knownResult({cells, toPlay}) {
    const empty = [...cells.keys()].filter((cell) => cells[cell] === EMPTY);
    if (empty.length > LATE) return null;
    const result = solve(cells.slice(), empty, toPlay, -1, 1);
    return (toPlay === 0 ? result : -result) + 0; // + 0: never -0
  },

  /** Fills `out` with four planes of the board: the mover's stones, the opponent's, and the moves of both. */
  observe({cells, toPlay}, out) {
    out.fill(0);
    [toPlay, 1 - toPlay].forEach((player, plane) => {
      cells.forEach((owner, cell) => {
        if (owner === player) out[PLANES * cell + plane] = 1;
      });
      for (const cell of movesOf(cells, player)) out[PLANES * cell + 2 + plane] = 1;
    });
  },

  key: ({cells, toPlay}) => `${cells.join('')}${toPlay}`,

  board(state) {
    const cells = Array.from({length: SIZE}, (_, row) => [...state.cells.slice(row * SIZE, (row + 1) * SIZE)]);
    const moves = this.legal(state).filter((action) => action !== PASS);
    return {
      rows: SIZE,
      columns: SIZE,
      cells,
      marks: MARKS,
      look: 'stones',
      targets: Object.fromEntries(moves.map((cell) => [cell, [placeOf(cell)]])),
      row_names: ROW_NAMES,
      column_names: COLUMN_NAMES,
    };
  },

  text(state) {
    const rows = this.board(state).cells.map(
      (row, number) => `${number + 1} ${row.map((player) => MARKS[player] ?? '·').join(' ')}`,
    );
    return [`  ${COLUMN_NAMES.join(' ')}`, ...rows, `${MARKS[state.toPlay]} to move`].join('\n');
  },

  line: () => [],

  fromWords(words) {
    const [black, white] = words.map((word) => BigInt.asUintN(64, BigInt(word)));
    const cells = new Int8Array(CELLS);
    for (let cell = 0; cell < CELLS; cell += 1) {
      const bit = 1n << BigInt(cell);
      cells[cell] = black & bit ? 0 : cell === D4 || white & bit ? 1 : EMPTY;
    }
    return toState(cells, white & (1n << BigInt(D4)) ? 1 : 0);
  },

  toWords({cells, toPlay}) {
    const words = [0n, 0n];
    cells.forEach((player, cell) => {
      const bit = 1n << BigInt(cell);
      if (player === 0) words[0] |= bit;
      if (cell === D4 ? toPlay === 1 : player === 1) words[1] |= bit;
    });
    return words.map((word) => String(BigInt.asIntN(64, word)));
  },

  /** The state that a drawing shows, written as `text` does; without its last line, black moves if stones are even. */
  fromDrawing(text) {
    const told = /\n\s*([XO]) to move\s*$/i.exec(text);
    const rows = (told ? text.slice(0, told.index) : text).replaceAll('/', '\n').split('\n');
    const marks = rows
      .map((row) => row.replace(/\s/g, '').toUpperCase().replace(/^[1-8]/, ''))
      .filter((row) => row && !/^[A-H]+$/.test(row));
    if (!/^[XO·._-]{64}$/.test(marks.join(''))) {
      throw new Error('a board of Othello has eight rows of eight cells, each of them X, O or . where it is empty');
    }
    const cells = Int8Array.from([...marks.join('')], (mark) => MARKS.indexOf(mark));
    if (cells[D4] === EMPTY) throw new Error('the cell d4 is empty: the game begins with a stone there');
    if (!canBePlayed(cells)) throw new Error('the four cells of the center are not full, or stones do not touch those there');
    const stones = cells.filter((cell) => cell !== EMPTY).length;
    return toState(cells, told ? MARKS.indexOf(told[1].toUpperCase()) : stones % 2);
  },
};
