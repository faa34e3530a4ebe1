"""Roots: noise before a search, policy and best action after it, and the move to a successor.

Compiled; trusts its arguments.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel
from seraphim.search.rng import dirichlet, fork_key, uniform
from seraphim.search.selection import (
    SMALLEST_PRIOR,
    Rule,
    completed_value,
    completion,
    exploration_weight,
    logit,
    value_range,
)
from seraphim.search.solver import WIN, value_for
from seraphim.search.tree import AT_REST, LOST, NO_CHILD, NO_PARENT, PROVEN, Trees

_HALVINGS = 32  # of the interval that holds α


class Result(NamedTuple):
    """What the search found at the roots of K trees; values are for the player to move."""

    visits: Array  # int32 [K, A]
    # float32 [K, A], the training target, without actions that are proven to lose unless all are: for PUCT the visit
    # distribution, or the priors if none of the other actions was visited; for a Gumbel root softmax(logit + σ(q)); for
    # a proven root the visits of the actions that give its value, wins the fastest way and losses the slowest.
    policies: Array
    # int32 [K], the action to play without exploration, the first of equals: for PUCT the one that the regularized
    # policy finds most probable, but with playouts or a tree policy the most visited one; for a Gumbel root the most
    # visited one of the highest score; for a proven root the most probable one. An action with a proven result takes
    # the place of one whose value is not higher.
    best: Array
    # float32 [K]: the expected value under the policy. (A Gumbel root visits actions that it then gives little weight:
    # the mean of its visits is far too low.) For a proven root its value; without a readout the network's.
    values: Array
    proven: Array  # bool [K]: whether the value is exact
    action_values: Array  # float32 [K, A]: Q(s,a), 0 for actions without a visit
    priors: Array  # float32 [K, A]: the network's, over legal actions, without noise
    by_player: Array  # float32 [K, P]: the values for each player; no columns for one or two players


class Noise(NamedTuple):
    """How the search of a noisy root changes its priors."""

    alpha: float  # concentration of the Dirichlet noise
    coefficient: float  # its share


@kernel
def prepare_roots(trees: Trees, chosen: Array, keys: Array, noisy: Array, noise: Noise, gumbel: bool) -> None:
    """Set the scores of the root's edges in the trees `chosen` int64 [K]: what the search takes for their priors.

    For PUCT they are (1 - coefficient)·P + coefficient·draw, with one draw of Dirichlet noise over the legal actions;
    for a Gumbel root they are logits plus Gumbel noise. It comes from the streams of `keys`, uint64 [K]; roots that are
    not `noisy`, bool [K], get none. The priors P stay as the network gave them, so noise does not add up when a tree is
    reused.
    """
    edges, scores = trees.edges, trees.root_scores
    for index in range(len(chosen)):
        tree = chosen[index]
        root = trees.nodes[root_of(trees, tree)]
        first, count = root["first_edge"], root["num_edges"]
        scores_at = tree * (len(scores) // len(trees.progress))
        coefficient = 0.0
        if noisy[index]:
            coefficient = 1.0 if gumbel else noise.coefficient
        if gumbel:
            for k in range(count):
                drawn = -math.log(-math.log(uniform(keys[index], np.uint64(k))))
                scores[scores_at + k] = logit(edges[first + k]) + coefficient * drawn
            continue
        draw = np.zeros(count, np.float64)
        if coefficient > 0.0:
            dirichlet(noise.alpha, keys[index], draw)
        for k in range(count):
            prior = np.float64(edges[first + k]["prior"])
            scores[scores_at + k] = (1.0 - coefficient) * prior + coefficient * draw[k]


def read_roots(trees: Trees, chosen: Array, rule: Rule) -> Result:
    """Return what the searches of the trees `chosen` int64 [K] found."""
    shape = (len(chosen), len(trees.root_scores) // len(trees.progress))
    visits, totals, priors = np.empty(shape, np.int32), np.empty(shape), np.empty(shape, np.float32)
    proven, values = np.empty(len(chosen), np.bool_), np.empty(len(chosen))
    policies, best = np.empty(shape, np.float32), np.empty(len(chosen), np.int32)
    _read_edges(trees, chosen, visits, totals, priors, proven)
    by_player = np.empty((len(chosen), trees.node_values.shape[1]))
    _compute_policies(trees, chosen, rule, policies, values, best, by_player)
    action_values = (totals / np.maximum(visits, 1)).astype(np.float32)
    values, by_player = values.astype(np.float32), by_player.astype(np.float32)
    return Result(visits, policies, best, values, proven, action_values, priors, by_player)


@kernel
def _read_edges(trees: Trees, chosen: Array, visits: Array, totals: Array, priors: Array, proven: Array) -> None:
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
def _compute_policies(
    trees: Trees, chosen: Array, rule: Rule, policies: Array, values: Array, best: Array, by_player: Array
) -> None:
    # Fills in the policies, values and best actions of a `Result`.
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
            _exact_weights(root, nodes, edges, trees.node_values, weights)
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
        if not root["settled"]:
            values[index] = _expected_value(root, edges, weights, completion(root, edges)[0]) / total
        for player in range(by_player.shape[1]):
            by_player[index, player] = trees.node_values[root_of(trees, tree), player]
            if not root["settled"]:
                mixed = by_player[index, player]
                by_player[index, player] = _expected_for(root, edges, trees.edge_totals, weights, mixed, player) / total
        if root["settled"]:
            best_edge = first + greatest
        else:
            if not rule.gumbel:
                best_edge = first + greatest if rule.most_visited else _regularized_edge(root, edges, weights, rule)
            best_edge = _prefer_proven(root, edges, best_edge)
        best[index] = edges[best_edge]["action"]


@kernel
def _visit_weights(root: Any, edges: Array, weights: Array) -> None:
    # The visits of the edges that are not proven to lose; their priors, if none of them was visited.
    first, count = root["first_edge"], root["num_edges"]
    total = 0.0
    for k in range(count):
        weights[k] = 0.0 if edges[first + k]["proof"] == LOST else edges[first + k]["visits"]
        total += weights[k]
    if total > 0.0:
        return
    for k in range(count):
        if edges[first + k]["proof"] != LOST:
            weights[k] = max(edges[first + k]["prior"], SMALLEST_PRIOR)


@kernel
def _regularized_edge(root: Any, edges: Array, weights: Array, rule: Rule) -> int:
    # The edge that is most probable under the policy λ·P/(α - Q) with λ = c·√N/(A + N), where α makes the sum 1. The
    # shares of visits tend to this policy, but lag behind it where values have changed late (Grill et al., "Monte-Carlo
    # tree search as regularized policy optimization", 2020, section 3). Only over edges whose visits have `weights`.
    first, count = root["first_edge"], root["num_edges"]
    middle, factor = value_range(root, edges, rule)
    strength = exploration_weight(root["visits"], rule) / (count + root["visits"])
    low, high = -np.inf, -np.inf  # bounds of α
    for k in range(count):
        if weights[k] > 0.0:
            q = (_mean(edges[first + k]) - middle) * factor
            low = max(low, q + strength * np.float64(edges[first + k]["prior"]))
            high = max(high, q + strength)
    for _ in range(_HALVINGS):
        alpha, total = (low + high) / 2.0, 0.0
        for k in range(count):
            if weights[k] > 0.0:
                q = (_mean(edges[first + k]) - middle) * factor
                total += strength * np.float64(edges[first + k]["prior"]) / (alpha - q)
        if total > 1.0:
            low = alpha
        else:
            high = alpha
    best, best_ratio = first, -np.inf
    for k in range(count):
        if weights[k] > 0.0:
            ratio = np.float64(edges[first + k]["prior"]) / (high - (_mean(edges[first + k]) - middle) * factor)
            if ratio > best_ratio:
                best, best_ratio = first + k, ratio
    return best


@kernel
def _mean(edge: Any) -> float:
    # Q(s,a), 0 without a visit.
    return edge["total"] / max(1, edge["visits"])


@kernel
def _expected_value(root: Any, edges: Array, weights: Array, mixed: float) -> float:
    # The weighted sum of the edges' values; the mixed value stands for those of edges without a visit.
    value = 0.0
    for k in range(root["num_edges"]):
        edge = edges[root["first_edge"] + k]
        value += weights[k] * (edge["total"] / edge["visits"] if edge["visits"] > 0 else mixed)
    return value


@kernel
def _expected_for(root: Any, edges: Array, edge_totals: Array, weights: Array, value: float, player: int) -> float:
    # The same for one of more than two players, completed as by `completion`; `value` is the network's.
    first, count = root["first_edge"], root["num_edges"]
    visits, prior_sum, weighted = 0, 0.0, 0.0
    for index in range(first, first + count):
        edge = edges[index]
        if edge["visits"] > 0 and edge["proof"] != LOST:
            prior = max(edge["prior"], SMALLEST_PRIOR)
            prior_sum += prior
            weighted += prior * edge_totals[index, player] / edge["visits"]
            visits += edge["visits"]
    if visits > 0:
        value = (value + visits * weighted / prior_sum) / (1 + visits)
    expected = 0.0
    for k in range(count):
        edge = edges[first + k]
        expected += weights[k] * (edge_totals[first + k, player] / edge["visits"] if edge["visits"] > 0 else value)
    return expected


@kernel
def _prefer_proven(root: Any, edges: Array, best: int) -> int:
    # The edge with the best proven result, unless that is less than the mean value of `best`; else `best`.
    chosen, value = best, _mean(edges[best])
    for index in range(root["first_edge"], root["first_edge"] + root["num_edges"]):
        edge = edges[index]
        if edge["proof"] != PROVEN:
            continue
        result = _mean(edge)
        if result > value or (result == value and edges[chosen]["proof"] != PROVEN):
            chosen, value = index, result
    return chosen


@kernel
def _exact_weights(root: Any, nodes: Array, edges: Array, node_values: Array, weights: Array) -> None:
    first, count = root["first_edge"], root["num_edges"]
    for k in range(count):
        weights[k] = 0.0
        child = edges[first + k]["child"]
        if child == NO_CHILD or not nodes[child]["settled"]:
            continue
        value = value_for(nodes, node_values, child, root["to_play"])
        decided = abs(value) >= WIN
        if value == root["value"] and (not decided or nodes[child]["distance"] + 1 == root["distance"]):
            weights[k] = max(1, edges[first + k]["visits"])


@kernel
def _improved_weights(root: Any, edges: Array, scores: Array, scores_at: int, weights: Array) -> int:
    # The improved policy of a Gumbel root and its best edge (Danihelka et al. 2022, sections 3 and 4), over the edges
    # that are not proven to lose.
    first, count = root["first_edge"], root["num_edges"]
    completed = completion(root, edges)
    largest, most_visits = -np.inf, 0
    for k in range(count):
        weights[k] = -np.inf
        if edges[first + k]["proof"] != LOST:
            weights[k] = logit(edges[first + k]) + completed_value(edges[first + k], completed)
            largest = max(largest, weights[k])
            most_visits = max(most_visits, edges[first + k]["visits"])
    best, best_score = first, -np.inf
    for k in range(count):
        if edges[first + k]["proof"] == LOST:
            weights[k] = 0.0
            continue
        weights[k] = math.exp(weights[k] - largest)
        score = scores[scores_at + k] + completed_value(edges[first + k], completed)
        if edges[first + k]["visits"] == most_visits and score > best_score:
            best, best_score = first + k, score
    return best


@kernel
def move_roots(trees: Trees, chosen: Array, actions: Array) -> None:
    """Make the successor by `actions` [K] the root of each tree `chosen` int64 [K], keeping the nodes below it.

    A tree whose successor was never visited, or in which the game has ended, becomes empty. Nodes and edges move
    towards the front and keep their order, so all is done in place.
    """
    nodes, edges = trees.nodes, trees.edges
    new_index = np.empty(len(nodes) // len(trees.progress), np.int32)
    for index in range(len(chosen)):
        tree, before = trees.progress[chosen[index]], root_of(trees, chosen[index])
        root = _child_by(nodes[before], edges, actions[index])
        count = tree["num_nodes"]
        tree["num_nodes"] = 0
        tree["num_edges"] = 0
        key, tree["key"] = tree["key"], np.uint64(0)
        if root == NO_CHILD or nodes[root]["num_edges"] == 0:
            continue
        tree["key"] = fork_key(key, np.uint64(actions[index]))
        first_edge = chosen[index] * (len(edges) // len(trees.progress))
        for node in range(root, before + count):
            parent = nodes[node]["parent"]
            new_index[node - before] = AT_REST
            if node == root or (parent >= root and new_index[parent - before] != AT_REST):
                target = before + tree["num_nodes"]
                new_index[node - before] = target
                for word in range(trees.states.shape[1]):
                    trees.states[target, word] = trees.states[node, word]
                for player in range(trees.node_values.shape[1]):
                    trees.node_values[target, player] = trees.node_values[node, player]
                new_parent = NO_PARENT if node == root else new_index[parent - before]
                count_edges = _move_node(
                    nodes, edges, trees.edge_totals, node, target, new_parent, first_edge + tree["num_edges"]
                )
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
def _move_node(
    nodes: Array, edges: Array, edge_totals: Array, node: int, target: int, parent: int, first_edge: int
) -> int:
    # Moves a node to `target` and its edges to `first_edge` and after; returns their number. Its parent was moved
    # before it, and has updated its `parent_edge`.
    before, count = nodes[node]["first_edge"], nodes[node]["num_edges"]
    nodes[target] = nodes[node]
    nodes[target]["first_edge"] = first_edge
    nodes[target]["parent"] = parent
    if parent != NO_PARENT:
        edges[nodes[target]["parent_edge"]]["child"] = target
    for k in range(count):
        edges[first_edge + k] = edges[before + k]
        for player in range(edge_totals.shape[1]):
            edge_totals[first_edge + k, player] = edge_totals[before + k, player]
        child = edges[first_edge + k]["child"]
        if child != NO_CHILD:
            nodes[child]["parent_edge"] = first_edge + k
    return count
