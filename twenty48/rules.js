/**
 * The rules of 2048 for the engine in the browser: the same as twenty48/game.py, one position at a time.
 *
 * A state is {cells, newTiles, score}: the power of two on each tile, row by row from the top, 0 for an empty cell; how
 * many tiles chance has to add before the next move; and the score.
 */

const CHANCE = -1;
const MOST = 15; // the power of the highest tile, which merges no more
const BITS = 4n; // of a cell, in the word of the board
const FOUR = 0.1; // the probability that a new tile is a 4, and not a 2
const LABELS = ['up', 'right', 'down', 'left'];
const [RIGHT, DOWN, LEFT] = [1, 2, 3];

/** The rules on a board of rows × columns cells. */
function rulesOf(rows, columns) {
  const count = rows * columns;
  const powers = Array.from({length: count}, (_, cell) => Math.min(cell + 2, MOST));
  // On a full board of 4, 8, 16, … nothing merges any more.
  const points = powers.reduce((sum, power) => sum + (power - 1) * 2 ** power, 0);
  const [rowNames, columnNames] = [[...'1234'].slice(0, rows), [...'abcd'].slice(0, columns)];
  const lines = LABELS.map((_, action) => linesOf(action));

  /** The cells of each line along a move, the first at the edge that tiles slide to. */
  function linesOf(action) {
    const across = action === RIGHT || action === LEFT;
    return Array.from({length: across ? rows : columns}, (_, line) => {
      const cells = Array.from({length: across ? columns : rows}, (__, along) =>
        across ? line * columns + along : along * columns + line,
      );
      return action === RIGHT || action === DOWN ? cells.reverse() : cells;
    });
  }

  function slide(cells, action) {
    const moved = new Array(count).fill(0);
    let gained = 0;
    for (const line of lines[action]) {
      const kept = [];
      let canMerge = false;
      for (const power of line.map((cell) => cells[cell]).filter((each) => each > 0)) {
        if (canMerge && power === kept.at(-1) && power < MOST) {
          kept[kept.length - 1] = power + 1;
          gained += 2 ** (power + 1);
          canMerge = false;
        } else {
          kept.push(power);
          canMerge = true;
        }
      }
      kept.forEach((power, place) => (moved[line[place]] = power));
    }
    return {moved, gained};
  }

  const moves = (cells, action) => slide(cells, action).moved.some((power, cell) => power !== cells[cell]);
  const nameOf = (cell) => columnNames[cell % columns] + rowNames[Math.floor(cell / columns)];

  return {
    name: rows === 4 && columns === 4 ? 'twenty48' : `twenty48:${rows}x${columns}`,
    goal: 'Slide the tiles so that equal ones merge; each merge scores the tile that it makes.',
    numActions: LABELS.length,
    numPlayers: 1,
    numChanceOutcomes: 2 * count,
    observationShape: [rows, columns, MOST + 1],
    maxPlies: Math.min(powers.reduce((sum, power) => sum + 2 ** power, 0) + 2, 50_000),
    valueScale: count === 16 ? 0.05 : 0.5, // as in twenty48/game.py
    points,
    labels: LABELS,

    initial: () => ({cells: new Array(count).fill(0), newTiles: 2, score: 0}),

    step({cells, newTiles, score}, action) {
      if (newTiles) return {cells: cells.with(Math.floor(action / 2), 1 + (action % 2)), newTiles: newTiles - 1, score};
      const {moved, gained} = slide(cells, action);
      return {cells: moved, newTiles: 1, score: score + gained};
    },

    legal: ({cells, newTiles}) => (newTiles ? [] : [...LABELS.keys()].filter((action) => moves(cells, action))),

    toPlay: ({newTiles}) => (newTiles ? CHANCE : 0),

    /** The probability of each outcome where chance moves: 2·cell for a 2, 2·cell + 1 for a 4. */
    chances({cells, newTiles}) {
      const empty = cells.filter((power) => power === 0).length;
      return cells.flatMap((power) => (newTiles && power === 0 ? [(1 - FOUR) / empty, FOUR / empty] : [0, 0]));
    },

    /** The cell and the tile, such as b1=2; rows from the top. */
    chanceLabel: (_state, outcome) => `${nameOf(Math.floor(outcome / 2))}=${2 << outcome % 2}`,

    outcome(state) {
      const ended = !state.newTiles && !this.legal(state).length;
      return {ended, result: ended ? this.banked(state)[0] : 0};
    },

    /** What the player already has of the result. */
    banked: ({score}) => [Math.fround(score / points)],

    /** Fills `out` with a plane for each power of two, and one for the empty cells. */
    observe({cells}, out) {
      out.fill(0);
      cells.forEach((power, cell) => (out[(MOST + 1) * cell + power] = 1));
    },

    key: ({cells, newTiles}) => `${cells} ${newTiles}`,

    board(state) {
      const outcomes = this.chances(state).flatMap((chance, outcome) => (chance > 0 ? [outcome] : []));
      const placeOf = (cell) => [Math.floor(cell / columns), cell % columns];
      return {
        rows,
        columns,
        cells: rowNames.map((_, row) => state.cells.slice(row * columns, (row + 1) * columns).map((power) => power - 1)),
        marks: Array.from({length: MOST}, (_, power) => String(2 << power)),
        targets: Object.fromEntries(outcomes.map((outcome) => [outcome, [placeOf(Math.floor(outcome / 2))]])),
        row_names: rowNames,
        column_names: columnNames,
        look: 'tiles',
      };
    },

    text({cells, score}) {
      const tiles = cells.map((power) => (power ? String(2 ** power) : '·'));
      const width = Math.max(...cells.map((power) => String(2 ** power).length));
      const toLine = (names) => names.map((name) => name.padStart(width)).join(' ');
      const drawn = rowNames.map((name, row) =>
        toLine([name, ...tiles.slice(row * columns, (row + 1) * columns)]),
      );
      return [toLine(['', ...columnNames]), ...drawn, `score ${score.toLocaleString('en')}`].join('\n');
    },

    fromWords([board, newTiles, score]) {
      const bits = BigInt.asUintN(64, BigInt(board));
      const cells = powers.map((_, cell) => Number((bits >> (BITS * BigInt(cell))) & BigInt(MOST)));
      return {cells, newTiles: Number(newTiles), score: Number(score)};
    },

    toWords({cells, newTiles, score}) {
      const bits = cells.reduce((sum, power, cell) => sum | (BigInt(power) << (BITS * BigInt(cell))), 0n);
      return [String(BigInt.asIntN(64, bits)), String(newTiles), String(score)];
    },
  };
}

/** The rules of a game of this name: `twenty48`, `twenty48:2x3`. */
export function named(name) {
  const [, rows, columns] = /^twenty48(?::([2-4])x([2-4]))?$/.exec(name);
  return rulesOf(Number(rows ?? 4), Number(columns ?? 4));
}

export default named('twenty48');
