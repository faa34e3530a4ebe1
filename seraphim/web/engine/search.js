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
 * Values are for the player to move at a node; an edge's total is for the player choosing it.
 */

const WIN = 1;
const LOSS = -1;
const OPEN = 0; // of an edge: not proven
const KNOWN = 1; // proven: its total is exact
const LOST = 2; // proven: the player who chooses the edge loses

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
        backUp(this.node);
        this.node = null;
        continue;
      }
      const edge = this.#bestEdge(this.node);
      this.plies += 1;
      if (edge.child !== null) {
        this.node = edge.child;
        continue;
      }
      const state = this.game.step(this.node.state, edge.action);
      const result = this.#resultOf(state);
      this.edge = edge;
      if (result !== null) this.#addEnd(state, result);
      else this.leaf = state;
    }
    return this.leaf;
  }

  /**
   * Puts the position that `advance` returned into the tree.
   * @param logits one number for each action; those of illegal actions are ignored.
   * @param value expected result for the player to move.
   */
  supply(logits, value) {
    const legal = this.game.legal(this.leaf);
    if (!legal.length) throw new Error(`${this.game.name} has no legal action here, but has not ended`);
    if (![value, ...legal.map((action) => logits[action])].every(Number.isFinite)) {
      throw new Error('the model gave non-finite outputs: its training has diverged');
    }
    const node = this.#addNode(this.leaf, value);
    node.edges = toEdges(legal, logits);
    this.leaf = null;
    if (this.options.leaf === 'playout' && node.parent !== null) {
      if (this.plies < this.game.maxPlies) {
        this.node = node; // only the end of the game scores the readout
        return;
      }
      node.value = 0; // cut off
    }
    backUp(node);
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
    if (this.proven || this.visits === 0) return this.root?.value ?? 0;
    const weights = this.#policyWeights();
    const values = this.root.edges.map((edge) => (edge.visits > 0 ? mean(edge) : this.root.value));
    const expected = values.reduce((total, value, k) => total + weights[k] * value, 0);
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
    let low = Math.max(...weighed.map((edge) => mean(edge) + strength * edge.prior));
    let high = Math.max(...weighed.map((edge) => mean(edge) + strength));
    for (let k = 0; k < HALVINGS; k += 1) {
      const alpha = (low + high) / 2;
      if (sum(weighed, (edge) => (strength * edge.prior) / (alpha - mean(edge))) > 1) low = alpha;
      else high = alpha;
    }
    return firstGreatest(weighed, weighed.map((edge) => edge.prior / (high - mean(edge))));
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

  #addNode(state, value) {
    const node = {
      state,
      toPlay: this.game.toPlay(state),
      parent: this.root === null ? null : this.node,
      parentEdge: this.root === null ? null : this.edge,
      edges: [],
      visits: 0, // its own evaluation included
      value: Math.fround(value),
      settled: false, // whether the value is exact
      distance: 0, // plies to the end, if it is
    };
    this.size += 1;
    if (node.parent === null) this.root = node;
    else node.parentEdge.child = node;
    return node;
  }

  /** The result of a new position for player 0, or null where neither the rules nor the game's knowledge tell it. */
  #resultOf(state) {
    const {ended, result} = this.game.outcome(state);
    if (ended) return result;
    return this.options.known_results ? this.game.knownResult(state) : null;
  }

  #addEnd(state, result) {
    const {fast_wins: fast} = this.options;
    // See `terminal_value` in seraphim/search/expansion.py.
    const value = fast ? result * (1 - fast * this.game.progress(state)) : result;
    const node = this.#addNode(state, this.game.toPlay(state) === 0 ? value : -value);
    node.settled = true;
    backUp(node);
    if (this.options.solver) prove(node);
    this.#leave();
  }

  /** argmax of Q + c·P·√N/(1 + N(a)), the first of equals; an edge whose result is proven is not explored. */
  #bestEdge(node) {
    const exploration = this.#explorationWeight(Math.max(1, node.visits));
    let best = node.edges[0];
    let bestScore = -Infinity;
    for (const edge of node.edges) {
      if (edge.known === LOST) continue;
      const q = edge.total / Math.max(edge.visits, 1);
      const score = q + (edge.known === OPEN ? (exploration * edge.prior) / (1 + edge.visits) : 0);
      if (score > bestScore) {
        best = edge;
        bestScore = score;
      }
    }
    return best;
  }

  #explorationWeight(visits) {
    return this.options.cpuct * Math.sqrt(visits);
  }
}

