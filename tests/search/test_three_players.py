"""The naive search with three players, each of whom wants the most for themselves."""

from typing import Any

import numpy as np
import pytest

from seraphim.game import Array
from seraphim.game.features import num_columns
from seraphim.options import Root, SearchOptions
from seraphim.search import naive


class Pile:
    """Three players in turn take one or two from a pile. Who takes the last wins; the next one after that is even."""

    name = "pile"
    num_players = 3
    num_actions = 2
    max_plies = 30

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
