"""Players: functions that choose an action in each of many positions. Deterministic, without noise.

Knows the search; knows nothing of matches, files or people.
"""

from collections.abc import Callable

import numpy as np

from seraphim.game import Array, Game
from seraphim.inference import Inference
from seraphim.search.options import SearchOptions
from seraphim.search.search import Search

Choose = Callable[[Array], Array]
"""Chooses an action in each of some unfinished positions: int64 [P, W] -> int [P]."""

MOST_TREES = 1024


def search_player(game: Game, inference: Inference, options: SearchOptions) -> Choose:
    """Return the player that searches, and plays the most visited action (the first of equals)."""

    def choose(states: Array) -> Array:
        actions = np.empty(len(states), np.int32)
        search = Search(game, inference, options, min(len(states), MOST_TREES))
        for start in range(0, len(states), MOST_TREES):
            chunk = states[start : start + MOST_TREES]
            trees = np.arange(len(chunk))
            search.reset(trees)
            search.begin(trees, chunk)
            search.run()
            actions[start : start + MOST_TREES] = search.result(trees).best
        return actions

    return choose


def raw_player(game: Game, inference: Inference) -> Choose:
    """Return the player that does not search, and plays the action of the highest prior (the first of equals)."""

    def choose(states: Array) -> Array:
        logits, _ = inference.infer(game.observe(states))
        return np.where(game.legal(states), logits, -np.inf).argmax(axis=1)

    return choose
