"""How new positions join `Trees`: from the end of the game, from the cache, or from the network.

Compiled; trusts its arguments, and knows neither game nor network. Values are for the player to move.
"""

import math
from typing import Any

import numpy as np

from seraphim.game import Array
from seraphim.jit import borrowed, kernel, prefetch
from seraphim.search.cache import MISS, Cache, find_slot, first_slot, prefetch_slot, store_row
from seraphim.search.selection import Rule
from seraphim.search.traversal import LINE, back_up, prove
from seraphim.search.tree import AT_REST, NO_CHILD, NO_PARENT, OPEN, Trees


@kernel
def admit(
    trees: Trees,
    cache: Cache,
    rows: Array,
    states: Array,
    to_play: Array,
    ended: Array,
    results: Array,
    rule: Rule,
    unknown_rows: Array,
    unknown_states: Array,
    unknown_to_play: Array,
) -> tuple[int, int]:
    """Add new positions to their trees, but for those that only the network can value.

    Where the game has ended, the readout is scored; where the cache knows the position, it is expanded.

    Args:
        trees: changed in place; must have room.
        cache: read.
        rows: int64 [R']; afterwards first the rows that go on.
        states: int64 [R', W].
        to_play: int8 [R'].
        ended: bool [R'].
        results: float32 [R'], for player 0, where the game has ended.
        rule: the options.
        unknown_rows: int64 [>= R'], filled with the rows of the positions for the network.
        unknown_states: int64 [>= R', W], filled likewise.
        unknown_to_play: int8 [>= R'], filled likewise.

    Returns:
        How many positions are for the network, and how many the cache knew.
    """
    nodes, edges, node_states = borrowed(trees.nodes), borrowed(trees.edges), borrowed(trees.states)
    progress, under_way = borrowed(trees.progress), borrowed(trees.rows)
    keys, outputs = borrowed(cache.keys), borrowed(cache.outputs)
    rows, states = borrowed(rows), borrowed(states)
    firsts = np.empty(len(rows), np.int64)
    for index in range(len(rows)):
        if not ended[index]:
            firsts[index] = first_slot(states, index, len(keys))
            prefetch_slot(keys, outputs, firsts[index])
    num_unknown, num_known, num_scored, num_settled = 0, 0, 0, 0
    scored, settled = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    for index in range(len(rows)):
        row = rows[index]
        slot = MISS
        if not ended[index]:
            slot = find_slot(keys, firsts[index], states, index)
            if slot == MISS:
                unknown_rows[num_unknown] = row
                unknown_to_play[num_unknown] = to_play[index]
                for word in range(states.shape[1]):
                    unknown_states[num_unknown, word] = states[index, word]
                num_unknown += 1
                continue
        node = _add_node(nodes, edges, node_states, progress, under_way, row, rule, states, index, to_play[index])
        rows[index - num_unknown] = row
        if slot != MISS:
            num_known += 1
            nodes[node]["value"] = outputs[slot, outputs.shape[1] - 1]
            _add_edges(nodes, edges, progress[row // rule.leaves], node, outputs, slot, outputs.shape[1] - 1)
        else:
            nodes[node]["value"] = results[index] if to_play[index] == 0 else -results[index]
            nodes[node]["settled"] = 1
            settled[num_settled] = node
            num_settled += 1
        if _is_scored(nodes[node], under_way[row], node, rule):
            scored[num_scored] = node
            num_scored += 1
    back_up(nodes, edges, scored, num_scored, rule)
    if rule.solver:
        for index in range(num_settled):
            prove(nodes, edges, settled[index])
    return num_unknown, num_known


@kernel
def expand(
    trees: Trees,
    cache: Cache,
    rows: Array,
    states: Array,
    to_play: Array,
    legal: Array,
    logits: Array,
    values: Array,
    rule: Rule,
) -> int:
    """Add evaluated positions with an edge for each legal action, whose priors are the softmax over those.

    With playouts, a readout goes on from the new node, and only the end of the game scores it; otherwise it is scored
    with the network's value. A position that becomes the root is scored as a visit of the root, not as a readout.

    Args:
        trees: changed in place; must have room.
        cache: changed in place, knows the positions afterwards.
        rows: int64 [R'].
        states: int64 [R', W].
        to_play: int8 [R'].
        legal: bool [R', A].
        logits: float32 [R', A]; -inf afterwards where an action is illegal.
        values: float32 [R'] in [-1, 1], for the player to move.
        rule: the options.

    Returns:
        The first row with a NaN or infinity, or without a legal action, in which case nothing is changed; R' if there
        is none.
    """
    sound = _mask(legal, logits, values)
    if sound < len(rows):
        return sound
    nodes, edges, node_states = borrowed(trees.nodes), borrowed(trees.edges), borrowed(trees.states)
    progress, under_way = borrowed(trees.progress), borrowed(trees.rows)
    _prefetch_room(nodes, edges, progress, rows, rule)
    keys, outputs, clock = borrowed(cache.keys), borrowed(cache.outputs), borrowed(cache.clock)
    rows, states, logits, values = borrowed(rows), borrowed(states), borrowed(logits), borrowed(values)
    firsts = np.empty(len(rows), np.int64)
    scored, num_scored = np.empty(len(rows), np.int32), 0
    for index in range(len(rows)):
        firsts[index] = first_slot(states, index, len(keys))
        prefetch_slot(keys, outputs, firsts[index])
        row = rows[index]
        node = _add_node(nodes, edges, node_states, progress, under_way, row, rule, states, index, to_play[index])
        nodes[node]["value"] = values[index]
        _add_edges(nodes, edges, progress[row // rule.leaves], node, logits, index, logits.shape[1])
        if _is_scored(nodes[node], under_way[row], node, rule):
            scored[num_scored] = node
            num_scored += 1
    back_up(nodes, edges, scored, num_scored, rule)
    for index in range(len(rows)):
        store_row(keys, outputs, clock, firsts[index], states, logits, values, index)
    return sound


@kernel
def _mask(legal: Array, logits: Array, values: Array) -> int:
    # Sets the logits of illegal actions to -inf; returns the first row that is not sound, or the number of rows.
    for row in range(len(legal)):
        sound, any_legal = math.isfinite(values[row]), False
        for action in range(legal.shape[1]):
            if legal[row, action]:
                any_legal = True
                sound = sound and math.isfinite(logits[row, action])
            else:
                logits[row, action] = -np.inf
        if not (sound and any_legal):
            return row
    return len(legal)


@kernel
def _prefetch_room(nodes: Array, edges: Array, progress: Array, rows: Array, rule: Rule) -> None:
    # Fetches what the next node of each row's tree will take.
    node_slots, edge_slots = len(nodes) // len(progress), len(edges) // len(progress)
    nodes_at, edges_at = nodes.ctypes.data, edges.ctypes.data
    for row in rows:
        tree = row // rule.leaves
        prefetch(nodes_at + (tree * node_slots + progress[tree]["num_nodes"]) * nodes.itemsize)
        start = edges_at + (tree * edge_slots + progress[tree]["num_edges"]) * edges.itemsize
        for line in range(3):
            prefetch(start + line * LINE)


@kernel
def _add_node(
    nodes: Array,
    edges: Array,
    node_states: Array,
    progress: Array,
    under_way: Array,
    row: int,
    rule: Rule,
    states: Array,
    index: int,
    to_play: int,
) -> int:
    # Adds the position `states[index]` to the tree of a row, which stands before it; its value and edges come later.
    tree = row // rule.leaves
    added = tree * (len(nodes) // len(progress)) + progress[tree]["num_nodes"]
    progress[tree]["num_nodes"] += 1
    for word in range(states.shape[1]):
        node_states[added, word] = states[index, word]
    node = nodes[added]
    node["parent"] = under_way[row]["node"]  # a row at rest is that of a root
    node["parent_edge"] = under_way[row]["edge"]
    node["first_edge"] = tree * (len(edges) // len(progress)) + progress[tree]["num_edges"]
    node["num_edges"] = 0
    node["visits"] = 0
    node["to_play"] = to_play
    node["settled"] = 0
    node["distance"] = 0
    if node["parent"] != NO_PARENT:
        edges[node["parent_edge"]]["child"] = added
    return added


@kernel
def _add_edges(nodes: Array, edges: Array, tree: Any, node: int, logits: Array, index: int, num_actions: int) -> None:
    # Gives a node of a TREE an edge for each action whose logit, `logits[index]`, is not -inf.
    first = nodes[node]["first_edge"]
    largest = -np.inf
    for action in range(num_actions):
        largest = max(largest, np.float64(logits[index, action]))
    end, total = first, 0.0
    for action in range(num_actions):
        if logits[index, action] > -np.inf:
            weight = math.exp(np.float64(logits[index, action]) - largest)
            total += weight
            edge = edges[end]
            edge["total"] = 0.0
            edge["prior"] = weight
            edge["visits"] = 0
            edge["child"] = NO_CHILD
            edge["action"] = action
            edge["pending"] = 0
            edge["known"] = OPEN
            end += 1
    for position in range(first, end):
        edges[position]["prior"] = np.float64(edges[position]["prior"]) / total
    nodes[node]["num_edges"] = end - first
    tree["num_edges"] += end - first


@kernel
def _is_scored(node: Any, row: Any, index: int, rule: Rule) -> bool:
    # Whether the readout of a ROW ends at its new NODE, which has this index, or is played out from there. A playout
    # that gets as far from the root as no game does is cut off, and counts as a draw.
    if rule.playout and node["parent"] != NO_PARENT and not node["settled"]:
        if row["plies"] < rule.max_plies:
            row["node"] = index
            return False
        node["value"] = 0.0
    row["node"] = AT_REST
    return True
