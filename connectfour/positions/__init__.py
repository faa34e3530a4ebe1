"""Solved positions of connect four, in the six kinds of sets that solvers are commonly compared on.

There are three sets of each kind, without a position in common, mirror images included. Those in `validation/` are for
choosing: learning and experiments are checked on them. Those in `test/` are for reported figures only. Those in
`former/` were test sets until experiments had been compared on them; they are kept for the figures of these.
`connectfour.positions.generator` made all. A kind is named by the moves that were played, begin (at most 14), middle
(at most 28) or end, and by the plies that remain under best play, easy (less than 14), medium (less than 28) or hard.

A line of a file is one position: the moves that lead to it, as digits from 1 to 7; a space; and the scores of its seven
moves, from the left to the right column, with spaces between them:

    6413325774 -6 -8 9 0 -4 -6 .

A score n > 0 says that the player who makes the move wins with the n-th ply from here, the move itself being the first;
-n, that this player loses with the n-th ply; 0 is a draw, and `.` a full column. Both play the fastest win and the
slowest loss.
"""

from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from connectfour.game import COLUMNS, DIGITS, GAME, states_from_moves
from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.features import PositionSet, Split

FOLDER = Path(__file__).parent
NAMES = ("begin-easy", "begin-medium", "begin-hard", "middle-easy", "middle-medium", "end-easy")
FULL_COLUMN = "."


class SolvedPositions(NamedTuple):
    """The positions of one file; the arrays are read-only."""

    name: str
    moves: tuple[str, ...]  # P games, in digits
    states: Array  # int64 [P, 2]
    results: Array  # float32 [P, A]: exact, for the player to move: 1, 0 or -1; NaN where illegal
    plies: Array  # float32 [P, A]: to the end under best play, the move included; NaN where illegal

    def lines(self) -> list[list[int]]:
        """Return the actions of the games."""
        return [[DIGITS.index(digit) for digit in game] for game in self.moves]

    def graded_values(self) -> Array:
        """Return values float32 [P, A] in [-1, 1] that prefer fast wins and slow losses; NaN where illegal."""
        return self.results * (1 - self.plies / 100)


def position_sets() -> list[PositionSet]:
    """Return the validation sets, in which a mistake is a move that gives the result away (the weak error)."""
    return _position_sets("validation", strong=False)


def strong_position_sets() -> list[PositionSet]:
    """Return the validation sets, in which a mistake is also a slower win or a faster loss (the strong error)."""
    return _position_sets("validation", strong=True)


def test_position_sets() -> list[PositionSet]:
    """Return the test sets, as `position_sets` returns the validation sets."""
    return _position_sets("test", strong=False)


def strong_test_position_sets() -> list[PositionSet]:
    """Return the test sets, as `strong_position_sets` returns the validation sets."""
    return _position_sets("test", strong=True)


def _position_sets(split: Split, *, strong: bool) -> list[PositionSet]:
    sets = []
    for name in NAMES:
        solved = read_positions(name, split)
        label = f"test/{name}" if split == "test" else name  # so that figures on test sets are recognized
        values = solved.graded_values() if strong else solved.results
        sets.append(PositionSet(label, solved.states, values, solved.lines()))
    return sets


def states_outside_test(name: str) -> Array:
    """Return the states int64 [P, 2] that a test set leaves out: of the validation set and of the former test set."""
    return np.concatenate([read_positions(name, split).states for split in ("validation", "former")])


@cache
def read_positions(name: str, split: Split | Literal["former"] = "validation") -> SolvedPositions:
    """Return the set of a kind.

    Raises:
        GameError: there is no such kind, or the file of the set is damaged.
    """
    if name not in NAMES:
        raise GameError(f"there is no set {name!r} of solved positions: expected one of {', '.join(NAMES)}")
    return parse_positions(name, (FOLDER / split / f"{name}.txt").read_text())


def parse_positions(name: str, text: str) -> SolvedPositions:
    """Return the positions that the lines of `text` describe, in the format of the module's docstring.

    Raises:
        GameError: a line has another format, or its scores are not those of the legal moves.
    """
    lines = text.splitlines()
    fields = [line.split(" ") for line in lines]
    for number, parts in enumerate(fields, start=1):
        if len(parts) != 1 + COLUMNS:
            raise GameError(f"{name}, line {number}: expected moves and {COLUMNS} scores, not {lines[number - 1]!r}")
    try:
        scores = np.array(
            [[np.nan if part == FULL_COLUMN else int(part) for part in parts[1:]] for parts in fields], np.float32
        ).reshape(-1, COLUMNS)
    except ValueError as error:
        raise GameError(f"{name}: a score is not a number: {error}") from None
    moves = tuple(parts[0] for parts in fields)
    states = states_from_moves(moves)
    wrong = (np.isnan(scores) == GAME.legal(states)).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise GameError(f"{name}, line {row + 1}: expected a score for each legal move alone, not {lines[row]!r}")
    results = np.sign(scores)
    remaining = GAME.max_plies - np.array([len(game) for game in moves], np.float32).reshape(-1, 1)
    plies = np.where(results == 0, remaining, np.abs(scores))
    for array in (states, results, plies):
        array.flags.writeable = False
    return SolvedPositions(name, moves, states, results, plies)


def format_position(moves: str, results: Array, plies: Array) -> str:
    """Return the line of a position: the inverse of `parse_positions`, for the scores [A] of one position."""
    scores = [
        FULL_COLUMN if np.isnan(result) else str(int(result * n)) for result, n in zip(results, plies, strict=True)
    ]
    return " ".join([moves, *scores])
