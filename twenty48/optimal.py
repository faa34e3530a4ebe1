"""2048 solved by value iteration, on boards of which all positions fit into memory: up to 3x3.

Each new tile adds 2 or 4 to the sum of the tiles, and moves leave it as it is. So a position leads only to those of the
next two sums: one pass from the start finds all positions, and one pass back gives their exact values. Symmetric
boards are one board here, the one of the least number.

Shape letters: `N` boards, `S` symmetries, `C` cells.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.jit import kernel
from twenty48.game import Twenty48
from twenty48.rules import BITS, FOUR, slide, tile

MOST_CELLS = 9
_SAME = 1e-6  # in points: moves that differ by less are equal


@dataclass(frozen=True)
class Optimum:
    """The expected further score of each position under best play."""

    game: Twenty48
    boards: Array  # int64 [N]: those in which a player moves, in the order of their sums; sorted within a sum
    values: Array  # float64 [N], in points
    firsts: Array  # int64: those of the sum 2·n begin at `firsts[n]`

    def values_of(self, boards: Array, new_tiles: int = 0) -> Array:
        """Return the values of boards int64 [B] to which chance first adds some tiles, float64 [B].

        Raises:
            GameError: play does not lead to one of them.
        """
        cells = self.game.cell_symmetries()
        return self._known(_values_of(boards, new_tiles, self.boards, self.values, self.firsts, cells))

    def action_values(self, states: Array) -> Array:
        """Return what each move is worth beyond the score, in states in which a player moves, float64 [B, 4].

        It is NaN where the move is illegal.

        Raises:
            GameError: play does not lead to one of the states.
        """
        game, legal = self.game, self.game.legal(states)
        rows, actions = np.nonzero(legal)
        moved = game.step(states[rows], actions)
        found = np.full(legal.shape, np.nan)
        found[rows, actions] = moved[:, 2] - states[rows, 2] + self.values_of(moved[:, 0].copy(), 1)
        return found

    def perfect_actions(self, states: Array, _seconds: float | None = None) -> Array:
        """Return the best actions in unfinished positions int64 [B, W], bool [B, 4]; errors as `action_values`."""
        values = self.action_values(states)
        best: Array = values > np.nanmax(values, axis=1, keepdims=True) - _SAME
        return best

    @property
    def expected(self) -> float:
        """Return the expected score from two random tiles."""
        return float(self.values_of(np.zeros(1, np.int64), 2)[0])

    def _known(self, values: Array) -> Array:
        if np.isnan(values).any():
            raise GameError(f"play does not lead to one of these boards of {self.game.name}")
        return values


@cache
def solve(rows: int, columns: int) -> Optimum:
    """Return the exact values of a board.

    Raises:
        GameError: the board has too many positions.
    """
    if rows * columns > MOST_CELLS:
        raise GameError(f"2048 is solved on boards of up to {MOST_CELLS} cells, not of {rows}x{columns}")
    game = Twenty48(rows, columns)
    layers, cells = _layers(game), game.cell_symmetries()
    firsts = np.concatenate([[0], np.cumsum([len(layer) for layer in layers])])
    boards = np.concatenate(layers)
    values = np.zeros(len(boards))
    for start, stop in zip(firsts[-2::-1], firsts[:0:-1], strict=True):
        after = np.unique(_moved(boards[start:stop], rows, columns, cells))
        after_values = _values_of(after, 1, boards, values, firsts, cells)
        values[start:stop] = _best(boards[start:stop], after, after_values, rows, columns, cells)
    return Optimum(game, boards, values, firsts)


def _layers(game: Twenty48) -> list[Array]:
    # The boards of each sum 2·n in which a player moves, and two empty layers after the last.
    cells, none = game.cell_symmetries(), np.empty(0, np.int64)
    empty = np.zeros(1, np.int64)
    layers, after = [none, none], [none, np.unique(_with_tile(empty, 1, cells))]  # after moves, or the first tile
    second = np.unique(_with_tile(empty, 2, cells))
    while len(layers) < 4 or len(layers[-1]) or len(layers[-2]):
        boards = np.unique(np.concatenate([_with_tile(after[-1], 1, cells), _with_tile(after[-2], 2, cells)]))
        layers.append(boards)
        moved = _moved(boards, game.rows, game.columns, cells)
        after.append(np.unique(np.concatenate([moved, second])))
        second = none
    return layers


@kernel
def _canonical(board: int, cells: Array) -> np.int64:
    # The least of the symmetric boards.
    least, last = np.int64(board), cells.shape[1] - 1
    for symmetry in range(1, len(cells)):
        cell = last
        while cell > 0 and tile(board, cells[symmetry, cell]) == tile(least, cell):
            cell -= 1
        if tile(board, cells[symmetry, cell]) < tile(least, cell):
            least = np.int64(0)
            for cell in range(last + 1):
                least |= tile(board, cells[symmetry, cell]) << np.int64(BITS * cell)
    return least


@kernel
def _moved(boards: Array, rows: int, columns: int, cells: Array) -> Array:
    # All boards after moves.
    found, count = np.empty(4 * len(boards), np.int64), 0
    for board in boards:
        for action in range(4):
            moved = slide(board, action, rows, columns)[0]
            if moved != board:
                found[count] = _canonical(moved, cells)
                count += 1
    return found[:count]


@kernel
def _with_tile(boards: Array, power: int, cells: Array) -> Array:
    # All boards with a further tile.
    found, count = np.empty(cells.shape[1] * len(boards), np.int64), 0
    for board in boards:
        for cell in range(cells.shape[1]):
            if tile(board, cell) == 0:
                found[count] = _canonical(board | np.int64(power) << np.int64(BITS * cell), cells)
                count += 1
    return found[:count]


@kernel
def _value_of(board: int, new_tiles: int, known: Array, values: Array, firsts: Array, cells: Array) -> float:
    # The value of a board to which chance first adds some tiles; NaN if it is not known.
    if new_tiles > 0:
        total, empty = 0.0, 0
        for cell in range(cells.shape[1]):
            if tile(board, cell) == 0:
                empty += 1
                for power, chance in ((1, 1 - FOUR), (2, FOUR)):
                    with_tile = board | np.int64(power) << np.int64(BITS * cell)
                    total += chance * _value_of(with_tile, new_tiles - 1, known, values, firsts, cells)
        return total / empty
    half = 0
    for cell in range(cells.shape[1]):
        half += (np.int64(1) << tile(board, cell)) >> 1
    if half + 1 >= len(firsts):
        return np.nan
    canonical, first, end = _canonical(board, cells), firsts[half], firsts[half + 1]
    place = first + np.searchsorted(known[first:end], canonical)
    return values[place] if place < end and known[place] == canonical else np.nan


@kernel
def _values_of(boards: Array, new_tiles: int, known: Array, values: Array, firsts: Array, cells: Array) -> Array:
    found = np.empty(len(boards))
    for row in range(len(boards)):
        found[row] = _value_of(boards[row], new_tiles, known, values, firsts, cells)
    return found


@kernel
def _best(boards: Array, after: Array, values: Array, rows: int, columns: int, cells: Array) -> Array:
    # What the best move of each board scores, now and later; 0 where there is none.
    found = np.zeros(len(boards))
    for row in range(len(boards)):
        for action in range(4):
            moved, gained = slide(boards[row], action, rows, columns)
            if moved != boards[row]:
                place = np.searchsorted(after, _canonical(moved, cells))
                found[row] = max(found[row], gained + values[place])
    return found
