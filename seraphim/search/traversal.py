"""How readouts move through `Trees`: down by selection, up with a value, and how results are proven.

Everything here is compiled, trusts its arguments, and knows neither game nor network. Values are always for the player
to move at some node, and an edge's total is for the player who chooses that edge, who need not be the opponent of the
one before. In the search, only this module, `expansion` and `roots` know a value's sign.

Trees are independent, so rows of different trees move together, each by one ply in turn: while one is looked after, the
memory that the others need next is on its way (`prefetch`).
"""

import numpy as np

from seraphim.game import Array
from seraphim.jit import borrowed, kernel, prefetch
from seraphim.search.selection import Rule, best_edge
from seraphim.search.tree import AT_REST, KNOWN, LOST, NO_CHILD, NO_PARENT, OPEN, Trees

WIN, LOSS = 1.0, -1.0  # values

LINE = 64  # bytes that a processor loads at once
_MOST_LINES = 8  # of the edges of a node; further ones the processor expects by itself


@kernel
def select(trees: Trees, rows: Array, rule: Rule, schedules: Array, states: Array, actions: Array) -> tuple[int, int]:
    """Move the readouts of `rows` on until each stands before a position that is not in its tree.

    A readout that meets a settled node is scored at once, and its row starts the next one, until its tree has no
    readouts to start or its root is settled. A row that would leave the tree where another row of the same tree does
    waits: its readout is taken back, to be started again.

    Args:
        trees: changed in place.
        rows: int64 [R'] rows to move; afterwards first the rows that need a new position, in the order of `states`
            and `actions`, then the rows that wait, then those at rest because their trees have nothing to start.
        rule: the options.
        schedules: int32 [<= A + 1, readouts], for a Gumbel root by the number of edges it considers.
        states: int64 [>= R', W], filled with the states that new positions follow from.
        actions: int32 [>= R'], filled with the actions that lead to them.

    Returns:
        How many rows need a new position, and how many wait.
    """
    nodes, edges, node_states = borrowed(trees.nodes), borrowed(trees.edges), borrowed(trees.states)
    root_scores, progress, under_way = borrowed(trees.root_scores), borrowed(trees.progress), borrowed(trees.rows)
    rows, schedules, states, actions = borrowed(rows), borrowed(schedules), borrowed(states), borrowed(actions)
    num_actions = len(root_scores) // len(progress)
    nodes_at, node_bytes = nodes.ctypes.data, nodes.itemsize
    num_new, num_waiting = 0, 0
    moving, waiting = rows.copy(), np.empty(len(rows), np.int64)
    num_moving, num_resting = len(rows), 0
    while num_moving:
        num_moving, num_resting = _arrive(
            nodes, edges, progress, under_way, rule, moving, num_moving, rows, num_resting
        )
        num_kept = 0
        for index in range(num_moving):
            row = moving[index]
            tree, node = row // rule.leaves, under_way[row]["node"]
            if node == AT_REST:  # scored a moment ago
                moving[num_kept] = row
                num_kept += 1
                continue
            edge = best_edge(nodes[node], edges, root_scores, tree * num_actions, schedules, rule)
            child = edges[edge]["child"]
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


@kernel
def _arrive(
    nodes: Array,
    edges: Array,
    progress: Array,
    under_way: Array,
    rule: Rule,
    moving: Array,
    num_moving: int,
    rows: Array,
    num_resting: int,
) -> tuple[int, int]:
    # Looks at the nodes that the moving rows stand on, and puts rows at rest on their roots: where a node is settled,
    # the readout is scored; for the others, their edges are fetched. Rows whose trees have nothing to start are taken
    # out of `moving`, and stand at the end of `rows`, which are free there because those rows are none of the others.
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
    back_up(nodes, edges, settled, num_settled, rule)
    return num_kept, num_resting


@kernel
def back_up(nodes: Array, edges: Array, reached: Array, count: int, rule: Rule) -> None:
    """Score `count` readouts with the values of the nodes `reached` int32, which are used up: all climb in turn.

    Where another readout has settled a node meanwhile, its exact value is what climbs on from there.
    """
    if count == 0:
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
                edge["visits"] += 1
                edge["total"] += value
                if rule.leaves > 1:
                    edge["pending"] -= 1
                    if edge["known"] != OPEN:
                        edge["total"] = value * edge["visits"]
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
def prove(nodes: Array, edges: Array, node: int) -> None:
    """Settle every ancestor of a settled node whose result follows (MCTS-Solver, Winands et al. 2008, with draws).

    A node is won if one edge wins, and settled by its best edge once all are; a win is counted to its fastest end,
    anything else to its slowest. What an edge that leads to a settled node has gathered becomes exact.
    """
    while nodes[node]["parent"] != NO_PARENT:
        parent, edge = nodes[node]["parent"], nodes[node]["parent_edge"]
        same = nodes[parent]["to_play"] == nodes[node]["to_play"]
        value = nodes[node]["value"] if same else -nodes[node]["value"]
        edges[edge]["known"] = KNOWN if value > LOSS else LOST
        edges[edge]["total"] = value * edges[edge]["visits"]
        if nodes[parent]["settled"]:
            return
        if value < WIN and not _all_settled(nodes, edges, parent):
            return
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
def _settle(nodes: Array, edges: Array, node: int) -> None:
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


@kernel
def _withdraw(nodes: Array, edges: Array, node: int, edge: int) -> None:
    # Takes back the visits under way on the path that ends with `edge` of `node`.
    edges[edge]["pending"] -= 1
    while nodes[node]["parent"] != NO_PARENT:
        edges[nodes[node]["parent_edge"]]["pending"] -= 1
        node = nodes[node]["parent"]
