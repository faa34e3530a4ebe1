"""Perfect play in endgames by the exact solver; moves that win are equal, by however many stones."""

import math
from functools import cache

import numpy as np

from othello.game import GAME, count_empty
from othello.solver import EndgameSolver
from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.loading import MoveResults
from seraphim.game.solved import best_moves

MOST_EMPTY = 30  # cells, of positions that the solver tries
_TABLE_MEGABYTES = 128


def perfect_actions(states: Array, seconds: float | None = None) -> Array:
    """Return the actions that keep the exact result, bool [P, A].

    That takes milliseconds with 16 empty cells, seconds with 20, and about three times as long with each one more.

    Args:
        states: unfinished positions, int64 [P, 2].
        seconds: time for each of them at most; after that, an unknown result counts as a draw. None sets no limit.

    Raises:
        GameError: a position has more than 30 empty cells and no time was given, or the game is over in it.
    """
    if seconds is None and (count_empty(states) > MOST_EMPTY).any():
        raise GameError(
            f"Othello is solved with at most {MOST_EMPTY} empty cells: give the solver a time, such as solver:1"
        )
    best = np.zeros((len(states), GAME.num_actions), np.bool_)
    for row, state in enumerate(states):
        found = action_results(state, math.inf if seconds is None else seconds)
        legal = GAME.legal(state[None])[0]
        best[row, legal] = best_moves(np.nan_to_num(found.results[legal]), found.plies[legal])
    return best


def action_results(state: Array, seconds: float) -> MoveResults:
    """Return the results of the moves of an unfinished position int64 [2] that are found in `seconds`.

    The plies are not known. With more than 30 empty cells nothing is found, and no time spent.

    Raises:
        GameError: the game is over in this state.
    """
    if count_empty(state[None])[0] > MOST_EMPTY:
        unknown = np.full(GAME.num_actions, np.nan, np.float32)
        return MoveResults(unknown, unknown)
    return _solver().solve_moves(state, seconds)


@cache
def _solver() -> EndgameSolver:
    return EndgameSolver(_TABLE_MEGABYTES)
