"""What happens at the roots: noise before a search, policy and move after it, and the move of the root itself.

Compiled; trusts its arguments.
"""

import math
from typing import Any

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel
from seraphim.search.rng import dirichlet, uniform
from seraphim.search.selection import Rule, completed_value, completion, logit
from seraphim.search.traversal import WIN
from seraphim.search.tree import AT_REST, KNOWN, LOST, NO_CHILD, NO_PARENT, Trees


@kernel
def prepare_roots(
    trees: Trees,
    chosen: Array,
    keys: Array,
    alpha: float,
    coefficient: float,
    temperature: float,
    gumbel: bool,
) -> None:
    """Give the roots of the trees `chosen` int64 [K] the scores that their edges are searched with.

    Of PUCT those are priors, (1 - coefficient)·P^(1/temperature)/Σ + coefficient·noise, with one draw of Dirichlet
    noise of concentration `alpha` over the legal actions; of a Gumbel root they are logits, plus `coefficient` times
    Gumbel noise. The noise comes from the stream of the tree's key, uint64 [K]. The priors P themselves stay as the
    network gave them, so a root that was an inner node before, or is searched again, is noised once.
    """
    edges, scores = trees.edges, trees.root_scores
    for index in range(len(chosen)):
        tree = chosen[index]
        root = trees.nodes[root_of(trees, tree)]
        first, count = root["first_edge"], root["num_edges"]
        scores_at = tree * (len(scores) // len(trees.progress))
        if gumbel:
            for k in range(count):
                noise = -math.log(-math.log(uniform(keys[index], np.uint64(k))))
                scores[scores_at + k] = logit(edges[first + k]) + coefficient * noise
            continue
        draw = np.zeros(count, np.float64)
        if coefficient > 0.0:
            dirichlet(alpha, keys[index], draw)
        total = 1.0
        if temperature != 1.0:
            total = 0.0
            for k in range(count):
                total += np.float64(edges[first + k]["prior"]) ** (1.0 / temperature)
        for k in range(count):
            prior = np.float64(edges[first + k]["prior"])
            if temperature != 1.0:
                prior = prior ** (1.0 / temperature) / total
            scores[scores_at + k] = (1.0 - coefficient) * prior + coefficient * draw[k]


@kernel
def root_edges(trees: Trees, chosen: Array, visits: Array, totals: Array, priors: Array, proven: Array) -> None:
    """Read the roots of the trees `chosen` int64 [K].

    Args:
        trees: read.
        chosen: which.
        visits: int32 [K, A], filled.
        totals: float64 [K, A], filled with the sums of values, for the player to move.
        priors: float32 [K, A], filled with the network's priors.
        proven: bool [K], filled with whether the root is settled.
    """
    visits[:] = 0
    totals[:] = 0.0
    priors[:] = 0.0
    for index in range(len(chosen)):
        root = trees.nodes[root_of(trees, chosen[index])]
        proven[index] = root["settled"]
        for k in range(root["num_edges"]):
            edge = trees.edges[root["first_edge"] + k]
            visits[index, edge["action"]] = edge["visits"]
            totals[index, edge["action"]] = edge["total"]
            priors[index, edge["action"]] = edge["prior"]


@kernel
def root_policies(trees: Trees, chosen: Array, rule: Rule, policies: Array, values: Array, best: Array) -> None:
    """Compute what the searches of the trees `chosen` int64 [K] teach, and which action is best.

    The policy of PUCT is the visit distribution, without actions that are proven to lose unless all do; of a proven
    root, the visits of the actions that give its value, wins the fastest way and losses the slowest; of a Gumbel root,
    softmax(logit + σ(q)) over the actions that are not proven to lose.

    Args:
        trees: read.
        chosen: which.
        rule: the options.
        policies: float32 [K, A], filled.
        values: float64 [K], filled with the expected value under that policy, for the player to move; a Gumbel root
            visits actions that it then gives little weight, so that the mean of its visits is far too low. Of a proven
            root, its value; without a readout, the network's.
        best: int32 [K], filled with the most probable action, the first of equals; of a Gumbel root, with the most
            visited one that has the highest score; but with the one that has the best proven result, if that is no less
            than that one's value.
    """
    policies[:] = 0.0
    nodes, edges, scores = trees.nodes, trees.edges, trees.root_scores
    weights = np.zeros(policies.shape[1], np.float64)
    for index in range(len(chosen)):
        tree = chosen[index]
        root = nodes[root_of(trees, tree)]
        first, count = root["first_edge"], root["num_edges"]
        scores_at = tree * (len(scores) // len(trees.progress))
        best_edge = first
        if root["settled"]:
            _exact_weights(root, nodes, edges, weights)
        elif rule.gumbel:
            best_edge = _improved_weights(root, edges, scores, scores_at, weights)
        else:
            _visit_weights(root, edges, weights)
        total, greatest = 0.0, 0
        for k in range(count):
            total += weights[k]
            if weights[k] > weights[greatest]:
                greatest = k
        for k in range(count):
            policies[index, edges[first + k]["action"]] = weights[k] / total
        values[index] = root["value"]
        if not root["settled"] and total > 0.0:
            values[index] = _expected_value(root, edges, weights, completion(root, edges)[0]) / total
        if root["settled"] or not rule.gumbel:
            best_edge = first + greatest
        if not root["settled"]:
            best_edge = _or_known(root, edges, best_edge)
        best[index] = edges[best_edge]["action"]


@kernel
def _visit_weights(root: Any, edges: Array, weights: Array) -> None:
    first, count = root["first_edge"], root["num_edges"]
    total = 0.0
    for k in range(count):
        edge = edges[first + k]
        weights[k] = 0.0 if edge["known"] == LOST else edge["visits"]
        total += weights[k]
    if total == 0.0:  # all that was visited loses
        for k in range(count):
            weights[k] = edges[first + k]["visits"]


@kernel
def _expected_value(root: Any, edges: Array, weights: Array, mixed: float) -> float:
    # The sum of the edges' values by their weights; those without a visit are completed by the mixed value.
    value = 0.0
    for k in range(root["num_edges"]):
        edge = edges[root["first_edge"] + k]
        value += weights[k] * (edge["total"] / edge["visits"] if edge["visits"] > 0 else mixed)
    return value


@kernel
def _or_known(root: Any, edges: Array, best: int) -> int:
    # The edge with the best proven result, if that is no less than what `best` seems to be worth, else `best`.
    chosen, value = best, edges[best]["total"] / max(1, edges[best]["visits"])
    for index in range(root["first_edge"], root["first_edge"] + root["num_edges"]):
        edge = edges[index]
        if edge["known"] != KNOWN:
            continue
        result = edge["total"] / max(1, edge["visits"])
        if result > value or (result == value and edges[chosen]["known"] != KNOWN):
            chosen, value = index, result
    return chosen


@kernel
def _exact_weights(root: Any, nodes: Array, edges: Array, weights: Array) -> None:
    first, count = root["first_edge"], root["num_edges"]
    for k in range(count):
        weights[k] = 0.0
        child = edges[first + k]["child"]
        if child == NO_CHILD or not nodes[child]["settled"]:
            continue
        same = root["to_play"] == nodes[child]["to_play"]
        value = nodes[child]["value"] if same else -nodes[child]["value"]
        decided = abs(value) >= WIN
        if value == root["value"] and (not decided or nodes[child]["distance"] + 1 == root["distance"]):
            weights[k] = max(1, edges[first + k]["visits"])


@kernel
def _improved_weights(root: Any, edges: Array, scores: Array, scores_at: int, weights: Array) -> int:
    # The improved policy of a Gumbel root, and its move (Danihelka et al. 2022, sections 3 and 4), over the edges that
    # are not proven to lose.
    first, count = root["first_edge"], root["num_edges"]
    completed = completion(root, edges)
    largest, most_visits = -np.inf, 0
    for k in range(count):
        weights[k] = -np.inf
        if edges[first + k]["known"] != LOST:
            weights[k] = logit(edges[first + k]) + completed_value(edges[first + k], completed)
            largest = max(largest, weights[k])
            most_visits = max(most_visits, edges[first + k]["visits"])
    best, best_score = first, -np.inf
    for k in range(count):
        if edges[first + k]["known"] == LOST:
            weights[k] = 0.0
            continue
        weights[k] = math.exp(weights[k] - largest)
        score = scores[scores_at + k] + completed_value(edges[first + k], completed)
        if edges[first + k]["visits"] == most_visits and score > best_score:
            best, best_score = first + k, score
    return best


@kernel
def move_roots(trees: Trees, chosen: Array, actions: Array) -> None:
    """Make the successor by `actions` [K] the root of each tree `chosen` int64 [K].

    What lies below it is kept, the rest dropped. A tree whose successor was never visited, or in which the game has
    ended, becomes empty. Nodes and edges move towards the front and keep their order, so the move is done in place.
    """
    nodes, edges = trees.nodes, trees.edges
    new_index = np.empty(len(nodes) // len(trees.progress), np.int32)
    for index in range(len(chosen)):
        tree, before = trees.progress[chosen[index]], root_of(trees, chosen[index])
        root = _child_by(nodes[before], edges, actions[index])
        count = tree["num_nodes"]
        tree["num_nodes"] = 0
        tree["num_edges"] = 0
        if root == NO_CHILD or nodes[root]["num_edges"] == 0:
            continue
        first_edge = chosen[index] * (len(edges) // len(trees.progress))
        for node in range(root, before + count):
            parent = nodes[node]["parent"]
            new_index[node - before] = AT_REST
            if node == root or (parent >= root and new_index[parent - before] != AT_REST):
                target = before + tree["num_nodes"]
                new_index[node - before] = target
                for word in range(trees.states.shape[1]):
                    trees.states[target, word] = trees.states[node, word]
                new_parent = NO_PARENT if node == root else new_index[parent - before]
                count_edges = _move_node(nodes, edges, node, target, new_parent, first_edge + tree["num_edges"])
                tree["num_nodes"] += 1
                tree["num_edges"] += count_edges


@kernel
def root_of(trees: Trees, tree: int) -> int:
    """Return the root of a tree."""
    return tree * (len(trees.nodes) // len(trees.progress))


@kernel
def _child_by(node: Any, edges: Array, action: int) -> int:
    first = node["first_edge"]
    for edge in range(first, first + node["num_edges"]):
        if edges[edge]["action"] == action:
            return edges[edge]["child"]
    return NO_CHILD


@kernel
def _move_node(nodes: Array, edges: Array, node: int, target: int, parent: int, first_edge: int) -> int:
    # Moves a node to `target` and its edges to `first_edge` on; returns how many those are. Its parent has moved before
    # it and has told it, in `parent_edge`, where the edge to it went.
    before, count = nodes[node]["first_edge"], nodes[node]["num_edges"]
    nodes[target] = nodes[node]
    nodes[target]["first_edge"] = first_edge
    nodes[target]["parent"] = parent
    if parent != NO_PARENT:
        edges[nodes[target]["parent_edge"]]["child"] = target
    for k in range(count):
        edges[first_edge + k] = edges[before + k]
        child = edges[first_edge + k]["child"]
        if child != NO_CHILD:
            nodes[child]["parent_edge"] = first_edge + k
    return count
