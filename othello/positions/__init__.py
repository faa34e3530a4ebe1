"""Solved endgames of Othello, in sets of 12, 16 and 20 empty cells.

There are three sets of each size, without a position in common, symmetric ones included: see
`seraphim.game.solved_files`. `othello.positions.generator` made all.

A line of a file is one position with at least two legal moves: the moves that lead to it, written together; and behind
spaces each legal move with its result under best play for the player who makes it, `+` a win, `=` a draw, `-` a loss:

    f5f6e6f4e3c5c4... a1+ b6- g2=
"""

from pathlib import Path

import numpy as np

from othello.game import GAME
from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.loading import MoveResults
from seraphim.game.solved_files import PositionFiles

FOLDER = Path(__file__).parent
EMPTY_CELLS = {"12-empty": 12, "16-empty": 16, "20-empty": 20}
"""The empty cells of each set, by name."""

SIGNS = {"+": 1.0, "=": 0.0, "-": -1.0}


def read_scores(_line: list[int], scores: list[str]) -> MoveResults:
    """See `PositionFiles.read_scores`."""
    results = np.full(GAME.num_actions, np.nan, np.float32)
    for score in scores:
        move, sign = score[:-1], score[-1:]
        if sign not in SIGNS:
            raise GameError(f"expected a move and one of + = -, not {score!r}")
        results[GAME.parse_action(move)] = SIGNS[sign]
    return MoveResults(results, np.full(GAME.num_actions, np.nan, np.float32))


def format_position(moves: str, results: Array) -> str:
    """Return the line of a position, from the results [A] of its moves."""
    signs = {value: sign for sign, value in SIGNS.items()}
    legal = np.flatnonzero(~np.isnan(results)).tolist()
    return " ".join([moves, *(f"{GAME.action_label(action)}{signs[float(results[action])]}" for action in legal)])


FILES = PositionFiles(GAME, FOLDER, tuple(EMPTY_CELLS), read_scores)
position_sets, states_outside_test = FILES.position_sets, FILES.states_outside_test
