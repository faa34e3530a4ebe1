/** The tree of a search: its edges, what is drawn where chance moves, and the results that are proven in it. */

export const WIN = 1;
export const LOSS = -1;
export const OPEN = 0; // of an edge: not proven
export const KNOWN = 1; // proven: its total is exact
export const LOST = 2; // proven: the player who chooses the edge loses

const GOLDEN = 0.6180339887498949; // (√5 - 1) / 2

export const sum = (items, number) => items.reduce((total, item) => total + number(item), 0);

/** Q of an edge, 0 without a visit. */
export const mean = (edge) => edge.total / Math.max(1, edge.visits);

export const firstGreatest = (edges, weights) => edges[weights.indexOf(Math.max(...weights))];

/** An edge for each legal action; the priors are the softmax over those. */
export function toEdges(legal, logits, columns) {
  const largest = Math.max(...legal.map((action) => logits[action]));
  const weights = legal.map((action) => Math.exp(logits[action] - largest));
  const total = sum(weights, (weight) => weight);
  return legal.map((action, k) => toEdge(action, Math.fround(Math.fround(weights[k]) / total), columns));
}

/** An edge without visits; `columns` is the number of players if there are more than two, else 0. */
export const toEdge = (action, prior, columns) =>
  ({action, prior, visits: 0, total: 0, totals: columns ? new Array(columns).fill(0) : null, child: null, known: OPEN});

/** The outcome that a readout takes where chance moves: see `outcome_edge` in seraphim/search/selection.py. */
export function drawnEdge({edges, offset, visits}) {
  const place = (offset + GOLDEN * visits) % 1;
  let end = 0;
  return edges.find((edge) => place < (end += edge.prior)) ?? edges.at(-1);
}

/**
 * The visits of a node where chance moves, times the expectation over its outcomes: for a player of more than two, else
 * for the one who moved.
 */
export function expectedTotal({edges, value, values}, player) {
  let [visits, seen, expected] = [0, 0, 0];
  for (const edge of edges) {
    if (!edge.visits) continue;
    visits += edge.visits;
    seen += edge.prior;
    expected += edge.prior * ((values ? edge.totals[player] : edge.total) / edge.visits);
  }
  return (expected + (1 - seen) * (values ? values[player] : value)) * visits;
}

/** The value of a settled node for the player who moves at its parent. */
function valueAbove({parent, toPlay, value, values}) {
  if (values) return values[parent.toPlay];
  return toPlay === parent.toPlay ? value : -value;
}

/** Settles every ancestor of a settled node whose result follows; see `prove` in seraphim/search/solver.py. */
export function prove(settled) {
  for (let node = settled; node.parent !== null; node = node.parent) {
    const {parent, parentEdge} = node;
    const value = valueAbove(node);
    parentEdge.known = value > LOSS ? KNOWN : LOST;
    parentEdge.total = value * parentEdge.visits;
    parentEdge.totals = node.values?.map((each) => each * parentEdge.visits) ?? null;
    if (parent.settled) return;
    if ((value < WIN || parent.chance) && !parent.edges.every((edge) => edge.child?.settled)) return;
    if (parent.chance) expect(parent);
    else settle(parent);
  }
}

/** Settles a node where chance moves with the expectation over its outcomes, to its slowest end. */
function expect(node) {
  node.settled = true;
  // In single precision, probabilities do not add up to 1 exactly.
  const weight = sum(node.edges, ({prior}) => prior);
  const expected = (valueOf) => Math.fround(sum(node.edges, ({prior, child}) => prior * valueOf(child)) / weight);
  node.value = expected(valueAbove);
  node.values = node.values?.map((_, player) => expected((child) => child.values[player])) ?? null;
  node.distance = Math.max(...node.edges.map(({child}) => child.distance + 1));
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
      node.values = child.values; // each takes what is best for them; of what is equally good, the first
    }
  }
  node.settled = true;
  node.value = best;
  node.distance = distance;
}

/** Visits of the edges that give a proven root its value (wins: the fastest; losses: the slowest), 0 for the others. */
export function exactWeights(root) {
  return root.edges.map(({child, visits}) => {
    if (!child?.settled || valueAbove(child) !== root.value) return 0;
    const isDecided = Math.abs(root.value) >= WIN;
    return !isDecided || child.distance + 1 === root.distance ? Math.max(1, visits) : 0;
  });
}

/** The size of a node's subtree. */
export function count(start) {
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
export function variationFrom(start) {
  const actions = [];
  for (let node = start; node !== null && node.edges.length; ) {
    const edge = firstGreatest(node.edges, node.edges.map((each) => each.visits));
    if (edge.visits === 0) break;
    actions.push(edge.action);
    node = edge.child;
  }
  return actions;
}
