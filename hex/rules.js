/**
 * The rules of Hex for the engine in the browser: the same as hex/game.py, one position at a time.
 *
 * A state is {cells, toPlay, result, swapped}: the cells row by row from the top, each EMPTY or the player whose stone
 * lies there; the player to move; the result for player 0 once the game has ended, else null; and whether pieces were
 * swapped.
 */

const EMPTY = -1;
const MARKS = ['X', 'O'];
const NEIGHBORS = [[0, 1], [0, -1], [1, 0], [-1, 0], [1, -1], [-1, 1]];
const BITS = 63n; // of a word that are used

const countOf = (cells, player) => cells.reduce((sum, cell) => sum + (cell === player ? 1 : 0), 0);

/** The rules on a board of size × size cells; with `swap`, the action after the cells swaps pieces. */
function rulesOf(size, swap) {
  const CELLS = size * size;
  const rowNames = Array.from({length: size}, (_, row) => String(row + 1));
  const columnNames = [...'abcdefghijk'.slice(0, size)];
  const placeOf = (cell) => [Math.floor(cell / size), cell % size];
  const wordsEach = Math.ceil(CELLS / Number(BITS)); // of a player

  /** A shortest chain of a player's stones between their two sides, top and bottom or left and right; else []. */
  function chainOf(cells, player) {
    const along = (cell) => placeOf(cell)[player];
    const reached = [...cells.keys()].filter((cell) => cells[cell] === player && along(cell) === 0);
    const before = new Map(reached.map((cell) => [cell, -1]));
    for (const cell of reached) {
      if (along(cell) === size - 1) {
        const chain = [];
        for (let at = cell; at >= 0; at = before.get(at)) chain.push(at);
        return chain;
      }
      const [row, column] = placeOf(cell);
      for (const [down, right] of NEIGHBORS) {
        const [r, c] = [row + down, column + right];
        const other = r * size + c;
        if (r >= 0 && r < size && c >= 0 && c < size && cells[other] === player && !before.has(other)) {
          before.set(other, cell);
          reached.push(other);
        }
      }
    }
    return [];
  }

  const connects = (cells, player) => chainOf(cells, player).length > 0;

  function toState(cells, swapped = false) {
    const toPlay = (cells.filter((cell) => cell !== EMPTY).length + (swapped ? 1 : 0)) % 2;
    return {cells, toPlay, result: connects(cells, 1 - toPlay) ? 2 * toPlay - 1 : null, swapped};
  }

  return {
    name: swap ? `hex:${size},swap` : size === 7 ? 'hex' : `hex:${size}`,
    goal: 'Connect the two sides of the board in your color.',
    numActions: CELLS + (swap ? 1 : 0),
    observationShape: [size, size, 3],
    maxPlies: CELLS + (swap ? 1 : 0),
    labels: [
      ...Array.from({length: CELLS}, (_, cell) => columnNames[cell % size] + rowNames[Math.floor(cell / size)]),
      ...(swap ? ['swap-pieces'] : []),
    ],

    initial: () => toState(new Int8Array(CELLS).fill(EMPTY)),

    step({cells, toPlay, swapped}, action) {
      if (action === CELLS) {
        const [row, column] = placeOf(cells.indexOf(0));
        return toState(new Int8Array(CELLS).fill(EMPTY).fill(1, column * size + row, column * size + row + 1), true);
      }
      const next = cells.slice();
      next[action] = toPlay;
      return toState(next, swapped);
    },

    legal({cells, result, swapped}) {
      const empty = result === null ? [...cells.keys()].filter((cell) => cells[cell] === EMPTY) : [];
      return swap && !swapped && empty.length === CELLS - 1 ? [...empty, CELLS] : empty;
    },

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

    key: ({cells, swapped}) => cells.join('') + (swapped ? 'swapped' : ''),

    board(state) {
      const moves = this.legal(state).filter((action) => action !== CELLS);
      return {
        rows: size,
        columns: size,
        cells: Array.from({length: size}, (_, row) => [...state.cells.slice(row * size, (row + 1) * size)]),
        marks: MARKS,
        look: 'hexagons',
        targets: Object.fromEntries(moves.map((cell) => [cell, [placeOf(cell)]])),
        row_names: rowNames,
        column_names: columnNames,
      };
    },

    text({cells, toPlay}) {
      const width = rowNames.at(-1).length;
      const rows = rowNames.map((name, row) => {
        const marks = [...cells.slice(row * size, (row + 1) * size)].map((player) => MARKS[player] ?? '·');
        return `${' '.repeat(row)}${name.padStart(width)} ${marks.join(' ')}`;
      });
      if (swap) rows.push(`${MARKS[toPlay]} to move`);
      return [' '.repeat(width + 1) + columnNames.join(' '), ...rows].join('\n');
    },

    line: ({cells, result}) => (result === null ? [] : chainOf(cells, result > 0 ? 0 : 1).map(placeOf)),

    fromWords(list) {
      const stones = [0n, 0n];
      list.forEach((word, at) => {
        stones[Math.floor(at / wordsEach)] |= BigInt(word) << (BITS * BigInt(at % wordsEach));
      });
      const cells = new Int8Array(CELLS);
      for (let cell = 0; cell < CELLS; cell += 1) cells[cell] = stones.findIndex((bits) => bits & (1n << BigInt(cell)));
      return toState(cells, Boolean(stones[0] >> BigInt(CELLS)));
    },

    toWords({cells, swapped}) {
      const stones = [swapped ? 1n << BigInt(CELLS) : 0n, 0n];
      cells.forEach((player, cell) => {
        if (player !== EMPTY) stones[player] |= 1n << BigInt(cell);
      });
      const parts = Array.from({length: wordsEach}, (_, at) => BITS * BigInt(at));
      return stones.flatMap((bits) => parts.map((shift) => String((bits >> shift) & ((1n << BITS) - 1n))));
    },

    /** The state that a drawing shows, written as `text` does. */
    fromDrawing(text) {
      const told = swap ? /\n\s*([XO]) to move\s*$/i.exec(text) : null;
      const marks = (told ? text.slice(0, told.index) : text)
        .replaceAll('/', '\n')
        .split('\n')
        .map((row) => row.replace(/\s/g, '').toUpperCase().replace(/^[0-9]+/, ''))
        .filter((row) => [...row].some((mark) => !columnNames.includes(mark.toLowerCase())))
        .join('');
      if (!new RegExp(`^[XO·._-]{${CELLS}}$`).test(marks)) {
        const rows = size === 7 ? 'seven rows of seven cells' : `${size} rows of ${size} cells`;
        throw new Error(`a board of Hex has ${rows}, each of them X, O or . where it is empty`);
      }
      const cells = Int8Array.from([...marks], (mark) => MARKS.indexOf(mark));
      const [first, second] = [countOf(cells, 0), countOf(cells, 1)];
      const player = told ? MARKS.indexOf(told[1].toUpperCase()) : first > second ? 1 : 0;
      const swapped = swap && second > 0 && first - second === player - 1;
      if (!swapped && first - second !== player) {
        const more = swap ? ', or after a swap as many or one O more' : '';
        throw new Error(`X moves first and the sides alternate, so there must be as many X as O, or one more${more}`);
      }
      const state = toState(cells, swapped);
      if (connects(cells, state.toPlay)) {
        throw new Error('the player to move connects two sides: the game was over before');
      }
      const last = 1 - state.toPlay;
      const needed = (mark, cell) => mark === last && !connects(cells.with(cell, EMPTY), last);
      if (connects(cells, last) && !cells.some(needed)) {
        throw new Error('the sides were connected before the last stone');
      }
      return state;
    },
  };
}

/** The rules of a game by its name, such as `hex:5` or `hex:7,swap`. */
export function named(name) {
  const [, size, swap] = /^hex(?::([0-9]+)(,swap)?)?$/.exec(name);
  return rulesOf(Number(size ?? 7), swap !== undefined);
}

export default named('hex');
