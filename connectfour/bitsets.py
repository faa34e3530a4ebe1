"""Kernels on sets of cells: safe moves, and the key of a position.

Knows positions as two bit sets in the numbering of `connectfour.rules`: the mover's stones, and the mask of all stones.
"""

from connectfour.lines import completing
from connectfour.rules import COLUMNS, ROWS, STRIDE
from seraphim.jit import kernel

CELLS = ROWS * COLUMNS
BOTTOM = sum(1 << STRIDE * column for column in range(COLUMNS))
UPPER_ROWS = sum((1 << 1 | 1 << 3 | 1 << 5) << STRIDE * column for column in range(COLUMNS))
LOWER_ROWS = sum((1 << 0 | 1 << 2 | 1 << 4 | 1 << 6) << STRIDE * column for column in range(COLUMNS))
KEY_BITS = STRIDE * COLUMNS  # of a key
KEY_MASK = (1 << KEY_BITS) - 1
MULTIPLIER = 0x19E3779B97F4A7  # odd, so that multiplication modulo 2^49 is invertible
MIRRORED = 14  # stones: with fewer, a position and its mirror image share a key


@kernel
def count(stones: int) -> int:
    """Return the number of stones in a bit set."""
    number = 0
    while stones:  # compiled to a single instruction
        stones &= stones - 1
        number += 1
    return number


@kernel
def completes(stones: int) -> bool:
    """Return whether there are four in a row in a bit set."""
    return completing(stones, ROWS) & stones != 0


@kernel
def safe_moves(playable: int, threats: int) -> int:
    """Return the moves after which the opponent, whose stones would win on `threats`, does not win at once."""
    forced = playable & threats
    if forced:
        if forced & forced - 1:
            return 0
        playable = forced
    return playable & ~(threats >> 1)


@kernel
def key_of(mover: int, mask: int, stones: int) -> int:
    """Return the mixed key of a position; different positions have different keys, except early mirror images."""
    # In each column the mover's stones, below a bit for the lowest free cell.
    key = mover + mask + BOTTOM
    if stones < MIRRORED:
        mirrored = (key & 0x7F) << 42 | key >> 42 & 0x7F | (key & 0x3F80) << 28 | key >> 28 & 0x3F80
        mirrored |= (key & 0x1FC000) << 14 | key >> 14 & 0x1FC000 | key & 0xFE00000
        key = min(key, mirrored)
    # Both steps are invertible, as the shift is more than half the bits.
    key = key * MULTIPLIER & KEY_MASK
    key ^= key >> 25
    key = key * MULTIPLIER & KEY_MASK
    return key ^ key >> 25
