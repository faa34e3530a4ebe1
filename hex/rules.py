"""The rules of Hex, compiled, on batches of states.

A cell is n·row + column. Its neighbours are those beside it in the row, the two below it (same column, and one to the
left) and the two above it (same column, and one to the right). The first player connects top and bottom, the second
one left and right; in the end one of them does (Gale 1979, "The Game of Hex and the Brouwer Fixed-Point Theorem").

With the swap rule, the second player's first move may be to swap pieces, the action n·n: the stone on the board
becomes the second player's, mirrored along the long diagonal from a1. So both keep their sides, and the first player
moves.

A state is the cells of the first player, then those of the second, 63 to a word. The bit behind the first player's last
cell tells that pieces were swapped.
"""

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel

BITS = 63  # of a word that are used


# Kernels take the size n of the board. `state` is a row of a batch.


@kernel
def has_stone(state: Array, player: int, cell: int) -> int:
    """Return 1 if a player has a stone on a cell, else 0."""
    return (state[len(state) // 2 * player + cell // BITS] >> cell % BITS) & 1


@kernel
def mover(state: Array) -> int:
    """Return the player to move: the parity of the number of stones, and of the bit that tells of a swap."""
    stones = 0
    for word in range(len(state)):
        stones ^= state[word]
    for shift in (32, 16, 8, 4, 2, 1):
        stones ^= stones >> shift
    return stones & 1


@kernel
def connects(state: Array, player: int, n: int, own: Array, reached: Array) -> bool:
    """Return whether a player connects the two sides; `own` and `reached` are int64 [n] to work on.

    Floods from the player's first side, a row of bits at a time. For the second player, rows are the board's columns:
    exchanging rows and columns keeps neighbours.
    """
    for row in range(n):
        bits = np.int64(0)
        for column in range(n):
            cell = n * row + column if player == 0 else n * column + row
            bits |= has_stone(state, player, cell) << column
        own[row] = bits
        reached[row] = 0
    reached[0] = own[0]
    changed = True
    while changed:
        changed = False
        for row in range(n):
            bits = reached[row]
            if row > 0:
                bits |= (reached[row - 1] | reached[row - 1] >> 1) & own[row]
            if row + 1 < n:
                bits |= (reached[row + 1] | reached[row + 1] << 1) & own[row]
            before = np.int64(-1)
            while bits != before:
                before = bits
                bits |= (bits << 1 | bits >> 1) & own[row]
            if bits != reached[row]:
                reached[row] = bits
                changed = True
    return reached[n - 1] != 0


@kernel
def put(state: Array, player: int, cell: int) -> None:
    """Set a player's bit of a cell in a state."""
    state[len(state) // 2 * player + cell // BITS] |= np.int64(1) << np.int64(cell % BITS)


@kernel
def step(states: Array, actions: Array, n: int) -> Array:
    """Return the states after legal actions: a stone of the mover on the cell, or the first stone taken over."""
    successors = states.copy()
    for row in range(len(states)):
        if actions[row] < n * n:
            put(successors[row], mover(states[row]), actions[row])
            continue
        successors[row] = 0
        put(successors[row], 0, n * n)
        for cell in range(n * n):
            if has_stone(states[row], 0, cell):
                put(successors[row], 1, n * (cell % n) + cell // n)
    return successors


@kernel
def may_swap(state: Array, n: int) -> bool:
    """Return whether a state has one stone, before a swap."""
    stones = 0
    for cell in range(n * n):
        stones += has_stone(state, 0, cell) + has_stone(state, 1, cell)
    return stones == 1 and not has_stone(state, 0, n * n)


@kernel
def legal(states: Array, n: int, swaps: bool) -> Array:
    """Return the legal actions: the empty cells, until the game is over, and with `swaps` the swap as the last one."""
    legal = np.empty((len(states), n * n + swaps), np.bool_)
    own, reached = np.empty(n, np.int64), np.empty(n, np.int64)
    for row in range(len(states)):
        state = states[row]
        ended = connects(state, 1 - mover(state), n, own, reached)
        for cell in range(n * n):
            legal[row, cell] = not (ended or has_stone(state, 0, cell) or has_stone(state, 1, cell))
        if swaps:
            legal[row, n * n] = may_swap(state, n)
    return legal


@kernel
def to_play(states: Array) -> Array:
    """Return the player to move."""
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = mover(states[row])
    return players


@kernel
def outcome(states: Array, n: int) -> tuple[Array, Array]:
    """Return which games are over, by a connection, and their results for player 0."""
    # Only the player who moved last can have connected.
    ended = np.empty(len(states), np.bool_)
    results = np.zeros(len(states), np.float32)
    own, reached = np.empty(n, np.int64), np.empty(n, np.int64)
    for row in range(len(states)):
        last = 1 - mover(states[row])
        ended[row] = connects(states[row], last, n, own, reached)
        if ended[row]:
            results[row] = 1 - 2 * last
    return ended, results


@kernel
def observe(states: Array, n: int) -> Array:
    """Return three planes: the mover's stones, the opponent's, and whether the second player moves."""
    observations = np.empty((len(states), n, n, 3), np.uint8)
    for row in range(len(states)):
        state = states[row]
        player = mover(state)
        for cell in range(n * n):
            observations[row, cell // n, cell % n, 0] = has_stone(state, player, cell)
            observations[row, cell // n, cell % n, 1] = has_stone(state, 1 - player, cell)
            observations[row, cell // n, cell % n, 2] = player
    return observations
