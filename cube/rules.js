/**
 * The rules of the 2×2×2 cube for the engine in the browser: the same as cube/game.py, one position at a time.
 *
 * A state is {corners, twists, toCome, last, moves}: the corner at each of seven places and how often it is twisted
 * clockwise there (see cube/corners.py); the turns of the scramble to come, UNDRAWN before their number is drawn; the
 * side of the scramble's last turn, NO_SIDE if none was made; and the moves.
 */

const CHANCE = -1;
const CORNERS = ['URF', 'UFL', 'ULB', 'UBR', 'DFR', 'DLF', 'DRB', 'DBL'];
const SIDES = 'URFDLB';
const CYCLES = {U: 'FLBR', R: 'UBDF', F: 'URDL'}; // where a clockwise turn takes the stickers of the other sides
const LABELS = ['U', 'R', 'F'].flatMap((side) => ['', '2', "'"].map((times) => side + times));
const PLACES = CORNERS.length - 1; // without DBL
const [UNDRAWN, NO_SIDE, MOST_TURNS, POINTS] = [-1, -1, 14, 50];
const NET = `\
        ULB UBR
        UFL URF
LUB LUF FUL FUR RUF RUB BUR BUL
LDB LDF FDL FDR RDF RDB BDR BDL
        DLF DFR
        DBL DRB`;

const isSame = (one, other) => [...one].every((side) => other.includes(side));

/** The place of a corner and the number of a sticker there, which the sides name, its own first: FUL. */
function stickerPlace(name) {
  const place = CORNERS.findIndex((corner) => isSame(corner, name));
  return [place, CORNERS[place].indexOf(name[0])];
}

/** By turn, the place from which each place gets its corner, and how the corner is twisted on the way. */
const TURNS = Object.entries(CYCLES).flatMap(([side, cycle]) => {
  const once = CORNERS.slice(0, PLACES).map((_, place) => [place, 0]);
  CORNERS.slice(0, PLACES).forEach((corner, place) => {
    if (!corner.includes(side)) return;
    const image = [...corner].map((each) => (each === side ? each : cycle[(cycle.indexOf(each) + 1) % 4])).join('');
    const [target, twist] = stickerPlace(image);
    once[target] = [place, twist];
  });
  const after = (turn) => once.map(([place, twist]) => [turn[place][0], turn[place][1] + twist]);
  return [once, after(once), after(after(once))];
});

const isSolved = ({corners, twists}) => corners.every((corner, place) => corner === place && twists[place] === 0);

function turned({corners, twists}, turn) {
  return {
    corners: TURNS[turn].map(([place]) => corners[place]),
    twists: TURNS[turn].map(([place, twist]) => (twists[place] + twist) % 3),
  };
}

/** The side that a sticker of the net shows, as an index into SIDES. */
function colorAt({corners, twists}, name) {
  const [place, sticker] = stickerPlace(name);
  const corner = CORNERS[place < PLACES ? corners[place] : place];
  return SIDES.indexOf(corner[(sticker - (twists[place] ?? 0) + 3) % 3]);
}

const netOf = (state) => NET.replace(/\w{3}| {3}/g, (name) => (name.trim() ? SIDES[colorAt(state, name)] : ' '));

/** The number of a permutation among all of seven, in order. */
const rankOf = (corners) =>
  corners.reduce((rank, corner, place) => {
    const smaller = corners.slice(place + 1).filter((each) => each < corner).length;
    return rank * (PLACES - place) + smaller;
  }, 0);

function permutationOf(rank) {
  const digits = [];
  for (let [left, base] = [rank, 1]; base <= PLACES; left = Math.floor(left / base), base += 1) digits.unshift(left % base);
  const corners = [...Array(PLACES).keys()];
  return digits.map((digit) => corners.splice(digit, 1)[0]);
}

const twistNumber = (twists) => twists.slice(0, -1).reduce((number, twist) => 3 * number + twist, 0);

