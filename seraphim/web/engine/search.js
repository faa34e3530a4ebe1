/**
 * The PUCT search for one position: the same as seraphim/search with one tree, one leaf at a time and no noise. On the
 * same outputs of the network both visit the same nodes, so numbers are rounded here where that one stores float32.
 *
 * Runs no network: `advance` returns a position to evaluate, and `supply` takes the network's outputs.
 *
 *     search.start(state);
 *     search.begin(400);
 *     for (let leaf = search.advance(); leaf !== null; leaf = search.advance()) {
 *       search.supply(logits, value);
 *     }
 *
 * Values are for the player to move at a node; an edge's total is for the player choosing it. Where chance moves, a node's
 * edges are the outcomes, their priors the probabilities, and its player the one who moved last. With more than two
 * players, values and totals stand beside these for each of them.
 */

import {fork, uniform} from './rng.js';
import {
  KNOWN,
  LOST,
  OPEN,
  count,
  drawnEdge,
  exactWeights,
  expectedTotal,
  firstGreatest,
  mean,
  prove,
  sum,
  toEdge,
  toEdges,
  variationFrom,
} from './tree.js';

const CHANCE = -1; // the player to move where chance does
const ROOT_KEYS = 2 ** 10; // see seraphim/search/tree.py
const SMALLEST_SPREAD = 1e-8; // of the values at a node of one player
const LARGEST_FACTOR = 2 / SMALLEST_SPREAD;
const SMALLEST_PRIOR = 2 ** -126; // of float32
const HALVINGS = 32; // of the interval that holds α of the regularized policy

/** The search options that matter without noise, with the defaults of seraphim/options.py. */
export const DEFAULTS = {
  cpuct: 1.5,
  solver: true,
  leaf: 'value',
  fast_wins: 0,
  known_results: false,
};

export class Search {
  /**
   * @param game the rules, see rules.js of a game.
   * @param options any of DEFAULTS; others are ignored.
   */
  constructor(game, options = {}) {
    this.game = game;
    this.columns = game.numPlayers > 2 ? game.numPlayers : 0; // values of a position, beside that of the mover
    this.options = {...DEFAULTS, ...options};
    if (this.options.fast_wins && !game.progress) throw new Error(`fast_wins needs the progress of ${game.name}`);
    if (this.options.known_results && !game.knownResult) throw new Error(`${game.name} offers no knownResult`);
    this.start(game.initial());
  }

  /** Starts over with an unfinished position. */
  start(state) {
    this.state = state;
    this.root = null;
    this.size = 0; // nodes of the tree
    this.halt();
    this.#leave();
  }

  /** Moves the root to the successor by an action and keeps its subtree. */
  play(action) {
    const edge = this.root?.edges.find((each) => each.action === action);
    const child = edge?.child ?? null;
    this.start(this.game.step(this.state, action));
    if (child !== null && child.edges.length) {
      this.root = child;
      this.size = count(child);
      child.parent = null;
      child.parentEdge = null;
    }
  }

  /** Sets the number of readouts; `advance` runs them. */
  begin(readouts) {
    this.remaining = readouts;
  }

  /** Starts no more readouts. */
  halt() {
    this.remaining = 0;
  }

  /** Runs readouts until one needs the network; returns the position to evaluate, or null once all are done. */
  advance() {
    if (this.leaf === null && this.remaining && this.root === null) this.leaf = this.state;
    while (this.leaf === null && this.root !== null) {
      if (this.node === null) {
        if (this.remaining === 0 || this.root.settled) break;
        this.remaining -= 1;
        this.node = this.root;
        this.plies = 0;
      }
      if (this.node.settled) {
        this.#backUp(this.node);
        this.node = null;
        continue;
      }
      const edge = this.node.chance ? drawnEdge(this.node) : this.#bestEdge(this.node);
      this.plies += 1;
      if (edge.child !== null) {
        this.node = edge.child;
        continue;
      }
      const state = this.game.step(this.node.state, edge.action);
      const result = this.#resultOf(state);
      this.edge = edge;
      if (result !== null) this.#addEnd(state, result);
      else if (this.game.toPlay(state) === CHANCE) this.#addChance(state);
      else this.leaf = state;
    }
    return this.leaf;
  }

