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


def with_least_luck(game: Game, positions: Positions) -> Positions:
    """Return positions with the results without luck that vary least in place of those that self-play recorded.

    Self-play took all luck out, as the network saw it, and a network that knows little adds more noise by that than it
    takes away. Luck is not correlated with what came before, so each is weighted by its own regression coefficient
    (control variates), one for all that come after about as many moves. The mean stays that of the results.
    """
    ends, count = np.flatnonzero(positions.ends), len(positions.ends)
    of_game = np.searchsorted(ends, np.arange(count))
    signs = np.where(game.to_play(positions.states) == 1, -1.0, 1.0)
    results, found = signs * positions.values, signs * positions.root_values
    luck = np.append(found[1:], 0.0) - found
    luck[ends] = (results - found)[ends]
    ages = np.log2(positions.plies + 1).astype(np.int64)
    products, squares = (np.bincount(ages, each * luck * positions.value_weights) for each in (results, luck))
    weighted = (products / np.maximum(squares, 1e-9)).clip(0, 1)[ages] * luck
    to_come = np.cumsum(weighted[::-1])[::-1]
    to_come -= np.append(to_come, 0.0)[ends + 1][of_game]
    values = np.clip(signs * (results - to_come), -1, 1).astype(np.float32)
    return positions._replace(root_values=np.where(positions.value_weights > 0, values, positions.root_values))


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
