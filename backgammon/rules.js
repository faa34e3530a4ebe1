/**
 * The rules of backgammon for the engine in the browser: the same as backgammon/rules.py and backgammon/game.py, one
 * position at a time.
 *
 * A state is {checkers, player, high, low, left, chance}: how many checkers each player has in each slot, whose turn it
 * is, the larger and the smaller die that is left to play, how many checkers may still move, and what chance does next.
 */

const [CHANCE, EMPTY] = [-1, -1];
const [OFF, BAR, SLOTS, SIDES, CHECKERS] = [0, 25, 26, 6, 15];
const [ROLL, PASS] = [BAR * SIDES, BAR * SIDES + 1];
const [NOTHING, ROLLS, BEGINS] = [0, 1, 2]; // what chance does
const [MARKS, NAMES] = ['XO', ['White', 'Black']];
const START = [[24, 2], [13, 5], [8, 3], [6, 5]];
const MOST_SHOWN = 8; // checkers in a slot, which the observation tells apart
const HITS = 2 * MOST_SHOWN + SIDES; // the first of two planes
const PLANES = HITS + 2;
const HEIGHT = 5; // checkers drawn on a point
const [DICE, UNROLLED] = [[9, 2], 2 * CHECKERS + SIDES]; // the column of the first of two dice of each player

const slotOf = (action) => Math.floor(action / SIDES) + 1;
const dieOf = (action) => (action % SIDES) + 1;
const upTo = (count) => Array.from({length: count}, (_, index) => index);
const PAIRS = upTo(SIDES).flatMap((high) => upTo(high + 1).map((low) => [high + 1, low + 1]));
const UNEQUAL = PAIRS.filter(([high, low]) => high > low);
const BOARD_MARKS = [...[...MARKS].flatMap((mark) => upTo(CHECKERS).map((number) => mark + (number + 1))), ...'123456?'];
const LABELS = [...upTo(ROLL).map(labelOf), 'roll', 'pass'];

const ROLLED = {high: 0, low: 0, left: 0, chance: NOTHING}; // of a player who has not

/** The points of a move, such as 13/11, bar/22 or 6/off; 5/off(6) bears off by a larger die. */
function labelOf(action) {
  const [slot, die] = [slotOf(action), dieOf(action)];
  return `${slot === BAR ? 'bar' : slot}/${slot > die ? slot - die : slot === die ? 'off' : `off(${die})`}`;
}

/** The slots from which a die can be played by itself. */
function sources(own, other, die) {
  const highest = own.findLastIndex((checkers) => checkers > 0);
  return upTo(SLOTS).filter((slot) => {
    if (slot === OFF || !own[slot] || (own[BAR] && slot < BAR)) return false;
    if (slot > die) return other[BAR - slot + die] < 2;
    return highest <= SIDES && (slot === die || slot === highest);
  });
}

/** In how many of 36 rolls a player can hit a checker in each slot, as they count them, and in OFF any. */
function hits(own, other) {
  const found = new Array(SLOTS).fill(0);
  for (const [high, low] of PAIRS) {
    const hit = new Set();
    for (const dice of high === low ? [new Array(4).fill(high)] : [[high, low], [low, high]]) {
      let [reached, waiting] = [upTo(BAR).filter((slot) => slot > OFF && own[slot]), own[BAR]];
      for (const die of dice) {
        const targets = (waiting ? [BAR] : reached).map((slot) => slot - die);
        const open = targets.filter((slot) => slot > OFF && other[BAR - slot] < 2);
        if (waiting && !open.length) break;
        waiting = Math.max(0, waiting - 1);
        reached = [...new Set([...reached, ...open])];
        open.filter((slot) => other[BAR - slot]).forEach((slot) => hit.add(slot));
      }
    }
    if (hit.size) [OFF, ...hit].forEach((slot) => (found[slot] += high === low ? 1 : 2));
  }
  return found;
}

/** The slots from which the larger die that is left may be played, and those for the smaller one. */
function movable({checkers, player, high, low}) {
  const [own, other] = [checkers[player], checkers[1 - player]];
  const byHigh = sources(own, other, high);
  if (low === 0 || low === high) return [byHigh, []];
  const byLow = sources(own, other, low);
  const followed = (slots, die, next) => slots.filter((slot) => sources(moved(own, slot, die), other, next).length);
  const both = [followed(byHigh, high, low), followed(byLow, low, high)];
  if (both.some((slots) => slots.length)) return both;
  return [byHigh, byHigh.length ? [] : byLow];
}

function moved(own, slot, die) {
  const after = [...own];
  after[slot] -= 1;
  after[Math.max(slot - die, OFF)] += 1;
  return after;
}

