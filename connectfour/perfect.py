"""Perfect play by the exact solver: the fastest wins, draws, and the slowest losses."""

import math
from functools import cache

import numpy as np

from connectfour.game import COLUMNS, GAME
from connectfour.solver import MoveScores, Solver
from seraphim.game import Array

_TABLE_MEGABYTES = 256


def perfect_actions(states: Array, seconds: float | None = None) -> Array:
    """Return the actions that win as fast or lose as slowly as possible, bool [P, A].

    With a dozen stones on the board that takes a moment, with few of them minutes.

    Args:
        states: unfinished positions, int64 [P, 2].
        seconds: how long each of them may take; after that, what is unknown counts as a draw. None takes as long as it
            takes.

    Raises:
        GameError: play does not lead to a state, or the game is over in it.
    """
    best = np.zeros((len(states), COLUMNS), np.bool_)
    # A solver with endless time still looks at the clock, so that Ctrl-C ends it; one without a limit does not.
    limit = math.inf if seconds is None else seconds
    for row, legal in enumerate(GAME.legal(states)):
        best[row, legal] = _best(_solver().solve_moves(states[row], max_seconds=limit), legal)
    return best


@cache
def _solver() -> Solver:
    return Solver(_TABLE_MEGABYTES)


def _best(scores: MoveScores, legal: Array) -> Array:
    # Which of the legal actions, bool [K]; one of unknown result counts as a draw.
    results, plies = np.nan_to_num(scores.results[legal]), scores.plies[legal]
    best = results == results.max()
    known = plies[best & ~np.isnan(plies)]
    if results.max() and len(known):
        best &= np.isnan(plies) | (plies == (known.min() if results.max() > 0 else known.max()))
    return best
