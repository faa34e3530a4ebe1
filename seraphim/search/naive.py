"""The search in its plainest form: one position at a time, recursive, slow. Read it first.

`search` gives a position its readouts, and `readout` is one of them: select an edge (`puct_edge`), evaluate and expand
what it leads to, and back the value up. Where chance moves, a readout goes on by `drawn_edge`. `policy_of` is what the
network learns from, and `move_of` what is played. The search that plays, `seraphim.search.search`, visits the same
edges in the same order, many positions at a time; tests compare them. `P` in shapes is the number of players.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from seraphim.game import CHANCE, Array, Game
from seraphim.game.features import features_of, has_chance, num_columns
from seraphim.options import SearchOptions
from seraphim.search.evaluator import Inference
from seraphim.search.rng import fork, uniform
from seraphim.search.selection import GOLDEN, considered_visits
from seraphim.search.tree import ROOT_KEYS


@dataclass
class Node:
    """A position: whose turn it is, its results if the game has ended, and one edge for each legal action.

    Where chance moves, the edges are its outcomes, and the player who moved last stands in place of a mover.
    """

    state: Array
    mover: int
    results: Array | None  # float64 [P], like all values of positions
    values: Array = field(default_factory=lambda: np.zeros(2))  # the network's and what is banked; at chance as before
    visits: int = 0
    edges: list["Edge"] = field(default_factory=list)
    offset: float | None = None  # in [0, 1), where chance moves: where it begins to draw
    key: int = 0  # a hash of the root's, and of the moves that led here
    proof: tuple[tuple[Array, int] | None, int] = (None, -1)  # what `exact` found, and at how many visits

    @property
    def value(self) -> float:
        """For the mover."""
        return float(self.values[self.mover])


@dataclass(eq=False)
class Edge:
    """A legal action of a node, or an outcome of chance there, and the values that came back through it."""

    action: int
    prior: np.float32  # of an outcome, its probability
    searched_prior: np.float32  # the prior with the root's noise; at a Gumbel root, logit + noise
    returns: list[Array] = field(default_factory=list)  # of its visits
    child: Node | None = None

    @property
    def visits(self) -> int:
        """N(s, a)."""
        return len(self.returns)

    @property
    def means(self) -> Array:
        """Q(s, a) for each player, the mean of its returns; there must be one."""
        return sum(self.returns[1:], start=self.returns[0]) / len(self.returns)


def search(
    game: Game,
    inference: Inference,
    state: Array,
    options: SearchOptions,
    root: Node | None = None,
    noise: Array | None = None,
    readouts: int | None = None,
) -> Node:
    """Search a position with `readouts`, by default the options'; go on with `root` if it is given."""
    if root is None:
        root = evaluate(game, inference, state)
        root.visits, root.key = 1, int(np.rint(ROOT_KEYS * root.edges[0].prior))
    priors = [float(edge.prior) for edge in root.edges]
    if options.root == "gumbel":
        draws = noise if noise is not None else np.zeros(len(priors))
        priors = [logit(edge) + draw for edge, draw in zip(root.edges, draws, strict=True)]
    elif noise is not None:
        share = options.noise_coefficient
        priors = [(1 - share) * prior + share * draw for prior, draw in zip(priors, noise, strict=True)]
    for edge, prior in zip(root.edges, priors, strict=True):
        edge.searched_prior = np.float32(prior)
    for _ in range(options.readouts if readouts is None else readouts):
        if options.solver and exact(root) is not None:
            break
        readout(game, inference, root, options)
    return root


def readout(game: Game, inference: Inference, node: Node, options: SearchOptions, depth: int = 0) -> Array:
    """Play one readout from `node`, `depth` plies below the root; return its values."""
    if (options.solver or node.results is not None) and (known := exact(node)) is not None:
        node.visits += 1
        return known[0]
    means = {edge: means_of(edge, options) for edge in node.edges if edge.visits and node.offset is not None}
    edge = best_edge(node, options, is_root=depth == 0) if node.offset is None else drawn_edge(node)
    values, edge.child = descend(game, inference, node, edge, options, depth)
    edge.returns.append(values)
    node.visits += 1
    if node.offset is not None and options.leaf == "value":
        before = expectation(node, means) * (node.visits - 1)
        means[edge] = (means.get(edge, 0.0) * (edge.visits - 1) + values) / edge.visits
        values = expectation(node, means) * node.visits - before
    return values


def drawn_edge(node: Node) -> Edge:
    """The outcome of chance that a readout takes; see `seraphim.search.selection.outcome_edge`."""
    starts = np.cumsum([edge.prior for edge in node.edges[:-1]], dtype=np.float64)  # of all but the first
    place = ((node.offset or 0.0) + GOLDEN * node.visits) % 1
    return node.edges[int(np.searchsorted(starts, place, side="right"))]


