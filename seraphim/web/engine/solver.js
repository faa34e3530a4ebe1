/** Exact results of a position's moves by exhaustive search: for small games and for endgames. */

/** Positions searched before giving up: a second or two. */
const MOST_POSITIONS = 250_000;

/**
 * @returns {Record<string, import('../shared/types.js').Exact>} for each legal action its result for the player who moves,
 *     whether it is best (the fastest wins, else draws, else the slowest losses), and the plies to the end under best
 *     play, itself included
 */
export function exactResults(game, state, most = MOST_POSITIONS) {
  const known = new Map();

  /** The exact result for the player to move: the fastest win, else the slowest draw or loss. */
  function solve(position) {
    const key = game.key(position);
    let found = known.get(key);
    if (found === undefined) {
      if (known.size >= most) {
        throw new Error('too many positions to solve in this browser: try again a few moves later');
      }
      const {ended, result} = game.outcome(position);
      found = ended ? {result: game.toPlay(position) === 0 ? result : -result, plies: 0} : best(actionsOf(position));
      known.set(key, found);
    }
    return found;
  }

  const actionsOf = (position) =>
    game.legal(position).map((action) => {
      const following = game.step(position, action);
      const {result, plies} = solve(following);
      const same = game.toPlay(following) === game.toPlay(position);
      return {action, result: (same ? result : -result) + 0, plies: plies + 1}; // + 0: never -0
    });

  const actions = actionsOf(state);
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
