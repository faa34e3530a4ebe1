"""The rules of connect four, compiled, on batches of states.

An action is a column, 0 to 6. A state is two words, the stones of player 0 (X) and of player 1 (O) as bit sets of
cells, numbered column by column from the bottom:

     6 13 20 27 34 41 48        always empty, so that no line continues from one column into the next
     5 12 19 26 33 40 47
     4 11 18 25 32 39 46
     3 10 17 24 31 38 45
     2  9 16 23 30 37 44
     1  8 15 22 29 36 43
     0  7 14 21 28 35 42

X moves first and the sides alternate, so the number of stones decides the player to move. Four in a row win:
`connectfour.lines`. Boards may have other numbers of rows and columns as well, as far as all cells and the empty ones
above them fit a word.
"""

import numpy as np

from connectfour.lines import completing, has_line
from seraphim.game import Array
from seraphim.jit import kernel

ROWS = 6
COLUMNS = 7
STRIDE = ROWS + 1  # cells of a column, with the one above it that is always empty
COLUMN = (1 << ROWS) - 1  # the cells of the first column, as a bit set
FULL = sum(COLUMN << STRIDE * column for column in range(COLUMNS))
PLANES = 6  # of an observation


# Kernels take the rows of the board, and its columns.


@kernel
def mover(first: int, second: int) -> int:
    """Return the player to move, by the stones of both players as bit sets."""
    # The parity of the number of stones, folded into the lowest bit.
    stones = first | second
    stones ^= stones >> 32
    stones ^= stones >> 16
    stones ^= stones >> 8
    stones ^= stones >> 4
    stones ^= stones >> 2
    stones ^= stones >> 1
    return stones & 1


@kernel
def step(states: Array, actions: Array, rows: int) -> Array:
    """Return the states after legal actions: a stone of the mover on the lowest free cell of the column."""
    successors = states.copy()
    for row in range(len(states)):
        shift = np.int64(rows + 1) * np.int64(actions[row])
        # A carry runs through the stones of the column, and stops at the lowest free cell.
        raised = (states[row, 0] | states[row, 1]) + (np.int64(1) << shift)
        stone = raised & ~(states[row, 0] | states[row, 1])
        successors[row, mover(states[row, 0], states[row, 1])] |= stone
    return successors


@kernel
def legal(states: Array, rows: int, columns: int) -> Array:
    """Return the legal actions: the columns that are not full, until the game is over."""
    legal = np.empty((len(states), columns), np.bool_)
    for row in range(len(states)):
        first, second = states[row, 0], states[row, 1]
        ended = has_line(first, rows) or has_line(second, rows)
        for column in range(columns):
            legal[row, column] = not (ended or ((first | second) >> (rows + 1) * column + rows - 1) & 1)
    return legal


@kernel
def to_play(states: Array) -> Array:
    """Return the player to move."""
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = mover(states[row, 0], states[row, 1])
    return players


@kernel
def outcome(states: Array, rows: int, columns: int) -> tuple[Array, Array]:
    """Return which games are over, by four in a row or a full board, and their results for player 0."""
    ended = np.empty(len(states), np.bool_)
    results = np.zeros(len(states), np.float32)
    full = 0
    for column in range(columns):
        full |= ((1 << rows) - 1) << (rows + 1) * column
    for row in range(len(states)):
        first, second = states[row, 0], states[row, 1]
        if has_line(first, rows):
            results[row] = 1.0
        elif has_line(second, rows):
            results[row] = -1.0
        ended[row] = results[row] != 0.0 or first | second == full
    return ended, results


@kernel
def observe(states: Array, rows: int, columns: int) -> Array:
    """Return the planes that `connectfour.game.ConnectFour` describes."""
    observations = np.empty((len(states), rows, columns, PLANES), np.uint8)
    bottom = 0
    odd = 0  # the first row from the bottom, the third and so on
    for column in range(columns):
        bottom |= 1 << (rows + 1) * column
    for height in range(0, rows, 2):
        odd |= bottom << height
    for row in range(len(states)):
        player = mover(states[row, 0], states[row, 1])
        own, other = states[row, player], states[row, 1 - player]
        taken = own | other
        threats, threats_of_other = completing(own, rows) & ~taken, completing(other, rows) & ~taken
        # The lowest free cell of a column; of a full one, the cell above the board.
        landing = taken + bottom
        planes = (own, other, threats, threats_of_other, landing, odd if player == 0 else ~odd)
        for height in range(rows):
            for column in range(columns):
                cell = (rows + 1) * column + height
                for plane in range(PLANES):
                    observations[row, rows - 1 - height, column, plane] = (planes[plane] >> cell) & 1
    return observations
