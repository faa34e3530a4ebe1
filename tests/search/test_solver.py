"""Proven results equal minimax; a proven root stops, and plays the fastest win and the slowest loss."""

from collections.abc import Iterator
from functools import cache

import games
import knows_the_end
import numpy as np
import pytest
from reference import ArbitraryNetwork, random_states

from connectfour.game import ConnectFour
from seraphim.game import Game, PlainRules
from seraphim.options import Root, SearchOptions
from seraphim.search.evaluator import Uniform
from seraphim.search.search import Search
from seraphim.search.tree import LOST, NO_CHILD, OPEN, PROVEN, slots
from tictactoe.game import TicTacToe
from tictactoe.minimax import position_sets

pytestmark = pytest.mark.kernels

GAME = TicTacToe()
POSITIONS = position_sets()[0]


@cache
def distance(state: tuple[int, ...]) -> tuple[float, int]:
    """The value for the player to move, and the plies to the end: fewest for wins, most for all else."""
    row = np.array([state])
    ended, result = GAME.outcome(row)
    sign = 1 - 2 * int(GAME.to_play(row)[0])
    if ended[0]:
        return sign * float(result[0]), 0
    below = []
    for action in np.flatnonzero(GAME.legal(row)[0]):
        value, plies = distance(tuple(GAME.step(row, np.array([action]))[0].tolist()))
        below.append((-value, plies + 1))
    best = max(value for value, _ in below)
    plies = [plies for value, plies in below if value == best]
    return best, min(plies) if best == 1 else max(plies)


def solved(game: Game, states: np.ndarray, readouts: int, seed: int = 0) -> Search:
    options = SearchOptions(readouts=readouts, solver=True)
    search = Search(game, ArbitraryNetwork(game, seed, scale=0.3), options, len(states))
    search.begin(np.arange(len(states)), states)
    search.run()
    return search


def test_proven_values_equal_minimax_in_every_position() -> None:
    stones = np.isnan(POSITIONS.action_values).sum(axis=1)
    late = POSITIONS.states[stones >= 3][::7]
    few_left = stones[stones >= 3][::7] >= 5
    values = np.nanmax(POSITIONS.action_values, axis=1)
    exact = {state.tobytes(): value for state, value in zip(POSITIONS.states, values, strict=True)}
    search = solved(GAME, late, readouts=3000)
    result = search.result(np.arange(len(late)))
    assert result.proven[few_left].all()  # with four moves to go there are no more than 65 lines
    for row in np.flatnonzero(result.proven):
        assert result.values[row] == exact[late[row].tobytes()]
        # Every move in the policy keeps the value.
        for action in np.flatnonzero(result.policies[row]):
            chosen = np.flatnonzero((POSITIONS.states == late[row]).all(axis=1))[0]
            assert POSITIONS.action_values[chosen, action] == result.values[row]


def test_every_settled_node_of_a_tree_equals_minimax() -> None:
    search = solved(GAME, GAME.initial(1), readouts=2500, seed=3)
    trees = search.trees
    nodes, states = trees.nodes[: trees.progress[0]["num_nodes"]], trees.states
    settled = np.flatnonzero(nodes["settled"])
    assert len(settled) > 200
    for node in settled:
        assert nodes[node]["value"] == distance(tuple(states[node].tolist()))[0]


def test_every_settled_node_is_as_far_from_the_end_as_its_best_settled_child() -> None:
    trees, compared = solved(GAME, POSITIONS.states[::10], readouts=500).trees, 0
    in_use = np.arange(len(trees.nodes)) % slots(trees)[0] < trees.progress["num_nodes"].repeat(slots(trees)[0])
    for node in trees.nodes[in_use & (trees.nodes["settled"] == 1)]:
        if not node["num_edges"]:
            continue
        children = trees.edges["child"][node["first_edge"] : node["first_edge"] + node["num_edges"]]
        below = trees.nodes[children[children != NO_CHILD]]
        plies = below["distance"][(below["settled"] == 1) & (below["value"] == -node["value"])]
        assert node["distance"] == 1 + (plies.min() if node["value"] == 1 else plies.max())
        compared += len(set(plies.tolist())) > 1
    assert compared > 20


