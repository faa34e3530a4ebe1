"""The trees of a search: one table of nodes and one of edges for all of them. Data only.

Shape letters: `T` trees, `N` node slots of a tree, `E` edge slots of a tree, `A` actions, `W` state words, `V` values
of a position (`seraphim.game.features.num_columns`), `R` rows. A row is one readout under way: tree t has the rows
t·L … t·L + L - 1, where L is the number of leaves that one tree may have with the network at a time (1 in self-play).

Tree t has the nodes t·N … t·N + N - 1, of which the first is its root, and the edges t·E … t·E + E - 1; all indices are
those of the whole tables. Each node owns a contiguous run of edges, one for each legal action in ascending order, so
memory grows with the legal moves, not with A. Nodes know their parents, so nothing recurses, and a parent always stands
before its children. Nodes and edges are records: with one array for each field, expansion was three times slower.
"""

import mmap
from math import prod
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Array

NO_CHILD = -1  # an edge whose successor is not in the tree
NO_PARENT = -1  # of a root
OPEN, PROVEN, LOST = range(3)  # of an edge: not proven; proven, `total` is exact; proven to lose for its player
AT_REST = -1  # the node of a row with no readout under way
MOST_ACTIONS, MOST_LEAVES = 2**16, 2**7 - 1
ROOT_KEYS = 2**10  # of searches without noise: so few that rounding errors hardly ever change one

NODE = np.dtype(
    [
        ("parent", np.int32),
        ("parent_edge", np.int32),  # the edge of the parent that leads here
        ("first_edge", np.int32),
        ("num_edges", np.int32),  # 0 where the game has ended
        ("visits", np.int32),  # readouts that reached the node, its own evaluation included
        # The network's, or the result, for the player to move; where chance moves, of the last node in which none does.
        ("value", np.float32),
        ("distance", np.int32),  # plies to the end where the node is settled
        ("to_play", np.int8),  # where chance moves, the player who moved last
        ("chance", np.int8),  # 1 where chance moves: edges are its outcomes, and priors their probabilities
        ("settled", np.int16),  # 1 where `value` is exact: the game has ended here, or the result is proven
    ]
)

EDGE = np.dtype(
    [
        ("total", np.float64),  # sum of the values of its visits, for the player who chooses the edge
        ("prior", np.float32),  # the network's, over legal actions, never noised
        ("visits", np.int32),
        ("child", np.int32),  # node, or NO_CHILD
        ("action", np.uint16),
        ("pending", np.int8),  # visits under way (virtual losses); 0 when no readout is
        ("proof", np.int8),  # OPEN, PROVEN or LOST
    ]
)

TREE = np.dtype(
    [
        ("num_nodes", np.int32),  # slots in use; 0 for a tree without a root
        ("num_edges", np.int32),
        ("remaining", np.int32),  # readouts to start
        ("key", np.uint64),  # a hash of the first root's, and of the moves that led to the root
    ]
)

ROW = np.dtype(
    [
        ("node", np.int32),  # the node a readout stands on, or AT_REST
        ("edge", np.int32),  # the edge by which it leaves that node
        ("plies", np.int32),  # its distance from the root, where it is a playout
        # Where chance may move: a hash as of the root, and the key by which chance draws here.
        ("key", np.uint64),
        ("draws", np.uint64),
    ]
)


class Trees(NamedTuple):
    """All trees of a search, and its rows."""

    nodes: Array  # NODE [T·N]
    edges: Array  # EDGE [T·E]
    states: Array  # int64 [T·N, W], of the nodes
    # With more than two players, what stands in `value` and `total` for one of them, here for each; else no columns.
    node_values: Array  # float32 [T·N, V]
    edge_totals: Array  # float64 [T·E, V]
    root_scores: Array  # float32 [T·A], of the root's k-th edge: see `seraphim.search.roots.prepare_roots`
    progress: Array  # TREE [T]
    rows: Array  # ROW [R]


class NewPositions(NamedTuple):
    """Positions that are not in their trees yet, each reached by the readout of a row."""

    rows: Array  # int64 [R]
    states: Array  # int64 [R, W]
    to_play: Array  # int8 [R]
    # float32 [R, V], what each player already has, or with one column the player to move; no rows without a bank.
    banked: Array


def allocate(
    num_trees: int, leaves: int, num_nodes: int, num_edges: int, num_actions: int, state_words: int, columns: int = 1
) -> Trees:
    """Return empty trees with room for `num_nodes` nodes and `num_edges` edges each; `columns` is V.

    Raises:
        SettingsError: their slots have numbers that no int32 holds.
    """
    check_room(num_trees, num_nodes, num_edges)
    rows = np.zeros(num_trees * leaves, ROW)
    rows["node"] = AT_REST
    columns = columns if columns > 1 else 0
    return Trees(
        nodes=zeros((num_trees * num_nodes,), NODE),
        edges=zeros((num_trees * num_edges,), EDGE),
        states=zeros((num_trees * num_nodes, state_words), np.int64),
        node_values=zeros((num_trees * num_nodes, columns), np.float32),
        edge_totals=zeros((num_trees * num_edges, columns), np.float64),
        root_scores=np.zeros(num_trees * num_actions, np.float32),
        progress=np.zeros(num_trees, TREE),
        rows=rows,
    )


