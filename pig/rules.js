/**
 * The rules of Pig for the engine in the browser: the same as pig/game.py, one position at a time.
 *
 * A state is {points, turn, player, rolls}: the points of both players, those of the turn, the player whose turn it is,
 * and whether the die is being rolled.
 */

const [CHANCE, EMPTY] = [-1, -1];
const ROLL = 0;
const SIDES = 6;
const LABELS = ['roll', 'hold'];

/** The rules of a race to so many points. */
function rulesOf(target) {
  const ownPoints = ({points, player}) => points[player];
  const winner = ({points}) => points.findIndex((each) => each >= target);

  return {
    name: target === 100 ? 'pig' : `pig to ${target}`,
    goal: 'Roll as often as you dare, but a 1 takes the points of the turn; the first to hold 100 points wins.',
    numActions: 2,
    numChanceOutcomes: SIDES,
    observationShape: [target, 4],
    maxPlies: 2000,
    labels: LABELS,

    initial: () => ({points: [0, 0], turn: 0, player: 0, rolls: false}),

    step(state, action) {
      const {points, turn, player, rolls} = state;
      if (rolls && action > 0) return {...state, turn: turn + action + 1, rolls: false};
      if (!rolls && action === ROLL) return {...state, rolls: true};
      const held = rolls ? points : points.with(player, points[player] + turn);
      return {points: held, turn: 0, player: 1 - player, rolls: false};
    },

    legal(state) {
      if (state.rolls || winner(state) >= 0) return [];
      const {turn} = state;
      return [ownPoints(state) + turn < target, turn > 0].flatMap((isLegal, action) => (isLegal ? [action] : []));
    },

    toPlay: ({player, rolls}) => (rolls ? CHANCE : player),

    /** The probability of each outcome where chance moves. */
    chances: ({rolls}) => new Array(SIDES).fill(rolls ? 1 / SIDES : 0),

    /** What the die shows. */
    chanceLabel: (_state, outcome) => String(outcome + 1),

    outcome(state) {
      const won = winner(state);
      return {ended: won >= 0, result: [1, -1][won] ?? 0};
    },

    /** Fills `out` with the points of the mover, the opponent, the turn, and of the mover who held, in unary. */
    observe(state, out) {
      const {points, turn, player} = state;
      const counts = [points[player], points[1 - player], turn, points[player] + turn];
      for (let number = 0; number < target; number += 1) {
        counts.forEach((count, plane) => (out[4 * number + plane] = number < count ? 1 : 0));
      }
    },

    key: ({points, turn, player, rolls}) => [...points, turn, player, Number(rolls)].join(),

    board(state) {
      const {points, turn, player} = state;
      const tracks = points.map((own, number) => [own, number === player ? turn : 0, target]);
      const targets = this.legal(state).includes(ROLL) ? {[ROLL]: [[0, 0]]} : {};
      return {rows: 1, columns: 1, cells: [[EMPTY]], marks: [], targets, look: 'race', tracks};
    },

    text({points, turn, player, rolls}) {
      const lines = points.map((each, number) => `player ${number}: ${String(each).padStart(3)}`);
      lines[player] += `  +${turn}${rolls ? '  rolls' : ''}`;
      return lines.join('\n');
    },

    fromWords(words) {
      const [first, second, turn, player, rolls] = words.map(Number);
      return {points: [first, second], turn, player, rolls: rolls === 1};
    },

    toWords: ({points, turn, player, rolls}) => [...points, turn, player, Number(rolls)].map(String),
  };
}

export default rulesOf(100);

/** The rules of a game of this name: `pig to 20`. */
export const named = (name) => rulesOf(Number(/^pig to ([0-9]+)$/.exec(name)?.[1] ?? 100));