def expectation(node: Node, means: dict[Edge, Array]) -> Array:
    """The values where chance moves: outcomes without a visit count as the position in which a player moved."""
    seen = [edge for edge in node.edges if edge in means]
    rest = 1.0 - sum(float(edge.prior) for edge in seen)
    return sum(float(edge.prior) * means[edge] for edge in seen) + rest * node.values


def descend(
    game: Game, inference: Inference, node: Node, edge: Edge, options: SearchOptions, depth: int
) -> tuple[Array, Node]:
    """Go on with the child of a node by an edge; return the values and the child."""
    child = edge.child
    if child is None:
        child = add_child(game, inference, node, edge.action, options.known_results)
        is_cut_off = options.leaf == "playout" and depth + 1 >= game.max_plies
        if child.results is None and is_cut_off:
            child.values = banked(game, child.state)
        if child.results is None and (is_cut_off or (options.leaf == "value" and child.offset is None)):
            child.visits += 1
            return child.values, child
    return readout(game, inference, child, options, depth + 1), child


def add_child(game: Game, inference: Inference, node: Node, move: int, ask_game: bool) -> Node:
    """Return the node after an action, or after an outcome of chance."""
    row = game.step(node.state[None], np.array([move]))
    key = int(fork(np.array([node.key], np.uint64), np.array([move], np.uint64))[0])
    if has_chance(game) and game.to_play(row)[0] == CHANCE and results_of(game, row[0], ask_game) is None:
        # All moves of a position draw the same outcomes in turn, so that none of them is just luckier.
        offset = uniform(np.uint64(node.key if node.offset is None else key), np.uint64(0))
        chances = game.chances(row)[0].astype(np.float32)  # type: ignore[attr-defined]
        outcomes = [Edge(int(k), chances[k], chances[k]) for k in np.flatnonzero(chances)]
        return Node(row[0], node.mover, None, node.values, edges=outcomes, offset=offset, key=key)
    return replace(evaluate(game, inference, row[0], ask_game), key=key)


def evaluate(game: Game, inference: Inference, state: Array, ask_game: bool = False) -> Node:
    """Return a position int64 [W] as a node: with the network's value and priors, unless the game has ended."""
    node = Node(state, max(0, int(game.to_play(state[None])[0])), results_of(game, state, ask_game))
    if node.results is not None:
        return node
    logits, values = inference.infer(game.observe(state[None]))
    actions = np.flatnonzero(game.legal(state[None])[0])
    node.edges = [Edge(int(a), p, p) for a, p in zip(actions, softmax(logits[0][actions]), strict=True)]
    scale = features_of(game).value_scale
    found = by_player(game, values[0], node.mover) * (1.0 if scale is None else scale) + banked(game, state)
    node.values = found.astype(np.float32).astype(np.float64)
    return node


def by_player(game: Game, columns: Array, mover: int) -> Array:
    """The values float64 [P] by player, from columns [V] with the mover first; two players have one column."""
    seats = np.arange(features_of(game).num_players or 2)
    if len(seats) == 2:
        return np.where(seats == mover, 1.0, -1.0) * columns
    return columns.reshape(-1)[(seats - mover) % len(seats)].astype(np.float64)


def banked(game: Game, state: Array) -> Array:
    """What each player already has of the result."""
    features = features_of(game)
    return np.zeros(features.num_players or 2) if features.banked is None else features.banked(state[None])[0]


def results_of(game: Game, state: Array, ask_game: bool) -> Array | None:
    """The results of a finished position, or of one that the game knows if it is asked."""
    ended, results = game.outcome(state[None])
    if not ended[0] and ask_game:
        ended, results = game.known_results(state[None])  # type: ignore[attr-defined]
    return by_player(game, results.reshape(-1)[: num_columns(game)], 0) if ended[0] else None


def softmax(logits: Array) -> Array:
    """Probabilities float32 [K]: weights stored in single precision, and divided by their sum in double."""
    weights = [math.exp(logit - max(logits)) for logit in logits.tolist()]
    return np.array([float(np.float32(weight)) / sum(weights) for weight in weights], np.float32)


def best_edge(node: Node, options: SearchOptions, is_root: bool) -> Edge:
    """Return the edge that a readout follows."""
    if options.root == "puct":
        return puct_edge(node, options)
    return gumbel_root_edge(node, options) if is_root else gumbel_edge(node, options)


