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
    fastest end, anything else to its slowest. The total of an edge that leads to a settled node becomes exact.
    """
    while nodes[node]["parent"] != NO_PARENT:
        parent, edge = nodes[node]["parent"], nodes[node]["parent_edge"]
        same = nodes[parent]["to_play"] == nodes[node]["to_play"]
        value = nodes[node]["value"] if same else -nodes[node]["value"]
        edges[edge]["proof"] = PROVEN if value > LOSS else LOST
        edges[edge]["total"] = value * edges[edge]["visits"]
        if nodes[parent]["settled"]:
            return
        best, distance, all_settled = _best_result(nodes, edges, parent)
        if value < WIN and not all_settled:
            return
        nodes[parent]["settled"] = 1
        nodes[parent]["value"] = best
        nodes[parent]["distance"] = distance
        node = parent


@kernel
def _best_result(nodes: Array, edges: Array, node: int) -> tuple[float, int, bool]:
    # The value and the distance by the best of a node's settled children, and whether all children are settled.
    best, distance, all_settled = -np.inf, 0, True
    for edge in range(nodes[node]["first_edge"], nodes[node]["first_edge"] + nodes[node]["num_edges"]):
        child = edges[edge]["child"]
        if child == NO_CHILD or not nodes[child]["settled"]:
            all_settled = False
            continue
        same = nodes[node]["to_play"] == nodes[child]["to_play"]
        value = nodes[child]["value"] if same else -nodes[child]["value"]
        plies = nodes[child]["distance"] + 1
        if value > best or (value == best and (plies < distance if value >= WIN else plies > distance)):
            best, distance = value, plies
    return best, distance, all_settled
