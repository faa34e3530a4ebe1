/** A game tree: moves and branches, without rules. */

/**
 * @typedef {object} GameNode a position, by the move that led to it
 * @property {number} id
 * @property {GameNode | null} parent
 * @property {number} action
 * @property {string} label of the action
 * @property {number | null} player who made the move, -1 for chance; null while that is not known
 * @property {number} ply moves before it from the start of the tree
 * @property {GameNode[]} children in the order in which they were first played
 * @property {GameNode | null} next the child visited last, the target of redo
 * @property {import('../shared/types.js').Position | null} position once the engine has sent it
 * @property {import('../shared/types.js').Analysis | null} analysis the deepest so far
 * @property {import('../shared/types.js').Solution | null} solution
 * @property {string} solutionError why the engine failed to solve the position; empty if it did not
 */

export class GameTree {
  #lastId = 0;

  /** @param {string[] | null} start words of the state where the game starts; null for the game's initial state */
  constructor(start = null) {
    this.start = start;
    this.root = this.#node(null, -1, '');
    this.current = this.root;
  }

  /**
   * Play a move: go to its branch, or create one.
   * @param {number} action
   * @param {string} label
   * @returns {GameNode} the new current node
   */
  play(action, label) {
    let child = this.current.children.find((node) => node.action === action);
    if (!child) {
      child = this.#node(this.current, action, label);
      child.player = this.current.position?.to_play ?? null;
      this.current.children.push(child);
    }
    return this.go(child);
  }

  /**
   * @param {GameNode} node of this tree
   * @returns {GameNode} the same
   */
  go(node) {
    for (let at = node; at.parent; at = at.parent) at.parent.next = at;
    this.current = node;
    return node;
  }

  /**
   * Remove a branch; if it contains the current node, its parent becomes current.
   * @param {GameNode} node not the root
   * @returns {() => GameNode} puts it back, and returns the node that was current
   */
  remove(node) {
    const {current} = this;
    const parent = /** @type {GameNode} */ (node.parent);
    const place = parent.children.indexOf(node);
    if (this.path().includes(node)) this.current = parent;
    parent.children = parent.children.filter((child) => child !== node);
    if (parent.next === node) parent.next = parent.children[0] ?? null;
    return () => {
      parent.children = parent.children.filter(({action}) => action !== node.action); // played again meanwhile
      parent.children.splice(place, 0, node);
      return this.go(current);
    };
  }

  /** @returns {GameTree} the same moves and positions, without analyses: those are of a model */
  copy() {
    const copy = new GameTree(this.start);
    const twins = new Map([[this.root, copy.root]]);
    for (const [node, twin] of twins) {
      // Goes on with the children that it adds.
      for (const child of node.children) twins.set(child, copy.#node(twin, child.action, child.label));
      twin.children = node.children.map((child) => /** @type {GameNode} */ (twins.get(child)));
      const {player, position, solution, solutionError} = node;
      Object.assign(twin, {player, position, solution, solutionError, next: node.next && twins.get(node.next)});
    }
    copy.current = twins.get(this.current) ?? copy.root;
    return copy;
  }

  /**
   * @param {GameNode} [node]
   * @returns {GameNode[]} from the root to it, both included
   */
  path(node = this.current) {
    const nodes = [];
    for (let at = /** @type {GameNode | null} */ (node); at; at = at.parent) nodes.push(at);
    return nodes.reverse();
  }

  /** @returns {GameNode[]} the path to the current node and on to the end of its line */
  line() {
    const nodes = this.path();
    for (let at = this.current.next; at; at = at.next) nodes.push(at);
    return nodes;
  }

  /**
   * @param {GameNode} [node]
   * @returns {number[]} the actions that lead to it
   */
  moves(node = this.current) {
    return this.path(node)
      .slice(1)
      .map(({action}) => action);
  }

  /**
   * Label the moves that lead to a node as its position does, and note who made them.
   * @param {GameNode} node
   */
  name(node) {
    const {played = [], players = []} = node.position ?? {};
    for (const [place, passed] of this.path(node).slice(1).entries()) {
      passed.label = played[place] ?? passed.label;
      passed.player = players[place] ?? passed.player;
    }
  }

  /**
   * @param {GameNode | null} parent
   * @param {number} action
   * @param {string} label
   * @returns {GameNode}
   */
  #node(parent, action, label) {
    const ply = parent ? parent.ply + 1 : 0;
    const id = this.#lastId++;
    return {
      id,
      parent,
      action,
      label,
      player: null,
      ply,
      children: [],
      next: null,
      position: null,
      analysis: null,
      solution: null,
      solutionError: '',
    };
  }
}