/** Moves a checker; the turn ends when no die is left that can be played. */
function move(state, slot, die) {
  const {player, high, low} = state;
  const [own, other] = [moved(state.checkers[player], slot, die), [...state.checkers[1 - player]]];
  const [place, left] = [BAR - slot + die, state.left - 1];
  if (place < BAR && other[place]) {
    other[place] -= 1;
    other[BAR] += 1;
  }
  const checkers = player ? [other, own] : [own, other];
  const dice = low !== high ? {high: high + low - die, low: 0} : {high, low: left === 1 ? 0 : low};
  const after = {checkers, player, ...dice, left, chance: NOTHING};
  return left === 0 || !movable(after)[0].length ? {checkers, ...ROLLED, player: 1 - player} : after;
}

/** How many points player 0 has won, negative if the other player has, 0 before the end. */
function pointsWon({checkers}) {
  const winner = checkers.findIndex((own) => own[OFF] === CHECKERS);
  if (winner < 0) return 0;
  const others = checkers[1 - winner];
  return (winner ? -1 : 1) * (others[OFF] ? 1 : others.findLastIndex((count) => count > 0) > 18 ? 3 : 2);
}

const toRoll = (state) => state.chance === NOTHING && state.left === 0;
const diceOf = ({high, low, left}) => (low === 0 || low === high ? new Array(left).fill(high) : [high, low]);

/** The cell of a slot in the drawing. */
function placeOf(player, slot) {
  const [row, column] =
    slot === OFF ? [2, 13]
    : slot === BAR ? [2, 6]
    : slot > 12 ? [0, slot - 13 + Number(slot > 18)]
    : [2, 12 - slot + Number(slot < 7)];
  return [player ? 2 - row : row, column];
}

/** Half of the board in lines from its edge: of two players, whose checkers on points and on the bar are given. */
function drawHalf([first, second], points, bar) {
  const cellOf = (own, other, height) => {
    const number = Math.max(own, other);
    if (number < height) return height === 1 ? '  ·' : '   ';
    return height === HEIGHT && number > HEIGHT ? String(number).padStart(3) : `  ${MARKS[own ? 0 : 1]}`;
  };
  return upTo(HEIGHT).map((above) => {
    const cells = points.map((point) => cellOf(first[point], second[BAR - point], above + 1));
    const middle = cellOf(...bar, above + 1).replace(/^[· ]+/, '');
    return [...cells.slice(0, 6), ` |${middle.padStart(2)}|`, ...cells.slice(6)].join('').trimEnd();
  });
}

