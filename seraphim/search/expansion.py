"""How new positions become nodes of `Trees`: valued by the end of the game, the cache, or the network.

The kernels trust their arguments, and know neither game nor network. Values are for the player to move.
"""

import math
from typing import Any

import numpy as np

from seraphim.errors import GameError, ModelError, SeraphimError, SettingsError
from seraphim.game import CHANCE, Array, Game
from seraphim.game.features import features_of, num_columns
from seraphim.jit import borrowed, kernel, prefetch
from seraphim.options import SearchOptions
from seraphim.search.cache import MISS, Cache, find_slot, first_slot, prefetch_slot, store_row
from seraphim.search.selection import Rule
from seraphim.search.solver import prove
from seraphim.search.traversal import LINE, back_up
from seraphim.search.tree import AT_REST, NO_CHILD, NO_PARENT, OPEN, Trees


def check_offers(game: Game, options: SearchOptions) -> None:
    """Raise a SettingsError if a game does not offer what `root`, `fast_wins` or `known_results` needs."""
    if options.by_turns and num_columns(game) > 1:
        raise SettingsError(f"root must not be afterstates in {game.name}, which is for more than two players")
    if options.fast_wins and features_of(game).progress is None:
        raise SettingsError(
            f"fast_wins needs a game that offers progress(states), but {game.name} does not: set it to 0"
        )
    if options.known_results and features_of(game).known_results is None:
        raise SettingsError(
            f"known_results needs a game that offers known_results(states), but {game.name} does not: set it to false"
        )


def exact_values(game: Game, states: Array, options: SearchOptions) -> tuple[Array, Array]:
    """Return where games have ended, or their results are known, bool [B], and the values float32 [B, V] by player."""
    ended, results = game.outcome(states)
    results = results.reshape(len(ended), -1)[:, : num_columns(game)]
    values = terminal_value(game, states, results, options.fast_wins)
    tell = features_of(game).known_results if options.known_results else None
    if tell is None:
        return ended, values
    known, known_values = tell(states)
    return ended | known, np.where(ended[:, None], values, known_values.reshape(values.shape))


def terminal_value(game: Game, states: Array, results: Array, fast_wins: float) -> Array:
    """Return the values of ended games, float32 [B] or [B, V] by player: their `results`, less if they took long.

    That is r·(1 - f·p), where the progress p is 0 at the earliest possible end of a game and 1 at the latest, and f is
    `SearchOptions.fast_wins`, which needs a game with `progress`. With f = 0.9, a win of connect four counts 1 after 7
    plies and 0.1 after 42: the 1.18 - 9·plies/350 of DeepFour.
    """
    if not fast_wins:
        return results
    progress = features_of(game).progress
    if progress is None:
        return results
    return (results.T * (1 - fast_wins * progress(states))).T.astype(np.float32)


