"""Tic-tac-toe for three solved: what each player is sure of, and what they can get if others break ties their way.

The bounds, and what a mistake is, are those of `seraphim.game.exhaustive`.
"""

from functools import cache

from seraphim.game import Array
from seraphim.game.exhaustive import Solution, solve
from seraphim.game.loading import PositionSet, Split
from threes.game import GAME


@cache
def solution() -> Solution:
    """Return the game, solved."""
    return solve(GAME)


def position_sets(split: Split = "validation") -> list[PositionSet]:
    """Return all unfinished positions in a random order, the same each time; nothing is left for the split `test`."""
    return [] if split == "test" else solution().position_sets(split)


def perfect_actions(states: Array, _seconds: float | None = None) -> Array:
    """Return which actions are no mistakes in unfinished, reachable positions int64 [P, 3], bool [P, A]."""
    return solution().perfect_actions(states)
