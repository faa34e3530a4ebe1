"""The naive search with three players, each of whom wants the most for themselves."""

from typing import Any

import numpy as np
import pytest

from seraphim.game import CHANCE, Array
from seraphim.game.features import num_columns
from seraphim.options import Leaf, Root, SearchOptions
from seraphim.search import naive
from seraphim.search.search import Search


class Pile:
    """Three players in turn take one or two from a pile. Who takes the last wins; the next one after that is even."""

    name = "pile"
    num_players = 3
    num_actions = 2
    max_plies = 30

    @property
    def state_words(self) -> int:
        """The pile, the player to move, what the die decides about, and what was taken."""
        return {"pile": 2, "dice": 3, "banked": 6}[self.name]

    def step(self, states: Array, actions: Array) -> Array:
        return np.stack([states[:, 0] - actions - 1, (states[:, 1] + 1) % 3], axis=1)

    def legal(self, states: Array) -> Array:
        return states[:, :1] > np.arange(2)

    def to_play(self, states: Array) -> Array:
        return states[:, 1].astype(np.int8)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        seats = (np.arange(3) - states[:, 1:]) % 3  # the winner is the last in turn
        return states[:, 0] == 0, np.where(seats == 2, 1.0, np.where(seats == 1, 0.0, -1.0)).astype(np.float32)

    def observe(self, states: Array) -> Array:
        return states[:, :1].astype(np.uint8)


class Even:
    """A network that knows nothing: a value of 0 for each player."""

    name = "even"

    def infer(self, observations: Array) -> tuple[Array, Array]:
        return np.zeros((len(observations), 2), np.float32), np.zeros((len(observations), 3), np.float32)


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
@pytest.mark.parametrize("pile", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("player", [0, 1, 2])
def test_without_proofs_values_approach_the_results_of_each_player(player: int, pile: int, root: Root) -> None:
    state, options = np.array([pile, player]), SearchOptions(readouts=600, root=root, solver=False)
    found = naive.values_of(naive.search(GAME, EVEN, state, options), options)
    assert len(found) == num_columns(GAME)
    assert found == pytest.approx(best_results(GAME, state), abs=0.25)


# ---------------------------------------------------------------- the compiled search


class Guesses:
    """A network of arbitrary outputs that follow from the observation."""

    name = description = "guesses"
    overlaps = False

    def __init__(self, num_actions: int, columns: int) -> None:
        self.shape = num_actions, columns

    def infer(self, observations: Array) -> tuple[Array, Array]:
        rows = observations.reshape(len(observations), -1)
        drawn = [np.random.default_rng(row.tolist()).uniform(-1, 1, sum(self.shape)) for row in rows]
        both = np.array(drawn, np.float32).reshape(-1, sum(self.shape))
        return both[:, : self.shape[0]].copy(), both[:, self.shape[0] :].copy()


class Dice(Pile):
    """The same, where a die decides in between how much goes: what is asked for, or twice as much."""

    name = "dice"
    num_chance_outcomes = 3  # of which the last is impossible

    def step(self, states: Array, actions: Array) -> Array:
        pile, player, asked = states.T
        is_chance = asked > 0
        left = np.where(is_chance, np.maximum(pile - asked * (actions + 1), 0), pile)
        return np.stack([left, np.where(is_chance, (player + 1) % 3, player), np.where(is_chance, 0, actions + 1)], 1)

    def legal(self, states: Array) -> Array:
        return (states[:, :1] > np.arange(2)) & (states[:, 2:3] == 0)

    def to_play(self, states: Array) -> Array:
        return np.where(states[:, 2] > 0, CHANCE, states[:, 1]).astype(np.int8)

    def chances(self, states: Array) -> Array:
        return np.where(states[:, 2:3] > 0, [0.75, 0.25, 0.0], 0.0)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        ended, results = super().outcome(states[:, :2])
        return ended & (states[:, 2] == 0), results


class Banked(Dice):
    """The same, where what was taken counts a little in the end."""

    name = "banked"
    bank_words = 3
    value_scale = 0.5

    def step(self, states: Array, actions: Array) -> Array:
        after = super().step(states[:, :3], actions)
        bank = states[:, 3:].copy()
        bank[np.arange(len(bank)), states[:, 1]] += states[:, 0] - after[:, 0]
        return np.concatenate([after, bank], axis=1)

    def banked(self, states: Array) -> Array:
        return (states[:, 3:] / 50).astype(np.float32)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        ended, results = super().outcome(states[:, :3])
        return ended, (0.5 * results + self.banked(states)).astype(np.float32)


def starts(game: Any, piles: tuple[int, ...]) -> Array:
    words = game.state_words - 2
    return np.array([[pile, player, *[0] * words] for pile in piles for player in range(3)])


@pytest.mark.parametrize("root", ["puct", "gumbel"])
@pytest.mark.parametrize(("leaf", "solver", "cache"), [("value", False, 1), ("value", True, 0), ("playout", True, 1)])
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