def puct_edge(node: Node, options: SearchOptions) -> Edge:
    """Return the edge with the highest Q + U, where U = c·P·√N / (1 + n) (AlphaGo Zero, Methods).

    With one player, whose results may all be close to each other, Q is scaled by those that the node has seen.
    """
    exploration = options.cpuct * math.sqrt(max(1, node.visits))
    middle, factor = value_range(node, options)

    def score(edge: Edge) -> float:
        q = (q_of(node, edge, options) - middle) * factor if edge.visits else -1.0 if 1 < factor < 2e8 else 0.0
        if is_known(edge, options):
            return q
        return exploration * float(edge.searched_prior) / (1 + edge.visits) + q

    return max(candidates(node, options), key=score)


def value_range(node: Node, options: SearchOptions) -> tuple[float, float]:
    """Return m and f: PUCT takes (Q - m)·f for Q, which is Q itself, or for one player from -1 to 1."""
    if len(node.values) > 1:
        return 0.0, 1.0
    values = [node.value, *(q_of(node, edge, options) for edge in node.edges if edge.visits)]
    return (min(values) + max(values)) / 2, 2 / max(max(values) - min(values), 1e-8)


# ---------------------------------------------------------------- policy and move


def policy_of(root: Node, options: SearchOptions) -> dict[Edge, float]:
    """The policy of an unproven root: a weight for each candidate."""
    edges = candidates(root, options)
    if options.root == "gumbel":
        return dict(zip(edges, improved_policy(root, options), strict=True))
    if not any(edge.visits for edge in edges):  # by priors, if all that was visited loses
        return {edge: float(edge.prior) / sum(float(each.prior) for each in edges) for edge in edges}
    return {edge: edge.visits / sum(edge.visits for edge in edges) for edge in edges}


def values_of(root: Node, options: SearchOptions) -> Array:
    """The expected values under the policy of an unproven root."""
    mixed, policy = mixed_values(root, options), policy_of(root, options)
    found = [weight * (means_of(edge, options) if edge.visits else mixed) for edge, weight in policy.items()]
    return sum(found[1:], start=found[0])


def move_of(root: Node, options: SearchOptions) -> Edge:
    """The move to play at an unproven root."""
    policy = policy_of(root, options)
    best = max(policy, key=lambda edge: policy[edge])
    visited = [edge for edge in policy if edge.visits]
    if options.root == "puct" and options.leaf == "value" and visited:
        best = regularized_move(root, visited, options)
    if options.root == "gumbel":
        edges = list(policy)
        scores = [float(edge.searched_prior) + s for edge, s in zip(edges, sigma(root, options), strict=True)]
        most = max(edge.visits for edge in edges)
        best = max(zip(edges, scores, strict=True), key=lambda pair: (pair[0].visits == most, pair[1]))[0]
    proven = [edge for edge in policy if is_known(edge, options)]
    if proven and best not in proven:
        safest = max(proven, key=lambda edge: q_of(root, edge, options))
        return safest if q_of(root, safest, options) >= q_of(root, best, options) else best
    return max([best, *proven], key=lambda edge: q_of(root, edge, options)) if proven else best


def regularized_move(root: Node, edges: list[Edge], options: SearchOptions) -> Edge:
    """The edge that is most probable under the regularized policy."""
    middle, factor = value_range(root, options)
    values = [(q_of(root, edge, options) - middle) * factor for edge in edges]
    strength = options.cpuct * math.sqrt(root.visits) / (len(root.edges) + root.visits)
    policy = regularized_policy([float(edge.prior) for edge in edges], values, strength)
    return edges[policy.index(max(policy))]


def regularized_policy(priors: list[float], values: list[float], strength: float) -> list[float]:
    """The policy π that maximizes π·Q - λ·KL(P, π): λ·P/(α - Q) (Grill et al. 2020, section 3.2)."""

    def policy(alpha: float) -> list[float]:
        return [strength * prior / (alpha - value) for prior, value in zip(priors, values, strict=True)]

    low = max(value + strength * prior for prior, value in zip(priors, values, strict=True))
    high = max(values) + strength * sum(priors)
    while low < (alpha := (low + high) / 2) < high:
        low, high = (alpha, high) if math.fsum(policy(alpha)) > 1 else (low, alpha)
    return policy(high)


def visits(root: Node, num_actions: int) -> Array:
    """Return the visits of each action int32 [A]."""
    counts = np.zeros(num_actions, np.int32)
    counts[[edge.action for edge in root.edges]] = [edge.visits for edge in root.edges]
    return counts


# ---------------------------------------------------------------- proven results