const sum = (items, number) => items.reduce((total, item) => total + number(item), 0);

/** Q of an edge, 0 without a visit. */
const mean = (edge) => edge.total / Math.max(1, edge.visits);

const firstGreatest = (edges, weights) => edges[weights.indexOf(Math.max(...weights))];

/** An edge for each legal action; the priors are the softmax over those. */
function toEdges(legal, logits) {
  const largest = Math.max(...legal.map((action) => logits[action]));
  const weights = legal.map((action) => Math.exp(logits[action] - largest));
  const total = sum(weights, (weight) => weight);
  return legal.map((action, k) => ({
    action,
    prior: Math.fround(Math.fround(weights[k]) / total),
    visits: 0,
    total: 0,
    child: null,
    known: OPEN,
  }));
}

/** The value of a settled node for the player who moves at its parent. */
const valueAbove = (node) => (node.toPlay === node.parent.toPlay ? node.value : -node.value);

/** Backs up the value of the node that a readout reached. */
function backUp(reached) {
  reached.visits += 1;
  for (let node = reached; node.parent !== null; node = node.parent) {
    node.parent.visits += 1;
    node.parentEdge.visits += 1;
    node.parentEdge.total += node.parent.toPlay === reached.toPlay ? reached.value : -reached.value;
  }
}

/** Settles every ancestor of a settled node whose result follows; see `prove` in seraphim/search/solver.py. */
function prove(settled) {
  for (let node = settled; node.parent !== null; node = node.parent) {
    const {parent, parentEdge} = node;
    const value = valueAbove(node);
    parentEdge.known = value > LOSS ? KNOWN : LOST;
    parentEdge.total = value * parentEdge.visits;
    if (parent.settled || (value < WIN && !parent.edges.every((edge) => edge.child?.settled))) return;
    settle(parent);
  }
}

/** Settles a node with the value of its best edge: the fastest win, else the slowest draw or loss. */
function settle(node) {
  let best = -Infinity;
  let distance = 0;
  for (const {child} of node.edges) {
    if (!child?.settled) continue;
    const value = valueAbove(child);
    const plies = child.distance + 1;
    if (value > best || (value === best && (value >= WIN ? plies < distance : plies > distance))) {
      best = value;
      distance = plies;
    }
  }
  node.settled = true;
  node.value = best;
  node.distance = distance;
}

/** Visits of the edges that give a proven root its value (wins: the fastest; losses: the slowest), 0 for the others. */
function exactWeights(root) {
  return root.edges.map(({child, visits}) => {
    if (!child?.settled || valueAbove(child) !== root.value) return 0;
    const isDecided = Math.abs(root.value) >= WIN;
    return !isDecided || child.distance + 1 === root.distance ? Math.max(1, visits) : 0;
  });
}

/** The size of a node's subtree. */
function count(start) {
  const pending = [start];
  let nodes = 0;
  for (; pending.length; nodes += 1) {
    for (const {child} of pending.pop().edges) {
      if (child !== null) pending.push(child);
    }
  }
  return nodes;
}

/** The most visited actions from a node. */
function variationFrom(start) {
  const actions = [];
  for (let node = start; node !== null && node.edges.length; ) {
    const edge = firstGreatest(node.edges, node.edges.map((each) => each.visits));
    if (edge.visits === 0) break;
    actions.push(edge.action);
    node = edge.child;
  }
  return actions;
}
