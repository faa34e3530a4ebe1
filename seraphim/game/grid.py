"""Games on a grid of cells, as people see them: names of moves, drawings and boards; and the symmetries of a board.

A game inherits `Grid`, and says what its cells are called. Knows no rules: what stands where is in the first planes of
the observation, the stones of the player to move and those of the others in turn.
"""

from functools import cached_property

import numpy as np

from seraphim.errors import GameError, shown
from seraphim.game.interface import EMPTY, Array, Board, Game, Look, Symmetries, cells_from_drawing

LETTERS = "abcdefghijklmnopqrstuvwxyz"
Cells = tuple[int, ...]
"""A state of plain rules: row by row from the top, 0 for an empty cell, 1 for a stone of player 0, 2 of player 1."""


class Grid(Game):
    """A game whose actions are cells, row by row; one action more is to pass, or what `other` names."""

    other = "pass"
    marks: tuple[str, ...] = ("X", "O")
    look: Look = "marks"
    row_names: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()

    def cells(self, state: Array) -> Array:
        """Return the cells int8 [R, C] of a state int64 [W]: the player whose stone is there, or EMPTY."""
        planes, players = self.observe(state[None])[0], range(len(self.marks))
        mover = players[int(self.to_play(state[None])[0])]  # an IndexError if there is no such player
        stones = [planes[..., (player - mover) % len(players)] == 1 for player in players]
        return np.select(stones, list(players), EMPTY).astype(np.int8)

    def render(self, state: Array) -> str:
        """Return the cells as text, with the names of rows and columns; rows of hexagons are shifted."""
        width = max(map(len, self.row_names), default=-1)
        lines = [" " * (width + 1) + " ".join(self.column_names)]
        for row, cells in enumerate(self.cells(state)):
            shift = " " * row if self.look == "hexagons" else ""
            name = f"{self.row_names[row]:>{width}} " if self.row_names else ""
            lines.append(shift + name + " ".join("·" if cell == EMPTY else self.marks[cell] for cell in cells))
        return "\n".join(lines)

    def board(self, state: Array) -> Board:
        """Return the cells, where each legal move that is a cell lands there."""
        rows, columns = self.observation_shape[:2]
        legal = np.flatnonzero(self.legal(state[None])[0][: rows * columns]).tolist()
        targets = {action: [divmod(action, columns)] for action in legal}
        return Board(self.cells(state), self.marks, targets, (), self.row_names, self.column_names, self.look)

    def action_label(self, action: int) -> str:
        """Return the name of a cell, or `other`."""
        rows, columns = self.observation_shape[:2]
        if action == rows * columns:
            return self.other
        return self.column_names[action % columns] + self.row_names[action // columns]

    @cached_property
    def _actions(self) -> dict[str, int]:
        return {self.action_label(action): action for action in range(self.num_actions)}

    def parse_action(self, text: str) -> int:
        """Return the action of this name, in lower or upper case."""
        name = text.strip()
        if name.lower() not in self._actions:
            first, *_, last = self._actions
            raise GameError(f"{shown(name)} is not a move of {self.name}: expected one such as {first} or {last}")
        return self._actions[name.lower()]

    def read_cells(self, text: str) -> Array:
        """Return the cells int8 [R, C] of a drawing, as `cells` does; errors as in `cells_from_drawing`."""
        rows, columns = self.observation_shape[:2]
        return cells_from_drawing(text, rows, columns, "".join(self.marks), "".join(self.row_names + self.column_names))

    def read_stones(self, text: str) -> Array:
        """Return the cells of a drawing in which a stone is placed with each move.

        Raises:
            GameError: the drawing is not of this board, or the players did not move in turn.
        """
        cells = self.read_cells(text)
        counts = [int((cells == player).sum()) for player in (0, 1)]
        if counts[0] - counts[1] not in (0, 1):
            first, second = self.marks
            raise GameError(
                f"{counts[0]} {first} and {counts[1]} {second}: {first} moves first and the sides alternate, so there "
                f"must be as many {first} as {second}, or one more"
            )
        return cells


def bits_of(cells: Array, player: int) -> int:
    """Return the cells of a player as a bit set, in the order of the cells."""
    return sum(1 << cell for cell in np.flatnonzero(cells == player).tolist())


def turned_and_mirrored(size: int) -> Array:
    """Return the eight symmetries of a square, int32 [8, R·C]: the cell that comes to each place."""
    square = np.arange(size * size, dtype=np.int32).reshape(size, size)
    return np.stack([np.rot90(side, turns).ravel() for side in (square, square.T) for turns in range(4)])


def turned_rectangle(rows: int, columns: int) -> Array:
    """Return the symmetries of a rectangle, four, or of a square, eight: as `turned_and_mirrored`, in another order."""
    board = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    sides = [board, board[:, ::-1], *([board.T, board.T[:, ::-1]] if rows == columns else [])]
    return np.stack([np.rot90(side, turns).ravel() for side in sides for turns in (0, 2)])


def move_cells(cells: Array, planes: int, others: int = 0) -> Symmetries:
    """Return the symmetries that move the cells of a board.

    Args:
        cells: int32 [S, R·C]: the cell that comes to each place; row 0 is the identity.
        planes: of the observation, in its last axis.
        others: actions behind the cells, which stay.
    """
    count, size = cells.shape
    rest = np.tile(np.arange(size, size + others, dtype=np.int32), (count, 1))
    observations = planes * cells[:, :, None] + np.arange(planes, dtype=np.int32)
    return Symmetries(observations.reshape(count, -1), np.concatenate([cells, rest], axis=1))