def exact(node: Node) -> tuple[Array, int] | None:
    """The proven values of a node, and the plies to the end, by looking at the whole tree below it.

    Each player takes what is best for them (max^n: Luckhardt and Irani 1986): the fastest win, or else the slowest end.
    """
    if node.results is not None:
        return node.results, 0
    if node.proof[1] == node.visits:  # nothing below has changed
        return node.proof[0]
    known = [(each[0], each[1] + 1) for edge in node.edges if edge.child and (each := exact(edge.child))]
    is_whole = bool(node.edges) and len(known) == len(node.edges)
    wins = [each for each in known if node.offset is None and each[0][node.mover] >= 1]
    proof = min(wins, key=lambda each: each[1], default=None)
    if node.offset is not None and is_whole:
        total = sum(float(edge.prior) * values for edge, (values, _) in zip(node.edges, known, strict=True))
        mean = np.asarray(total / sum(float(edge.prior) for edge in node.edges), np.float32)
        proof = mean.astype(np.float64), max(plies for _, plies in known)
    elif is_whole and not wins:
        proof = max(known, key=lambda each: (each[0][node.mover], each[1]))
    node.proof = proof, node.visits
    return proof


def means_of(edge: Edge, options: SearchOptions) -> Array:
    """The means of a visited edge's returns, or its proven results."""
    below = exact(edge.child) if edge.child is not None and options.solver else None
    return edge.means if below is None else below[0]


def q_of(node: Node, edge: Edge, options: SearchOptions) -> float:
    """The value of a visited edge for the player who chooses it."""
    return means_of(edge, options)[node.mover]


def is_known(edge: Edge, options: SearchOptions) -> bool:
    """Whether the results of an edge are proven."""
    return options.solver and edge.child is not None and exact(edge.child) is not None


def candidates(node: Node, options: SearchOptions) -> list[Edge]:
    """The edges that are not proven to lose."""
    return [edge for edge in node.edges if not (is_known(edge, options) and q_of(node, edge, options) == -1)]


# ---------------------------------------------------------------- a Gumbel root


def gumbel_root_edge(node: Node, options: SearchOptions) -> Edge:
    """Sequential halving among the candidates, as if the edges that are proven to lose had never been there."""
    edges = candidates(node, options)
    considered, spent = min(options.gumbel_actions, len(edges)), sum(edge.visits for edge in edges)
    if spent >= options.readouts:
        return gumbel_edge(node, options)
    wanted = considered_visits(considered, options.readouts)[spent]
    scores = [float(edge.searched_prior) + s for edge, s in zip(edges, sigma(node, options), strict=True)]
    nearest = max(edge.visits for edge in edges if edge.visits <= wanted)
    return max(zip(edges, scores, strict=True), key=lambda pair: (pair[0].visits == nearest, pair[1]))[0]


def gumbel_edge(node: Node, options: SearchOptions) -> Edge:
    """Return the edge below the root whose share of visits is furthest behind the improved policy."""
    edges = candidates(node, options)
    spent = sum(edge.visits for edge in edges)
    scores = [p - edge.visits / (1 + spent) for p, edge in zip(improved_policy(node, options), edges, strict=True)]
    return edges[scores.index(max(scores))]


def improved_policy(node: Node, options: SearchOptions) -> list[float]:
    """softmax(logit + σ(q)) over the candidates."""
    scores = [logit(edge) + s for edge, s in zip(candidates(node, options), sigma(node, options), strict=True)]
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def sigma(node: Node, options: SearchOptions) -> list[float]:
    """σ(q) of each candidate, as in mctx: scaled to [0, 1], times 0.1·(50 + max N)."""
    values = completed_values(node, options)
    weight = 0.1 * (50 + max(edge.visits for edge in candidates(node, options)))
    return [weight * (value - min(values)) / max(max(values) - min(values), 1e-8) for value in values]


def completed_values(node: Node, options: SearchOptions) -> list[float]:
    """The value of each candidate."""
    mixed = mixed_values(node, options)[node.mover]
    return [q_of(node, edge, options) if edge.visits else mixed for edge in candidates(node, options)]


def mixed_values(node: Node, options: SearchOptions) -> Array:
    """The values of actions without a visit (Danihelka et al. 2022, appendix D)."""
    visited = [edge for edge in candidates(node, options) if edge.visits]
    if not visited:
        return node.values
    visits, prior = sum(edge.visits for edge in visited), sum(float(edge.prior) for edge in visited)
    mean = sum(float(edge.prior) * means_of(edge, options) for edge in visited) / prior
    return (node.values + visits * mean) / (1 + visits)


def logit(edge: Edge) -> float:
    """Return the logarithm of an edge's prior."""
    return math.log(edge.prior)
