"""Positions to evaluate: the solved ones that a game offers, and lists in files.

The solved positions are in `seraphim.game.loading`; this module alone reads the test sets.
"""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError
from seraphim.game import AnyGame, Array, Game, load_game
from seraphim.game.loading import PositionSet, Split
from seraphim.game.notation import label_in, parse_moves
from seraphim.game.saved_games import check_moves
from seraphim.game.solved import load_position_sets
from seraphim.search.roots import Result
from seraphim.storage.atomic import check_regular

COLUMNS = ("position", "network_move", "search_move", "root_value", "visits")


class PositionList(NamedTuple):
    """Positions from a file."""

    names: list[str]  # P, as the file writes them
    states: Array  # int64 [P, W]


def default_split(name: AnyGame) -> Split:
    """Return the split for reported figures: test where the game offers it, else validation.

    Raises:
        GameError: there is no such game.
    """
    return "test" if load_position_sets(name, "test") else "validation"


def load_sets(name: AnyGame, split: Split, limit: int | None = None) -> list[PositionSet]:
    """Return the solved positions of a game, the first `limit` of each set.

    Raises:
        GameError: there is no such game, or its solved positions do not fit its rules.
    """
    return [first_positions(positions, limit) for positions in load_position_sets(name, split)]


def first_positions(positions: PositionSet, limit: int | None) -> PositionSet:
    """Return the first `limit` positions of a set; None returns all."""
    return positions._replace(
        states=positions.states[:limit],
        action_values=positions.action_values[:limit],
        lines=None if positions.lines is None else positions.lines[:limit],
        plies=None if positions.plies is None else positions.plies[:limit],
    )


def read_positions(name: str, file: Path) -> PositionList:
    """Read a list of positions: on each line the moves to one, up to the first space; empty lines are ignored.

    Raises:
        GameError: there is no such game, the file cannot be read, or a line is not an unfinished position.
    """
    game = load_game(name)
    try:
        check_regular(file, pipes=True)
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GameError(f"cannot read positions from {file}: {error}") from error
    names, states = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        moves = line.split(maxsplit=1)[0]
        try:
            state = check_moves(game, parse_moves(game, moves)).node.state
        except GameError as error:
            raise GameError(f"{file}, line {number}: {error}") from error
        if game.outcome(state[None])[0][0]:
            raise GameError(f"{file}, line {number}: the game is over after {moves!r}; expected an unfinished position")
        names.append(moves)
        states.append(state)
    if not names:
        raise GameError(f"{file} holds no positions: expected one per line, as the moves that lead to it")
    return PositionList(names, np.array(states, np.int64))


def write_moves(file: Path, game: Game, positions: PositionList, network_moves: Array, found: Result) -> None:
    """Write the moves in each position as CSV; `visits` are those of all actions, separated by spaces."""
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for row, (name, state) in enumerate(zip(positions.names, positions.states, strict=True)):
            moves = (label_in(game, state, int(action)) for action in (network_moves[row], found.best[row]))
            writer.writerow((name, *moves, f"{found.values[row]:.4f}", " ".join(map(str, found.visits[row]))))
