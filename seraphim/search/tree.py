"""The trees of a search: one table of nodes and one of edges for all of them. Data only; the verbs are in `kernels`.

Shape letters: `T` trees, `N` node slots of a tree, `E` edge slots of a tree, `A` actions, `W` state words,
`R` rows. A row is one readout under way: tree t has the rows t·L … t·L + L - 1, where L is the number of leaves that
one tree may have with the network at a time (1 in self-play).

Each node owns a contiguous run of edges, one for each legal action in ascending order, so memory goes with the legal
moves and not with A. Node 0 is the root. Nodes know their parents, so nothing here recurses, and a parent always stands
before its children. A node or an edge is one record of 32 bytes, half a cache line: one array for each of their fields
made an expansion three times slower.
"""

from typing import NamedTuple

import numpy as np

from seraphim.game import Array

ROOT = 0
NO_CHILD = -1  # an edge whose successor is not in the tree
AT_REST = -1  # the node of a row with no readout under way

NODE = np.dtype(
    [
        ("parent", np.int32),
        ("parent_edge", np.int32),  # the edge of the parent that leads here
        ("first_edge", np.int32),
        ("num_edges", np.int32),  # 0 where the game has ended
        ("visits", np.int32),  # how often the search has reached the node, its own evaluation included
        ("value", np.float32),  # the network's, or the result, for the player to move
        ("to_play", np.int16),
        ("settled", np.int16),  # 1 where `value` is exact: the game has ended here, or the result is proven
        ("distance", np.int32),  # plies to the end where the node is settled
    ]
)

EDGE = np.dtype(
    [
        ("total", np.float64),  # sum of the values of its visits, for the player who chooses the edge
        ("prior", np.float32),  # the network's, over legal actions, never noised
        ("visits", np.int32),
        ("pending", np.int32),  # visits under way (virtual losses); 0 when no readout is
        ("child", np.int32),  # node, or NO_CHILD
        ("action", np.int32),
        ("lost", np.int32),  # 1 where it is proven that whoever chooses the edge loses
    ]
)


class Trees(NamedTuple):
    """All trees of a search."""

    nodes: Array  # NODE [T, N]
    edges: Array  # EDGE [T, E]
    states: Array  # int64 [T, N, W], of the nodes
    num_nodes: Array  # int32 [T]: slots in use; 0 for a tree without a root
    num_edges: Array  # int32 [T]
    root_scores: Array  # float32 [T, A], of the root's k-th edge: see `seraphim.search.roots.prepare_roots`
    root_forced: Array  # float32 [T]: k of the forced playouts at the root, or 0
    remaining: Array  # int32 [T]: readouts to start
    row_node: Array  # int32 [R]: the node a readout stands on, or AT_REST
    row_edge: Array  # int32 [R]: the edge by which it leaves that node


def allocate(num_trees: int, leaves: int, num_nodes: int, num_edges: int, num_actions: int, state_words: int) -> Trees:
    """Return empty trees with room for `num_nodes` nodes and `num_edges` edges each."""
    return Trees(
        nodes=np.zeros((num_trees, num_nodes), NODE),
        edges=np.zeros((num_trees, num_edges), EDGE),
        states=np.zeros((num_trees, num_nodes, state_words), np.int64),
        num_nodes=np.zeros(num_trees, np.int32),
        num_edges=np.zeros(num_trees, np.int32),
        root_scores=np.zeros((num_trees, num_actions), np.float32),
        root_forced=np.zeros(num_trees, np.float32),
        remaining=np.zeros(num_trees, np.int32),
        row_node=np.full(num_trees * leaves, AT_REST, np.int32),
        row_edge=np.zeros(num_trees * leaves, np.int32),
    )


def grow(trees: Trees, num_nodes: int, num_edges: int) -> Trees:
    """Return the same trees with room for at least `num_nodes` nodes and `num_edges` edges each."""
    return trees._replace(
        nodes=_with_slots(trees.nodes, num_nodes),
        edges=_with_slots(trees.edges, num_edges),
        states=_with_slots(trees.states, num_nodes),
    )


def _with_slots(array: Array, slots: int) -> Array:
    if slots <= array.shape[1]:
        return array
    larger = np.zeros((len(array), slots, *array.shape[2:]), array.dtype)
    larger[:, : array.shape[1]] = array
    return larger
