"""Which edge a readout takes: the formulas of PUCT and of Gumbel AlphaZero. Compiled; trusts its arguments.

Sources: `AGZ` Silver et al., "Mastering the game of Go without human knowledge", 2017; `Gumbel` Danihelka et al.,
"Policy improvement by planning with Gumbel", 2022.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from seraphim.game import Array, Game
from seraphim.game.features import features_of
from seraphim.jit import kernel
from seraphim.options import SearchOptions
from seraphim.search.rng import uniform
from seraphim.search.tree import LOST, NO_PARENT, OPEN

# Gumbel search, as in mctx: the weight of values against logits grows with the visits of the most visited edge.
_VISITS_SCALE, _VISITS_OFFSET = 0.1, 50.0
_LOWEST_LOGIT = -1e9
SMALLEST_PRIOR = float(np.finfo(np.float32).tiny)  # a softmax may give 0, which has no logarithm
_SMALLEST_SPREAD = 1e-8
_LARGEST_FACTOR = 2 / _SMALLEST_SPREAD
GOLDEN = 0.6180339887498949  # (√5 - 1) / 2


class Rule(NamedTuple):
    """The options of the search, as numbers for kernels."""

    leaves: int  # rows of a tree
    cpuct: float
    solver: bool
    gumbel: bool
    playout: bool
    max_plies: int  # a playout of this length ends as a draw
    most_visited: bool  # whether a PUCT root plays the most visited action
    chance: bool = False  # whether chance may move
    one_player: bool = False
    value_scale: float = 1.0  # of the network's value


def to_rule(game: Game, options: SearchOptions, leaves: int, other_policy: bool = False) -> Rule:
    """Return the options as a `Rule` for trees with this many rows.

    With an `other_policy` in PUCT's place, or playouts, as in pure MCTS, the most visited action is played.
    """
    features = features_of(game)
    return Rule(
        leaves=leaves,
        cpuct=options.cpuct,
        solver=options.solver,
        gumbel=options.root == "gumbel",
        playout=options.leaf == "playout",
        max_plies=game.max_plies,
        most_visited=other_policy or options.leaf == "playout",
        chance=features.chances is not None,
        one_player=features.num_players == 1,
        value_scale=1.0 if features.value_scale is None else float(features.value_scale),
    )


@kernel
def best_edge(node: Any, edges: Array, root_scores: Array, scores_at: int, schedules: Array, rule: Rule) -> int:
    """Return the edge that a readout takes from an unfinished NODE.

    `root_scores` of this tree, see `seraphim.search.roots.prepare_roots`, begin at `scores_at`; for `schedules` see
    `halving_schedules`.
    """
    is_root = node["parent"] == NO_PARENT
    if rule.one_player and not rule.gumbel:
        return _scaled_puct_edge(node, edges, root_scores, scores_at, rule)
    if not rule.gumbel:
        if is_root:
            return _puct_root_edge(node, edges, root_scores, scores_at, rule)
        return _puct_edge(node, edges, rule)
    if is_root:
        return _gumbel_root_edge(node, edges, root_scores, scores_at, schedules)
    return _gumbel_edge(node, edges)


@kernel
def _puct_edge(node: Any, edges: Array, rule: Rule) -> int:
    # argmax of Q(s,a) + c·P(s,a)·√N(s)/(1+N(s,a)) (AGZ, Methods), the first of equals. N(s) counts the node's own
    # evaluation, and is at least 1 for a playout that goes on from a new node: the prior decides the first visit.
    first = node["first_edge"]
    exploration = exploration_weight(max(1, node["visits"]), rule)
    best, best_score = first, -np.inf
    for index in range(first, first + node["num_edges"]):
        edge = edges[index]
        score = _puct_score(edge, exploration * np.float64(edge["prior"]))
        if score > best_score:
            best, best_score = index, score
    return best


@kernel
def _puct_root_edge(node: Any, edges: Array, root_scores: Array, scores_at: int, rule: Rule) -> int:
    # The same with the root's priors, which have noise; one loop for both would be slower.
    first = node["first_edge"]
    exploration = exploration_weight(max(1, node["visits"]), rule)
    best, best_score = first, -np.inf
    for k in range(node["num_edges"]):
        prior = np.float64(root_scores[scores_at + k])  # float64 when interpreted, too
        score = _puct_score(edges[first + k], exploration * prior)
        if score > best_score:
            best, best_score = first + k, score
    return best


@kernel
def _puct_score(edge: Any, exploration: float) -> float:
    # Q + U, where `exploration` is c·P·√N. An edge whose result is proven is not explored: its score is Q, and -inf if
    # it loses. Visits under way count as losses.
    # The total of an edge without visits is 0, so that there is a quotient either way, and no branch: the processor
    # could not predict it.
    visits = np.int64(edge["visits"]) + np.int64(edge["pending"])
    q = (edge["total"] - edge["pending"]) / max(visits, 1)
    score = q + (exploration / (1 + visits) if edge["proof"] == OPEN else 0.0)
    return -np.inf if edge["proof"] == LOST else score


@kernel
def _scaled_puct_edge(node: Any, edges: Array, root_scores: Array, scores_at: int, rule: Rule) -> int:
    # The same for one player, with Q from -1 to 1. Visits under way, and edges without a visit, count as the least.
    first, is_root = node["first_edge"], node["parent"] == NO_PARENT
    middle, factor = value_range(node, edges, rule)
    exploration = exploration_weight(max(1, node["visits"]), rule)
    best, best_score = first, -np.inf
    for k in range(node["num_edges"]):
        edge = edges[first + k]
        prior = np.float64(root_scores[scores_at + k]) if is_root else np.float64(edge["prior"])
        least = -1.0 if factor < _LARGEST_FACTOR else 0.0
        score = least
        if edge["visits"] > 0:
            scaled = (edge["total"] / edge["visits"] - middle) * factor
            score = (edge["visits"] * scaled + edge["pending"] * least) / (edge["visits"] + edge["pending"])
        if edge["proof"] == OPEN:
            score += exploration * prior / (1 + edge["visits"] + edge["pending"])
        if edge["proof"] != LOST and score > best_score:
            best, best_score = first + k, score
    return best


@kernel
def value_range(node: Any, edges: Array, rule: Rule) -> tuple[float, float]:
    """Return m and f by which (Q - m)·f is what PUCT takes for Q: 0 and 1, but for one player from -1 to 1.

    The results of one player may all be close to each other; the range is that of the node's value and its edges'
    (mctx: `qtransform_by_parent_and_siblings`).
    """
    if not rule.one_player:
        return 0.0, 1.0
    least = greatest = np.float64(node["value"])
    for edge_index in range(node["first_edge"], node["first_edge"] + node["num_edges"]):
        edge = edges[edge_index]
        if edge["visits"] > 0:
            value = edge["total"] / edge["visits"]
            least, greatest = min(least, value), max(greatest, value)
    return (least + greatest) / 2, 2 / max(greatest - least, _SMALLEST_SPREAD)


@kernel
def outcome_edge(node: Any, edges: Array, draws: np.uint64, rule: Rule) -> int:
    """Return the edge of a NODE where chance moves that its next readout takes, by the key by which chance draws there.

    The n-th readout, those under way included, takes the outcome at frac(h + φ·n) of the cumulative probabilities,
    which spread more evenly than random draws (the additive recurrence of the golden ratio: Knuth, The Art of Computer
    Programming, volume 3, section 6.4).
    """
    first, last = node["first_edge"], node["first_edge"] + node["num_edges"] - 1
    under_way = 0
    if rule.leaves > 1:
        for edge in range(first, last + 1):
            under_way += edges[edge]["pending"]
    place = (uniform(draws, np.uint64(0)) + GOLDEN * (node["visits"] + under_way)) % 1.0
    end = 0.0
    for edge in range(first, last):
        end += np.float64(edges[edge]["prior"])
        if place < end:
            return edge
    return last


@kernel
def exploration_weight(visits: int, rule: Rule) -> float:
    """Return c·√N(s)."""
    return rule.cpuct * math.sqrt(visits)


@kernel
def _gumbel_root_edge(node: Any, edges: Array, root_scores: Array, scores_at: int, schedules: Array) -> int:
    # Sequential halving (Gumbel, section 3): among the edges with as many visits as the schedule asks for, the one with
    # the highest g(a) + logit(a) + σ(q(a)); `root_scores` holds g + logit. Edges that are proven to lose count as
    # illegal, visits included, so the next best take their places. Then the schedule is that of fewer edges, which may
    # be ahead of their visits: the nearest edges catch up. Readouts beyond the schedule follow the improved policy.
    first, count = node["first_edge"], node["num_edges"]
    spent, num_open = 0, 0
    for k in range(count):
        edge = edges[first + k]
        if edge["proof"] != LOST:
            num_open += 1
            spent += edge["visits"] + edge["pending"]
    if spent >= schedules.shape[1]:
        return _gumbel_edge(node, edges)
    wanted = schedules[min(num_open, len(schedules) - 1), spent]
    completed = completion(node, edges)
    best, best_visits, best_score = first, -1, -np.inf
    for k in range(count):
        edge = edges[first + k]
        visits = edge["visits"] + edge["pending"]
        if edge["proof"] == LOST or visits > wanted or visits < best_visits:
            continue
        score = max(_LOWEST_LOGIT, root_scores[scores_at + k] + completed_value(edge, completed))
        if visits > best_visits or score > best_score:
            best, best_visits, best_score = first + k, visits, score
    return best


@kernel
def _gumbel_edge(node: Any, edges: Array) -> int:
    # argmax of π'(a) - N(a)/(1 + ΣN), with the improved policy π' = softmax(logit + σ(q)) (Gumbel, section 5), over the
    # edges that are not proven to lose.
    first, count = node["first_edge"], node["num_edges"]
    completed = completion(node, edges)
    largest, spent = -np.inf, 0
    for edge_index in range(first, first + count):
        edge = edges[edge_index]
        if edge["proof"] == LOST:
            continue
        spent += edge["visits"] + edge["pending"]
        largest = max(largest, logit(edge) + completed_value(edge, completed))
    total = 0.0
    for edge_index in range(first, first + count):
        edge = edges[edge_index]
        if edge["proof"] != LOST:
            total += math.exp(logit(edge) + completed_value(edge, completed) - largest)
    best, best_score = first, -np.inf
    for edge_index in range(first, first + count):
        edge = edges[edge_index]
        if edge["proof"] == LOST:
            continue
        probability = math.exp(logit(edge) + completed_value(edge, completed) - largest) / total
        score = probability - (edge["visits"] + edge["pending"]) / (1 + spent)
        if score > best_score:
            best, best_score = edge_index, score
    return best


@kernel
def logit(edge: Any) -> float:
    """Return the logarithm of an edge's prior."""
    return math.log(max(edge["prior"], SMALLEST_PRIOR))


