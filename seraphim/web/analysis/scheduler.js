/** Decides what the engine does at each position: choose the computer's move, analyze, or nothing; or asks a program. */

import {mayAnimate} from '../board/drawing.js';
import {textOf} from '../shared/notices.js';
import {CHANCE, moverAt} from './values.js';

/**
 * @typedef {import('../explorer/game_tree.js').GameNode} GameNode
 * @typedef {import('../shared/types.js').Analysis} Analysis
 * @typedef {import('../shared/types.js').Position} Position
 * @typedef {import('../explorer/session.js').Session} Session
 *
 * @typedef {'human' | 'computer' | 'program'} Player the computer is the model, the program one of others on the server
 * @typedef {'move' | 'ask' | 'analyze' | 'roll'} Purpose
 *
 * @typedef {object} Goal
 * @property {Purpose} purpose
 * @property {number} readouts
 */

/** With this many readouts, the move is the one that looks best to the network; with none, one that looks good to it. */
const [NETWORK_ALONE, BEGINNER] = [1, 0];

const MOST_AT_ONCE = 10_000; // readouts per request
const SOLVER_TIME = 1000; // milliseconds: if a position takes longer, earlier ones are not solved
const SHOWN = 550; // milliseconds: a position stays at least this long before the computer moves
const [ROLLED, ROLLED_AGAIN] = [300, 100]; // before chance moves: after a player's move, and after its own

export class Scheduler {
  /** @type {Player[]} who plays as each player */
  players = ['human', 'computer'];
  /** Whether the page draws what chance does; else the user enters it. */
  rolls = true;
  /** Whether the computer moves when it is its turn. */
  running = true;
  /** Readouts of the computer's moves; 0: those of a beginner. */
  strength = 400;
  /** Whether positions are analyzed while the computer has no move to make. */
  analyzing = true;
  /** Readouts of an analysis; Infinity goes on until stopped. */
  count = 400;
  /** @type {Purpose | null} what the engine is doing now */
  busy = null;
  /** What the analysis of a whole game does now, or ''. */
  review = '';
  /** @type {GameNode | null} the last position of the game that was analyzed as a whole */
  reviewed = null;
  /** Why the last work failed, until other work begins; empty if it did not. */
  failure = '';

  #session;
  #onchange;
  #onerror;
  #turn = 0; // results of an earlier goal are dropped
  #asked = Promise.resolve(-1); // until the program has answered
  /** @type {{node: GameNode | null, wanted: string}} the goal last started; it may be finished */
  #running = {node: null, wanted: ''};
  #known = {node: /** @type {GameNode | null} */ (null), since: 0};

  /**
   * @param {Session} session
   * @param {() => void} onchange called on new numbers, and when work starts or ends
   * @param {(error: Error) => void} onerror
   */
  constructor(session, onchange, onerror) {
    this.#session = session;
    this.#onchange = onchange;
    this.#onerror = onerror;
  }

  /** @returns {boolean} whether the user may move in the current position */
  get isHumanTurn() {
    const position = this.#session.node.position;
    if (!position || position.ended) return false;
    return !this.running || (position.chances ? !this.rolls : this.players[position.to_play] === 'human');
  }

  /**
   * @param {number} player
   * @param {Player} choice who plays it from now on
   */
  seat(player, choice) {
    this.players[player] = choice;
    if (choice !== 'human') this.running = true;
  }