def check_room(num_trees: int, num_nodes: int, num_edges: int) -> None:
    """Raise a SettingsError if so many trees of so many nodes and edges have slots with numbers that no int32 holds."""
    if num_trees * max(num_nodes, num_edges) > np.iinfo(np.int32).max:
        raise SettingsError("the search trees together would be too large: lower readouts or concurrent_games")


def slots(trees: Trees) -> tuple[int, int]:
    """Return N and E."""
    return len(trees.nodes) // len(trees.progress), len(trees.edges) // len(trees.progress)


def resized(trees: Trees, num_nodes: int, num_edges: int) -> Trees:
    """Return the same trees with `num_nodes` node slots and `num_edges` edge slots each, in new memory.

    The slots in use must fit. Only those are copied: memory that was never touched takes no space.

    Raises:
        SettingsError: see `allocate`.
    """
    check_room(len(trees.progress), num_nodes, num_edges)
    num_trees, (old_nodes, old_edges) = len(trees.progress), slots(trees)
    # What is added to the indices of each tree's nodes and edges.
    node_shifts = np.arange(num_trees, dtype=np.int32) * np.int32(num_nodes - old_nodes)
    edge_shifts = np.arange(num_trees, dtype=np.int32) * np.int32(num_edges - old_edges)
    used_nodes, used_edges = trees.progress["num_nodes"], trees.progress["num_edges"]
    changed = trees._replace(
        nodes=_with_slots(trees.nodes, used_nodes, num_nodes),
        edges=_with_slots(trees.edges, used_edges, num_edges),
        states=_with_slots(trees.states, used_nodes, num_nodes),
        node_values=_with_slots(trees.node_values, used_nodes, num_nodes),
        edge_totals=_with_slots(trees.edge_totals, used_edges, num_edges),
        rows=trees.rows.copy(),
    )
    for indices, used, shifts in (
        (changed.nodes["parent"], used_nodes, node_shifts),
        (changed.edges["child"], used_edges, node_shifts),
        (changed.nodes["parent_edge"], used_nodes, edge_shifts),
        (changed.nodes["first_edge"], used_nodes, edge_shifts),
    ):
        by_tree = indices.reshape(num_trees, -1)  # a view
        for tree in np.flatnonzero(used):
            _shift(by_tree[tree, : used[tree]], shifts[tree])
    for indices, shifts in ((changed.rows["node"], node_shifts), (changed.rows["edge"], edge_shifts)):
        _shift(indices.reshape(num_trees, -1), shifts[:, None])
    return changed


class Room:
    """The slots that are free in every tree, at least: those in use are counted only when there may be too few."""

    def __init__(self, num_nodes: int, num_edges: int) -> None:
        """Note how many nodes and edges a call of a kernel may add to a tree."""
        self._added = num_nodes, num_edges
        self._free_nodes = self._free_edges = 0

    def reserve(self, trees: Trees) -> Trees:
        """Return the trees with slots for one call of a kernel; they grow by half where they must."""
        self._free_nodes -= self._added[0]
        self._free_edges -= self._added[1]
        if self._free_nodes < 0 or self._free_edges < 0:
            num_slots, used = np.array(slots(trees)), _most_used(trees)
            missing = used + self._added - num_slots
            if missing.max() > 0:
                num_slots += np.where(missing > 0, np.maximum(missing, num_slots // 2), 0)
                trees = resized(trees, *num_slots.tolist())
            self._free_nodes, self._free_edges = (num_slots - used - self._added).tolist()
        return trees

    def compact(self, trees: Trees) -> Trees:
        """Return the trees in as little memory as one call of a kernel needs."""
        self._free_nodes = self._free_edges = 0
        return resized(trees, *(np.maximum(_most_used(trees), 1) + self._added).tolist())


def _most_used(trees: Trees) -> Array:
    # The nodes and the edges of the fullest tree.
    return np.array([trees.progress[name].max() for name in ("num_nodes", "num_edges")])


def _shift(indices: Array, shift: Array) -> None:
    indices += np.where(indices >= 0, shift, np.int32(0))  # negative ones are sentinels


def _with_slots(array: Array, used: Array, num_slots: int) -> Array:
    old = array.reshape(len(used), len(array) // len(used), *array.shape[1:])
    new = zeros((len(used) * num_slots, *array.shape[1:]), array.dtype)
    by_tree = new.reshape(len(used), num_slots, *array.shape[1:])
    for tree in np.flatnonzero(used):
        by_tree[tree, : used[tree]] = old[tree, : used[tree]]
    return new


def zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return zeros in memory for random access.

    It begins at a page, so that no record of 32 bytes spans two cache lines, and uses huge pages where the system has
    them, because looking up a page's address takes long.

    Raises:
        SettingsError: there is not so much memory.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    try:
        memory = mmap.mmap(-1, max(1, size))
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"no memory for {size:,} bytes: lower readouts, concurrent_games or cache_megabytes"
        ) from error
    if hasattr(mmap, "MADV_HUGEPAGE"):  # Linux
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, prod(shape)).reshape(shape)
