"""The rules of 2048, compiled, on batches of states, for boards of up to sixteen cells.

A board is one word: four bits for each cell, row by row from the top, of the power of two on its tile; 0 is an empty
cell. A state is three words: the board, how many tiles chance has to add before the next move, and the score. Two equal
tiles merge into one of twice their sum, which scores that sum; a tile takes part in one merge of a move, those at the
edge first. Tiles of 2^15 merge no more, since the next power does not fit into four bits.
"""

import numpy as np

from seraphim.game import CHANCE, Array
from seraphim.jit import kernel

BITS = 4
MOST = 15  # the power of the highest tile
UP, RIGHT, DOWN, LEFT = range(4)
FOUR = 0.1  # the probability that a new tile is a 4, and not a 2


@kernel
def tile(board: int, cell: int) -> np.int64:
    """Return the power of the tile in a cell, 0 where it is empty."""
    return np.int64(board >> np.int64(BITS * cell)) & np.int64(MOST)


@kernel
def slide(board: int, action: int, rows: int, columns: int) -> tuple[np.int64, np.int64]:
    """Return the board after a move, and what it scores; the same board if no tile moves."""
    across = action in (RIGHT, LEFT)
    lines, length = (rows, columns) if across else (columns, rows)
    result, score = np.int64(0), np.int64(0)
    for line in range(lines):
        place, last, can_merge = 0, 0, False
        for step in range(length):
            along = length - 1 - step if action in (RIGHT, DOWN) else step
            power = tile(board, line * columns + along if across else along * columns + line)
            if power == 0:
                continue
            if can_merge and power == last and power < MOST:
                place -= 1
                power += 1
                score += np.int64(1) << np.int64(power)
                can_merge = False
            else:
                can_merge = True
            along = length - 1 - place if action in (RIGHT, DOWN) else place
            shift = np.int64(BITS * (line * columns + along if across else along * columns + line))
            result = (result & ~(np.int64(MOST) << shift)) | (np.int64(power) << shift)
            last = power
            place += 1
    return result, score


@kernel
def step(states: Array, actions: Array, rows: int, columns: int) -> Array:
    """Return the states after legal moves; where chance moves, after outcomes: 2·cell for a 2, 2·cell + 1 for a 4."""
    successors = states.copy()
    for row in range(len(states)):
        board, new_tiles, score = states[row]
        if new_tiles > 0:
            power, cell = 1 + actions[row] % 2, actions[row] // 2
            successors[row, 0] = board | np.int64(power) << np.int64(BITS * cell)
            successors[row, 1] = new_tiles - 1
        else:
            moved, gained = slide(board, actions[row], rows, columns)
            successors[row, 0], successors[row, 1], successors[row, 2] = moved, 1, score + gained
    return successors


@kernel
def legal(states: Array, rows: int, columns: int) -> Array:
    """Return the legal moves: those that move a tile."""
    found = np.zeros((len(states), 4), np.bool_)
    for row in range(len(states)):
        if states[row, 1] == 0:
            for action in range(4):
                found[row, action] = slide(states[row, 0], action, rows, columns)[0] != states[row, 0]
    return found


@kernel
def to_play(states: Array) -> Array:
    """Return 0, or CHANCE where a tile is added."""
    players = np.zeros(len(states), np.int8)
    for row in range(len(states)):
        if states[row, 1] > 0:
            players[row] = CHANCE
    return players


@kernel
def outcome(states: Array, rows: int, columns: int, points: float) -> tuple[Array, Array]:
    """Return which games are over, where the player moves and no tile does, and their results, float32 [B, 1]."""
    ended = np.zeros(len(states), np.bool_)
    results = np.zeros((len(states), 1), np.float32)
    for row in range(len(states)):
        if states[row, 1] == 0 and _is_stuck(states[row, 0], rows, columns):
            ended[row], results[row, 0] = True, states[row, 2] / points
    return ended, results


@kernel
def _is_stuck(board: int, rows: int, columns: int) -> bool:
    # Whether no tile has an empty cell or one that it merges with beside it.
    if board == 0:
        return True
    for cell in range(rows * columns):
        power = tile(board, cell)
        if power == 0:
            return False
        if power < MOST and (cell + 1) % columns and power == tile(board, cell + 1):
            return False
        if power < MOST and cell + columns < rows * columns and power == tile(board, cell + columns):
            return False
    return True


@kernel
def banked(states: Array, points: float) -> Array:
    """Return the scores as results, float32 [B, 1]."""
    found = np.empty((len(states), 1), np.float32)
    for row in range(len(states)):
        found[row, 0] = states[row, 2] / points
    return found


@kernel
def chances(states: Array, cells: int) -> Array:
    """Return the probabilities of the outcomes, float64 [B, 2·cells]: a 2 or a 4 in any empty cell."""
    found = np.zeros((len(states), 2 * cells))
    for row in range(len(states)):
        if states[row, 1] > 0:
            empty = 0
            for cell in range(cells):
                empty += tile(states[row, 0], cell) == 0
            for cell in range(cells):
                if tile(states[row, 0], cell) == 0:
                    found[row, 2 * cell] = (1 - FOUR) / empty
                    found[row, 2 * cell + 1] = FOUR / empty
    return found


@kernel
def observe(states: Array, rows: int, columns: int) -> Array:
    """Return a plane for each power of two and one for empty cells, uint8 [B, R, C, 16]."""
    planes = np.zeros((len(states), rows, columns, MOST + 1), np.uint8)
    for row in range(len(states)):
        for cell in range(rows * columns):
            planes[row, cell // columns, cell % columns, tile(states[row, 0], cell)] = 1
    return planes
