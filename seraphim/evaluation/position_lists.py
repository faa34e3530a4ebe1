"""Positions to be judged: the solved ones that a game offers, and lists of a person's own.

Beside `GAME`, a game's package may offer `position_sets()` and `strong_position_sets()`, which are the same positions
with values that also prefer fast wins and slow losses. Where these are samples, they are for choosing: learning checks
itself on them. `test_position_sets()` and `strong_test_position_sets()` are others, for the figures that are reported;
this module alone reads them.
"""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError
from seraphim.evaluation.mistakes import Split
from seraphim.game import Array, Game, load_game, load_game_module
from seraphim.game.notation import label_in, parse_moves
from seraphim.game.saved_games import check_moves
from seraphim.game.solved import PositionSet, load_position_sets
from seraphim.search.roots import Result

# What a game calls its sets, for the weak error and for the strong one.
_FUNCTIONS: dict[Split, tuple[str, str]] = {
    "validation": ("position_sets", "strong_position_sets"),
    "test": ("test_position_sets", "strong_test_position_sets"),
}

COLUMNS = ("position", "network_move", "search_move", "root_value", "visits")


class Listed(NamedTuple):
    """Positions of a file."""

    names: list[str]  # P, as the file writes them
    states: Array  # int64 [P, W]


def default_split(name: str) -> Split:
    """Return the sets that tell how strong a model is: the test sets where the game offers any.

    Raises:
        GameError: there is no such game.
    """
    return "test" if hasattr(load_game_module(name), _FUNCTIONS["test"][0]) else "validation"


def load_sets(name: str, split: Split, most: int | None = None) -> list[tuple[PositionSet, PositionSet | None]]:
    """Return the solved positions of a game, at most so many of each set: for the weak error, and for the strong one.

    Raises:
        GameError: there is no such game, or its solved positions do not fit its rules.
    """
    weakly, strongly = _FUNCTIONS[split]
    weak = [_first(positions, most) for positions in load_position_sets(name, weakly)]
    offered = getattr(load_game_module(name), strongly, None)
    if offered is None:
        return [(positions, None) for positions in weak]
    return list(zip(weak, (_first(positions, most) for positions in offered()), strict=True))


def _first(positions: PositionSet, most: int | None) -> PositionSet:
    return PositionSet(positions.name, positions.states[:most], positions.action_values[:most])


def read(name: str, file: Path) -> Listed:
    """Read a list of positions: one a line, as the moves to it, up to the first space; empty lines do not count.

    Raises:
        GameError: there is no such game, the file cannot be read, or a line is no unfinished position.
    """
    game = load_game(name)
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GameError(f"cannot read positions from {file}: {error}") from error
    names, states = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        moves = line.partition(" ")[0]
        try:
            state = check_moves(game, parse_moves(game, moves)).node.state
        except GameError as error:
            raise GameError(f"{file}, line {number}: {error}") from error
        if game.outcome(state[None])[0][0]:
            raise GameError(f"{file}, line {number}: the game is over after {moves!r}, so there is nothing to play")
        names.append(moves)
        states.append(state)
    if not names:
        raise GameError(f"{file} holds no positions: expected one a line, as the moves that lead to it")
    return Listed(names, np.array(states, np.int64))


def write_moves(file: Path, game: Game, listed: Listed, network_moves: Array, found: Result) -> None:
    """Write what is played in each position as CSV; visits are those of all actions, with spaces between them."""
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for row, name in enumerate(listed.names):
            writer.writerow(
                (
                    name,
                    label_in(game, listed.states[row], int(network_moves[row])),
                    label_in(game, listed.states[row], int(found.best[row])),
                    f"{found.values[row]:.4f}",
                    " ".join(map(str, found.visits[row])),
                )
            )
