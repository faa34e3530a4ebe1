"""The rules of Othello, compiled, on batches of states uint64 [B, 2], without a loop over cells.

Black moves first and is player 0. A player who can flip nothing passes, which is an action like others; the game ends
when neither can flip anything, and more stones win. For states and cells see `othello.bits`.
"""

import numpy as np

from othello.bits import CELLS, NONE, ONE, SIZE, TURN, count, flips_of, mover_of, moves_of, stones_of
from seraphim.game import Array
from seraphim.jit import kernel

PASS = CELLS
PLANES = 4  # of an observation


@kernel
def step(states: Array, actions: Array) -> Array:
    """Return the states after legal actions: a stone of the mover, and the stones between it and others flipped."""
    successors = states.copy()
    for row in range(len(states)):
        mover = mover_of(states[row])
        own, other = stones_of(states[row], mover), stones_of(states[row], 1 - mover)
        if actions[row] < CELLS:
            stone = ONE << np.uint64(actions[row])
            flips = flips_of(own, other, stone)
            own, other = own | stone | flips, other & ~flips
        black, white = (own, other) if mover == 0 else (other, own)
        successors[row, 0] = black
        successors[row, 1] = white & ~TURN | ~states[row, 1] & TURN
    return successors


@kernel
def legal(states: Array) -> Array:
    """Return the legal actions: cells where a stone flips others; without any, to pass, unless the game is over."""
    legal = np.empty((len(states), CELLS + 1), np.bool_)
    for row in range(len(states)):
        mover = mover_of(states[row])
        own, other = stones_of(states[row], mover), stones_of(states[row], 1 - mover)
        cells = moves_of(own, other)
        for cell in range(CELLS):
            legal[row, cell] = (cells >> np.uint64(cell) & ONE) != NONE
        legal[row, PASS] = cells == NONE and moves_of(other, own) != NONE
    return legal


@kernel
def to_play(states: Array) -> Array:
    """Return the player to move."""
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = mover_of(states[row])
    return players


@kernel
def outcome(states: Array) -> tuple[Array, Array]:
    """Return which games are over, as neither player can flip a stone, and their results for black."""
    ended = np.empty(len(states), np.bool_)
    results = np.zeros(len(states), np.float32)
    for row in range(len(states)):
        black, white = stones_of(states[row], 0), stones_of(states[row], 1)
        ended[row] = moves_of(black, white) == NONE and moves_of(white, black) == NONE
        if ended[row]:
            results[row] = np.sign(count(black) - count(white))
    return ended, results


@kernel
def observe(states: Array) -> Array:
    """Return four planes: the stones of the mover and of the opponent, and the moves of both."""
    observations = np.empty((len(states), SIZE, SIZE, PLANES), np.uint8)
    for row in range(len(states)):
        mover = mover_of(states[row])
        own, other = stones_of(states[row], mover), stones_of(states[row], 1 - mover)
        planes = (own, other, moves_of(own, other), moves_of(other, own))
        for cell in range(CELLS):
            for plane in range(PLANES):
                observations[row, cell // SIZE, cell % SIZE, plane] = planes[plane] >> np.uint64(cell) & ONE
    return observations
