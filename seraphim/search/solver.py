"""Proves results up the tree: MCTS-Solver (Winands et al. 2008), with draws. Compiled; trusts its arguments."""

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel
from seraphim.search.tree import LOST, NO_CHILD, NO_PARENT, PROVEN

WIN, LOSS = 1.0, -1.0  # values


@kernel
def prove(nodes: Array, edges: Array, node_values: Array, edge_totals: Array, node: int) -> None:
    """Settle every ancestor of a settled node whose result follows.

    A node is won if one edge wins, and settled by its best edge once all edges are settled; a win is counted to its
    fastest end, anything else to its slowest. Where chance moves, a node is settled by the expectation once all
    outcomes are settled, and counted to its slowest end. The total of an edge to a settled node becomes exact. With
    more than two players, each takes what is best for them; of what is equally good, the first.
    """
    while nodes[node]["parent"] != NO_PARENT:
        parent, edge = nodes[node]["parent"], nodes[node]["parent_edge"]
        value = value_for(nodes, node_values, node, nodes[parent]["to_play"])
        edges[edge]["proof"] = PROVEN if value > LOSS else LOST
        edges[edge]["total"] = value * edges[edge]["visits"]
        for player in range(node_values.shape[1]):
            edge_totals[edge, player] = np.float64(node_values[node, player]) * edges[edge]["visits"]
        if nodes[parent]["settled"]:
            return
        by_chance = nodes[parent]["chance"]
        if (value < WIN or by_chance) and not _all_settled(nodes, edges, parent):
            return
        if by_chance:
            _expect(nodes, edges, node_values, parent)
        else:
            _settle(nodes, edges, node_values, parent)
        node = parent


@kernel
def value_for(nodes: Array, node_values: Array, node: int, player: int) -> float:
    """Return the value of a node for a player."""
    if node_values.shape[1]:
        return node_values[node, player]
    return nodes[node]["value"] if nodes[node]["to_play"] == player else -nodes[node]["value"]


@kernel
def _all_settled(nodes: Array, edges: Array, node: int) -> bool:
    first = nodes[node]["first_edge"]
    for edge in range(first, first + nodes[node]["num_edges"]):
        child = edges[edge]["child"]
        if child == NO_CHILD or not nodes[child]["settled"]:
            return False
    return True


@kernel
def _expect(nodes: Array, edges: Array, node_values: Array, node: int) -> None:
    # Gives a node where chance moves the expectation over its outcomes, and the distance of the slowest.
    first = nodes[node]["first_edge"]
    distance = 0
    for edge in range(first, first + nodes[node]["num_edges"]):
        distance = max(distance, nodes[edges[edge]["child"]]["distance"] + 1)
    nodes[node]["value"] = _expectation(nodes, edges, node_values, node, nodes[node]["to_play"])
    for player in range(node_values.shape[1]):
        node_values[node, player] = _expectation(nodes, edges, node_values, node, player)
    nodes[node]["settled"] = 1
    nodes[node]["distance"] = distance


@kernel
def _expectation(nodes: Array, edges: Array, node_values: Array, node: int, player: int) -> float:
    # Over the outcomes of a node where chance moves, all of which are settled.
    first = nodes[node]["first_edge"]
    total, weight = 0.0, 0.0
    for edge in range(first, first + nodes[node]["num_edges"]):
        value = np.float64(value_for(nodes, node_values, edges[edge]["child"], player))
        total += np.float64(edges[edge]["prior"]) * value
        weight += np.float64(edges[edge]["prior"])
    return total / weight  # in single precision, probabilities do not add up to 1 exactly


@kernel
def _settle(nodes: Array, edges: Array, node_values: Array, node: int) -> None:
    # Gives a node the value and the distance of its best settled child.
    first = nodes[node]["first_edge"]
    best, distance, chosen = -np.inf, 0, NO_CHILD
    for edge in range(first, first + nodes[node]["num_edges"]):
        child = edges[edge]["child"]
        if child == NO_CHILD or not nodes[child]["settled"]:
            continue
        value = value_for(nodes, node_values, child, nodes[node]["to_play"])
        plies = nodes[child]["distance"] + 1
        if value > best or (value == best and (plies < distance if value >= WIN else plies > distance)):
            best, distance, chosen = value, plies, child
    for player in range(node_values.shape[1]):
        node_values[node, player] = node_values[chosen, player]
    nodes[node]["settled"] = 1
    nodes[node]["value"] = best
    nodes[node]["distance"] = distance