  /** Start what the position and the settings call for, unless it is running already. */
  offer() {
    const {node, program} = this.#session;
    if (!program) this.players = this.players.map(toComputer);
    if (node !== this.#known.node) this.#known = {node, since: performance.now()};
    const goal = this.#goal();
    const wanted = goal ? `${goal.purpose} ${goal.readouts}` : '';
    if (node === this.#running.node && wanted === this.#running.wanted) return;
    this.#running = {node, wanted};
    this.failure = '';
    this.review = '';
    const turn = ++this.#turn;
    if (goal) void this.#pursue(goal, node, turn);
    else this.#rest();
  }

  /** Forget the current work, so that it starts again: for another model. */
  reset() {
    this.#turn++;
    this.#running = {node: null, wanted: ''};
    this.busy = null;
    this.review = '';
  }

  /** Analyze every position of the game that has too few readouts, first to last; then solve its end. */
  async analyzeGame() {
    const line = this.#session.tree.line();
    const readouts = Math.min(this.count, MOST_AT_ONCE);
    const isOpen = (/** @type {GameNode} */ node) => !node.position?.ended && moverAt(node) !== CHANCE;
    const nodes = line.filter((node) => (node.analysis?.readouts ?? 0) < readouts && isOpen(node));
    const turn = ++this.#turn;
    this.running = false;
    this.failure = '';
    this.busy = 'analyze';
    this.#running = {node: null, wanted: ''};
    for (const [done, node] of nodes.entries()) {
      this.review = `Analyzing move ${done + 1} of ${nodes.length} …`;
      this.#onchange();
      if (!(await this.#attempt(() => this.#judge(node, readouts, turn), turn))) return;
    }
    const {game} = this.#session;
    if (game?.solved && !game.chance && game.num_players <= 2) await this.#solveBackward(line, turn);
    if (turn !== this.#turn) return;
    this.reviewed = line[line.length - 1];
    this.review = '';
    this.busy = null;
    this.#onchange();
    this.offer();
  }

  /** @returns {Goal | null} */
  #goal() {
    const position = this.#session.node.position;
    if (!position || position.ended) return null;
    if (position.chances) return this.running && this.rolls ? {purpose: 'roll', readouts: 0} : null;
    const player = this.players[position.to_play];
    if (this.running && player === 'computer') return {purpose: 'move', readouts: this.strength};
    if (this.running && player === 'program') return {purpose: 'ask', readouts: this.analyzing ? this.count : 0};
    return this.analyzing ? {purpose: 'analyze', readouts: this.count} : null;
  }

  /**
   * @param {Goal} goal
   * @param {GameNode} node
   * @param {number} turn
   */
  async #pursue({purpose, readouts}, node, turn) {
    this.busy = purpose;
    this.#onchange();
    const work = {move: this.#move, ask: this.#ask, analyze: this.#analyze, roll: this.#roll}[purpose];
    if (!(await this.#attempt(() => work.call(this, node, readouts, turn), turn))) return;
    this.busy = null;
    this.#onchange();
  }

  /**
   * @param {() => Promise<void>} work
   * @param {number} turn
   * @returns {Promise<boolean>} whether it finished and is still wanted
   */
  async #attempt(work, turn) {
    try {
      await work();
    } catch (error) {
      if (turn === this.#turn) {
        if (this.busy === 'move') this.running = false; // until the user wants to try again
        this.#running = {node: null, wanted: ''};
        this.busy = null;
        this.review = '';
        this.failure = textOf(error);
        this.#onchange();
        this.#onerror(/** @type {Error} */ (error));
      }
      return false;
    }
    return turn === this.#turn;
  }

  /**
   * @param {GameNode} node
   * @param {number} readouts
   * @param {number} turn
   */
  async #move(node, readouts, turn) {
    await this.#session.sync(node);
    if (!this.#isWanted(node, turn)) return;
    const analysis = await this.#think(node, Math.max(readouts, NETWORK_ALONE));
    await this.#play(node, chosen(analysis, readouts), turn);
  }

  /**
   * Let the server's program move, and analyze meanwhile.
   * @param {GameNode} node
   * @param {number} readouts of the analysis; 0 for none
   * @param {number} turn
   */
  async #ask(node, readouts, turn) {
    await this.#asked.catch(() => {}); // it answers one question at a time
    if (turn !== this.#turn) return;
    await this.#session.sync(node);
    if (!this.#isWanted(node, turn)) return;
    this.#asked = this.#session.engine.move();
    if (readouts) void this.#attempt(() => this.#analyze(node, readouts, turn), turn);
    try {
      await this.#play(node, await this.#asked, turn);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.running = false; // until the user wants to try again
      this.offer();
      this.#onerror(/** @type {Error} */ (error));
    }
  }

  /**
   * Draw what chance does.
   * @param {GameNode} node
   * @param {number} _readouts
   * @param {number} turn
   */
  async #roll(node, _readouts, turn) {
    await this.#session.sync(node);
    const shown = node.player === CHANCE ? ROLLED_AGAIN : ROLLED;
    await this.#play(node, drawnOutcome(/** @type {Position} */ (node.position)), turn, shown);
  }

  /**
   * Play the computer's, the program's or chance's move once its position has been shown.
   * @param {GameNode} node the position
   * @param {number} action
   * @param {number} turn
   * @param {number} [shown] milliseconds
   */
  async #play(node, action, turn, shown = SHOWN) {
    const wait = (mayAnimate() ? shown : shown / 3) - (performance.now() - this.#known.since);
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    if (!this.#isWanted(node, turn)) return;
    this.busy = null;
    await this.#session.play(action);
  }

  /**
   * @param {GameNode} node
   * @param {number} readouts
   * @param {number} turn
   */
  async #analyze(node, readouts, turn) {
    await this.#session.sync(node);
    let known = node.analysis?.readouts ?? 0;
    while (known < readouts && !node.analysis?.proven && this.#isWanted(node, turn)) {
      const latest = await this.#think(node, Math.min(readouts - known, MOST_AT_ONCE));
      if (latest.readouts <= known && latest.readouts_per_second === 0) return;
      known = Math.max(known + 1, latest.readouts);
    }
  }

  /**
   * @param {GameNode} node
   * @param {number} readouts
   * @param {number} turn
   */
  async #judge(node, readouts, turn) {
    await this.#session.sync(node);
    const {position} = node;
    if (this.#isWanted(node, turn) && !position?.ended && !position?.chances) await this.#think(node, readouts);
  }

  /**
   * Solve positions, last to first: earlier ones are harder, and solvers remember later ones.
   * @param {GameNode[]} line
   * @param {number} turn
   */
  async #solveBackward(line, turn) {
    for (const node of line.filter(({position}) => !position?.ended && !position?.chances).reverse()) {
      const began = performance.now();
      this.review = `Solving move ${node.ply + 1} …`;
      this.#onchange();
      await this.#session.solve(node);
      if (turn !== this.#turn || !node.solution || performance.now() - began > SOLVER_TIME) return;
    }
  }

  /**
   * Return whether work on a position goes on. A search ends as soon as the engine is sent another position, which is
   * before that is known and shown here; the work then starts again if its position is shown again.
   * @param {GameNode} node
   * @param {number} turn
   * @returns {boolean}
   */
  #isWanted(node, turn) {
    const {synced} = this.#session; // null after a position that was refused: then the engine is where it was
    if (turn === this.#turn && synced && node !== synced) this.reset();
    return turn === this.#turn;
  }

  /**
   * @param {GameNode} node the current position of the engine's session
   * @param {number} readouts
   * @returns {Promise<Analysis>}
   */
  #think(node, readouts) {
    return this.#session.engine.think(readouts, (analysis) => {
      // After a lost connection the tree starts over: keep the old numbers until it has caught up.
      if (analysis.readouts >= (node.analysis?.readouts ?? 0)) node.analysis = analysis;
      this.#onchange();
    });
  }

  #rest() {
    if (this.busy) void this.#session.engine.stop().catch(this.#onerror);
    this.busy = null;
    this.#onchange();
  }
}

/**
 * @param {Position} position where chance moves
 * @returns {number} an outcome, drawn by the probabilities
 */
export function drawnOutcome({chances}) {
  const outcomes = Object.entries(chances ?? {});
  let left = Math.random();
  return Number((outcomes.find(([, chance]) => (left -= chance) < 0) ?? outcomes[outcomes.length - 1])[0]);
}

/**
 * @param {Analysis} analysis
 * @param {number} readouts that the computer's moves are worth
 * @returns {number} the action it plays
 */
function chosen({candidates, best}, readouts) {
  if (readouts > NETWORK_ALONE) return best;
  const byPrior = [...candidates].sort((a, b) => b.prior - a.prior);
  if (readouts > BEGINNER) return byPrior[0].action;
  const weights = byPrior.map(({prior}) => Math.sqrt(prior)); // the priors at a temperature of 2
  let left = Math.random() * weights.reduce((sum, weight) => sum + weight, 0);
  return (byPrior.find((_, place) => (left -= weights[place]) < 0) ?? byPrior[0]).action;
}

/**
 * @param {Player} player
 * @returns {Player} who plays in its place where no program does
 */
function toComputer(player) {
  return player === 'program' ? 'computer' : player;
}