@kernel
def completion(node: Any, edges: Array) -> tuple[float, float, float, float]:
    """Return what `completed_value` needs of a node: the mixed value, the least and the greatest value, and the scale.

    Edges without visits are completed by the mixed value, (v + ΣN·Σ_visited P·q / Σ_visited P) / (1 + ΣN) (Gumbel,
    appendix D); values are scaled to [0, 1] over the node's edges and weighted by 0.1·(50 + max N), as in mctx.
    Edges that are proven to lose count as illegal: a node that is not settled has others.
    """
    first = node["first_edge"]
    visits, most_visits = 0, 0
    prior_sum, weighted = 0.0, 0.0
    for edge_index in range(first, first + node["num_edges"]):
        edge = edges[edge_index]
        if edge["visits"] > 0 and edge["proof"] != LOST:
            prior = max(edge["prior"], SMALLEST_PRIOR)
            prior_sum += prior
            weighted += prior * edge["total"] / edge["visits"]
            visits += edge["visits"]
            most_visits = max(most_visits, edge["visits"])
    mixed = np.float64(node["value"])
    if visits > 0:
        mixed = (mixed + visits * weighted / prior_sum) / (1 + visits)
    least, greatest = np.inf, -np.inf
    for edge_index in range(first, first + node["num_edges"]):
        edge = edges[edge_index]
        if edge["proof"] == LOST:
            continue
        value = edge["total"] / edge["visits"] if edge["visits"] > 0 else mixed
        least, greatest = min(least, value), max(greatest, value)
    return mixed, least, greatest, _VISITS_SCALE * (_VISITS_OFFSET + most_visits)