  /**
   * Puts the position that `advance` returned into the tree.
   * @param logits one number for each action; those of illegal actions are ignored.
   * @param value expected result for the player to move; with more than two players, a list of those of each, the one
   *     to move first.
   */
  supply(logits, value) {
    const values = [value].flat();
    const legal = this.game.legal(this.leaf);
    if (!legal.length) throw new Error(`${this.game.name} has no legal action here, but has not ended`);
    if (![...values, ...legal.map((action) => logits[action])].every(Number.isFinite)) {
      throw new Error('the model gave non-finite outputs: its training has diverged');
    }
    const player = this.game.toPlay(this.leaf);
    const count = values.length;
    const worthTo = (seat) =>
      values[(seat - player + count) % count] * (this.game.valueScale ?? 1) + this.#banked(this.leaf, seat);
    const node = this.#addNode(this.leaf, player, worthTo(player), this.#forEach(worthTo));
    node.edges = toEdges(legal, logits, this.columns);
    if (node.parent === null) node.key = BigInt(roundedToEven(ROOT_KEYS * node.edges[0].prior));
    this.leaf = null;
    if (this.options.leaf === 'playout' && node.parent !== null) {
      if (this.plies < this.game.maxPlies) {
        this.node = node; // only the end of the game scores the readout
        return;
      }
      this.#cutOff(node);
    }
    this.#backUp(node);
    this.#leave();
  }

  /** How often the actions at the root have been visited. */
  get visits() {
    return sum(this.root?.edges ?? [], (edge) => edge.visits);
  }

  /** Whether the result of the position is proven. */
  get proven() {
    return this.root?.settled ?? false;
  }

  /** Expected result for the player to move, by visits; of a position without readouts, the network's. */
  get value() {
    return this.root === null ? 0 : this.#expected(this.root.value, (edge) => edge.total);
  }

  /** The same for each of more than two players, player 0 first; else null. */
  get values() {
    return this.root?.values?.map((value, player) => this.#expected(value, (edge) => edge.totals[player])) ?? null;
  }

  /** The mean of the edges by the policy, where `value` stands for one without a visit; without readouts, `value`. */
  #expected(value, totalOf) {
    if (this.proven || this.visits === 0) return value;
    const weights = this.#policyWeights();
    const values = this.root.edges.map((edge) => (edge.visits > 0 ? totalOf(edge) / edge.visits : value));
    const expected = values.reduce((total, each, k) => total + weights[k] * each, 0);
    return Math.fround(expected / sum(weights, (weight) => weight));
  }

  /** The action to play: see `_compute_policies` in seraphim/search/roots.py. */
  get best() {
    const {edges, settled} = this.root;
    if (settled) return firstGreatest(edges, exactWeights(this.root)).action;
    const weights = this.#policyWeights();
    let best = this.options.leaf === 'playout' ? firstGreatest(edges, weights) : this.#regularizedEdge(weights);
    // Prefer the edge with the best proven result if that is at least the estimate of the other.
    for (const edge of edges.filter((each) => each.known === KNOWN)) {
      if (mean(edge) > mean(best) || (mean(edge) === mean(best) && best.known !== KNOWN)) best = edge;
    }
    return best.action;
  }