def test_a_proven_root_stops_early_and_counts_what_it_spent() -> None:
    winning = POSITIONS.states[np.nanmax(POSITIONS.action_values, axis=1) == 1][::50]
    search = solved(GAME, winning, readouts=1000)
    spent = search.result(np.arange(len(winning))).visits.sum(axis=1)
    assert (spent < 1000).mean() > 0.9
    assert search.counters.readouts == spent.sum()


def test_the_fastest_win_and_the_slowest_loss_are_preferred() -> None:
    # The player to move at a multiple of four loses, and the moves differ only in their distance to the end.
    game = PlainRules(games.Nim(heap=9))
    for heap, slowest in ((4, 2), (8, 4)):
        states = np.array([[heap, 0]])
        search = solved(game, states, readouts=5000)
        result = search.result(np.array([0]))
        assert result.proven[0]
        assert result.values[0] == -1.0
        assert search.trees.nodes[0]["distance"] == slowest
    states = np.array([[7, 0]])
    result = solved(game, states, readouts=5000).result(np.array([0]))
    assert result.values[0] == 1.0
    assert result.best[0] == 2  # take three, leave four


def test_the_policy_avoids_moves_that_are_proven_to_lose() -> None:
    # O must block at c3: everything else loses at once, and is proven to within a few readouts.
    state = np.array([[0b000_010_001, 0b000_000_010]])
    result = solved(GAME, state, readouts=60).result(np.array([0]))
    assert result.best[0] == 8
    losing = [action for action in np.flatnonzero(GAME.legal(state)[0]) if action != 8]
    visited = [action for action in losing if result.visits[0, action] > 8]
    assert not result.policies[0, visited].any()


def test_results_are_proven_correctly_where_players_move_twice() -> None:
    game = PlainRules(games.MovesTwice(heap=8))

    @cache
    def value(heap: int, ply: int) -> float:
        state = np.array([[heap, ply]])
        sign = 1 - 2 * int(game.to_play(state)[0])
        ended, result = game.outcome(state)
        if ended[0]:
            return float(result[0])
        below = [value(heap - 1 - action, ply + 1) for action in np.flatnonzero(game.legal(state)[0])]
        return sign * max(sign * each for each in below)

    states = np.array([[heap, ply] for heap in range(1, 9) for ply in range(4)])
    options = SearchOptions(readouts=4000, solver=True)
    search = Search(game, Uniform(game), options, len(states))
    search.begin(np.arange(len(states)), states)
    search.run()
    result = search.result(np.arange(len(states)))
    assert result.proven.all()
    signs = 1 - 2 * game.to_play(states).astype(int)
    assert result.values.tolist() == [sign * value(*state) for sign, state in zip(signs, states.tolist(), strict=True)]


def test_a_proven_position_that_becomes_the_root_is_played_without_readouts() -> None:
    winning = POSITIONS.states[np.nanmax(POSITIONS.action_values, axis=1) == 1][-40:]
    for position in winning[:, None]:
        state = position
        search = solved(GAME, state, readouts=3000)
        while True:
            result = search.result(np.array([0]))
            assert result.proven[0]
            state = GAME.step(state, result.best)
            ended, _ = GAME.outcome(state)
            if ended[0]:
                break
            before = search.counters.readouts
            search.move(np.array([0]), result.best)
            search.begin(np.array([0]), state)
            search.run()
            if search.trees.progress[0]["num_nodes"] > 1:
                assert search.counters.readouts == before
        assert GAME.outcome(state)[1][0] != 0


def test_a_proven_draw_is_preferred_to_a_move_that_looks_worse() -> None:
    checked = 0
    for seed in range(4):
        search = solved(GAME, POSITIONS.states[::3], readouts=60, seed=seed)
        result = search.result(np.arange(len(search.trees.progress)))
        for tree in np.flatnonzero(~result.proven):
            first = int(search.trees.nodes[tree * slots(search.trees)[0]]["first_edge"])
            edges = search.trees.edges[first : first + int((result.priors[tree] > 0).sum())]
            known = edges[edges["proof"] == PROVEN]
            if len(known):
                best = edges[edges["action"] == result.best[tree]][0]
                checked += result.visits[tree, result.best[tree]] < result.visits[tree].max()
                assert best["total"] / max(1, best["visits"]) >= (known["total"] / np.maximum(1, known["visits"])).max()
    assert checked  # a rarely visited one was preferred


