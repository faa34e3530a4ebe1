"""The rules of tic-tac-toe, compiled, on batches of states.

An action is a cell, numbered

    0 1 2
    3 4 5
    6 7 8

A state is two words, the stones of player 0 (X) and of player 1 (O) as bit sets of cells; X moves first, so the counts
decide the player to move. A player with three stones in a row, a column or a diagonal wins.
"""

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel

CELLS = 9
FULL = 0b111_111_111
# Rows, columns, diagonals, as bit sets of cells.
LINES = np.array([0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124], np.int64)


@kernel
def has_line(stones: int) -> bool:
    """Return whether stones, a bit set of cells, fill a line."""
    for line in LINES:
        if stones & line == line:
            return True
    return False


@kernel
def second_to_move(crosses: int, noughts: int) -> bool:
    """Return whether player 1 moves."""
    # Stones are removed from both sides in turn, so the loop ends with the surplus cross, if there is one.
    while noughts:
        crosses &= crosses - 1
        noughts &= noughts - 1
    return crosses != 0


@kernel
def step(states: Array, actions: Array) -> Array:
    """Return the states after legal actions: a stone of the mover on the cell."""
    successors = states.copy()
    for row in range(len(states)):
        player = 1 if second_to_move(states[row, 0], states[row, 1]) else 0
        successors[row, player] |= np.int64(1) << np.int64(actions[row])
    return successors


@kernel
def legal(states: Array) -> Array:
    """Return the legal actions: the empty cells, until the game is over."""
    legal = np.zeros((len(states), CELLS), np.bool_)
    for row in range(len(states)):
        crosses, noughts = states[row]
        if not (has_line(crosses) or has_line(noughts)):
            for cell in range(CELLS):
                legal[row, cell] = not ((crosses | noughts) >> cell) & 1
    return legal


@kernel
def to_play(states: Array) -> Array:
    """Return the player to move."""
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = second_to_move(states[row, 0], states[row, 1])
    return players


@kernel
def outcome(states: Array) -> tuple[Array, Array]:
    """Return which games are over, by a line or a full board, and their results for player 0."""
    ended = np.zeros(len(states), np.bool_)
    results = np.zeros(len(states), np.float32)
    for row in range(len(states)):
        crosses, noughts = states[row]
        if has_line(crosses):
            results[row] = 1.0
        elif has_line(noughts):
            results[row] = -1.0
        ended[row] = results[row] != 0.0 or crosses | noughts == FULL
    return ended, results


@kernel
def observe(states: Array) -> Array:
    """Return the mover's stones and the opponent's, as planes."""
    observations = np.empty((len(states), 3, 3, 2), np.uint8)
    for row in range(len(states)):
        mover = 1 if second_to_move(states[row, 0], states[row, 1]) else 0
        for cell in range(CELLS):
            observations[row, cell // 3, cell % 3, 0] = (states[row, mover] >> cell) & 1
            observations[row, cell // 3, cell % 3, 1] = (states[row, 1 - mover] >> cell) & 1
    return observations
