"""The verbs of the search on `Trees`: select, expand, back up, and move the root.

Everything here is compiled, trusts its arguments, and knows neither game nor network. The only place in the project
that knows the value's sign is `_back_up`: values are always for the player to move at some node, and an edge's total is
for the player who chooses that edge, who need not be the opponent of the one before.
"""

import math
from typing import Any

import numpy as np

from seraphim.compiled import kernel
from seraphim.game import Array
from seraphim.search.randomness import dirichlet
from seraphim.search.tree import AT_REST, NO_CHILD, ROOT, Trees


@kernel
def select(trees: Trees, rows: Array, cpuct: float, leaves: int, states: Array, actions: Array) -> tuple[int, int]:
    """Move the readouts of `rows` on until each stands before a position that is not in its tree.

    A readout that meets the end of the game is scored at once, and its row starts the next one, until its tree has no
    readouts to start. A row that would leave the tree where another row of the same tree does waits: its readout is
    taken back, to be started again.

    Args:
        trees: changed in place.
        rows: int64 [R'] rows to move; afterwards first the rows that need a new position, in the order of `states`
            and `actions`, then the rows that wait, then those at rest because their trees have nothing to start.
        cpuct: the weight of exploration.
        leaves: rows of a tree.
        states: int64 [>= R', W], filled with the states that new positions follow from.
        actions: int32 [>= R'], filled with the actions that lead to them.

    Returns:
        How many rows need a new position, and how many wait.
    """
    num_new, num_waiting, num_resting = 0, 0, 0
    waiting = np.empty(len(rows), np.int64)
    resting = np.empty(len(rows), np.int64)
    for row in rows:
        tree = row // leaves
        nodes, edges = trees.nodes[tree], trees.edges[tree]
        while True:
            node = trees.row_node[row]
            if node == AT_REST:
                if trees.remaining[tree] == 0:
                    resting[num_resting] = row
                    num_resting += 1
                    break
                trees.remaining[tree] -= 1
                node = ROOT
            node, edge = _descend(nodes, edges, trees.root_priors[tree], node, cpuct, leaves)
            if nodes[node]["terminal"]:
                _back_up(nodes, edges, node, nodes[node]["value"], leaves)
                trees.row_node[row] = AT_REST
                continue
            if leaves > 1 and edges[edge]["pending"] > 1:
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
def _descend(nodes: Array, edges: Array, root_priors: Array, node: int, cpuct: float, leaves: int) -> tuple[int, int]:
    # From `node` down to the end of a game, or to the last node of the tree and the edge that leaves it.
    edge = NO_CHILD
    while not nodes[node]["terminal"]:
        edge = _best_edge(nodes[node], edges, root_priors, node == ROOT, cpuct)
        if leaves > 1:
            edges[edge]["pending"] += 1
        if edges[edge]["child"] == NO_CHILD:
            break
        node = edges[edge]["child"]
    return node, edge


@kernel
def _best_edge(node: Any, edges: Array, root_priors: Array, is_root: bool, cpuct: float) -> int:
    # argmax of Q(s,a) + c·P(s,a)·√N(s)/(1+N(s,a)) (Silver et al. 2017, Methods), the first of equals; N(s) counts the
    # node's own evaluation, so that the prior decides the first visit. Visits under way count as losses.
    first = node["first_edge"]
    exploration = cpuct * math.sqrt(node["visits"])
    best, best_score = first, -np.inf
    for k in range(node["num_edges"]):
        edge = edges[first + k]
        visits = edge["visits"] + edge["pending"]
        prior = root_priors[k] if is_root else edge["prior"]
        score = exploration * prior / (1 + visits)
        if visits > 0:
            score += (edge["total"] - edge["pending"]) / visits
        if score > best_score:
            best, best_score = first + k, score
    return best


@kernel
def _back_up(nodes: Array, edges: Array, node: int, value: float, leaves: int) -> None:
    mover = nodes[node]["to_play"]
    nodes[node]["visits"] += 1
    while node != ROOT:
        edge = edges[nodes[node]["parent_edge"]]
        node = nodes[node]["parent"]
        nodes[node]["visits"] += 1
        edge["visits"] += 1
        edge["total"] += value if nodes[node]["to_play"] == mover else -value
        if leaves > 1:
            edge["pending"] -= 1


@kernel
def _withdraw(nodes: Array, edges: Array, node: int, edge: int) -> None:
    # Takes back the visits under way on the path that ends with `edge` of `node`.
    edges[edge]["pending"] -= 1
    while node != ROOT:
        edges[nodes[node]["parent_edge"]]["pending"] -= 1
        node = nodes[node]["parent"]


