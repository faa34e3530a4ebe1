"""Alpha-beta search of Othello to the end of the game, in a window, with a transposition table.

Fail-soft (Fishburn 1983): a value outside the window is a bound on the exact one. Values are differences of stones for
the player to move, where empty cells at the end belong to the winner. With few empty cells left, moves into regions of
an odd number of empty cells come first (parity); with more, those that leave the opponent few moves. A position is cut
off when the opponent's stones that can never be flipped are too many for the window (stability).
"""

import numpy as np

from othello.bits import CELLS, Bits, count, flips_of, lowest, mover_of, moves_of, stones_of, to_int
from seraphim.game import Array
from seraphim.jit import kernel

STOPPED = 127  # the value of a search that ran out of nodes
BEST = CELLS
NODES, LIMIT = 0, 1  # places in `control`: positions searched, and how many may be
ENTRY = 4  # words of an entry of the table: own stones, the opponent's, bounds, best move + 1
DEEP = 7  # empty cells: positions with more are stored, and their moves sorted

_NONE, _ONE = Bits(0), Bits(1)
_FIRST_COLUMN, _LAST_COLUMN = Bits(0x0101010101010101), Bits(0x8080808080808080)
_FIRST_ROW, _LAST_ROW = Bits(0xFF), Bits(0xFF << 56)
_COLUMNS, _ROWS = _FIRST_COLUMN | _LAST_COLUMN, _FIRST_ROW | _LAST_ROW
_BORDER = _COLUMNS | _ROWS
_CORNERS = _COLUMNS & _ROWS
_QUADRANTS = tuple(Bits(0x0F0F0F0F << shift) for shift in (0, 4, 32, 36))
_FACTORS = Bits(0x9E3779B97F4A7C15), Bits(0xC2B2AE3D27D4EB4F)
_BESIDE, _BELOW, _LEFT_BELOW, _RIGHT_BELOW, _HIGH = Bits(1), Bits(8), Bits(7), Bits(9), Bits(32)


@kernel
def _final(own: Bits, other: Bits) -> int:
    # The value of a finished game.
    mine, theirs = count(own), count(other)
    if mine == theirs:
        return 0
    return CELLS - 2 * theirs if mine > theirs else 2 * mine - CELLS


@kernel
def _last_move(own: Bits, other: Bits) -> int:
    # The value where one cell is empty.
    stone = ~(own | other)
    flips = flips_of(own, other, stone)
    if flips:
        return 2 * (count(own) + 1 + count(flips)) - CELLS
    flips = flips_of(other, own, stone)
    if flips:
        return CELLS - 2 * (count(other) + 1 + count(flips))
    return _final(own, other)


@kernel
def odd_regions(empty: Bits) -> Bits:
    """Return the quadrants of the board that have an odd number of empty cells."""
    odd = _NONE
    for quadrant in _QUADRANTS:
        if count(empty & quadrant) & 1:
            odd |= quadrant
    return odd


@kernel
def _full_lines(taken: Bits, shift: Bits, ends: Bits) -> Bits:
    # The cells whose line along a direction, up to the border at both ends, is taken.
    up, down = taken, taken
    for _ in range(7):
        up &= ends | up << shift
        down &= ends | down >> shift
    return up & down


@kernel
def stable_stones(own: Bits, other: Bits) -> Bits:
    """Return stones of `own` that can never be flipped; not always all of them.

    In each of the four directions such a stone is on a full line, at the border, or beside such a stone.
    """
    taken = own | other
    beside = _full_lines(taken, _BESIDE, _COLUMNS) | _COLUMNS
    below = _full_lines(taken, _BELOW, _ROWS) | _ROWS
    left_below = _full_lines(taken, _LEFT_BELOW, _BORDER) | _BORDER
    right_below = _full_lines(taken, _RIGHT_BELOW, _BORDER) | _BORDER
    stable, before = own & beside & below & left_below & right_below, _ONE
    stable |= own & _CORNERS
    while stable != before:
        before = stable
        new = beside | stable << _BESIDE | stable >> _BESIDE
        new &= below | stable << _BELOW | stable >> _BELOW
        new &= left_below | stable << _LEFT_BELOW | stable >> _LEFT_BELOW
        new &= right_below | stable << _RIGHT_BELOW | stable >> _RIGHT_BELOW
        stable |= own & new
    return stable


@kernel
def _shallow(own: Bits, other: Bits, alpha: int, beta: int, empty: int, words: Array, bounds: Array) -> tuple[int, int]:
    # The value where few cells are empty, and the positions searched: no table, no sorting but by parity. A stack, a
    # row for each number of empty cells, takes the place of recursion: a kernel that calls a recursive one may crash
    # once Numba has cached it. The columns of `words` uint64 [> empty, 3] are the stones of both and the moves to try;
    # those of `bounds` int64 [> empty, 4] are alpha, beta, the best value, and -1 where the first player had to pass.
    top, nodes = empty, 0
    while True:
        nodes += 1
        value, sign, moves = 0, 1, _NONE
        if empty == 1:
            value = _last_move(own, other)
        else:
            moves = moves_of(own, other)
            if moves == _NONE:
                own, other, alpha, beta, sign = other, own, -beta, -alpha, -1
                moves = moves_of(own, other)
            if moves == _NONE:
                value = sign * _final(own, other)
            else:
                words[empty, 0], words[empty, 1], words[empty, 2] = own, other, moves
                bounds[empty, 0], bounds[empty, 1], bounds[empty, 2], bounds[empty, 3] = alpha, beta, -BEST, sign
        while moves == _NONE:  # the value is known
            if empty == top:
                return value, nodes
            empty += 1
            bounds[empty, 2] = max(bounds[empty, 2], -value)
            bounds[empty, 0] = max(bounds[empty, 0], -value)
            value = bounds[empty, 2] * bounds[empty, 3]
            if bounds[empty, 2] < bounds[empty, 1]:
                moves = words[empty, 2]
        own, other = words[empty, 0], words[empty, 1]
        odd = moves & odd_regions(~(own | other))
        stone = lowest(odd if odd else moves)
        words[empty, 2] = moves ^ stone
        flips = flips_of(own, other, stone)
        own, other = other & ~flips, own | stone | flips
        alpha, beta = -bounds[empty, 1], -bounds[empty, 0]
        empty -= 1


