"""Solved endgames of Othello, in sets of 12, 16 and 20 empty cells.

There are three sets of each size, without a position in common, symmetric ones included. Those in `validation/` are for
choosing: learning and experiments are checked on them. Those in `test/` are for reported figures only. Those in
`former/` were test sets until they had been looked at more than once. `othello.positions.generator` made all.

A line of a file is one position with at least two legal moves: the moves that lead to it, written together; and behind
spaces each legal move with its result under best play for the player who makes it, `+` a win, `=` a draw, `-` a loss:

    f5f6e6f4e3c5c4... a1+ b6- g2=
"""

import re
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from othello.game import GAME
from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.features import PositionSet, Split

FOLDER = Path(__file__).parent
EMPTY_CELLS = {"12-empty": 12, "16-empty": 16, "20-empty": 20}
"""The empty cells of each set, by name."""

SIGNS = {"+": 1.0, "=": 0.0, "-": -1.0}
_MOVE = re.compile("[a-h][1-8]|pass")


class SolvedPositions(NamedTuple):
    """The positions of one file; the arrays are read-only."""

    name: str
    moves: tuple[str, ...]  # P games, moves written together
    states: Array  # int64 [P, 2]
    results: Array  # float32 [P, A]: exact, for the player to move: 1, 0 or -1; NaN where illegal

    def lines(self) -> list[list[int]]:
        """Return the actions of the games."""
        actions = {GAME.action_label(action): action for action in range(GAME.num_actions)}
        return [[actions[move] for move in _MOVE.findall(game)] for game in self.moves]


def position_sets() -> list[PositionSet]:
    """Return the validation sets, in which a mistake is a move that gives the result away."""
    return _position_sets("validation")


def test_position_sets() -> list[PositionSet]:
    """Return the test sets, as `position_sets` returns the validation sets."""
    return _position_sets("test")


def _position_sets(split: Split) -> list[PositionSet]:
    sets = []
    for name in EMPTY_CELLS:
        solved = read_positions(name, split)
        label = f"test/{name}" if split == "test" else name  # so that figures on test sets are recognized
        sets.append(PositionSet(label, solved.states, solved.results, solved.lines()))
    return sets


def states_outside_test(name: str) -> Array:
    """Return the states int64 [P, 2] that a test set leaves out: of the validation set and of the former test set."""
    return np.concatenate([read_positions(name, split).states for split in ("validation", "former")])


@cache
def read_positions(name: str, split: Split | Literal["former"] = "validation") -> SolvedPositions:
    """Return a set.

    Raises:
        GameError: there is no such set, or its file is damaged.
    """
    if name not in EMPTY_CELLS:
        raise GameError(f"there is no set {name!r} of solved positions: expected one of {', '.join(EMPTY_CELLS)}")
    return parse_positions(name, (FOLDER / split / f"{name}.txt").read_text())


def parse_positions(name: str, text: str) -> SolvedPositions:
    """Return the positions that the lines of `text` describe, in the format of the module's docstring.

    Raises:
        GameError: a line has another format, or its results are not those of the legal moves.
    """
    lines = text.splitlines()
    games = [line.split(" ")[0] for line in lines]
    states = states_from_moves(games)
    results = np.full((len(lines), GAME.num_actions), np.nan, np.float32)
    for row, line in enumerate(lines):
        for part in line.split(" ")[1:]:
            if not _MOVE.fullmatch(part[:-1]) or part[-1] not in SIGNS:
                raise GameError(f"{name}, line {row + 1}: expected a move and one of + = -, not {part!r}")
            results[row, GAME.parse_action(part[:-1])] = SIGNS[part[-1]]
    wrong = (np.isnan(results) == GAME.legal(states)).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise GameError(f"{name}, line {row + 1}: expected a result for each legal move alone, not {lines[row]!r}")
    for array in (states, results):
        array.flags.writeable = False
    return SolvedPositions(name, tuple(games), states, results)


def states_from_moves(games: list[str]) -> Array:
    """Return the states int64 [P, 2] after games of moves that are written together.

    Raises:
        GameError: a game has something else in it than legal moves.
    """
    moves = [_MOVE.findall(game) for game in games]
    states = GAME.initial(len(games))
    for ply in range(max(map(len, moves), default=0)):
        rows = np.array([row for row, played in enumerate(moves) if len(played) > ply])
        actions = np.array([GAME.parse_action(moves[row][ply]) for row in rows])
        illegal = ~GAME.legal(states[rows])[np.arange(len(rows)), actions]
        if illegal.any():
            place = int(illegal.argmax())
            raise GameError(f"{games[rows[place]]!r} is not a game: move {ply + 1} is not legal")
        states[rows] = GAME.step(states[rows], actions)
    for game, played in zip(games, moves, strict=True):
        if "".join(played) != game:
            raise GameError(f"{game!r} is not a game: expected moves from a1 to h8 or pass, written together")
    return states


def format_position(moves: str, results: Array) -> str:
    """Return the line of a position: the inverse of `parse_positions`, for the results [A] of one position."""
    signs = {value: sign for sign, value in SIGNS.items()}
    legal = np.flatnonzero(~np.isnan(results)).tolist()
    return " ".join([moves, *(f"{GAME.action_label(action)}{signs[float(results[action])]}" for action in legal)])