@kernel
def room_needed(trees: Trees, rows: Array, most_edges: int, leaves: int) -> tuple[int, int]:
    """Return how many node and edge slots a tree needs before `rows` are added with `most_edges` edges each."""
    nodes, edges = 0, 0
    for row in rows:
        nodes = max(nodes, trees.num_nodes[row // leaves] + leaves)
        edges = max(edges, trees.num_edges[row // leaves] + leaves * most_edges)
    return nodes, edges


@kernel
def _add_node(
    trees: Trees,
    nodes: Array,
    edges: Array,
    row: int,
    tree: int,
    state: Array,
    to_play: int,
    value: float,
    terminal: int,
) -> int:
    index = trees.num_nodes[tree]
    trees.num_nodes[tree] = index + 1
    for word in range(len(state)):
        trees.states[tree, index, word] = state[word]
    node = nodes[index]
    node["parent"] = trees.row_node[row]
    node["parent_edge"] = trees.row_edge[row]
    node["first_edge"] = trees.num_edges[tree]
    node["num_edges"] = 0
    node["visits"] = 0
    node["value"] = value
    node["to_play"] = to_play
    node["terminal"] = terminal
    if index != ROOT:
        edges[node["parent_edge"]]["child"] = index
    return index


@kernel
def add_terminals(trees: Trees, rows: Array, states: Array, to_play: Array, results: Array, leaves: int) -> None:
    """Add positions in which the game has ended, and score the readouts that found them.

    Args:
        trees: changed in place; must have room.
        rows: int64 [R'].
        states: int64 [R', W].
        to_play: int8 [R'].
        results: float32 [R'], for player 0.
        leaves: rows of a tree.
    """
    for index in range(len(rows)):
        row = rows[index]
        tree = row // leaves
        value = results[index] if to_play[index] == 0 else -results[index]
        nodes, edges = trees.nodes[tree], trees.edges[tree]
        node = _add_node(trees, nodes, edges, row, tree, states[index], to_play[index], value, 1)
        _back_up(nodes, edges, node, value, leaves)
        trees.row_node[row] = AT_REST


@kernel
def expand(
    trees: Trees,
    rows: Array,
    states: Array,
    to_play: Array,
    legal: Array,
    logits: Array,
    values: Array,
    leaves: int,
    playout: bool,
) -> int:
    """Add evaluated positions with an edge for each legal action, whose priors are the softmax over those.

    With `playout`, a readout goes on from the new node, and only the end of the game scores it; otherwise it is scored
    with the network's value. A position that becomes the root is scored as a visit of the root, not as a readout.

    Args:
        trees: changed in place; must have room.
        rows: int64 [R'].
        states: int64 [R', W].
        to_play: int8 [R'].
        legal: bool [R', A].
        logits: float32 [R', A].
        values: float32 [R'] in [-1, 1], for the player to move.
        leaves: rows of a tree.
        playout: read on to the end of the game.

    Returns:
        How many rows were expanded: less than R' where the next one has a NaN or infinity, or no legal action.
    """
    for index in range(len(rows)):
        if not _is_sound(legal[index], logits[index], values[index]):
            return index
        row = rows[index]
        tree = row // leaves
        nodes, edges = trees.nodes[tree], trees.edges[tree]
        node = _add_node(trees, nodes, edges, row, tree, states[index], to_play[index], values[index], 0)
        count = _add_edges(edges, trees.num_edges[tree], legal[index], logits[index])
        nodes[node]["num_edges"] = count
        trees.num_edges[tree] += count
        if node == ROOT or not playout:
            _back_up(nodes, edges, node, values[index], leaves)
            trees.row_node[row] = AT_REST
        else:
            trees.row_node[row] = node
    return len(rows)


@kernel
def _is_sound(legal: Array, logits: Array, value: float) -> bool:
    sound, any_legal = math.isfinite(value), False
    for action in range(len(legal)):
        if legal[action]:
            any_legal = True
            sound = sound and math.isfinite(logits[action])
    return sound and any_legal


@kernel
def _add_edges(edges: Array, first: int, legal: Array, logits: Array) -> int:
    largest = -np.inf
    for action in range(len(legal)):
        if legal[action]:
            largest = max(largest, logits[action])
    end, total = first, 0.0
    for action in range(len(legal)):
        if legal[action]:
            weight = math.exp(logits[action] - largest)
            total += weight
            edge = edges[end]
            edge["total"] = 0.0
            edge["prior"] = weight
            edge["visits"] = 0
            edge["pending"] = 0
            edge["child"] = NO_CHILD
            edge["action"] = action
            end += 1
    for index in range(first, end):
        edges[index]["prior"] /= total
    return end - first


@kernel
def prepare_roots(trees: Trees, chosen: Array, keys: Array, alpha: float, coefficient: float) -> None:
    """Give the roots of the trees `chosen` int64 [K] the priors they are searched with.

    That is (1 - coefficient)·P + coefficient·noise with one draw of Dirichlet(alpha) noise over the legal actions from
    the stream of the tree's key, uint64 [K]. The priors P themselves stay as the network gave them, so a root that was
    an inner node before, or is searched again, is noised once.
    """
    for index in range(len(chosen)):
        tree = chosen[index]
        first, count = trees.nodes[tree, ROOT]["first_edge"], trees.nodes[tree, ROOT]["num_edges"]
        noise = np.zeros(count, np.float64)
        if coefficient > 0.0:
            dirichlet(alpha, keys[index], noise)
        for k in range(count):
            prior = trees.edges[tree, first + k]["prior"]
            trees.root_priors[tree, k] = (1.0 - coefficient) * prior + coefficient * noise[k]


@kernel
def root_edges(trees: Trees, chosen: Array, visits: Array, totals: Array, priors: Array) -> None:
    """Fill int32 `visits`, float64 `totals` and float32 `priors` [K, A] with the roots' edges of trees `chosen` [K]."""
    visits[:] = 0
    totals[:] = 0.0
    priors[:] = 0.0
    for index in range(len(chosen)):
        tree = chosen[index]
        first = trees.nodes[tree, ROOT]["first_edge"]
        for k in range(trees.nodes[tree, ROOT]["num_edges"]):
            edge = trees.edges[tree, first + k]
            visits[index, edge["action"]] = edge["visits"]
            totals[index, edge["action"]] = edge["total"]
            priors[index, edge["action"]] = edge["prior"]


@kernel
def move_roots(trees: Trees, chosen: Array, actions: Array) -> None:
    """Make the successor by `actions` [K] the root of each tree `chosen` int64 [K].

    What lies below it is kept, the rest dropped. A tree whose successor was never visited, or in which the game has
    ended, becomes empty. Nodes and edges move towards the front and keep their order, so the move is done in place.
    """
    new_index = np.empty(trees.nodes.shape[1], np.int32)
    for index in range(len(chosen)):
        tree = chosen[index]
        nodes, edges = trees.nodes[tree], trees.edges[tree]
        root = _child_by(nodes, edges, actions[index])
        count = trees.num_nodes[tree]
        trees.num_nodes[tree] = 0
        trees.num_edges[tree] = 0
        if root == NO_CHILD or nodes[root]["terminal"]:
            continue
        new_index[:count] = NO_CHILD
        for node in range(root, count):
            if node == root or new_index[nodes[node]["parent"]] != NO_CHILD:
                new_index[node] = trees.num_nodes[tree]
                for word in range(trees.states.shape[2]):
                    trees.states[tree, new_index[node], word] = trees.states[tree, node, word]
                trees.num_nodes[tree] += 1
                trees.num_edges[tree] = _move_node(nodes, edges, node, new_index, trees.num_edges[tree])


@kernel
def _child_by(nodes: Array, edges: Array, action: int) -> int:
    first = nodes[ROOT]["first_edge"]
    for edge in range(first, first + nodes[ROOT]["num_edges"]):
        if edges[edge]["action"] == action:
            return edges[edge]["child"]
    return NO_CHILD


@kernel
def _move_node(nodes: Array, edges: Array, node: int, new_index: Array, end: int) -> int:
    # Moves a node to its new index and its edges to `end`; returns the end of the edges then. Its parent has moved
    # before it and has told it, in `parent_edge`, where the edge to it went.
    target = new_index[node]
    first, count = nodes[node]["first_edge"], nodes[node]["num_edges"]
    nodes[target] = nodes[node]
    nodes[target]["first_edge"] = end
    if target != ROOT:
        nodes[target]["parent"] = new_index[nodes[target]["parent"]]
        edges[nodes[target]["parent_edge"]]["child"] = target
    for k in range(count):
        edges[end + k] = edges[first + k]
        child = edges[end + k]["child"]
        if child != NO_CHILD:
            nodes[child]["parent_edge"] = end + k
    return end + count
