"""The search with three players, each of whom wants the most for themselves: the naive one, and the compiled one."""

from typing import Any

import numpy as np
import pytest
from three_players import Banked, Dice, Even, Guesses, Pile

from seraphim.game import CHANCE, Array
from seraphim.game.features import num_columns
from seraphim.options import Leaf, Root, SearchOptions
from seraphim.search import naive
from seraphim.search.search import Search

GAME: Any = Pile()
EVEN: Any = Even()


def best_results(game: Any, state: Array) -> Array:
    """What each player gets if all take what is best for themselves, by looking at every game."""
    ended, results = game.outcome(state[None])
    if ended[0]:
        return results[0]
    after = [game.step(state[None], np.array([action]))[0] for action in np.flatnonzero(game.legal(state[None])[0])]
    return max((best_results(game, each) for each in after), key=lambda found: found[state[1]])


@pytest.mark.parametrize("pile", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("player", [0, 1, 2])
def test_results_are_proven_for_each_player(player: int, pile: int) -> None:
    state = np.array([pile, player])
    proven = naive.exact(naive.search(GAME, EVEN, state, SearchOptions(readouts=600, root="puct")))
    assert proven is not None
    assert proven[0].tolist() == best_results(GAME, state).tolist()


@pytest.mark.parametrize("root", ["puct", "gumbel"])
@pytest.mark.parametrize(("player", "pile"), [(0, 8), (1, 2), (2, 5)])
def test_without_proofs_values_approach_the_results_of_each_player(player: int, pile: int, root: Root) -> None:
    state, options = np.array([pile, player]), SearchOptions(readouts=600, root=root, solver=False)
    found = naive.values_of(naive.search(GAME, EVEN, state, options), options)
    assert len(found) == num_columns(GAME)
    assert found == pytest.approx(best_results(GAME, state), abs=0.25)


# ---------------------------------------------------------------- the compiled search


def starts(game: Any, piles: tuple[int, ...]) -> Array:
    words = game.state_words - 2
    return np.array([[pile, player, *[0] * words] for pile in piles for player in range(3)])


@pytest.mark.parametrize(
    ("root", "leaf", "solver", "cache"),
    [
        ("puct", "value", True, 0),
        ("puct", "playout", False, 1),
        ("gumbel", "value", False, 1),
        ("gumbel", "playout", True, 0),
    ],
)
@pytest.mark.parametrize("game", [Pile(), Dice(), Banked()], ids=lambda game: game.name)
def test_it_equals_the_naive_search(game: Any, root: Root, leaf: Leaf, solver: bool, cache: int) -> None:
    network, states = Guesses(2, 3), starts(game, (2, 5, 9))
    options = SearchOptions(readouts=60, root=root, leaf=leaf, solver=solver, cache_megabytes=cache)
    search, trees = Search(game, network, options, len(states)), np.arange(len(states))
    search.begin(trees, states)
    search.run()
    found, proven = search.result(trees), 0
    for tree, state in enumerate(states):
        node = naive.search(game, network, state, options)
        exact = naive.exact(node) if solver else None
        assert found.visits[tree].tolist() == naive.visits(node, 2).tolist()
        assert bool(found.proven[tree]) == (exact is not None)
        expected = naive.values_of(node, options) if exact is None else exact[0]
        assert found.by_player[tree].tolist() == pytest.approx(expected.tolist(), abs=1e-5)
        assert found.values[tree] == pytest.approx(expected[node.mover], abs=1e-5)
        proven += exact is not None
        if exact is None:
            assert found.best[tree] == naive.move_of(node, options).action
    assert (proven > 0) == solver


@pytest.mark.parametrize("game", [Pile(), Dice(), Banked()], ids=lambda game: game.name)
def test_a_tree_is_reused(game: Any) -> None:
    network, options = Guesses(2, 3), SearchOptions(readouts=40, root="puct", solver=False)
    search, tree, state = Search(game, network, options, 1), np.array([0]), starts(game, (12,))[:1]
    node: naive.Node | None = None
    while not game.outcome(state)[0][0]:
        if game.to_play(state)[0] != CHANCE:
            search.begin(tree, state)
            search.run()
            node, found = naive.search(game, network, state[0], options, root=node), search.result(tree)
            assert found.visits[0].tolist() == naive.visits(node, 2).tolist()
            assert found.by_player[0].tolist() == pytest.approx(naive.values_of(node, options).tolist(), abs=1e-5)
        search.move(tree, np.array([0]))
        state = game.step(state, np.array([0]))
        node = None if node is None else node.edges[0].child


@pytest.mark.parametrize("solver", [False, True])
@pytest.mark.parametrize("game", [Pile(), Dice()], ids=lambda game: game.name)
def test_totals_of_several_leaves_are_those_of_what_lies_below(game: Any, solver: bool) -> None:
    network, states = Guesses(2, 3), starts(game, (9, 14))
    options = SearchOptions(readouts=300, root="puct", solver=solver)
    search, trees = Search(game, network, options, len(states), leaves=8), np.arange(len(states))
    search.begin(trees, states)
    search.run()
    found, compared = search.trees, 0
    assert not found.edges["pending"].any()
    for node in np.flatnonzero(found.nodes["visits"] > 0):
        mover, first = found.nodes[node]["to_play"], found.nodes[node]["first_edge"]
        assert found.node_values[node, mover] == found.nodes[node]["value"]
        for edge in range(first, first + found.nodes[node]["num_edges"]):
            assert found.edge_totals[edge, mover] == pytest.approx(found.edges[edge]["total"])
            child = found.edges[edge]["child"]
            if child >= 0 and found.nodes[child]["settled"]:
                exact = found.edges[edge]["visits"] * found.node_values[child]
                assert found.edge_totals[edge].tolist() == pytest.approx(exact.tolist(), abs=1e-5)
                compared += 1
            elif child >= 0 and not found.nodes[child]["chance"] and game.name == "pile" and not solver:
                below = found.nodes[child]["first_edge"] + np.arange(found.nodes[child]["num_edges"])
                total = found.node_values[child] + found.edge_totals[below].sum(axis=0)
                assert found.edge_totals[edge].tolist() == pytest.approx(total.tolist(), abs=1e-4)
                compared += 1
    assert compared > 10
