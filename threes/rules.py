"""The rules of tic-tac-toe for three, compiled, on batches of states, for boards of up to sixteen cells.

An action is a cell, row by row from the top. A state is three words, the stones of each player as bit sets of cells;
they move in turn, so the counts decide the player to move. Whoever has three stones in a row, a column or a diagonal
wins.
"""

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel

PLAYERS = 3
LOST = -0.5  # what each of the other two gets, so that a draw is worth as much as an equal chance to win


@kernel
def winner(state: Array, lines: Array) -> int:
    """Return the player whose stones fill one of the lines, bit sets of cells; -1 if nobody's do."""
    for player in range(PLAYERS):
        for line in lines:
            if state[player] & line == line:
                return player
    return -1


@kernel
def num_stones(state: Array, cells: int) -> int:
    """Return how many stones are on the board."""
    count, stones = 0, state[0] | state[1] | state[2]
    for cell in range(cells):
        count += (stones >> cell) & 1
    return count


@kernel
def step(states: Array, actions: Array, cells: int) -> Array:
    """Return the states after legal actions: a stone of the mover on the cell."""
    successors = states.copy()
    for row in range(len(states)):
        successors[row, num_stones(states[row], cells) % PLAYERS] |= np.int64(1) << np.int64(actions[row])
    return successors


@kernel
def legal(states: Array, lines: Array, cells: int) -> Array:
    """Return the legal actions: the empty cells, until the game is over."""
    found = np.zeros((len(states), cells), np.bool_)
    for row in range(len(states)):
        if winner(states[row], lines) < 0:
            stones = states[row, 0] | states[row, 1] | states[row, 2]
            for cell in range(cells):
                found[row, cell] = not (stones >> cell) & 1
    return found


@kernel
def to_play(states: Array, cells: int) -> Array:
    """Return the player to move."""
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = num_stones(states[row], cells) % PLAYERS
    return players


@kernel
def outcome(states: Array, lines: Array, cells: int) -> tuple[Array, Array]:
    """Return which games are over, by a line or a full board, and the results of the three players."""
    ended = np.zeros(len(states), np.bool_)
    results = np.zeros((len(states), PLAYERS), np.float32)
    for row in range(len(states)):
        won = winner(states[row], lines)
        for player in range(PLAYERS if won >= 0 else 0):
            results[row, player] = 1.0 if player == won else LOST
        ended[row] = won >= 0 or num_stones(states[row], cells) == cells
    return ended, results


@kernel
def observe(states: Array, rows: int, columns: int) -> Array:
    """Return the stones of the mover, of the next player and of the one after, as planes."""
    planes = np.empty((len(states), rows, columns, PLAYERS), np.uint8)
    for row in range(len(states)):
        mover = num_stones(states[row], rows * columns)
        for cell in range(rows * columns):
            for seat in range(PLAYERS):
                planes[row, cell // columns, cell % columns, seat] = (states[row, (mover + seat) % PLAYERS] >> cell) & 1
    return planes
