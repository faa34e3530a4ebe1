/** The open model and the game: the current position, and how to get to another one. */

import {readAddress, readMoves, writeAddress, writeMoves} from '../shared/address.js';
import {GameTree} from './game_tree.js';
import {loadStyle} from '../board/styles.js';
import {textOf} from '../shared/notices.js';

/**
 * @typedef {import('../shared/address.js').Address} Address
 * @typedef {import('../engine/client.js').Engine} Engine
 * @typedef {import('./game_tree.js').GameNode} GameNode
 * @typedef {import('../shared/types.js').GameInfo} GameInfo
 * @typedef {import('../shared/types.js').Position} Position
 * @typedef {Pick<Session, 'model' | 'snapshot' | 'game' | 'program' | 'engineText' | 'initial' | 'style' | 'tree'>} Shown
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
  /** @type {Shown | null} what was shown before another model or game took its place, if moves had been made */
  before = null;
  /** @type {GameNode | null} the current position of the engine's session */
  synced = null;
  #turn = 0; // counts what is asked to be shown: what is not the last is left out
  #opening = Promise.resolve();
  #settled = Promise.resolve(); // once no other model is being opened
  #engines = ''; // the model that the engine has open
  #solved = Promise.resolve(); // once the last question to the solver is answered

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
   * Open a model and show a position. What is shown stays until the engine has accepted all of it.
   * @param {string} model
   * @param {string | null} snapshot
   * @param {Address | null} address of the position; null for the current one, or the beginning of another game
   * @returns {Promise<void>}
   * @throws {Error} there is no such model, or no such position
   */
  open(model, snapshot, address) {
    const turn = ++this.#turn;
    const open = async () => {
      if (turn !== this.#turn) return;
      let settle = () => {};
      this.#settled = new Promise((resolve) => (settle = resolve));
      try {
        await this.#take(model, snapshot, address, () => turn === this.#turn);
      } finally {
        settle();
      }
      if (turn === this.#turn) await this.go(this.tree.current);
    };
    this.#opening = this.#opening.catch(() => {}).then(open);
    return this.#opening;
  }

  /**
   * Let the engine open a model and a position, and take them as what is shown.
   * @param {string} model
   * @param {string | null} snapshot
   * @param {Address | null} address
   * @param {() => boolean} isWanted whether nothing else was asked for meanwhile
   */
  async #take(model, snapshot, address, isWanted) {
    const {game, program, engine: engineText} = await this.#open(model, snapshot);
    const initial = await this.engine.position(null, []);
    const tree = address
      ? await this.#follow(address, game)
      : game.name === this.game?.name ? this.tree.copy() : new GameTree();
    if (!tree.start) tree.root.position = initial;
    const style = await loadStyle(initial.board);
    if (isWanted()) this.#replace({model, snapshot, game, program, engineText, initial, style, tree});
  }

  /** Show again what was shown before, and keep what is shown now in its place. */
  async restore() {
    const {before} = this;
    this.#turn++;
    this.before = null;
    if (before) await this.#show(before);
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
   * @throws {Error} the engine refuses
   */
  async begin(start, moves = []) {
    const turn = ++this.#turn;
    await this.#reopen();
    const tree = await this.#build(start, moves, null, this.game?.labels ?? []);
    if (turn === this.#turn) await this.#show({...this.#shown(), tree});
    else await this.sync(this.node); // something else was asked for meanwhile
  }

  /**
   * Load moves or a board diagram.
   * @param {string} text
   */
  async load(text) {
    await this.#reopen();
    const {start, moves} = await this.engine.load(text);
    await this.begin(start, moves);
  }

  /**
   * Send a node's position to the engine's session.
   * @param {GameNode} node
   */
  async sync(node) {
    const {tree} = this;
    await this.#settled;
    if (this.tree !== tree) return; // another one was opened meanwhile
    if (this.synced === node && node.position) return;
    if (this.#engines !== this.#key()) await this.#reopen();
    await this.#locate(node, tree);
  }

  /**
   * Ask for the exact results of a position, one at a time.
   * @param {GameNode} node
   */
  solve(node) {
    const ask = async () => {
      await this.sync(node);
      if (this.synced === node) node.solution ??= await this.engine.solution();
    };
    this.#solved = this.#solved.then(ask).catch((error) => void (node.solutionError = textOf(error)));
    return this.#solved;
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
      moves: this.game?.chance
        ? line.map(({action, label}) => (tree.start ? action : label)).join()
        : writeMoves(line.map(({action}) => action), this.game?.labels ?? []),
      ply: node.ply === line.length ? null : node.ply,
    });
  }

  #key(model = this.model, snapshot = this.snapshot) {
    return JSON.stringify([model, snapshot]);
  }

  /** @returns {Shown} */
  #shown() {
    const {model, snapshot, game, program, engineText, initial, style, tree} = this;
    return {model, snapshot, game, program, engineText, initial, style, tree};
  }

  /** @param {Shown} shown */
  #replace(shown) {
    if (this.tree.root.children.length) this.before = this.#shown();
    Object.assign(this, shown);
  }

  /** @param {Shown} shown */
  async #show(shown) {
    this.#replace(shown);
    await this.go(this.tree.current);
  }

  /**
   * @param {string} model
   * @param {string | null} snapshot
   * @returns {Promise<import('../shared/types.js').Opened>}
   */
  async #open(model, snapshot) {
    this.#engines = '';
    this.synced = null; // from now on: what is asked meanwhile is no question about a node
    const opened = await this.engine.open(model, snapshot);
    this.#engines = this.#key(model, snapshot);
    this.synced = null;
    return opened;
  }

  /** Open the model that is shown, if the engine has another one open. */
  async #reopen() {
    if (this.#engines !== this.#key()) await this.#open(this.model, this.snapshot);
  }

  /**
   * @param {Address} address
   * @param {GameInfo} game
   */
  async #follow({start, board, moves, ply}, game) {
    const from = board ? (await this.engine.load(board)).start : start;
    return this.#build(from, await this.#read(moves, from, game), ply, game.labels);
  }

  /**
   * Read the moves of a link: what chance does has names that only the rules know, and numbers after another start.
   * @param {string} moves
   * @param {string[] | null} start
   * @param {GameInfo} game
   * @returns {Promise<number[]>}
   */
  async #read(moves, start, {chance, labels}) {
    if (!chance || !moves) return readMoves(moves, labels);
    return start ? moves.split(',').map(Number) : (await this.engine.load(moves)).moves;
  }

  /**
   * Build a game whose first and last positions the engine accepts.
   * @param {string[] | null} start
   * @param {number[]} moves
   * @param {number | null} ply the position to show; null for the last one
   * @param {string[]} labels
   */
  async #build(start, moves, ply, labels) {
    const tree = new GameTree(start);
    for (const action of moves) tree.play(action, labels[action] ?? String(action));
    const last = tree.current;
    // The first position gives the player to begin; the last one checks that all moves are legal.
    for (const node of new Set([tree.root, last])) await this.#locate(node, tree);
    tree.go(tree.line()[ply ?? moves.length] ?? last);
    return tree;
  }

  /**
   * Send a position of a tree to the engine, and keep what it answers.
   * @param {GameNode} node
   * @param {GameTree} tree
   */
  async #locate(node, tree) {
    this.synced = node;
    try {
      node.position = await this.engine.position(tree.start, tree.moves(node));
      tree.name(node);
    } catch (error) {
      if (this.synced === node) this.synced = null;
      throw error;
    }
  }
}
