"""The verbs of the search on `Trees`: select, expand, back up, and prove. Those of the root are in `roots`.

Everything here is compiled, trusts its arguments, and knows neither game nor network. Values are always for the player
to move at some node, and an edge's total is for the player who chooses that edge, who need not be the opponent of the
one before. In the search, only this module and `roots` know a value's sign.
"""

import math

import numpy as np

from seraphim.compiled import kernel
from seraphim.game import Array
from seraphim.search.cache import MISS, Cache, find_slot
from seraphim.search.selection import Rule, best_edge
from seraphim.search.tree import AT_REST, NO_CHILD, ROOT, Trees

WIN, LOSS = 1.0, -1.0


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
    num_new, num_waiting, num_resting = 0, 0, 0
    waiting = np.empty(len(rows), np.int64)
    resting = np.empty(len(rows), np.int64)
    for row in rows:
        tree = row // rule.leaves
        nodes, edges = trees.nodes[tree], trees.edges[tree]
        schedule = schedules[min(nodes[ROOT]["num_edges"], len(schedules) - 1)]
        while True:
            node = trees.row_node[row]
            if node == AT_REST:
                if trees.remaining[tree] == 0 or nodes[ROOT]["settled"]:
                    resting[num_resting] = row
                    num_resting += 1
                    break
                trees.remaining[tree] -= 1
                node = ROOT
            node, edge = _descend(nodes, edges, trees.root_scores[tree], trees.root_forced[tree], schedule, node, rule)
            if nodes[node]["settled"]:
                _back_up(nodes, edges, node, nodes[node]["value"], rule)
                trees.row_node[row] = AT_REST
                continue
            if rule.leaves > 1 and edges[edge]["pending"] > 1:
                _withdraw(nodes, edges, node, edge)
                trees.row_node[row] = AT_REST
                trees.remaining[tree] += 1
                waiting[num_waiting] = row
                num_waiting += 1
                break
            trees.row_node[row] = node
            trees.row_edge[row] = edge
            for word in range(states.shape[1]):
                states[num_new, word] = trees.states[tree, node, word]
            actions[num_new] = edges[edge]["action"]
            rows[num_new] = row
            num_new += 1
            break
    rows[num_new : num_new + num_waiting] = waiting[:num_waiting]
    rows[num_new + num_waiting :] = resting[:num_resting]
    return num_new, num_waiting


@kernel
def _descend(
    nodes: Array, edges: Array, root_scores: Array, root_forced: float, schedule: Array, node: int, rule: Rule
) -> tuple[int, int]:
    # From `node` down to a settled node, or to the last node of the tree and the edge that leaves it.
    edge = NO_CHILD
    while not nodes[node]["settled"]:
        edge = best_edge(nodes[node], edges, root_scores, root_forced, schedule, node == ROOT, rule)
        if rule.leaves > 1:
            edges[edge]["pending"] += 1
        if edges[edge]["child"] == NO_CHILD:
            break
        node = edges[edge]["child"]
    return node, edge


@kernel
def _back_up(nodes: Array, edges: Array, node: int, value: float, rule: Rule) -> None:
    mover = nodes[node]["to_play"]
    nodes[node]["visits"] += 1
    while node != ROOT:
        edge = edges[nodes[node]["parent_edge"]]
        node = nodes[node]["parent"]
        nodes[node]["visits"] += 1
        edge["visits"] += 1
        edge["total"] += value if nodes[node]["to_play"] == mover else -value
        if rule.leaves > 1:
            edge["pending"] -= 1


@kernel
def _prove(nodes: Array, edges: Array, node: int) -> None:
    # A node has just been settled: settles every ancestor whose result follows (MCTS-Solver, Winands et al. 2008, with
    # draws). A node is won if one edge wins, and settled by its best edge once all are; a win is counted to its fastest
    # end, anything else to its slowest.
    while node != ROOT:
        parent, edge = nodes[node]["parent"], nodes[node]["parent_edge"]
        same = nodes[parent]["to_play"] == nodes[node]["to_play"]
        value = nodes[node]["value"] if same else -nodes[node]["value"]
        edges[edge]["lost"] = value <= LOSS
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
    while node != ROOT:
        edges[nodes[node]["parent_edge"]]["pending"] -= 1
        node = nodes[node]["parent"]


@kernel
def _add_node(
    nodes: Array, edges: Array, index: int, parent: int, parent_edge: int, first_edge: int, to_play: int, value: float
) -> None:
    node = nodes[index]
    node["parent"] = parent
    node["parent_edge"] = parent_edge
    node["first_edge"] = first_edge
    node["num_edges"] = 0
    node["visits"] = 0
    node["value"] = value
    node["to_play"] = to_play
    node["settled"] = 0
    node["distance"] = 0
    if index != ROOT:
        edges[parent_edge]["child"] = index