  /** Visits of the edges that are not proven to lose; their priors, if none of them was visited. */
  #policyWeights() {
    const weigh = (weight) => this.root.edges.map((edge) => (edge.known === LOST ? 0 : weight(edge)));
    const weights = weigh((edge) => edge.visits);
    return weights.some((weight) => weight > 0) ? weights : weigh((edge) => Math.max(edge.prior, SMALLEST_PRIOR));
  }

  /** The most probable edge under the regularized policy: see `_regularized_edge` in seraphim/search/roots.py. */
  #regularizedEdge(weights) {
    const {edges, visits} = this.root;
    const weighed = edges.filter((_, k) => weights[k] > 0);
    const strength = this.#explorationWeight(visits) / (edges.length + visits);
    const {middle, factor} = this.#valueRange(this.root);
    const scaled = (edge) => (mean(edge) - middle) * factor;
    let low = Math.max(...weighed.map((edge) => scaled(edge) + strength * edge.prior));
    let high = Math.max(...weighed.map((edge) => scaled(edge) + strength));
    for (let k = 0; k < HALVINGS; k += 1) {
      const alpha = (low + high) / 2;
      if (sum(weighed, (edge) => (strength * edge.prior) / (alpha - scaled(edge))) > 1) low = alpha;
      else high = alpha;
    }
    return firstGreatest(weighed, weighed.map((edge) => edge.prior / (high - scaled(edge))));
  }

  /** Search statistics of all legal actions: the best one, then by visits; see seraphim/search/analysis.py. */
  get candidates() {
    if (this.root === null) return [];
    const exploration = this.#explorationWeight(this.root.visits);
    const total = Math.max(1, this.visits);
    const {best} = this;
    return this.root.edges
      .map((edge) => ({
        action: edge.action,
        prior: edge.prior,
        searched_prior: edge.prior,
        visits: edge.visits,
        share: edge.visits / total,
        q: mean(edge),
        ...(edge.totals && {values: edge.totals.map((each) => each / Math.max(1, edge.visits))}),
        u: (exploration * edge.prior) / (1 + edge.visits),
        proven: edge.child?.settled ?? false,
        variation: [edge.action, ...variationFrom(edge.child)],
      }))
      .sort((one, other) => (other.action === best) - (one.action === best) || other.visits - one.visits);
  }

  #leave() {
    this.node = null; // current node of the running readout, if any
    this.edge = null; // the edge by which it leaves that node
    this.leaf = null; // the position that the network is to evaluate
    this.plies = 0; // distance from the root
  }

  #addNode(state, toPlay, value, values) {
    const isRoot = this.root === null;
    const node = {
      state,
      toPlay,
      chance: false,
      key: isRoot || !this.game.chances ? 0n : fork(this.node.key, this.edge.action), // by which chance draws below
      offset: 0, // where chance begins to draw
      parent: isRoot ? null : this.node,
      parentEdge: isRoot ? null : this.edge,
      edges: [],
      visits: 0, // its own evaluation included
      value: Math.fround(value),
      values: values?.map(Math.fround) ?? null, // of more than two players, player 0 first
      settled: false, // whether the value is exact
      distance: 0, // plies to the end, if it is
    };
    this.size += 1;
    if (node.parent === null) this.root = node;
    else node.parentEdge.child = node;
    return node;
  }

  /** One number for each of more than two players, else null. */
  #forEach(number) {
    return this.columns ? Array.from({length: this.columns}, (_, player) => number(player)) : null;
  }

  /** Counts a playout that is cut off as what is banked. */
  #cutOff(node) {
    node.value = this.#banked(node.state, node.toPlay);
    node.values = this.#forEach((player) => Math.fround(this.#banked(node.state, player)));
  }

  /**
   * The result of a new position for player 0, with more than two for each; null where neither the rules nor the game's
   * knowledge tell it.
   */
  #resultOf(state) {
    const {ended, result} = this.game.outcome(state);
    if (ended) return result;
    return this.options.known_results ? this.game.knownResult(state) : null;
  }

  #addEnd(state, result) {
    const {fast_wins: fast} = this.options;
    // See `terminal_value` in seraphim/search/expansion.py.
    const worth = (each) => (fast ? each * (1 - fast * this.game.progress(state)) : each);
    const player = Math.max(0, this.game.toPlay(state));
    const values = this.#forEach((seat) => worth(result[seat]));
    const value = values ? values[player] : worth(player === 0 ? result : -result);
    const node = this.#addNode(state, player, value, values);
    node.settled = true;
    this.#backUp(node);
    if (this.options.solver) prove(node);
    this.#leave();
  }

  /** Adds a position in which chance moves, from which the readout goes on. */
  #addChance(state) {
    const node = this.#addNode(state, this.node.toPlay, this.node.value, this.node.values);
    node.chance = true;
    // All moves of a position draw the same outcomes in turn, so that none of them is just luckier.
    node.offset = uniform(node.parent.chance ? node.key : node.parent.key);
    this.game.chances(state).forEach((chance, outcome) => {
      if (chance > 0) node.edges.push(toEdge(outcome, Math.fround(chance), this.columns));
    });
    this.node = node;
    if (this.options.leaf === 'playout' && this.plies >= this.game.maxPlies) {
      this.#cutOff(node);
      this.#backUp(node);
      this.#leave();
    }
  }

  /** What a player already has of the result. */
  #banked(state, player) {
    return this.game.banked?.(state)[player] ?? 0;
  }

  /**
   * Backs up the value of the node that a readout reached. Above a node where chance moves, what is added is the change
   * of its expectation; see `back_up` in seraphim/search/traversal.py.
   */
  #backUp(reached) {
    reached.visits += 1;
    if (this.columns) {
      this.#backUpForEach(reached);
      return;
    }
    let {value} = reached;
    for (let node = reached; node.parent !== null; node = node.parent) {
      const {parent, parentEdge} = node;
      const isExpected = parent.chance && this.options.leaf === 'value';
      const before = isExpected ? expectedTotal(parent) : 0;
      if (parent.toPlay !== node.toPlay) value = -value;
      parent.visits += 1;
      parentEdge.visits += 1;
      parentEdge.total += value;
      if (isExpected) value = expectedTotal(parent) - before;
    }
  }

  /** The same with more than two players. */
  #backUpForEach(reached) {
    let {values} = reached;
    for (let node = reached; node.parent !== null; node = node.parent) {
      const {parent, parentEdge} = node;
      const isExpected = parent.chance && this.options.leaf === 'value';
      const before = isExpected ? this.#forEach((player) => expectedTotal(parent, player)) : null;
      parent.visits += 1;
      parentEdge.visits += 1;
      parentEdge.totals = parentEdge.totals.map((total, player) => total + values[player]);
      parentEdge.total = parentEdge.totals[parent.toPlay];
      if (isExpected) values = before.map((total, player) => expectedTotal(parent, player) - total);
    }
  }

  /** argmax of Q + c·P·√N/(1 + N(a)), the first of equals; an edge whose result is proven is not explored. */
  #bestEdge(node) {
    const exploration = this.#explorationWeight(Math.max(1, node.visits));
    const {middle, factor, unvisited} = this.#valueRange(node);
    let best = node.edges[0];
    let bestScore = -Infinity;
    for (const edge of node.edges) {
      if (edge.known === LOST) continue;
      const q = edge.visits ? (edge.total / edge.visits - middle) * factor : unvisited;
      const score = q + (edge.known === OPEN ? (exploration * edge.prior) / (1 + edge.visits) : 0);
      if (score > bestScore) {
        best = edge;
        bestScore = score;
      }
    }
    return best;
  }

  /**
   * Returns m and f by which (Q - m)·f takes the place of Q, and what stands for it without a visit: for one player from
   * -1 to 1, see `value_range` in seraphim/search/selection.py.
   */
  #valueRange(node) {
    if (this.game.numPlayers !== 1) return {middle: 0, factor: 1, unvisited: 0};
    let [least, greatest] = [node.value, node.value];
    for (const {visits, total} of node.edges) {
      if (!visits) continue;
      least = Math.min(least, total / visits);
      greatest = Math.max(greatest, total / visits);
    }
    const factor = 2 / Math.max(greatest - least, SMALLEST_SPREAD);
    return {middle: (least + greatest) / 2, factor, unvisited: factor < LARGEST_FACTOR ? -1 : 0};
  }

  #explorationWeight(visits) {
    return this.options.cpuct * Math.sqrt(visits);
  }
}

function roundedToEven(number) {
  const rounded = Math.round(number);
  return number % 1 === 0.5 && rounded % 2 ? rounded - 1 : rounded;
}
