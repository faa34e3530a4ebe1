"""Pig solved by value iteration (Neller and Presser 2004): the exact value of rolling and of holding in each position.

Shape letters: `T` the points that win.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from seraphim.game import Array

_SETTLED = 1e-13  # the most that an iteration changes what has settled


class Values(NamedTuple):
    """The chance that the player to move wins, float64 [T, T, T], by own points, the opponent's, and the turn's."""

    roll: Array
    hold: Array  # below 0 where there is nothing to hold

    @property
    def best(self) -> Array:
        """Under best play."""
        return np.maximum(self.roll, self.hold)


@cache
def solve(target: int = 100) -> Values:
    """Return the values of Pig to `target` points; they mean little where own points and those of the turn win."""
    own, other, turn = np.ogrid[:target, :target, :target]
    wins = own + turn >= target
    best = np.full((target, target, target), 0.5)
    while True:
        lost = 1 - best[:, :, 0].T[:, :, None]  # after a 1 the opponent moves
        roll = lost / 6 + sum(_after(best, points) for points in range(2, 7)) / 6
        hold = np.where(turn > 0, 1 - best[other, np.minimum(own + turn, target - 1), 0], -1.0)
        values = Values(roll, np.where(wins, 1.0, hold))
        change = abs(values.best - best)[~np.broadcast_to(wins, best.shape)].max()
        best = np.where(wins, 1.0, values.best)
        if change < _SETTLED:
            return values


def _after(best: Array, points: int) -> Array:
    # The chance of winning after a roll that is no 1: by holding at once, where that wins.
    target = len(best)
    later = np.minimum(np.arange(target) + points, target - 1)
    own, _, turn = np.ogrid[:target, :target, :target]
    return np.where(own + turn + points >= target, 1.0, best[:, :, later])