function twistsOf(number) {
  const twists = Array.from({length: PLACES - 1}, (_, place) => Math.floor(number / 3 ** (PLACES - 2 - place)) % 3);
  return [...twists, (3 * PLACES - twists.reduce((sum, twist) => sum + twist, 0)) % 3];
}

export default {
  name: 'cube',
  goal:
    "Turn the top (U), the right (R), or the front (F) clockwise, 2 for twice, ' for counterclockwise, until each " +
    'side shows a single color; the fewer moves, the better.',
  numActions: LABELS.length,
  numPlayers: 1,
  numChanceOutcomes: MOST_TURNS,
  observationShape: [3 * PLACES, SIDES.length],
  maxPlies: 30,
  valueScale: 15 / POINTS,
  points: POINTS,
  labels: LABELS,

  initial: () => ({corners: permutationOf(0), twists: twistsOf(0), toCome: UNDRAWN, last: NO_SIDE, moves: 0}),

  step(state, action) {
    const {toCome, moves} = state;
    if (toCome === UNDRAWN) return {...state, toCome: action + 1};
    if (toCome === 0) return {...state, ...turned(state, action), moves: moves + 1};
    const last = toCome > 1 ? Math.floor(action / 3) : NO_SIDE;
    return {...state, ...turned(state, action), toCome: toCome - 1, last};
  },

  legal: (state) => (state.toCome || isSolved(state) ? [] : [...LABELS.keys()]),

  toPlay: ({toCome}) => (toCome ? CHANCE : 0),

  /** The probability of each number of turns, in proportion to 1/n; then of each turn of another side. */
  chances(state) {
    const {toCome, last} = state;
    const weights = Array.from({length: MOST_TURNS}, (_, outcome) => {
      if (toCome === UNDRAWN) return 1 / (outcome + 1);
      const isTurn = toCome > 0 && outcome < LABELS.length && Math.floor(outcome / 3) !== last;
      return isTurn && (toCome > 1 || !isSolved(turned(state, outcome))) ? 1 : 0;
    });
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return weights.map((weight) => (total ? weight / total : 0));
  },

  /** The number of turns, such as n7, or a turn. */
  chanceLabel: ({toCome}, outcome) => (toCome === UNDRAWN ? `n${outcome + 1}` : LABELS[outcome]),

  outcome(state) {
    const ended = state.toCome === 0 && isSolved(state);
    return {ended, result: ended ? this.banked(state)[0] : 0};
  },

  /** What the player already has of the result: the moves, below 0. */
  banked: ({moves}) => [Math.fround(-moves / POINTS)],

  /** Fills `out` with the colors of all stickers but those of DBL, each of one in six. */
  observe({corners, twists}, out) {
    out.fill(0);
    corners.forEach((corner, place) => {
      for (let sticker = 0; sticker < 3; sticker += 1) {
        const side = SIDES.indexOf(CORNERS[corner][(sticker - twists[place] + 3) % 3]);
        out[SIDES.length * (3 * place + sticker) + side] = 1;
      }
    });
  },

  key: ({corners, twists, toCome, last}) => [...corners, ...twists, toCome, last].join(),

  board(state) {
    const cells = netOf(state).split('\n').map((line) =>
      Array.from({length: 8}, (_, column) => SIDES.indexOf(line[2 * column] ?? ' ')),
    );
    return {rows: 6, columns: 8, cells, marks: [...SIDES], targets: {}, look: 'net'};
  },

  text(state) {
    const net = netOf(state);
    const {toCome, moves} = state;
    const scramble = toCome === UNDRAWN ? 'to be scrambled' : `${toCome} turns to come`;
    return `${net}\n${toCome ? scramble : `moves: ${moves}`}`;
  },

  fromWords(words) {
    const [permutation, orientation, toCome, last, moves] = words.map(Number);
    return {corners: permutationOf(permutation), twists: twistsOf(orientation), toCome, last, moves};
  },

  toWords: ({corners, twists, toCome, last, moves}) =>
    [rankOf(corners), twistNumber(twists), toCome, last, moves].map(String),
};
