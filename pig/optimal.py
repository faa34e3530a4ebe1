"""Pig solved by value iteration (Neller and Presser 2004): the exact value of rolling and of holding in each position.

The positions that are checked are those that two players who play best can meet.

Shape letters: `T` the points that win.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from pig.game import HOLD, ROLL
from seraphim.game import Array
from seraphim.game.loading import PositionSet, Split

_SETTLED = 1e-10  # the most that an iteration changes what has settled


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


def met(target: int = 100) -> Array:
    """Return which positions two players who play best can meet with a choice to make, bool [T, T, T]."""
    values = solve(target)
    own, _, turn = np.ogrid[:target, :target, :target]
    rolls = (values.roll >= values.hold) & (own + turn < target)
    found = np.zeros(rolls.shape, np.bool_)
    found[0, 0, 0], before = True, 0
    while before < (before := int(found.sum())):
        rolled, held = np.argwhere(found & rolls), np.argwhere(found & ~rolls)
        for points in range(2, 7):
            first, second, points_of_turn = (rolled + np.array([0, 0, points])).T
            goes_on = first + points_of_turn < target
            found[first[goes_on], second[goes_on], points_of_turn[goes_on]] = True
        found[rolled[:, 1], rolled[:, 0], 0] = True  # after a 1
        found[held[:, 1], held[:, 0] + held[:, 2], 0] = True
    return found


def position_sets(split: Split) -> list[PositionSet]:
    """Return the positions of `met` in a random order, the same each time; nothing is left for the split `test`."""
    if split == "test":
        return []
    places = np.random.default_rng(0).permutation(np.argwhere(met()))
    values = solve()
    states = np.concatenate([places, np.zeros((len(places), 2), np.int64)], axis=1)  # player 0 is to move
    action_values = np.empty((len(places), 2), np.float32)
    for action, chances in ((ROLL, values.roll), (HOLD, values.hold)):
        action_values[:, action] = 2 * chances[tuple(places.T)] - 1
    action_values[places[:, 2] == 0, HOLD] = np.nan
    return [PositionSet("met by best play", states, action_values, sampled=False)]


def perfect_actions(states: Array, _seconds: float | None = None) -> Array:
    """Return the best actions in unfinished positions int64 [P, 5], bool [P, 2]."""
    values, turn, players = solve(), states[:, 2], states[:, [3]]
    own, other = (np.take_along_axis(states, each, axis=1)[:, 0] for each in (players, 1 - players))
    target = len(values.roll)
    places, wins = (own, other, np.minimum(turn, target - 1)), own + turn >= target
    ahead = values.roll[places] - values.hold[places]  # of rolling
    return np.stack([~wins & (ahead > -_SETTLED), wins | (ahead < _SETTLED)], axis=1)


def _after(best: Array, points: int) -> Array:
    # The chance of winning after a roll that is no 1: by holding at once, where that wins.
    target = len(best)
    later = np.minimum(np.arange(target) + points, target - 1)
    own, _, turn = np.ogrid[:target, :target, :target]
    return np.where(own + turn + points >= target, 1.0, best[:, :, later])
