"""Pig solved by value iteration (Neller and Presser 2004): the exact value of rolling and of holding in each position.

The positions that are checked are those that two players who play best can meet.

Shape letters: `T` the points that win.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from pig.game import GAME
from pig.rules import HOLD, ROLL
from seraphim.game import Array
from seraphim.game.loading import PositionSet, Split
from seraphim.jit import kernel

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
def solve(target: int) -> Values:
    """Return the values of Pig to `target` points; they mean nothing where own points and those of the turn win."""
    values = Values(np.zeros((target, target, target)), np.full((target, target, target), -1.0))
    _iterate(*values)
    return values


@kernel
def _iterate(roll: Array, hold: Array) -> None:
    # Points only grow, so the highest come first, and the same points of both players in either order together.
    target = len(roll)
    for total in range(2 * target - 2, -1, -1):
        for own in range(max(0, total - target + 1), total // 2 + 1):
            change = 1.0
            while change >= _SETTLED:
                change = max(_turn(roll, hold, own, total - own), _turn(roll, hold, total - own, own))


@kernel
def _turn(roll: Array, hold: Array, own: int, other: int) -> float:
    # Improves the values of a turn, and returns the largest change.
    largest, lost = 0.0, 1.0 - max(roll[other, own, 0], hold[other, own, 0])  # after a 1 the opponent moves
    for turn in range(len(roll) - own - 1, -1, -1):
        if turn > 0:
            hold[own, other, turn] = 1.0 - max(roll[other, own + turn, 0], hold[other, own + turn, 0])
        chance = lost
        for points in range(turn + 2, turn + 7):  # holding at once, where that wins
            wins = own + points >= len(roll)
            chance += 1.0 if wins else max(roll[own, other, points], hold[own, other, points])
        largest = max(largest, abs(chance / 6 - roll[own, other, turn]))
        roll[own, other, turn] = chance / 6
    return largest


def met(target: int) -> Array:
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
    places = np.random.default_rng(0).permutation(np.argwhere(met(GAME.target)))
    values = solve(GAME.target)
    states = np.concatenate([places, np.zeros((len(places), 2), np.int64)], axis=1)  # player 0 is to move
    action_values = np.empty((len(places), 2), np.float32)
    for action, chances in ((ROLL, values.roll), (HOLD, values.hold)):
        action_values[:, action] = 2 * chances[tuple(places.T)] - 1
    action_values[places[:, 2] == 0, HOLD] = np.nan
    return [PositionSet("met by best play", states, action_values, sampled=False)]


def perfect_actions(states: Array, _seconds: float | None = None) -> Array:
    """Return the best actions in unfinished positions int64 [P, 5], bool [P, 2]."""
    values, turn, players = solve(GAME.target), states[:, 2], states[:, [3]]
    own, other = (np.take_along_axis(states, each, axis=1)[:, 0] for each in (players, 1 - players))
    target = len(values.roll)
    places, wins = (own, other, np.minimum(turn, target - 1)), own + turn >= target
    ahead = values.roll[places] - values.hold[places]  # of rolling
    return np.stack([~wins & (ahead > -_SETTLED), wins | (ahead < _SETTLED)], axis=1)
