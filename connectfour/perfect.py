"""Perfect play by the exact solver: the fastest wins, draws, and the slowest losses."""

import math
from functools import cache, lru_cache

import numpy as np

from connectfour.game import GAME
from connectfour.rules import COLUMNS
from connectfour.solver import Solver
from seraphim.game import Array
from seraphim.game.loading import MoveResults
from seraphim.game.solved import best_moves

_TABLE_MEGABYTES = 256
_MAX_REMEMBERED = 1 << 16  # positions


def perfect_actions(states: Array, seconds: float | None = None) -> Array:
    """Return the actions that win as fast or lose as slowly as possible, bool [P, A].

    That takes a moment with a dozen stones on the board, and minutes with few of them.

    Args:
        states: unfinished positions, int64 [P, 2].
        seconds: time for each of them at most; after that, an unknown result counts as a draw. None sets no limit.

    Raises:
        GameError: play cannot lead to a state, or the game is over in it.
    """
    # A solver with endless time still reads the clock, so that Ctrl-C ends it; one without a limit does not.
    limit = math.inf if seconds is None else seconds
    best = [_best_columns(first, second, limit) for first, second in states.tolist()]
    return np.array(best, np.bool_).reshape(-1, COLUMNS)


def action_results(state: Array, seconds: float) -> MoveResults:
    """Return the results and plies of the moves of an unfinished position int64 [2] that are found in `seconds`.

    Raises:
        GameError: play cannot lead to the state, or the game is over in it.
    """
    return _solver().solve_moves(state, max_seconds=seconds)


@lru_cache(_MAX_REMEMBERED)
def _best_columns(first: int, second: int, seconds: float) -> Array:
    # The best actions of one state, bool [A]. Positions of the opening recur in many games.
    state = np.array([first, second], np.int64)
    legal = GAME.legal(state[None])[0]
    best = np.zeros(COLUMNS, np.bool_)
    found = _solver().solve_moves(state, max_seconds=seconds)
    best[legal] = best_moves(np.nan_to_num(found.results[legal]), found.plies[legal])  # unknown results count as draws
    return best


@cache
def _solver() -> Solver:
    return Solver(_TABLE_MEGABYTES)
