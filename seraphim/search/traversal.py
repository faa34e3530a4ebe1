"""How readouts move through `Trees`: down by selection, and back up with a value.

Compiled; trusts its arguments; knows neither game nor network. A value is for the player to move at its node, and an
edge's total for the player who chooses that edge; a player may move twice in a row. With more than two players, values
and totals stand beside these for each of them.

Trees are independent, so rows of different trees move together, each by one ply in turn: while one is processed, the
memory that the others need next is being loaded (`prefetch`).
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Array
from seraphim.jit import borrowed, compiled_like, kernel, prefetch, with_function
from seraphim.search.rng import fork_key
from seraphim.search.selection import Rule, best_edge, outcome_edge
from seraphim.search.tree import AT_REST, NO_CHILD, NO_PARENT, OPEN, Trees

TreePolicy = Callable[[Any, Array, Array], int]
"""A selection rule in place of PUCT: `tree_policy(node, edges, priors)` returns which of the K edges of an unfinished
NODE a readout takes, 0 to K - 1.

`edges` EDGE [K] are those of the legal actions in ascending order; `priors` float32 [K] are theirs, at the root with
self-play's noise. It must not change them. A function that Numba compiled (`numba.njit`) becomes part of the compiled
search; any other is called for each step of each readout, and the search takes many times as long.
"""

LINE = 64  # bytes that a processor loads at once
_MOST_LINES = 8  # of the edges of a node; the processor prefetches further ones by itself


@kernel
def select(trees: Trees, rows: Array, rule: Rule, schedules: Array, states: Array, actions: Array) -> tuple[int, int]:
    """Move the readouts of `rows` down until each reaches a position that is not in its tree.

    A readout that reaches a settled node is backed up at once, and its row starts the next one, until its tree has no
    readouts left or its root is settled. A row that would leave the tree by the same edge as another row of the tree
    waits: its readout is taken back and started again later.

    `rows` int64 [R'] is reordered: first those that reached a new position, then those that wait, then those at rest
    because their trees have no readouts left. `states` int64 [>= R', W] and `actions` int32 [>= R'] are filled with the
    states that precede the new positions, and the actions that lead to them. For `schedules` see `halving_schedules`.

    Returns:
        The number of rows with a new position, and of those that wait.
    """
    nodes, edges, node_states = borrowed(trees.nodes), borrowed(trees.edges), borrowed(trees.states)
    node_values, edge_totals = borrowed(trees.node_values), borrowed(trees.edge_totals)
    root_scores, progress, under_way = borrowed(trees.root_scores), borrowed(trees.progress), borrowed(trees.rows)
    rows, schedules, states, actions = borrowed(rows), borrowed(schedules), borrowed(states), borrowed(actions)
    num_actions = len(root_scores) // len(progress)
    nodes_at, node_bytes = nodes.ctypes.data, nodes.itemsize
    num_new, num_waiting = 0, 0
    moving, waiting = rows.copy(), np.empty(len(rows), np.int64)
    num_moving, num_resting = len(rows), 0
    while num_moving:
        num_moving, num_resting = _arrive(
            nodes, edges, node_values, edge_totals, progress, under_way, rule, moving, num_moving, rows, num_resting
        )
        num_kept = 0
        for index in range(num_moving):
            row = moving[index]
            tree, node = row // rule.leaves, under_way[row]["node"]
            if node == AT_REST:  # just backed up
                moving[num_kept] = row
                num_kept += 1
                continue
            if rule.chance and nodes[node]["chance"]:
                edge = outcome_edge(nodes[node], edges, under_way[row]["draws"], rule)
            else:
                edge = best_edge(nodes[node], edges, root_scores, tree * num_actions, schedules, rule)
            child = edges[edge]["child"]
            if rule.chance:
                key = under_way[row]["key"]
                under_way[row]["key"] = fork_key(key, np.uint64(edges[edge]["action"]))
                # All moves of a position draw the same outcomes in turn, so that none of them is just luckier.
                under_way[row]["draws"] = under_way[row]["key"] if nodes[node]["chance"] else key
            if rule.playout:
                under_way[row]["plies"] += 1
            if rule.leaves > 1:
                edges[edge]["pending"] += 1
            if child != NO_CHILD:
                under_way[row]["node"] = child
                prefetch(nodes_at + np.int64(child) * node_bytes)
                moving[num_kept] = row
                num_kept += 1
            elif rule.leaves > 1 and edges[edge]["pending"] > 1:
                _withdraw(nodes, edges, node, edge)
                under_way[row]["node"] = AT_REST
                progress[tree]["remaining"] += 1
                waiting[num_waiting] = row
                num_waiting += 1
            else:
                under_way[row]["edge"] = edge
                for word in range(states.shape[1]):
                    states[num_new, word] = node_states[node, word]
                actions[num_new] = edges[edge]["action"]
                rows[num_new] = row
                num_new += 1
        num_moving = num_kept
    rows[num_new : num_new + num_waiting] = waiting[:num_waiting]
    return num_new, num_waiting


@functools.lru_cache(maxsize=16)
def select_by(tree_policy: TreePolicy) -> Callable[..., tuple[int, int]]:
    """Return a function like `select` that follows a rule of one's own instead of PUCT.

    It raises a SettingsError if the rule returns anything but the index of an edge.
    """

    def edge_by(node: Any, edges: Array, root_scores: Array, scores_at: int, _schedules: Array, _rule: Rule) -> int:
        first, count = node["first_edge"], node["num_edges"]
        own = edges[first : first + count]
        if node["parent"] == NO_PARENT:
            chosen = tree_policy(node, own, root_scores[scores_at : scores_at + count])
        else:
            chosen = tree_policy(node, own, own["prior"])
        if chosen is None or chosen < 0 or chosen >= count or chosen != int(chosen):
            raise SettingsError("tree_policy must return an edge index, 0 to len(edges) - 1")
        return first + int(chosen)

    return with_function(select, "best_edge", compiled_like(tree_policy, edge_by))


@kernel
def _arrive(
    nodes: Array,
    edges: Array,
    node_values: Array,
    edge_totals: Array,
    progress: Array,
    under_way: Array,
    rule: Rule,
    moving: Array,
    num_moving: int,
    rows: Array,
    num_resting: int,
) -> tuple[int, int]:
    # Starts readouts of rows at rest at their roots. Backs up readouts that stand on a settled node; for the others,
    # prefetches the node's edges. Rows whose trees have no readouts left move from `moving` to the end of `rows`.
    slots, edges_at, edge_bytes = len(nodes) // len(progress), edges.ctypes.data, edges.itemsize
    settled = np.empty(num_moving, np.int32)
    num_kept, num_settled = 0, 0
    for index in range(num_moving):
        row = moving[index]
        node = under_way[row]["node"]
        if node == AT_REST:
            tree = row // rule.leaves
            node = tree * slots
            if progress[tree]["remaining"] == 0 or nodes[node]["settled"]:
                num_resting += 1
                rows[len(rows) - num_resting] = row
                continue
            progress[tree]["remaining"] -= 1
            under_way[row]["node"] = node
            under_way[row]["plies"] = 0
            under_way[row]["key"] = progress[tree]["key"]
        moving[num_kept] = row
        num_kept += 1
        if nodes[node]["settled"]:
            settled[num_settled] = node
            num_settled += 1
            under_way[row]["node"] = AT_REST
        else:
            start = edges_at + np.int64(nodes[node]["first_edge"]) * edge_bytes
            for line in range(min(_MOST_LINES, nodes[node]["num_edges"] * edge_bytes // LINE + 1)):
                prefetch(start + line * LINE)
    back_up(nodes, edges, node_values, edge_totals, settled, num_settled, rule)
    return num_kept, num_resting


@kernel
def _expected_total(node: Any, edges: Array, edge_totals: Array, player: int, value: float) -> float:
    # The visits of a NODE where chance moves, times the expectation over its outcomes: for a `player` of more than two,
    # else for the one who moved. Those without a visit count as the `value` of the position in which a player moved:
    # were they left out, the luck of the first draws would count in full.
    visits, seen, expected = 0, 0.0, 0.0
    first = node["first_edge"]
    for index in range(first, first + node["num_edges"]):
        edge = edges[index]
        if edge["visits"] > 0:
            probability = np.float64(edge["prior"])
            visits += edge["visits"]
            seen += probability
            total = edge_totals[index, player] if edge_totals.shape[1] else edge["total"]
            expected += probability * (total / edge["visits"])
    return (expected + (1.0 - seen) * np.float64(value)) * visits


@kernel
def back_up(
    nodes: Array, edges: Array, node_values: Array, edge_totals: Array, reached: Array, count: int, rule: Rule
) -> None:
    """Add the values of the first `count` nodes of `reached` int32 to all edges above them; overwrites `reached`.

    Where another readout has settled a node in the meantime, its exact value is backed up from there. Above a node
    where chance moves, what is added is the change of its `_expected_total`.
    """
    if count == 0:
        return
    if node_values.shape[1]:
        _back_up_for_each(nodes, edges, node_values, edge_totals, reached, count, rule)
        return
    nodes_at, node_bytes = nodes.ctypes.data, nodes.itemsize
    edges_at, edge_bytes = edges.ctypes.data, edges.itemsize
    values, movers, via = np.empty(count), np.empty(count, np.int16), np.empty(count, np.int32)
    for index in range(count):
        node = nodes[reached[index]]
        values[index] = node["value"]
        movers[index] = node["to_play"]
        via[index] = NO_CHILD
    while count:
        num_kept = 0
        for index in range(count):
            node = nodes[reached[index]]
            value, mover = values[index], node["to_play"]
            if mover != movers[index]:
                value = -value
            if via[index] != NO_CHILD:
                edge = edges[via[index]]
                is_drawn, before = rule.chance and node["chance"] and not rule.playout, 0.0
                if is_drawn:
                    before = _expected_total(node, edges, edge_totals, 0, node["value"])
                edge["visits"] += 1
                edge["total"] += value
                if rule.leaves > 1:
                    edge["pending"] -= 1
                    if edge["proof"] != OPEN:
                        edge["total"] = value * edge["visits"]
                if is_drawn:
                    value = _expected_total(node, edges, edge_totals, 0, node["value"]) - before
            if rule.leaves > 1 and node["settled"]:
                value = np.float64(node["value"])
            node["visits"] += 1
            if node["parent"] == NO_PARENT:
                continue
            reached[num_kept] = node["parent"]
            via[num_kept] = node["parent_edge"]
            values[num_kept] = value
            movers[num_kept] = mover
            prefetch(nodes_at + np.int64(reached[num_kept]) * node_bytes)
            prefetch(edges_at + np.int64(via[num_kept]) * edge_bytes)
            num_kept += 1
        count = num_kept


@kernel
def _back_up_for_each(
    nodes: Array, edges: Array, node_values: Array, edge_totals: Array, reached: Array, count: int, rule: Rule
) -> None:
    # The same with more than two players, one path after the other.
    num_players = node_values.shape[1]
    found, before = np.empty(num_players), np.zeros(num_players)
    for index in range(count):
        node, via = np.int64(reached[index]), np.int64(NO_CHILD)
        for player in range(num_players):
            found[player] = node_values[node, player]
        while True:
            if via != NO_CHILD:
                is_drawn = rule.chance and nodes[node]["chance"] and not rule.playout
                for player in range(num_players):
                    if is_drawn:
                        value = node_values[node, player]
                        before[player] = _expected_total(nodes[node], edges, edge_totals, player, value)
                    edge_totals[via, player] += found[player]
                edges[via]["visits"] += 1
                if rule.leaves > 1:
                    edges[via]["pending"] -= 1
                    for player in range(num_players if edges[via]["proof"] != OPEN else 0):
                        edge_totals[via, player] = found[player] * edges[via]["visits"]
                edges[via]["total"] = edge_totals[via, nodes[node]["to_play"]]
                for player in range(num_players if is_drawn else 0):
                    value = node_values[node, player]
                    found[player] = _expected_total(nodes[node], edges, edge_totals, player, value) - before[player]
            if rule.leaves > 1 and nodes[node]["settled"]:
                for player in range(num_players):
                    found[player] = node_values[node, player]
            nodes[node]["visits"] += 1
            if nodes[node]["parent"] == NO_PARENT:
                break
            node, via = np.int64(nodes[node]["parent"]), np.int64(nodes[node]["parent_edge"])


@kernel
def _withdraw(nodes: Array, edges: Array, node: int, edge: int) -> None:
    # Removes the virtual losses on the path that ends with `edge` of `node`.
    edges[edge]["pending"] -= 1
    while nodes[node]["parent"] != NO_PARENT:
        edges[nodes[node]["parent_edge"]]["pending"] -= 1
        node = nodes[node]["parent"]
