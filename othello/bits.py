"""Sets of cells of Othello's board as bits of a word, and the two words of a state. Compiled; trusts its arguments.

A cell is 8·row + column, a1 at the top left, as in the game's notation. A state is the cells of black, then those of
white. The cell d4 always holds a stone, so its owner follows from the first word, and its bit in the second word says
who moves: 1 is white.
"""

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel

SIZE = 8
CELLS = SIZE * SIZE
D4 = 1 << 27

Bits = np.uint64
NONE, ONE = Bits(0), Bits(1)
TURN = Bits(D4)
_INNER = Bits(0x7E7E7E7E7E7E7E7E)  # all columns but the first and the last: where lines go on to both sides
_BESIDE, _BELOW, _LEFT_BELOW, _RIGHT_BELOW = Bits(1), Bits(8), Bits(7), Bits(9)


# Kernels take words as uint64. `own` are the stones of the player to move, `other` those of the opponent.


@kernel
def mover_of(state: Array) -> int:
    """Return the player to move, 0 or 1, in a state uint64 [2]."""
    return int((state[1] & TURN) != NONE)


@kernel
def stones_of(state: Array, player: int) -> Bits:
    """Return the stones of a player in a state uint64 [2], as a bit set."""
    if player == 0:
        return state[0]
    return (state[1] & ~TURN) | (~state[0] & TURN)


@kernel
def _upward(own: Bits, through: Bits, shift: Bits) -> Bits:
    # The stones of `through` that lines of at most six of them reach from `own`, to higher cells.
    reached = through & own << shift
    reached |= through & reached << shift
    through &= through << shift
    shift += shift
    reached |= through & reached << shift
    return reached | through & reached << shift


@kernel
def _downward(own: Bits, through: Bits, shift: Bits) -> Bits:
    reached = through & own >> shift
    reached |= through & reached >> shift
    through &= through >> shift
    shift += shift
    reached |= through & reached >> shift
    return reached | through & reached >> shift


@kernel
def moves_of(own: Bits, other: Bits) -> Bits:
    """Return the cells where a stone flips at least one, as a bit set."""
    inner = other & _INNER
    cells = _upward(own, inner, _BESIDE) << _BESIDE | _downward(own, inner, _BESIDE) >> _BESIDE
    cells |= _upward(own, other, _BELOW) << _BELOW | _downward(own, other, _BELOW) >> _BELOW
    cells |= _upward(own, inner, _LEFT_BELOW) << _LEFT_BELOW | _downward(own, inner, _LEFT_BELOW) >> _LEFT_BELOW
    cells |= _upward(own, inner, _RIGHT_BELOW) << _RIGHT_BELOW | _downward(own, inner, _RIGHT_BELOW) >> _RIGHT_BELOW
    return cells & ~(own | other)


@kernel
def _line_flips(own: Bits, through: Bits, stone: Bits, shift: Bits) -> Bits:
    # The flips of a stone to both sides along one direction.
    up, down = _upward(stone, through, shift), _downward(stone, through, shift)
    flips = up if (up << shift) & own else NONE
    return flips | down if (down >> shift) & own else flips


@kernel
def flips_of(own: Bits, other: Bits, stone: Bits) -> Bits:
    """Return the opponent's stones that a new one, given as a bit, flips."""
    inner = other & _INNER
    flips = _line_flips(own, inner, stone, _BESIDE) | _line_flips(own, other, stone, _BELOW)
    return flips | _line_flips(own, inner, stone, _LEFT_BELOW) | _line_flips(own, inner, stone, _RIGHT_BELOW)


@kernel
def count(stones: Bits) -> int:
    """Return the number of stones in a bit set."""
    number = 0
    while stones:  # compiled to a single instruction
        stones &= stones - ONE
        number += 1
    return number


@kernel
def lowest(cells: Bits) -> Bits:
    """Return the lowest bit of a bit set."""
    return cells & (~cells + ONE)


@kernel
def to_int(bits: Bits) -> int:
    """Return a word as a signed number: mixed with one, a word would become a floating-point number."""
    return np.int64(bits)  # type: ignore[return-value]