@kernel
def _slot_of(own: Bits, other: Bits, slots: int) -> int:
    mixed = (own * _FACTORS[0]) ^ (other * _FACTORS[1])
    mixed ^= mixed >> _HIGH
    return to_int(mixed * _FACTORS[0] >> _HIGH) & (slots - 1)


@kernel
def _sort_moves(own: Bits, other: Bits, moves: Bits, known: int, row: Array) -> int:
    # Writes the moves to `row`, modulo CELLS, and returns their number: the one that was best before comes first, then
    # those that leave few moves, corners and odd regions.
    found, odd, rest = 0, odd_regions(~(own | other)), moves
    while rest:
        stone = lowest(rest)
        rest ^= stone
        cell = count(stone - _ONE)
        flips = flips_of(own, other, stone)
        replies = moves_of(other & ~flips, own | stone | flips)
        score = 4 * count(replies) + 2 * count(replies & _CORNERS)
        if stone & _CORNERS:
            score -= 6
        if stone & odd:
            score -= 1
        if cell == known:
            score = -50
        entry = (score + 64) * CELLS + cell
        place = found
        while place > 0 and row[place - 1] > entry:
            row[place] = row[place - 1]
            place -= 1
        row[place] = entry
        found += 1
    return found


@kernel
def search(
    own: Bits,
    other: Bits,
    alpha: int,
    beta: int,
    empty: int,
    table: Array,
    words: Array,
    moves_at: Array,
    control: Array,
) -> int:
    """Return the value of a position in a window; a bound outside of it, STOPPED if the nodes run out.

    Args:
        own: stones of the player to move.
        other: stones of the opponent.
        alpha: lower end of the window, -64 to 64.
        beta: upper end, more than alpha.
        empty: number of empty cells.
        table: uint64 [slots, ENTRY], a power of two of slots.
        words: uint64 [CELLS + 1, 3] to work on, a row for each number of empty cells.
        moves_at: int64 [CELLS + 1, CELLS], likewise.
        control: int64 [2], see NODES and LIMIT.
    """
    if empty == 0:
        return _final(own, other)
    if empty <= DEEP:
        value, nodes = _shallow(own, other, alpha, beta, empty, words, moves_at)
        control[NODES] += nodes
        return value
    if control[NODES] >= control[LIMIT]:
        return STOPPED
    control[NODES] += 1
    moves = moves_of(own, other)
    if moves == _NONE:
        if moves_of(other, own) == _NONE:
            return _final(own, other)
        value = search(other, own, -beta, -alpha, empty, table, words, moves_at, control)
        return STOPPED if value == STOPPED else -value
    upper = BEST - 2 * count(stable_stones(other, own))
    if upper <= alpha:
        return upper
    slot = _slot_of(own, other, len(table))
    known, lower = -1, -BEST
    if table[slot, 0] == own and table[slot, 1] == other:
        bounds = to_int(table[slot, 2])
        lower, upper = max(lower, (bounds & 255) - BEST), min(upper, (bounds >> 8) - BEST)
        if lower >= beta or lower >= upper:
            return lower
        if upper <= alpha:
            return upper
        known = to_int(table[slot, 3]) - 1
    window_low, window_high = max(alpha, lower), min(beta, upper)
    row = moves_at[empty]
    found = _sort_moves(own, other, moves, known, row)
    best, best_cell, low = -BEST - 1, 0, window_low
    for place in range(found):
        cell = row[place] % CELLS
        stone = _ONE << Bits(cell)
        flips = flips_of(own, other, stone)
        value = search(
            other & ~flips, own | stone | flips, -window_high, -low, empty - 1, table, words, moves_at, control
        )
        if value == STOPPED:
            return STOPPED
        if -value > best:
            best, best_cell = -value, cell
            if best >= window_high:
                break
            low = max(low, best)
    if best >= window_high:
        lower = max(lower, best)
    elif best <= window_low:
        upper = min(upper, best)
    else:
        lower = upper = best
    table[slot, 0] = own
    table[slot, 1] = other
    table[slot, 2] = Bits((lower + BEST) | (upper + BEST) << 8)
    table[slot, 3] = Bits(best_cell + 1)
    return best


@kernel
def late_results(states: Array, most: int) -> tuple[Array, Array]:
    """Return in which states uint64 [B, 2] at most `most` cells are empty, bool [B], and their results.

    The results are those under best play for player 0, float32 [B], 0 in other states.
    """
    known, results = np.zeros(len(states), np.bool_), np.zeros(len(states), np.float32)
    words, bounds = np.empty((most + 1, 3), np.uint64), np.empty((most + 1, 4), np.int64)
    for row in range(len(states)):
        mover = mover_of(states[row])
        own, other = stones_of(states[row], mover), stones_of(states[row], 1 - mover)
        empty = CELLS - count(own | other)
        if empty <= most:
            known[row] = True
            value = _shallow(own, other, -1, 1, empty, words, bounds)[0] if empty else _final(own, other)
            results[row] = np.sign(value if mover == 0 else -value)
    return known, results