export default {
  name: 'backgammon',
  goal: 'Bring all your checkers home and bear them off before the opponent does; a checker alone can be hit.',
  numActions: PASS + 1,
  numChanceOutcomes: 2 * UNEQUAL.length,
  observationShape: [1, SLOTS, PLANES],
  maxPlies: 10_000,
  points: 3,
  labels: LABELS,

  initial() {
    const own = upTo(SLOTS).map((slot) => new Map(START).get(slot) ?? 0);
    return {checkers: [own, own], ...ROLLED, player: 0, chance: BEGINS};
  },

  step(state, action) {
    const {checkers, player, chance} = state;
    if (chance === NOTHING) {
      if (action < ROLL) return move(state, slotOf(action), dieOf(action));
      return action === ROLL ? {...state, chance: ROLLS} : {checkers, ...ROLLED, player: 1 - player};
    }
    const begins = Math.floor(action / UNEQUAL.length);
    const [high, low] = chance === ROLLS ? PAIRS[action] : UNEQUAL[action % UNEQUAL.length];
    return {checkers, player: chance === ROLLS ? player : begins, high, low, left: high === low ? 4 : 2, chance: NOTHING};
  },

  legal(state) {
    if (state.chance !== NOTHING) return [];
    if (toRoll(state)) return pointsWon(state) ? [] : [ROLL];
    const dice = [state.high, state.low];
    const found = movable(state).flatMap((slots, place) => slots.map((slot) => (slot - 1) * SIDES + dice[place] - 1));
    return found.length ? found.sort((one, other) => one - other) : [PASS];
  },

  toPlay: ({player, chance}) => (chance === NOTHING ? player : CHANCE),

  /** The probability of each outcome where chance moves. */
  chances: ({chance}) =>
    upTo(2 * UNEQUAL.length).map((outcome) => {
      if (chance !== ROLLS) return chance === BEGINS ? 1 / 30 : 0;
      return outcome < PAIRS.length ? (PAIRS[outcome][0] > PAIRS[outcome][1] ? 2 : 1) / 36 : 0;
    }),

  /** The dice, the larger one first, such as 31; of the first roll behind who begins, such as X31. */
  chanceLabel({chance}, outcome) {
    if (chance === ROLLS) return (PAIRS[outcome] ?? []).join('');
    return MARKS[Math.floor(outcome / UNEQUAL.length)] + UNEQUAL[outcome % UNEQUAL.length].join('');
  },

  /** The label of a legal action: with a star where it hits, and the die only where two bear the checker off. */
  labelIn(state, action) {
    const [slot, die] = [slotOf(action), dieOf(action)];
    if (action >= ROLL) return LABELS[action];
    if (slot > die) return LABELS[action] + (state.checkers[1 - state.player][BAR - slot + die] ? '*' : '');
    const ways = this.legal(state).filter((each) => slotOf(each) === slot && dieOf(each) >= slot);
    return ways.length > 1 ? LABELS[action] : `${slot}/off`;
  },

  outcome(state) {
    const points = pointsWon(state);
    return {ended: points !== 0, result: Math.fround(points / 3)};
  },

  /** Fills `out` with the planes that backgammon/game.py describes. */
  observe({checkers, player, high, low, left}, out) {
    out.fill(0);
    checkers.forEach((each, seat) =>
      each.forEach((count, slot) => {
        const [side, start] = [seat ^ player, PLANES * (seat === player ? slot : BAR - slot)];
        for (let plane = 0; plane < Math.min(count, MOST_SHOWN); plane += 1) out[start + side * MOST_SHOWN + plane] = 1;
        if (side || !count || slot === OFF) return;
        for (const die of diceOf({high, low, left})) out[start + 2 * MOST_SHOWN + die - 1] += 1;
      }),
    );
    [player, 1 - player].forEach((seat, side) =>
      hits(checkers[seat], checkers[1 - seat]).forEach((rolls, slot) => {
        out[PLANES * (side ? BAR - slot : slot) + HITS + side] = Math.ceil(rolls / 12);
      }),
    );
  },

  key({checkers, player, high, low, left, chance}) {
    return [checkers, player, high, low, left, chance].join();
  },

  board(state) {
    const {checkers, player, chance} = state;
    const cells = upTo(3).map(() => new Array(14).fill(EMPTY));
    const put = ([row, column], mark) => (cells[row][column] = mark);
    checkers.forEach((own, seat) =>
      own.forEach((count, slot) => count && put(placeOf(seat, slot), CHECKERS * seat + count - 1)),
    );
    const legal = this.legal(state);
    const area = upTo(4).map((place) => [1, DICE[player] - 1 + place]);
    if (chance === BEGINS) DICE.forEach((column) => put([1, column], UNROLLED));
    else if (chance || legal[0] === ROLL) area.slice(1, 3).forEach((place) => put(place, UNROLLED));
    const dice = diceOf(state);
    dice.forEach((die, place) => put([1, DICE[player] - Number(dice.length > 2) + place], 2 * CHECKERS + die - 1));
    const toCells = (action) =>
      action === ROLL ? area : [Math.max(slotOf(action) - dieOf(action), OFF), slotOf(action)].map((slot) => placeOf(player, slot));
    const targets = Object.fromEntries(legal.filter((action) => action < PASS).map((action) => [action, toCells(action)]));
    return {rows: 3, columns: 14, cells, marks: BOARD_MARKS, targets, look: 'backgammon', players: NAMES};
  },

  text(state) {
    const {checkers, player, chance} = state;
    const [upper, lower] = [upTo(12).map((column) => column + 13), upTo(12).map((column) => 12 - column)];
    const toNumbers = (points) =>
      [...points.slice(0, 6), ' '.repeat(5), ...points.slice(6)].map((point) => String(point).padStart(3)).join('');
    const halves = [drawHalf(checkers, upper, [0, checkers[1][BAR]]), drawHalf(checkers, lower, [checkers[0][BAR], 0]).reverse()];
    const lines = [toNumbers(upper), ...halves[0], `${' '.repeat(19)}BAR`, ...halves[1], toNumbers(lower)].join('\n');
    const off = `${lines}\noff: ${NAMES.map((name, seat) => `${name} ${MARKS[seat]} ${checkers[seat][OFF]}`).join(', ')}`;
    if (pointsWon(state)) return off;
    if (chance === BEGINS) return `${off}; each rolls a die, and the higher one begins`;
    const dice = diceOf(state);
    return `${off}; ${NAMES[player]} ${chance ? 'rolls' : dice.length ? `to play ${dice.join(' ')}` : 'to roll'}`;
  },

  fromWords(words) {
    const bits = words.slice(0, 4).map(BigInt);
    const bitOf = (word, place) => Number((bits[word] >> BigInt(place)) & 1n);
    const countOf = (seat, slot) =>
      upTo(4).reduce((sum, bit) => sum + (bitOf(2 * seat + (bit >> 1), slot + SLOTS * (bit & 1)) << bit), 0);
    const checkers = upTo(2).map((seat) => upTo(SLOTS).map((slot) => countOf(seat, slot)));
    const turn = Number(words[4]);
    return {checkers, player: turn & 1, high: (turn >> 1) & 7, low: (turn >> 4) & 7, left: (turn >> 7) & 7, chance: turn >> 10};
  },

  toWords({checkers, player, high, low, left, chance}) {
    const toWord = (own, bits) =>
      own.reduce((word, count, slot) => {
        const [one, two] = [(count >> bits) & 1, (count >> (bits + 1)) & 1].map(BigInt);
        return word | (one << BigInt(slot)) | (two << BigInt(slot + SLOTS));
      }, 0n);
    const words = checkers.flatMap((own) => [toWord(own, 0), toWord(own, 2)]);
    return [...words, player | (high << 1) | (low << 4) | (left << 7) | (chance << 10)].map(String);
  },
};
