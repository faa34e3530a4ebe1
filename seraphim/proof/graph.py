"""The AND/OR graph of a proof: its positions, their proof and disproof numbers, and which to expand next.

In an OR node the prover moves, and needs one move that works; in an AND node the other player moves, and all moves must
work. The proof number of a node estimates how many positions have to be expanded until it is proven, the disproof
number until it is refuted (Allis 1994, "Searching for Solutions in Games and Artificial Intelligence", chapter 2).
Nodes that are reached by several moves would be counted several times in sums. So the largest number counts in full,
and of the others a share: between the sum and the maximum of weak proof-number search (Ueda et al. 2008).

The kernels trust their arguments, and know neither rules nor network: a node is a key of 128 bits.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Array
from seraphim.jit import kernel

UNEXPANDED = -1  # edges of a node that was not expanded
NOWHERE = -1  # a node that does not exist
_SHARE = 0.25  # of the other numbers of a sum
_LARGEST = 1e30  # of a number that is not infinite
_EDGES = 3  # to a node, at most, on average
_NODE_COLUMNS = 8  # of Graph

PROVEN, REFUTED, UNDECIDED = 1, -1, 0
_AS_LEAF, _WITH_CHILDREN = 1, 2  # how a node is kept


class Graph(NamedTuple):
    """Room for N nodes and E edges; the system provides memory as it is first used."""

    keys: Array  # uint64 [N, 2]
    states: Array  # int64 [N, W], a position with this key
    is_or: Array  # bool [N]
    proofs: Array  # float32 [N], proof numbers: 0 is proven, infinity refuted
    disproofs: Array  # float32 [N], disproof numbers
    first_edges: Array  # int64 [N]
    num_edges: Array  # int32 [N], or UNEXPANDED
    rounds: Array  # int32 [N], the last round that selected the node
    children: Array  # int32 [E], where edges lead
    slots: Array  # int32 [2^k], a hash table of 1 + the node
    used: Array  # int64 [2], nodes and edges


def empty_graph(state_words: int, megabytes: int) -> Graph:
    """Return an empty graph that takes at most some memory.

    Raises:
        SettingsError: there is not so much memory.
    """
    bytes_of_node = 16 + 8 * state_words + 1 + 4 + 4 + 8 + 4 + 4 + 4 * _EDGES + 4 * 4
    nodes = min(megabytes * 2**20 // bytes_of_node, 2**31 - 1)
    try:
        return Graph(
            np.empty((nodes, 2), np.uint64),
            np.empty((nodes, state_words), np.int64),
            np.empty(nodes, np.bool_),
            np.empty(nodes, np.float32),
            np.empty(nodes, np.float32),
            np.empty(nodes, np.int64),
            np.empty(nodes, np.int32),
            np.empty(nodes, np.int32),
            np.empty(_EDGES * nodes, np.int32),
            np.zeros(1 << int(2 * nodes - 1).bit_length(), np.int32),
            np.zeros(2, np.int64),
        )
    except MemoryError as error:
        raise SettingsError("not enough memory for that many positions: lower megabytes") from error


def to_columns(graph: Graph) -> list[Array]:
    """Return the used parts, which `from_columns` puts back; the hash table is built anew."""
    nodes, edges = graph.used.tolist()
    return [column[:nodes] for column in graph[:_NODE_COLUMNS]] + [graph.children[:edges]]


def from_columns(graph: Graph, columns: Sequence[Array]) -> bool:
    """Fill an empty graph; return False, and leave it empty, if it has no room.

    Raises:
        ValueError: these are not columns of a graph.
    """
    *of_nodes, children = columns
    own = [*graph[:_NODE_COLUMNS], graph.children]
    kinds = [(column.dtype, column.shape[1:]) for column in columns]
    if kinds != [(column.dtype, column.shape[1:]) for column in own] or len({len(column) for column in of_nodes}) != 1:
        raise ValueError("its columns are not those of a graph")
    first_edges, num_edges = of_nodes[graph._fields.index("first_edges")], of_nodes[graph._fields.index("num_edges")]
    expanded = num_edges > 0
    first, count = first_edges[expanded], num_edges[expanded]
    if (num_edges < UNEXPANDED).any() or (first < 0).any() or (first > len(children) - count).any():
        raise ValueError("an edge is missing")
    if (children < 0).any() or (children >= len(of_nodes[0])).any():
        raise ValueError("an edge leads nowhere")
    if len(of_nodes[0]) > len(graph.keys) or len(children) > len(graph.children):
        return False
    for column, content in zip(graph[:_NODE_COLUMNS], of_nodes, strict=True):
        column[: len(content)] = content
    graph.children[: len(children)] = children
    graph.used[:] = len(of_nodes[0]), len(children)
    _fill_slots(graph)
    return True


def has_room(graph: Graph, nodes: int) -> bool:
    """Return whether so many nodes can be added, with an edge to each."""
    return bool((graph.used + nodes <= (len(graph.keys), len(graph.children))).all())


@kernel
def count_decided(graph: Graph) -> tuple[int, int]:
    """Return the numbers of proven and of refuted nodes."""
    proven = refuted = 0
    for node in range(graph.used[0]):
        proven += graph.proofs[node] == 0.0
        refuted += graph.disproofs[node] == 0.0
    return proven, refuted


@kernel
def find_nodes(graph: Graph, keys: Array) -> Array:
    """Return the nodes with these keys uint64 [K, 2], int32 [K]; NOWHERE where there is none."""
    nodes = np.empty(len(keys), np.int32)
    for index in range(len(keys)):
        nodes[index] = graph.slots[_find_slot(graph.keys, graph.slots, keys[index, 0], keys[index, 1])] - 1
    return nodes


@kernel
def add_nodes(graph: Graph, keys: Array, states: Array, is_or: Array, proofs: Array, disproofs: Array) -> Array:
    """Return the nodes with these keys uint64 [K, 2], int32 [K]; those that are new get the other columns."""
    nodes = np.empty(len(keys), np.int32)
    for index in range(len(keys)):
        slot = _find_slot(graph.keys, graph.slots, keys[index, 0], keys[index, 1])
        if graph.slots[slot] == 0:
            node = graph.used[0]
            graph.used[0] += 1
            graph.slots[slot] = node + 1
            graph.keys[node, 0] = keys[index, 0]
            graph.keys[node, 1] = keys[index, 1]
            for word in range(states.shape[1]):
                graph.states[node, word] = states[index, word]
            graph.is_or[node] = is_or[index]
            graph.proofs[node] = proofs[index]
            graph.disproofs[node] = disproofs[index]
            graph.num_edges[node] = UNEXPANDED
            graph.rounds[node] = 0
        nodes[index] = graph.slots[slot] - 1
    return nodes


@kernel
def _find_slot(keys: Array, slots: Array, first: np.uint64, second: np.uint64) -> int:
    mask = np.uint64(len(slots) - 1)
    slot = first & mask
    while slots[slot] != 0:
        node = slots[slot] - 1
        if keys[node, 0] == first and keys[node, 1] == second:
            break
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


@kernel
def expand(graph: Graph, nodes: Array, verdicts: Array, owners: Array, children: Array) -> None:
    """Give nodes [K] their edges, to children [C] of owners [C], which are indices into the nodes in ascending order.

    verdicts int8 [K] says what the rules alone decide: PROVEN or REFUTED by a move that ends the game, or UNDECIDED.
    """
    cursor = 0
    for index in range(len(nodes)):
        node = nodes[index]
        graph.first_edges[node] = graph.used[1]
        while cursor < len(owners) and owners[cursor] == index:
            if not _leads_to(graph, graph.first_edges[node], children[cursor]):  # by a symmetric move
                graph.children[graph.used[1]] = children[cursor]
                graph.used[1] += 1
            cursor += 1
        graph.num_edges[node] = graph.used[1] - graph.first_edges[node]
        if verdicts[index] == PROVEN:
            graph.proofs[node] = 0.0
            graph.disproofs[node] = np.inf
        elif verdicts[index] == REFUTED:
            graph.proofs[node] = np.inf
            graph.disproofs[node] = 0.0
        else:
            _update(graph, node)


@kernel
def _leads_to(graph: Graph, first_edge: int, child: int) -> bool:
    # Whether an edge from `first_edge` to the last one leads to a node.
    for edge in range(first_edge, graph.used[1]):
        if graph.children[edge] == child:
            return True
    return False


@kernel
def _update(graph: Graph, node: int) -> None:
    # Computes the numbers of an expanded node from those of its children.
    any_of, all_of = graph.proofs, graph.disproofs
    if not graph.is_or[node]:
        any_of, all_of = all_of, any_of
    least, largest, total = np.float32(np.inf), np.float32(0.0), np.float32(0.0)
    first = graph.first_edges[node]
    for edge in range(first, first + graph.num_edges[node]):
        child = graph.children[edge]
        least = min(least, any_of[child])
        largest = max(largest, all_of[child])
        total += all_of[child]
    any_of[node] = least
    if largest != np.inf:
        largest = min(largest + np.float32(_SHARE) * (total - largest), np.float32(_LARGEST))
    all_of[node] = largest


@kernel
def select(graph: Graph, root: int, number: int, leaves: Array, stack: Array) -> int:
    """Fill `leaves` int32 [L] with nodes to expand, and update those on the way to them.

    It follows the move of the least proof number in OR nodes and all undecided moves in AND nodes, first those of the
    least disproof number, depth first: a wrong move of the prover is found soon, and what is under way gets finished.

    Args:
        graph: the graph.
        root: an expanded node or not.
        number: of the round, larger than those before.
        leaves: what to fill.
        stack: int32, as long as the longest game.

    Returns:
        The number of leaves; 0 if the root is decided; -1 if the stack is too short.
    """
    found, depth = 0, 0
    stack[0] = root
    graph.rounds[root] = number
    while depth >= 0:
        node = stack[depth]
        following = NOWHERE
        if graph.num_edges[node] == UNEXPANDED:
            leaves[found] = node
            found += 1
        elif graph.proofs[node] != 0.0 and graph.disproofs[node] != 0.0:
            _update(graph, node)
            if found < len(leaves):
                following = _most_promising(graph, node, number)
        if following == NOWHERE:
            depth -= 1
            continue
        if depth + 1 == len(stack):
            return -1
        depth += 1
        stack[depth] = following
        graph.rounds[following] = number
    return found


@kernel
def _most_promising(graph: Graph, node: int, number: int) -> int:
    # The child to select next, NOWHERE if that was selected in this round, or if the node is decided.
    least, best = np.float32(np.inf), NOWHERE
    if graph.proofs[node] == 0.0 or graph.disproofs[node] == 0.0:
        return NOWHERE
    first = graph.first_edges[node]
    for edge in range(first, first + graph.num_edges[node]):
        child = graph.children[edge]
        if graph.is_or[node]:
            if graph.proofs[child] < least:
                least, best = graph.proofs[child], child
        elif graph.rounds[child] != number and graph.disproofs[child] < least:
            least, best = graph.disproofs[child], child
    return NOWHERE if best == NOWHERE or graph.rounds[best] == number else best


def compact(graph: Graph, root: int) -> int:
    """Forget what the proof of `root` does not need now, and return the root's new index.

    What is left are the nodes that `select` would visit, the children of these, and what decides decided ones. The
    moves of the prover that are not the best are unexpanded again; they keep their numbers.
    """
    kept = np.zeros(graph.used[0], np.int8)
    _mark(graph, root, kept, np.empty(graph.used[0], np.int32))
    nodes = np.flatnonzero(kept)
    graph.num_edges[nodes[kept[nodes] == _AS_LEAF]] = UNEXPANDED
    counts = np.maximum(graph.num_edges[nodes], 0).astype(np.int64)
    ends = np.cumsum(counts)
    edges = np.arange(counts.sum()) + np.repeat(graph.first_edges[nodes] - (ends - counts), counts)
    places = np.full(len(kept), NOWHERE, np.int32)
    places[nodes] = np.arange(len(nodes))
    graph.children[: len(edges)] = places[graph.children[edges]]
    for column in graph[:_NODE_COLUMNS]:
        column[: len(nodes)] = column[nodes]
    graph.first_edges[: len(nodes)] = ends - counts
    graph.used[:] = len(nodes), len(edges)
    _fill_slots(graph)
    return int(places[root])


@kernel
def _mark(graph: Graph, root: int, kept: Array, stack: Array) -> None:
    # Marks what is kept, _AS_LEAF or _WITH_CHILDREN, and leaves decided nodes only the edges that decide them.
    stack[0], depth = root, 0
    kept[root] = _WITH_CHILDREN
    while depth >= 0:
        node = stack[depth]
        depth -= 1
        if graph.num_edges[node] == UNEXPANDED:
            continue
        is_proven, is_refuted = graph.proofs[node] == 0.0, graph.disproofs[node] == 0.0
        decided = graph.proofs if is_proven else graph.disproofs
        first, count = graph.first_edges[node], graph.num_edges[node]
        if (is_proven and graph.is_or[node]) or (is_refuted and not graph.is_or[node]):
            graph.num_edges[node] = 0
            for edge in range(first, first + count):
                if decided[graph.children[edge]] == 0.0:
                    graph.first_edges[node], graph.num_edges[node] = edge, 1
        first, count = graph.first_edges[node], graph.num_edges[node]
        least = np.float32(np.inf)
        for edge in range(first, first + count):
            least = min(least, graph.proofs[graph.children[edge]])
        for edge in range(first, first + count):
            child = graph.children[edge]
            is_open = graph.proofs[child] != 0.0 and graph.disproofs[child] != 0.0
            if is_open and graph.is_or[node] and graph.proofs[child] > least:
                kept[child] = max(kept[child], _AS_LEAF)
            elif kept[child] != _WITH_CHILDREN:
                kept[child] = _WITH_CHILDREN
                depth += 1
                stack[depth] = child


@kernel
def _fill_slots(graph: Graph) -> None:
    # Builds the hash table of the nodes that there are.
    graph.slots[:] = 0
    for node in range(graph.used[0]):
        slot = _find_slot(graph.keys, graph.slots, graph.keys[node, 0], graph.keys[node, 1])
        graph.slots[slot] = node + 1
