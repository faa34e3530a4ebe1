/**
 * The rules of Hex 7×7 for the engine in the browser: the same as hex/game.py, one position at a time.
 *
 * A state is {cells, toPlay, result}: 49 cells row by row from the top, each EMPTY or the player whose stone lies there;
 * the player to move; and the result for player 0 once the game has ended, else null.
 */

const SIZE = 7;
const CELLS = SIZE * SIZE;
const EMPTY = -1;
const MARKS = ['X', 'O'];
const ROW_NAMES = ['1', '2', '3', '4', '5', '6', '7'];
const COLUMN_NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
const NEIGHBORS = [[0, 1], [0, -1], [1, 0], [-1, 0], [1, -1], [-1, 1]];

const placeOf = (cell) => [Math.floor(cell / SIZE), cell % SIZE];

/** A shortest chain of a player's stones between the player's two sides, top and bottom or left and right; else []. */
function chainOf(cells, player) {
  const along = (cell) => placeOf(cell)[player];
  const reached = [...cells.keys()].filter((cell) => cells[cell] === player && along(cell) === 0);
  const before = new Map(reached.map((cell) => [cell, -1]));
  for (const cell of reached) {
    if (along(cell) === SIZE - 1) {
      const chain = [];
      for (let at = cell; at >= 0; at = before.get(at)) chain.push(at);
      return chain;
    }
    const [row, column] = placeOf(cell);
    for (const [down, right] of NEIGHBORS) {
      const [r, c] = [row + down, column + right];
      const other = r * SIZE + c;
      if (r >= 0 && r < SIZE && c >= 0 && c < SIZE && cells[other] === player && !before.has(other)) {
        before.set(other, cell);
        reached.push(other);
      }
    }
  }
  return [];
}

const connects = (cells, player) => chainOf(cells, player).length > 0;

function toState(cells) {
  const toPlay = cells.filter((cell) => cell !== EMPTY).length % 2;
  return {cells, toPlay, result: connects(cells, 1 - toPlay) ? 2 * toPlay - 1 : null};
}

export default {
  name: 'hex',
  goal: 'Connect the two sides of the board in your color.',
  numActions: CELLS,
  observationShape: [SIZE, SIZE, 3],
  maxPlies: CELLS,
  labels: Array.from({length: CELLS}, (_, cell) => COLUMN_NAMES[cell % SIZE] + ROW_NAMES[Math.floor(cell / SIZE)]),

  initial: () => toState(new Int8Array(CELLS).fill(EMPTY)),

  step({cells, toPlay}, action) {
    const next = cells.slice();
    next[action] = toPlay;
    return toState(next);
  },

  legal: ({cells, result}) => (result === null ? [...cells.keys()].filter((cell) => cells[cell] === EMPTY) : []),

  toPlay: ({toPlay}) => toPlay,

  outcome: ({result}) => ({ended: result !== null, result: result ?? 0}),

  /** Fills `out` with the mover's stones, the opponent's, and whether the second player moves, as planes. */
  observe({cells, toPlay}, out) {
    for (let cell = 0; cell < CELLS; cell += 1) {
      out[3 * cell] = cells[cell] === toPlay ? 1 : 0;
      out[3 * cell + 1] = cells[cell] === 1 - toPlay ? 1 : 0;
      out[3 * cell + 2] = toPlay;
    }
  },

  key: ({cells}) => cells.join(''),

  board(state) {
    return {
      rows: SIZE,
      columns: SIZE,
      cells: Array.from({length: SIZE}, (_, row) => [...state.cells.slice(row * SIZE, (row + 1) * SIZE)]),
      marks: MARKS,
      look: 'hexagons',
      targets: Object.fromEntries(this.legal(state).map((cell) => [cell, [placeOf(cell)]])),
      row_names: ROW_NAMES,
      column_names: COLUMN_NAMES,
    };
  },

  text({cells}) {
    const rows = ROW_NAMES.map((name, row) => {
      const marks = [...cells.slice(row * SIZE, (row + 1) * SIZE)].map((player) => MARKS[player] ?? '·');
      return `${' '.repeat(row)}${name} ${marks.join(' ')}`;
    });
    return [`  ${COLUMN_NAMES.join(' ')}`, ...rows].join('\n');
  },

  line: ({cells, result}) => (result === null ? [] : chainOf(cells, result > 0 ? 0 : 1).map(placeOf)),

  fromWords(words) {
    const stones = words.map(BigInt);
    const cells = new Int8Array(CELLS);
    for (let cell = 0; cell < CELLS; cell += 1) cells[cell] = stones.findIndex((word) => word & (1n << BigInt(cell)));
    return toState(cells);
  },

  toWords: ({cells}) =>
    MARKS.map((_, player) => {
      let stones = 0n;
      cells.forEach((mark, cell) => {
        if (mark === player) stones |= 1n << BigInt(cell);
      });
      return String(stones);
    }),

  /** The state that a drawing shows, written as `text` does. */
  fromDrawing(text) {
    const marks = text
      .replaceAll('/', '\n')
      .split('\n')
      .map((row) => row.replace(/\s/g, '').toUpperCase().replace(/^[1-7]/, ''))
      .filter((row) => row && !/^[A-G]+$/.test(row))
      .join('');
    if (!/^[XO·._-]{49}$/.test(marks)) {
      throw new Error('a board of Hex has seven rows of seven cells, each of them X, O or . where it is empty');
    }
    const cells = Int8Array.from([...marks], (mark) => MARKS.indexOf(mark));
    const surplus = cells.reduce((sum, cell) => sum + (cell === 0 ? 1 : cell === 1 ? -1 : 0), 0);
    if (surplus !== 0 && surplus !== 1) {
      throw new Error('X moves first and the sides alternate, so there must be as many X as O, or one more');
    }
    const state = toState(cells);
    if (connects(cells, state.toPlay)) throw new Error('the player to move connects two sides: the game was over before');
    const last = 1 - state.toPlay;
    const needed = (mark, cell) => mark === last && !connects(cells.with(cell, EMPTY), last);
    if (connects(cells, last) && !cells.some(needed)) throw new Error('the sides were connected before the last stone');
    return state;
  },
};