def test_a_proven_edge_has_its_exact_value_and_is_not_explored() -> None:
    search = solved(GAME, POSITIONS.states[::7], readouts=300)
    edges = search.trees.edges
    known = edges[edges["proof"] == PROVEN]
    assert len(known) > 1000
    children = search.trees.nodes[known["child"]]
    assert children["settled"].all()
    assert (np.abs(known["total"]) == np.abs(children["value"]) * known["visits"]).all()


# ---------------------------------------------------------------- proven losses, and exact values


CASES: dict[str, Game] = {
    "tictactoe": GAME,
    "tictactoe with known results": knows_the_end.GAME,
    "connect four": ConnectFour(),
    "nim of double moves": PlainRules(games.MovesTwice(heap=12)),
}


def root_edges(search: Search) -> Iterator[tuple[int, np.ndarray]]:
    """The edges of each unproven root."""
    result = search.result(np.arange(len(search.trees.progress)))
    for tree in np.flatnonzero(~result.proven):
        root = search.trees.nodes[tree * slots(search.trees)[0]]
        yield int(tree), search.trees.edges[root["first_edge"] : root["first_edge"] + root["num_edges"]]


@pytest.mark.parametrize("leaves", [1, 4])
@pytest.mark.parametrize("root", ["puct", "gumbel"])
@pytest.mark.parametrize("name", CASES)
def test_no_proven_loss_is_played_if_there_is_an_alternative(name: str, root: Root, leaves: int) -> None:
    game, checked = CASES[name], 0
    for seed in range(3):
        for readouts in (1, 2, 3, 4, 5, 6, 7, 8, 32):
            options = SearchOptions(
                readouts=readouts, solver=True, root=root, known_results=game is knows_the_end.GAME, cache_megabytes=0
            )
            states = random_states(game, 60, seed)
            network = ArbitraryNetwork(game, seed, scale=3.0 if seed else 300.0)  # of which most priors are 0
            search = Search(game, network, options, len(states), leaves)
            search.begin(np.arange(60), states, np.arange(60, dtype=np.uint64))
            search.run()
            result = search.result(np.arange(60))
            for tree, edges in root_edges(search):
                losing = edges["action"][edges["proof"] == LOST]
                if len(losing) == len(edges):
                    continue
                checked += len(losing)
                assert result.best[tree] not in losing
                assert not result.policies[tree, losing].any()
                assert result.policies[tree].sum() == pytest.approx(1)
    assert checked > 20


@pytest.mark.parametrize("leaves", [2, 8, 32])
@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_a_proven_result_is_exact_with_several_leaves_under_way(root: Root, leaves: int) -> None:
    states = POSITIONS.states[::9]
    options = SearchOptions(readouts=200, solver=True, root=root)
    search = Search(GAME, ArbitraryNetwork(GAME, 1, scale=0.3), options, len(states), leaves)
    search.begin(np.arange(len(states)), states)
    search.run()
    edges, nodes = search.trees.edges, search.trees.nodes
    proven = edges[(edges["proof"] != OPEN) & (edges["visits"] > 0)]
    assert len(proven) > 1000
    children = nodes[proven["child"]]
    movers = nodes["to_play"][children["parent"]]
    exact = np.where(children["to_play"] == movers, children["value"], -children["value"])
    assert (proven["total"] / proven["visits"] == exact).all()


def test_the_best_of_several_proven_results_is_played() -> None:
    # The first edge whose result is no less than the mean value of the most visited one is not the best one.
    game = PlainRules(games.Results(0.25, 0.5, 0.75))
    for root in ("puct", "gumbel"):
        options = SearchOptions(readouts=4, cpuct=20, solver=True, root=root)  # type: ignore[arg-type]
        search = Search(game, Uniform(game), options, 1)
        search.begin(np.arange(1), game.initial(1))
        search.run()
        result = search.result(np.arange(1))
        assert not result.proven[0]
        assert (result.visits[0] == 1).all()
        assert result.best[0] == 2
