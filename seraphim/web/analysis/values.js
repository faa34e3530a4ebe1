/** Expected results of a game's positions for player 0, and which moves were likely mistakes. */

/** @typedef {import('../explorer/game_tree.js').GameNode} GameNode */

const MISTAKE = 0.4; // drop of the expected result by one move

/**
 * @param {GameNode} node
 * @returns {number | null} expected result for player 0; exact where the game has ended
 */
export function valueOf({position, analysis}) {
  return position?.ended ? position.result : (analysis?.value_first ?? null);
}

/**
 * @param {GameNode} node
 * @returns {0 | 1} the player to move; where the position is unknown, assumes that the players alternate
 */
export function moverAt(node) {
  let steps = 0;
  for (let at = /** @type {GameNode | null} */ (node); at; at = at.parent, steps++) {
    if (at.position) return (at.position.to_play + steps) % 2 ? 1 : 0;
  }
  return 0;
}

/**
 * @param {GameNode} node not the root
 * @returns {0 | 1} the player who made its move
 */
export function playerOf(node) {
  return moverAt(node.parent ?? node);
}

/**
 * @param {GameNode} node
 * @returns {boolean} whether its move lost much of the expected result
 */
export function isDoubtful(node) {
  const [was, is] = [node.parent ? valueOf(node.parent) : null, valueOf(node)];
  if (was === null || is === null) return false;
  return (playerOf(node) === 0 ? was - is : is - was) >= MISTAKE;
}
