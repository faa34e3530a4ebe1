/** The open model and the game: the current position, and how to get to another one. */

import {readAddress, readMoves, writeAddress, writeMoves} from '../shared/address.js';
import {GameTree} from './game_tree.js';
import {styleOf} from '../board/geometry.js';

/**
 * @typedef {import('../shared/address.js').Address} Address
 * @typedef {import('../engine/client.js').Engine} Engine
 * @typedef {import('./game_tree.js').GameNode} GameNode
 * @typedef {import('../shared/types.js').GameInfo} GameInfo
 * @typedef {import('../shared/types.js').Position} Position
 */

export class Session {
  /** @type {GameInfo | null} */
  game = null;
  model = '';
  /** @type {string | null} null for the champion */
  snapshot = null;
  engineText = '';
  /** @type {string | null} what the server's program calls itself, if one plays this game */
  program = null;
  /** @type {import('../board/geometry.js').Style} */
  style = 'text';
  /** @type {Position | null} the initial position, which decides how the board is drawn */
  initial = null;
  tree = new GameTree();
  /** @type {GameNode | null} the current position of the engine's session */
  synced = null;
  #turn = 0; // counts opened models: answers to an earlier one are dropped

  /**
   * @param {Engine} engine
   * @param {() => void} onchange called when another position or game is to be shown
   */
  constructor(engine, onchange) {
    this.engine = engine;
    this.onchange = onchange;
  }

  /** @returns {GameNode} the current position */
  get node() {
    return this.tree.current;
  }

  /**
   * Open a model and show a position of its game.
   * @param {string} model
   * @param {string | null} snapshot
   * @param {Address | null} address of the position; null for the beginning
   * @throws {Error} there is no such model, or no such position, and then the initial one is shown
   */
  async open(model, snapshot, address) {
    if (!(await this.#open(model, snapshot))) return;
    try {
      if (address) await this.#follow(address);
    } finally {
      this.onchange();
    }
  }

  /**
   * Switch to another model of the same game, or to another snapshot, and keep the position.
   * @param {string} model
   * @param {string | null} snapshot
   */
  async change(model, snapshot) {
    const [{tree}, game] = [this, this.game?.name];
    if (!(await this.#open(model, snapshot))) return;
    if (this.game?.name !== game) return this.onchange();
    // Analyses are the model's own.
    const nodes = [tree.root];
    for (let node = nodes.pop(); node; node = nodes.pop()) {
      node.analysis = null;
      nodes.push(...node.children);
    }
    this.tree = tree;
    await this.go(tree.current);
  }

  /**
   * Show a position of the tree.
   * @param {GameNode} node
   */
  async go(node) {
    const {tree} = this;
    tree.go(node);
    if (node.position) this.onchange();
    const known = node.position !== null;
    await this.sync(node);
    if (!known && this.tree === tree && this.node === node) this.onchange();
  }

  /** @param {number} action legal in the current position */
  play(action) {
    return this.go(this.tree.play(action, this.node.position?.labels[action] ?? this.label(action)));
  }

  /**
   * Start a game from the initial position or from a state.
   * @param {string[] | null} start
   * @param {number[]} moves
   * @param {number | null} ply the position to show; null for the last one
   * @throws {Error} the engine refuses
   */
  async begin(start, moves = [], ply = null) {
    const tree = new GameTree(start);
    for (const action of moves) tree.play(action, this.label(action));
    const last = tree.current;
    // The first position gives the player to begin; the last one checks that all moves are legal.
    for (const node of [tree.root, last]) await this.sync(node, tree);
    this.tree = tree;
    await this.go(tree.line()[ply ?? moves.length] ?? last);
  }

  /**
   * Load moves or a board diagram.
   * @param {string} text
   */
  async load(text) {
    const {start, moves} = await this.engine.load(text);
    await this.begin(start, moves);
  }

  /**
   * Send a node's position to the engine's session.
   * @param {GameNode} node
   * @param {GameTree} [tree]
   */
  async sync(node, tree = this.tree) {
    if (this.synced === node && node.position) return;
    this.synced = node;
    try {
      node.position = await this.engine.position(tree.start, tree.moves(node));
      tree.name(node);
    } catch (error) {
      if (this.synced === node) this.synced = null;
      throw error;
    }
  }

  /**
   * @param {number} action
   * @returns {string}
   */
  label(action) {
    return this.game?.labels[action] ?? String(action);
  }

  /** @returns {string} the moves up to the end of the line, as `load` takes them */
  moves() {
    if (this.game?.labels_vary) return this.tree.line().slice(1).map(({label}) => label).join(' ');
    return readAddress(this.address()).moves;
  }

  /** @returns {string} the link fragment of the current position */
  address() {
    const {tree, node} = this;
    const line = tree.line().slice(1);
    return writeAddress({
      model: this.model,
      snapshot: this.snapshot,
      start: tree.start,
      moves: writeMoves(
        line.map(({action}) => action),
        this.game?.labels ?? [],
      ),
      ply: node.ply === line.length ? null : node.ply,
    });
  }

  /**
   * @param {string} model
   * @param {string | null} snapshot
   * @returns {Promise<boolean>} whether no other model was opened meanwhile
   */
  async #open(model, snapshot) {
    const turn = ++this.#turn;
    const opened = await this.engine.open(model, snapshot);
    const initial = await this.engine.position(null, []);
    if (turn !== this.#turn) return false;
    const {game, program, engine: engineText} = opened;
    Object.assign(this, {model, snapshot, initial, game, program, engineText});
    this.style = styleOf(initial.board);
    this.tree = new GameTree();
    this.synced = this.tree.root;
    this.tree.root.position = initial;
    return true;
  }

  /** @param {Address} address */
  async #follow({start, board, moves, ply}) {
    const from = board ? (await this.engine.load(board)).start : start;
    const actions = readMoves(moves, this.game?.labels ?? []);
    if (from || actions.length) await this.begin(from, actions, ply);
  }
}