@kernel
def _copy_state(target: Array, source: Array) -> None:
    for word in range(len(source)):
        target[word] = source[word]


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
) -> tuple[int, int]:
    """Add new positions to their trees, but for those that only the network can value.

    Where the game has ended, the readout is scored; where the cache knows the position, it is expanded.

    Args:
        trees: changed in place; must have room.
        cache: read.
        rows: int64 [R']; afterwards first the rows of the positions for the network, then the others, which go on.
        states: int64 [R', W]; afterwards first those for the network.
        to_play: int8 [R']; afterwards likewise.
        ended: bool [R'].
        results: float32 [R'], for player 0, where the game has ended.
        rule: the options.

    Returns:
        How many positions are for the network, and how many the cache knew.
    """
    # Arrays taken out of their tuples once: each time costs a count of references.
    all_nodes, all_edges, node_states = trees.nodes, trees.edges, trees.states
    num_nodes, num_edges, row_node, row_edge = trees.num_nodes, trees.num_edges, trees.row_node, trees.row_edge
    cache_states, cache_stamps, cache_logits, cache_values = cache.states, cache.stamps, cache.logits, cache.values
    num_unknown, num_known, num_over = 0, 0, 0
    others = np.empty(len(rows), np.int64)
    for index in range(len(rows)):
        row = rows[index]
        tree = row // rule.leaves
        slot = MISS if ended[index] else find_slot(cache_states, cache_stamps, states[index])
        if slot == MISS and not ended[index]:
            rows[num_unknown] = row
            to_play[num_unknown] = to_play[index]
            _copy_state(states[num_unknown], states[index])
            num_unknown += 1
            continue
        nodes, edges = all_nodes[tree], all_edges[tree]
        node, first = num_nodes[tree], num_edges[tree]
        num_nodes[tree] += 1
        _copy_state(node_states[tree, node], states[index])
        if slot != MISS:
            value = np.float64(cache_values[slot])
            _add_node(nodes, edges, node, row_node[row], row_edge[row], first, to_play[index], value)
            num_edges[tree] += _add_edges(nodes, edges, node, first, cache_logits[slot])
            num_known += 1
        else:
            value = np.float64(results[index] if to_play[index] == 0 else -results[index])
            _add_node(nodes, edges, node, row_node[row], row_edge[row], first, to_play[index], value)
            nodes[node]["settled"] = 1
            num_over += 1
        row_node[row] = _score(nodes, edges, node, value, rule)
        others[num_known + num_over - 1] = row
    rows[num_unknown:] = others[: len(rows) - num_unknown]
    return num_unknown, num_known


@kernel
def mask(legal: Array, logits: Array, values: Array) -> int:
    """Set the logits of illegal actions to -inf, in place.

    Args:
        legal: bool [R', A].
        logits: float32 [R', A].
        values: float32 [R'].

    Returns:
        The first row with a NaN or infinity, or without a legal action; R' if there is none.
    """
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
def expand(trees: Trees, rows: Array, states: Array, to_play: Array, logits: Array, values: Array, rule: Rule) -> None:
    """Add evaluated positions with an edge for each legal action, whose priors are the softmax over those.

    With playouts, a readout goes on from the new node, and only the end of the game scores it; otherwise it is scored
    with the network's value. A position that becomes the root is scored as a visit of the root, not as a readout.

    Args:
        trees: changed in place; must have room.
        rows: int64 [R'].
        states: int64 [R', W].
        to_play: int8 [R'].
        logits: float32 [R', A], -inf where an action is illegal.
        values: float32 [R'] in [-1, 1], for the player to move.
        rule: the options.
    """
    all_nodes, all_edges, node_states = trees.nodes, trees.edges, trees.states
    num_nodes, num_edges, row_node, row_edge = trees.num_nodes, trees.num_edges, trees.row_node, trees.row_edge
    for index in range(len(rows)):
        row = rows[index]
        tree = row // rule.leaves
        nodes, edges = all_nodes[tree], all_edges[tree]
        node, first = num_nodes[tree], num_edges[tree]
        num_nodes[tree] += 1
        _copy_state(node_states[tree, node], states[index])
        _add_node(nodes, edges, node, row_node[row], row_edge[row], first, to_play[index], values[index])
        num_edges[tree] += _add_edges(nodes, edges, node, first, logits[index])
        row_node[row] = _score(nodes, edges, node, np.float64(values[index]), rule)


@kernel
def _score(nodes: Array, edges: Array, node: int, value: float, rule: Rule) -> int:
    # Ends the readout that led to a new node, unless it is to be played out; returns where the row stands then.
    if rule.playout and node != ROOT and not nodes[node]["settled"]:
        return node
    _back_up(nodes, edges, node, value, rule)
    if rule.solver and nodes[node]["settled"]:
        _prove(nodes, edges, node)
    return AT_REST


@kernel
def _add_edges(nodes: Array, edges: Array, node: int, first: int, logits: Array) -> int:
    largest = -np.inf
    for action in range(len(logits)):
        largest = max(largest, np.float64(logits[action]))
    end, total = first, 0.0
    for action in range(len(logits)):
        if logits[action] > -np.inf:
            weight = math.exp(np.float64(logits[action]) - largest)
            total += weight
            edge = edges[end]
            edge["total"] = 0.0
            edge["prior"] = weight
            edge["visits"] = 0
            edge["pending"] = 0
            edge["child"] = NO_CHILD
            edge["action"] = action
            edge["lost"] = 0
            end += 1
    for index in range(first, end):
        edges[index]["prior"] = np.float64(edges[index]["prior"]) / total
    nodes[node]["num_edges"] = end - first
    return end - first
