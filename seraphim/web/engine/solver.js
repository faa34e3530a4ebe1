/** Exact results of a position's moves by exhaustive search: for small games and for endgames. */

/** Positions searched between two yields: a few milliseconds. */
const SLICE = 250;

/** Positions searched before giving up: a second or two. */
const MOST_POSITIONS = 250_000;

/**
 * Yields now and then, so that the caller can do other work.
 * @returns {Generator<void, Record<string, import('../shared/types.js').Exact>>} for each legal action its result for
 *     the player who moves, whether it is best (the fastest wins, else draws, else the slowest losses), and the plies
 *     to the end under best play, itself included
 */
export function* exactResults(game, state, most = MOST_POSITIONS) {
  if (game.numPlayers > 2) throw new Error(`${game.name} is for ${game.numPlayers} players: moves have no exact results here`);
  const known = new Map();

  /** The exact result for the player to move: the fastest win, else the slowest draw or loss. */
  function* solve(position) {
    const key = game.key(position);
    let found = known.get(key);
    if (found === undefined) {
      if (known.size >= most) {
        throw new Error('too many positions to solve in this browser: try again a few moves later');
      }
      const {ended, result} = game.outcome(position);
      const own = game.toPlay(position) === 0 ? result : -result;
      found = ended ? {result: own, plies: 0} : best(yield* actionsOf(position));
      known.set(key, found);
      if (known.size % SLICE === 0) yield;
    }
    return found;
  }

  function* actionsOf(position) {
    const actions = [];
    for (const action of game.legal(position)) {
      const following = game.step(position, action);
      const {result, plies} = yield* solve(following);
      const same = game.toPlay(following) === game.toPlay(position);
      actions.push({action, result: (same ? result : -result) + 0, plies: plies + 1}); // + 0: never -0
    }
    return actions;
  }

  const actions = yield* actionsOf(state);
  const {result, plies} = best(actions);
  const isBest = (each) => each.result === result && (result === 0 || each.plies === plies);
  return Object.fromEntries(
    actions.map((each) => [each.action, {result: each.result, best: isBest(each), plies: each.plies, proven: false}]),
  );
}

function best(actions) {
  const result = Math.max(...actions.map((each) => each.result));
  const plies = actions.filter((each) => each.result === result).map((each) => each.plies);
  return {result, plies: result > 0 ? Math.min(...plies) : Math.max(...plies)};
}
