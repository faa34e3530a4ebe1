"""Proves results up the tree: MCTS-Solver (Winands et al. 2008), with draws. Compiled; trusts its arguments."""

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel
from seraphim.search.tree import LOST, NO_CHILD, NO_PARENT, PROVEN

WIN, LOSS = 1.0, -1.0  # values


@kernel
def prove(nodes: Array, edges: Array, node: int) -> None:
    """Settle every ancestor of a settled node whose result follows.

    A node is won if one edge wins, and settled by its best edge once all edges are settled; a win is counted to its
    fastest end, anything else to its slowest. Where chance moves, a node is settled by the expectation once all
    outcomes are settled, and counted to its slowest end. The total of an edge to a settled node becomes exact.
    """
    while nodes[node]["parent"] != NO_PARENT:
        parent, edge = nodes[node]["parent"], nodes[node]["parent_edge"]
        same = nodes[parent]["to_play"] == nodes[node]["to_play"]
        value = nodes[node]["value"] if same else -nodes[node]["value"]
        edges[edge]["proof"] = PROVEN if value > LOSS else LOST
        edges[edge]["total"] = value * edges[edge]["visits"]
        if nodes[parent]["settled"]:
            return
        by_chance = nodes[parent]["chance"]
        if (value < WIN or by_chance) and not _all_settled(nodes, edges, parent):
            return
        if by_chance:
            _expect(nodes, edges, parent)
        else:
            _settle(nodes, edges, parent)
        node = parent


@kernel
def _all_settled(nodes: Array, edges: Array, node: int) -> bool:
    first = nodes[node]["first_edge"]
    for edge in range(first, first + nodes[node]["num_edges"]):
        child = edges[edge]["child"]
        if child == NO_CHILD or not nodes[child]["settled"]:
            return False
    return True


@kernel
def _expect(nodes: Array, edges: Array, node: int) -> None:
    # Gives a node where chance moves the expectation over its outcomes, and the distance of the slowest.
    first = nodes[node]["first_edge"]
    total, weight, distance = 0.0, 0.0, 0
    for edge in range(first, first + nodes[node]["num_edges"]):
        child = edges[edge]["child"]
        same = nodes[node]["to_play"] == nodes[child]["to_play"]
        value = np.float64(nodes[child]["value"])
        total += np.float64(edges[edge]["prior"]) * (value if same else -value)
        weight += np.float64(edges[edge]["prior"])
        distance = max(distance, nodes[child]["distance"] + 1)
    nodes[node]["settled"] = 1
    nodes[node]["value"] = total / weight  # in single precision, probabilities do not add up to 1 exactly
    nodes[node]["distance"] = distance


@kernel
def _settle(nodes: Array, edges: Array, node: int) -> None:
    # Gives a node the value and the distance of its best settled child.
    first = nodes[node]["first_edge"]
    best, distance = -np.inf, 0
    for edge in range(first, first + nodes[node]["num_edges"]):
        child = edges[edge]["child"]
        if child == NO_CHILD or not nodes[child]["settled"]:
            continue
        same = nodes[node]["to_play"] == nodes[child]["to_play"]
        value = nodes[child]["value"] if same else -nodes[child]["value"]
        plies = nodes[child]["distance"] + 1
        if value > best or (value == best and (plies < distance if value >= WIN else plies > distance)):
            best, distance = value, plies
    nodes[node]["settled"] = 1
    nodes[node]["value"] = best
    nodes[node]["distance"] = distance
