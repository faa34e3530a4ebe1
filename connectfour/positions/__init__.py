"""Solved positions of connect four, in the six kinds of sets that solvers are commonly compared on.

There are three sets of each kind, without a position in common, mirror images included: see
`seraphim.game.solved_files`. `connectfour.positions.generator` made all. A kind is named by the moves that were played,
begin (at most 14), middle (at most 28) or end, and by the plies that remain under best play, easy (less than 14),
medium (less than 28) or hard.

A line of a file is one position: the moves that lead to it, as digits from 1 to 7; a space; and the scores of its seven
moves, from the left to the right column, with spaces between them:

    6413325774 -6 -8 9 0 -4 -6 .

A score n > 0 says that the player who makes the move wins with the n-th ply from here, the move itself being the first;
-n, that this player loses with the n-th ply; 0 is a draw, and `.` a full column. Both play the fastest win and the
slowest loss.
"""

import re
from pathlib import Path

import numpy as np

from connectfour.game import GAME
from connectfour.rules import COLUMNS
from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.loading import MoveResults
from seraphim.game.solved_files import PositionFiles

FOLDER = Path(__file__).parent
NAMES = ("begin-easy", "begin-medium", "begin-hard", "middle-easy", "middle-medium", "end-easy")
FULL_COLUMN = "."
_SCORE = re.compile("0|-?[1-9][0-9]?")


def read_scores(line: list[int], scores: list[str]) -> MoveResults:
    """See `PositionFiles.read_scores`."""
    if len(scores) != COLUMNS:
        raise GameError(f"expected moves and {COLUMNS} scores, not {len(scores)}")
    plies = GAME.max_plies - len(line)
    for score in scores:
        if score != FULL_COLUMN and not (_SCORE.fullmatch(score) and abs(int(score)) <= plies):
            raise GameError(f"a score is not a number of at most {plies} plies: {score!r}")
    values = np.array([np.nan if score == FULL_COLUMN else int(score) for score in scores], np.float32)
    return MoveResults(np.sign(values), np.where(values == 0, plies, np.abs(values)))


def format_position(moves: str, results: Array, plies: Array) -> str:
    """Return the line of a position, from the results and plies [A] of its moves."""
    scores = [
        FULL_COLUMN if np.isnan(result) else str(int(result * n)) for result, n in zip(results, plies, strict=True)
    ]
    return " ".join([moves, *scores])


FILES = PositionFiles(GAME, FOLDER, NAMES, read_scores)
position_sets, states_outside_test = FILES.position_sets, FILES.states_outside_test