@kernel
def expand_known(
    trees: Trees,
    cache: Cache,
    rows: Array,
    states: Array,
    to_play: Array,
    banked: Array,
    ended: Array,
    results: Array,
    chances: Array,
    rule: Rule,
    unknown_rows: Array,
    unknown_states: Array,
    unknown_to_play: Array,
    unknown_banked: Array,
) -> tuple[int, int]:
    """Add those of R' `NewPositions` that need no network: with exact values, known to the cache, or of chance.

    For `ended` bool [R'] and `results` float32 [R', V] see `exact_values`; `chances` float64 [R', K] are those of the
    game, and empty where chance never moves. The rows are reordered: first those whose positions were added. The other
    positions are copied to the arrays for unknown ones.

    Returns:
        The number of unknown positions, and of those that the cache knew.
    """
    nodes, edges, node_states = borrowed(trees.nodes), borrowed(trees.edges), borrowed(trees.states)
    node_values, edge_totals = borrowed(trees.node_values), borrowed(trees.edge_totals)
    progress, under_way = borrowed(trees.progress), borrowed(trees.rows)
    keys, outputs = borrowed(cache.keys), borrowed(cache.outputs)
    rows, states = borrowed(rows), borrowed(states)
    num_actions = len(trees.root_scores) // len(progress)
    firsts = np.empty(len(rows), np.int64)
    for index in range(len(rows)):
        if not ended[index] and to_play[index] != CHANCE:
            firsts[index] = first_slot(states, index, keys)
            prefetch_slot(keys, outputs, firsts[index])
    num_unknown, num_known, num_done, num_settled = 0, 0, 0, 0
    done, settled = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    for index in range(len(rows)):
        row = rows[index]
        slot = MISS
        if rule.chance and not ended[index] and to_play[index] == CHANCE:
            seat = nodes[under_way[row]["node"]]["to_play"]
            node = _add_node(nodes, edges, node_states, progress, under_way, row, rule, states, index, seat)
            rows[index - num_unknown] = row
            nodes[node]["chance"] = 1
            nodes[node]["value"] = nodes[nodes[node]["parent"]]["value"]
            for player in range(node_values.shape[1]):
                node_values[node, player] = node_values[nodes[node]["parent"], player]
            _add_outcomes(nodes, edges, edge_totals, progress[row // rule.leaves], node, chances, index)
            if rule.playout and under_way[row]["plies"] >= rule.max_plies:
                gained = np.float64(banked[index, 0]) if len(banked) else 0.0  # of player 0, as nobody moves here
                nodes[node]["value"] = gained if seat == 0 else -gained
                _count_banked(nodes[node], node, node_values, banked, index)
                under_way[row]["node"] = AT_REST
                done[num_done] = node
                num_done += 1
            else:
                under_way[row]["node"] = node
            continue
        if not ended[index]:
            slot = find_slot(keys, firsts[index], states, index)
            if slot == MISS:
                unknown_rows[num_unknown] = row
                unknown_to_play[num_unknown] = to_play[index]
                for word in range(states.shape[1]):
                    unknown_states[num_unknown, word] = states[index, word]
                for column in range(banked.shape[1] if len(banked) else 0):
                    unknown_banked[num_unknown, column] = banked[index, column]
                num_unknown += 1
                continue
        node = _add_node(nodes, edges, node_states, progress, under_way, row, rule, states, index, to_play[index])
        rows[index - num_unknown] = row
        if slot != MISS:
            num_known += 1
            _set_values(nodes[node], node, node_values, outputs, slot, num_actions, banked, index, rule)
            _add_edges(nodes, edges, edge_totals, progress[row // rule.leaves], node, outputs, slot, num_actions)
        else:
            nodes[node]["value"] = results[index, 0] if to_play[index] <= 0 else -results[index, 0]
            for player in range(node_values.shape[1]):
                node_values[node, player] = results[index, player]
                if player == to_play[index]:
                    nodes[node]["value"] = results[index, player]
            nodes[node]["settled"] = 1
            settled[num_settled] = node
            num_settled += 1
        if _ends(nodes[node], under_way[row], node, node_values, banked, index, rule):
            done[num_done] = node
            num_done += 1
    back_up(nodes, edges, node_values, edge_totals, done, num_done, rule)
    if rule.solver:
        for index in range(num_settled):
            prove(nodes, edges, node_values, edge_totals, settled[index])
    return num_unknown, num_known


@kernel
def expand(
    trees: Trees,
    cache: Cache,
    rows: Array,
    states: Array,
    to_play: Array,
    banked: Array,
    legal: Array,
    logits: Array,
    values: Array,
    rule: Rule,
) -> int:
    """Add R' evaluated `NewPositions` to the trees and the cache, with an edge for each legal action, bool [R', A].

    The priors are the softmax of `logits` float32 [R', A], which become -inf where an action is illegal. Readouts are
    backed up with `values` float32 [R', V], but playouts go on from their new nodes. The value of a new root counts as
    a visit of the root, but not as a readout.

    Returns:
        R'; or the first row with a NaN or infinity, or without a legal action, in which case nothing is changed.
    """
    num_valid = _mask(legal, logits, values)
    if num_valid < len(rows):
        return num_valid
    nodes, edges, node_states = borrowed(trees.nodes), borrowed(trees.edges), borrowed(trees.states)
    node_values, edge_totals = borrowed(trees.node_values), borrowed(trees.edge_totals)
    progress, under_way = borrowed(trees.progress), borrowed(trees.rows)
    _prefetch_room(nodes, edges, progress, rows, rule)
    keys, outputs, clock = borrowed(cache.keys), borrowed(cache.outputs), borrowed(cache.clock)
    rows, states, logits, values = borrowed(rows), borrowed(states), borrowed(logits), borrowed(values)
    firsts = np.empty(len(rows), np.int64)
    done, num_done = np.empty(len(rows), np.int32), 0
    for index in range(len(rows)):
        firsts[index] = first_slot(states, index, keys)
        prefetch_slot(keys, outputs, firsts[index])
        row = rows[index]
        node = _add_node(nodes, edges, node_states, progress, under_way, row, rule, states, index, to_play[index])
        _set_values(nodes[node], node, node_values, values, index, 0, banked, index, rule)
        _add_edges(nodes, edges, edge_totals, progress[row // rule.leaves], node, logits, index, logits.shape[1])
        if _ends(nodes[node], under_way[row], node, node_values, banked, index, rule):
            done[num_done] = node
            num_done += 1
    back_up(nodes, edges, node_values, edge_totals, done, num_done, rule)
    for index in range(len(rows)):
        store_row(keys, outputs, clock, firsts[index], states, logits, values, index)
    return num_valid


def rejection(game: Game, model: str, state: Array, legal: Array, logits: Array, values: Array) -> SeraphimError:
    """Return the error for a row that `expand` found invalid."""
    if not legal.any():
        return GameError(
            f"{game.name} has not ended here but offers no legal action; run seraphim check-game on it:\n"
            f"{game.render(state)}"
        )
    return ModelError(
        f"{model} gave logits {logits[legal].tolist()} and values {values.tolist()}, but finite numbers are expected: "
        "if it was trained, its training has diverged; promote an older snapshot and lower the learning rate"
    )


@kernel
def _mask(legal: Array, logits: Array, values: Array) -> int:
    # Sets the logits of illegal actions to -inf; returns the first invalid row, or the number of rows.
    for row in range(len(legal)):
        valid, any_legal = True, False
        for column in range(values.shape[1]):
            valid = valid and math.isfinite(values[row, column])
        for action in range(legal.shape[1]):
            if legal[row, action]:
                any_legal = True
                valid = valid and math.isfinite(logits[row, action])
            else:
                logits[row, action] = -np.inf
        if not (valid and any_legal):
            return row
    return len(legal)


@kernel
def _prefetch_room(nodes: Array, edges: Array, progress: Array, rows: Array, rule: Rule) -> None:
    # Prefetches the memory of the next node of each row's tree.
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
    # Adds `states[index]` below the edge where a row stands; its value and edges are filled in later.
    tree = row // rule.leaves
    added = tree * (len(nodes) // len(progress)) + progress[tree]["num_nodes"]
    progress[tree]["num_nodes"] += 1
    for word in range(states.shape[1]):
        node_states[added, word] = states[index, word]
    node = nodes[added]
    node["parent"] = under_way[row]["node"]  # NO_PARENT for a new root, whose row is at rest
    node["parent_edge"] = under_way[row]["edge"]
    node["first_edge"] = tree * (len(edges) // len(progress)) + progress[tree]["num_edges"]
    node["num_edges"] = 0
    node["visits"] = 0
    node["to_play"] = to_play
    node["chance"] = 0
    node["value"] = 0.0
    node["settled"] = 0
    node["distance"] = 0
    if node["parent"] != NO_PARENT:
        edges[node["parent_edge"]]["child"] = added
    return added


@kernel
def _add_edges(
    nodes: Array, edges: Array, edge_totals: Array, tree: Any, node: int, logits: Array, index: int, num_actions: int
) -> None:
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
            _begin_edge(edges, edge_totals, end, action, weight)
            end += 1
    for position in range(first, end):
        edges[position]["prior"] = np.float64(edges[position]["prior"]) / total
    nodes[node]["num_edges"] = end - first
    tree["num_edges"] += end - first


@kernel
def _begin_edge(edges: Array, edge_totals: Array, index: int, action: int, prior: float) -> None:
    # Makes a slot an edge without visits.
    edge = edges[index]
    for player in range(edge_totals.shape[1]):
        edge_totals[index, player] = 0.0
    edge["total"] = 0.0
    edge["prior"] = prior
    edge["visits"] = 0
    edge["child"] = NO_CHILD
    edge["action"] = action
    edge["pending"] = 0
    edge["proof"] = OPEN


@kernel
def _add_outcomes(
    nodes: Array, edges: Array, edge_totals: Array, tree: Any, node: int, chances: Array, index: int
) -> None:
    # Gives a node of a TREE where chance moves an edge for each possible outcome.
    first = nodes[node]["first_edge"]
    end = first
    for outcome in range(chances.shape[1]):
        if chances[index, outcome] > 0.0:
            _begin_edge(edges, edge_totals, end, outcome, chances[index, outcome])
            end += 1
    nodes[node]["num_edges"] = end - first
    tree["num_edges"] += end - first


@kernel
def _set_values(
    node: Any, index: int, node_values: Array, values: Array, row: int, first: int, banked: Array, at: int, rule: Rule
) -> None:
    # Gives a NODE what is banked, `banked[at]`, and the network's values, `values[row, first:]`. With more than two
    # players, those begin with the one to move.
    num_players, mover = node_values.shape[1], node["to_play"]
    gained = np.float64(banked[at, mover if num_players else 0]) if len(banked) else 0.0
    node["value"] = np.float64(values[row, first]) * rule.value_scale + gained
    for player in range(num_players):
        found = np.float64(values[row, first + (player - mover) % num_players]) * rule.value_scale
        node_values[index, player] = found + (np.float64(banked[at, player]) if len(banked) else 0.0)


@kernel
def _count_banked(node: Any, index: int, node_values: Array, banked: Array, at: int) -> None:
    # The same where a playout is cut off: what is banked alone.
    for player in range(node_values.shape[1]):
        node_values[index, player] = banked[at, player] if len(banked) else 0.0
        if player == node["to_play"]:
            node["value"] = node_values[index, player]


@kernel
def _ends(node: Any, row: Any, index: int, node_values: Array, banked: Array, position: int, rule: Rule) -> bool:
    # Whether the readout of a ROW ends at its new NODE, which has this index, rather than playing on from there. A
    # playout that is longer than any game is cut off, and counts as a draw, or as what is banked.
    if rule.playout and node["parent"] != NO_PARENT and not node["settled"]:
        if row["plies"] < rule.max_plies:
            row["node"] = index
            return False
        node["value"] = banked[position, 0] if len(banked) else 0.0
        _count_banked(node, index, node_values, banked, position)
    row["node"] = AT_REST
    return True
