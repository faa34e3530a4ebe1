/** What a game's positions are worth, and which moves were mistakes, as in seraphim/players/review.py. */

/**
 * @typedef {import('../explorer/game_tree.js').GameNode} GameNode
 *
 * @typedef {{value: number, values?: number[] | null, exact: boolean} | null} Worth expected result for player 0, and of
 *     more than two for each; null if it is not known
 * @typedef {{lost: number, better: string} | null} Mistake expected points that a move lost, and a better move's label
 */

/** The player to move where chance does. */
export const CHANCE = -1;

/** Expected points that a mistake loses at least: a win counts 1, a draw 0.5. */
export const MISTAKE = 0.2;

/**
 * @param {GameNode} node
 * @param {Worth} [after] of the next position of its line
 * @returns {Worth}
 */
export function worthOf(node, after = node.next && worthOf(node.next)) {
  const {position, analysis} = node;
  if (position?.ended) return position.result === null ? null : {value: position.result, values: position.results, exact: true}; // null: cut off
  if (after && position?.legal.length === 1) return after; // a forced move loses nothing
  if (moverAt(node) === CHANCE) return worthOfMove(node);
  const results = Object.values(exactResults(node));
  if (!analysis && !results.length) return null;
  const mover = moverAt(node);
  const value = results.length ? signAt(node) * Math.max(...results) : (analysis?.value_first ?? 0);
  const worth = {value, values: analysis?.values, exact: results.length > 0 || Boolean(analysis?.proven)};
  if (after?.exact && valueFor(after, mover) > valueFor(worth, mover)) return {...after, exact: valueFor(after, mover) === 1};
  return worth;
}

/**
 * @param {NonNullable<Worth>} worth
 * @param {number} player
 * @returns {number}
 */
const valueFor = ({value, values}, player) => values?.[player] ?? (player === 1 ? -value : value);

/**
 * @param {GameNode} node after which chance moves
 * @returns {Worth} what the search found for the move that led there
 */
function worthOfMove({parent, action}) {
  const found = parent?.analysis?.candidates.find((candidate) => candidate.action === action);
  if (!parent || !found?.visits) return null;
  return {value: found.values?.[0] ?? signAt(parent) * found.q, values: found.values, exact: found.proven};
}

/**
 * @param {GameNode} node
 * @param {Worth} [after] of its position
 * @param {Worth} [before] of the position before it
 * @returns {Mistake} null if its move was none, or that is not known
 */
export function mistakeOf(node, after = worthOf(node), before = node.parent && worthOf(node.parent, after)) {
  if (!node.parent || !before || !after || playerOf(node) === CHANCE) return null;
  const mover = moverAt(node.parent);
  const lost = (valueFor(before, mover) - valueFor(after, mover)) / 2;
  const exact = exactResults(node.parent);
  const [better] = (node.parent.analysis?.candidates ?? [])
    .filter(({action, visits, q}) => action !== node.action && (exact[action] ?? (visits ? q : -1)) > valueFor(after, mover))
    .sort((one, other) => (exact[other.action] ?? 0) - (exact[one.action] ?? 0));
  return better && lost >= MISTAKE ? {lost, better: better.label} : null;
}

/** @param {GameNode[]} line of a game */
export function reviewLine(line) {
  /** @type {Array<Worth>} */
  const worths = [];
  for (let ply = line.length - 1; ply >= 0; ply--) worths[ply] = worthOf(line[ply], worths[ply + 1] ?? null);
  return line.map((node, ply) => {
    const [before, worth] = [worths[ply - 1] ?? null, worths[ply]];
    return {node, value: worth?.value ?? null, values: worth?.values, mistake: mistakeOf(node, worth, before)};
  });
}

/**
 * @param {GameNode} node
 * @returns {number} the player to move, or CHANCE; where that is unknown, assumes that two players alternate
 */
export function moverAt(node) {
  if (node.position) return node.position.to_play;
  const mover = node.children.find(({player}) => player !== null)?.player ?? null;
  if (mover !== null) return mover;
  let steps = 0;
  for (let at = /** @type {GameNode | null} */ (node); at; at = at.parent, steps++) {
    if (at.position) return (at.position.to_play + steps) % 2 ? 1 : 0;
  }
  return 0;
}

/**
 * @param {GameNode} node not the root
 * @returns {number} the player who made its move, or CHANCE
 */
export function playerOf(node) {
  return node.player ?? moverAt(node.parent ?? node);
}

/** @param {GameNode} node */
const signAt = (node) => (moverAt(node) === 1 ? -1 : 1);

/**
 * @param {GameNode} node
 * @returns {Record<string, number>} of actions, for the player to move; empty unless the best one is among them
 */
function exactResults({solution, position}) {
  const known = Object.entries(solution ?? {}).flatMap(([action, {result}]) => (result === null ? [] : [[action, result]]));
  const isWon = known.some(([, result]) => result === 1);
  return isWon || known.length === position?.legal.length ? Object.fromEntries(known) : {};
}
