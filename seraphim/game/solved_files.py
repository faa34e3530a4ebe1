"""Solved positions in files, as a game ships them.

A line is one position: the moves that lead to it, written together; and behind spaces what best play makes of its
moves, in the game's own notation. Of each kind there may be three sets: `validation` is for choosing, `test` for
reported figures only, and `former` was a test set until it was looked at more than once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game
from seraphim.game.loading import MoveResults, PositionSet, Split
from seraphim.game.notation import parse_moves


@dataclass(frozen=True)
class PositionFiles:
    """The files SPLIT/NAME.txt in a folder."""

    game: Game
    folder: Path
    names: tuple[str, ...]
    read_scores: Callable[[list[int], list[str]], MoveResults]
    """`read_scores(line, scores)`: the results and plies of all moves [A], from what a line of a file has behind the
    moves `line`; plies are NaN where the files do not tell them. Raises a GameError if it is written otherwise."""

    def position_sets(self, split: Split = "validation") -> list[PositionSet]:
        """Return the sets of a split, as a game offers them."""
        sets = [self.read(name, split) for name in self.names]
        # So that figures on test sets are recognized.
        return [each._replace(name=f"test/{each.name}") for each in sets] if split == "test" else sets

    def states_outside_test(self, name: str) -> Array:
        """Return the states int64 [P, W] that a test set leaves out: of the validation and of the former test set."""
        return np.concatenate([self.read(name, split).states for split in ("validation", "former")])

    def read(self, name: str, split: Split | Literal["former"] = "validation") -> PositionSet:
        """Return a set, with read-only arrays.

        Raises:
            GameError: there is no such set, or its file is damaged.
        """
        if name not in self.names:
            raise GameError(f"there is no set {name!r} of solved positions: expected one of {', '.join(self.names)}")
        return _read(self, name, split)

    def parse(self, name: str, text: str) -> PositionSet:
        """Return the positions that the lines of a text describe.

        Raises:
            GameError: a line has another format, or its scores are not those of the legal moves.
        """
        rows = [line.split(" ") for line in text.splitlines()]
        lines, states = play_games(self.game, [moves for moves, *_ in rows])
        results = np.full((len(rows), self.game.num_actions), np.nan, np.float32)
        plies = results.copy()
        for row, (line, (_, *scores), legal) in enumerate(zip(lines, rows, self.game.legal(states), strict=True)):
            try:
                results[row], plies[row] = self.read_scores(line, scores)
            except GameError as error:
                raise GameError(f"{name}, line {row + 1}: {error}") from None
            if (np.isnan(results[row]) == legal).any():
                raise GameError(
                    f"{name}, line {row + 1}: expected a score for each legal move alone, not {' '.join(rows[row])!r}"
                )
        for array in (states, results, plies):
            array.flags.writeable = False
        return PositionSet(name, states, results, lines, plies=None if np.isnan(plies).all() else plies)


@cache
def _read(files: PositionFiles, name: str, split: str) -> PositionSet:
    return files.parse(name, (files.folder / split / f"{name}.txt").read_text())


def append_positions(path: Path, count: int, lines_after: Callable[[list[str]], Iterator[str]]) -> Iterator[str]:
    """Append lines to a file until it has `count`, and yield each as it is written.

    Args:
        path: the file; a last line that was being written is written again.
        count: lines of the finished file.
        lines_after: returns the lines that follow, from the moves of those that the file has.
    """
    written = path.read_text().splitlines(keepends=True) if path.exists() else []
    if written and not written[-1].endswith("\n"):
        written.pop()
        path.write_text("".join(written))
    for line in islice(lines_after([line.split(" ")[0] for line in written]), max(0, count - len(written))):
        with path.open("a") as file:
            file.write(line + "\n")
        yield line


def canonical(game: Game, state: Array) -> bytes:
    """Return the same for symmetric positions: the smallest of their observations."""
    observation = game.observe(state[None]).ravel()
    return min(observation[order].tobytes() for order in game.symmetries().observations)


def play_games(game: Game, games: Sequence[str]) -> tuple[list[list[int]], Array]:
    """Return the actions of P games, each given as its moves, and the states int64 [P, W] that they lead to.

    Raises:
        GameError: a move is unknown or not legal.
    """
    lines = []
    for text in games:
        try:
            lines.append(parse_moves(game, text))
        except GameError as error:
            raise GameError(f"{text!r} is not a game: {error}") from None
    states = game.initial(len(lines))
    for ply in range(max(map(len, lines), default=0)):
        rows = np.array([row for row, line in enumerate(lines) if len(line) > ply])
        actions = np.array([lines[row][ply] for row in rows])
        illegal = ~game.legal(states[rows])[np.arange(len(rows)), actions]
        if illegal.any():
            row = rows[int(illegal.argmax())]
            reason = "comes after its end" if game.outcome(states[[row]])[0][0] else "is not legal"
            raise GameError(f"{games[row]!r} is not a game: move {ply + 1} {reason}")
        states[rows] = game.step(states[rows], actions)
    return lines, states