@kernel
def completed_value(edge: Any, completed: tuple[float, float, float, float]) -> float:
    """Return σ(q) of an edge; `completed` is the `completion` of its node."""
    mixed, least, greatest, scale = completed
    value = edge["total"] / edge["visits"] if edge["visits"] > 0 else mixed
    return scale * (value - least) / max(greatest - least, _SMALLEST_SPREAD)


def considered_visits(num_considered: int, readouts: int) -> Array:
    """Return the visits that the considered edges have at each readout of sequential halving, int32 [readouts].

    All `num_considered` edges get the same number of visits, then the better half of them, and so on, until two are
    left; the budget is spent exactly (Karnin et al., "Almost optimal exploration in multi-armed bandits", 2013).
    """
    if num_considered <= 1:
        return np.arange(readouts, dtype=np.int32)
    phases = math.ceil(math.log2(num_considered))
    schedule: list[int] = []
    visits, considered = 0, num_considered
    while len(schedule) < readouts:
        for _ in range(max(1, readouts // (phases * considered))):
            schedule += [visits] * considered
            visits += 1
        considered = max(2, considered // 2)
    return np.array(schedule[:readouts], np.int32)


def halving_schedules(options: SearchOptions, num_actions: int) -> Array:
    """Return int32 [<= A + 1, readouts]: `considered_visits` by the number of edges that a Gumbel root considers."""
    if options.root != "gumbel":
        return np.zeros((1, 1), np.int32)
    most = min(options.gumbel_actions, num_actions)
    return np.stack([considered_visits(count, options.readouts) for count in range(most + 1)])
