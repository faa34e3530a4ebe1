"""What the value head learns: the part of a result that a game has not banked yet."""

from typing import NamedTuple

import numpy as np

from seraphim.game import Game
from seraphim.game.features import features_of, still_to_come
from seraphim.records.examples import Positions

_ROUNDING = 1e-6


class Targets(NamedTuple):
    """Positions with the targets of training in place of their results."""

    positions: Positions
    clipped: float
    """The share of positions whose target was beyond ±1: where there are many, the game's `value_scale` is too small.
    """


def to_targets(game: Game, positions: Positions) -> Targets:
    """Return positions with what their values should be, and with 0 in the words of what is banked.

    Positions that differ in nothing else are then the same. Of a game that banks nothing, all stay as they are; where
    results are points, the squared error of a value is in points.
    """
    features = features_of(game)
    if features.banked is None and features.value_scale is None:
        # Where most results are a fraction of the largest, the policy's loss would dwarf that of a value in [-1, 1].
        if features.points is not None:
            positions = positions._replace(value_weights=positions.value_weights * np.float32(features.points**2))
        return Targets(positions, 0.0)
    states = positions.states.copy()
    values, root_values = (still_to_come(game, states, each) for each in (positions.values, positions.root_values))
    largest = np.abs(values).reshape(len(values), -1).max(axis=1, initial=0)
    beyond = (largest > 1 + _ROUNDING) & (positions.value_weights > 0)
    states[:, game.state_words - (features.bank_words or 0) :] = 0
    values, root_values = np.clip(values, -1, 1), np.clip(root_values, -1, 1)
    changed = positions._replace(values=values, root_values=root_values, states=states)
    return Targets(changed, float(beyond.mean()))
