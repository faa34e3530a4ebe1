"""The solver's kernels: alpha-beta search of connect four on bit sets, with a transposition table.

Knows positions as two bit sets in the numbering of `connectfour.rules`: the mover's stones, and the mask of all stones.
Does not know states, single moves, or clocks: see `connectfour.solver`.

A value is for the player to move: 0 for a draw; for a win 22 minus the number of stones that the winner will have, so
that faster wins have higher values; for a loss the negative value of the winner. Given the number of stones on the
board, a value and the plies to the end determine each other.

The search follows the literature: the solutions by James D. Allen and Victor Allis (Allis, "A knowledge-based approach
of Connect-Four", 1988, also the source of the pairing strategy below), John Tromp's Fhourstones (a table that keeps
entries by the work they save, mirror images as one position), and Pascal Pons' lessons on solving connect four (moves
that do not lose at once, moves ordered by the threats they make, null windows on the value). Additions:

- A child that has lost at once, by two threats or by one above the other, ends its parent's search without being
  entered; the same computation gives the safe moves of the other children.
- The table entries of all children are read before any is entered, so that they are fetched at the same time: without
  this and the next, waiting for memory takes half of the time.
- Late positions, which are the most and save little work, have a small part of the table of their own that stays in the
  processor's cache; the latest are not stored.
- The stack is an array, one frame for each ply, so that an interrupted search can be continued.
"""

import numpy as np

from connectfour.bitsets import BOTTOM, CELLS, LOWER_ROWS, UPPER_ROWS, completes, count, key_of, safe_moves
from connectfour.lines import completing
from connectfour.rules import COLUMN, COLUMNS, FULL, ROWS, STRIDE
from seraphim.game import Array
from seraphim.jit import kernel

CENTRE_FIRST = np.array([COLUMN << STRIDE * column for column in (3, 2, 4, 1, 5, 0, 6)], np.int64)

BEST = CELLS // 2 + 1  # the value of a win without a stone: all values are between its negative and it
OPEN = 99  # in place of a value: unknown yet

# The fields of a frame of the stack. Set by the parent of the position:
MOVER, MASK, SAFE, ALPHA, BETA = range(5)  # SAFE: the moves after which the opponent does not win at once
# set when it is entered:
BEFORE, FOUND, SLOT, TAG, ENTERED = range(5, 10)  # lower bound of the table, best value so far, slot and tag, nodes
CHILDREN, LEFT, RANKS = 10, 11, 12  # number of children; number to be searched; ranks, -1 once a child is chosen
MOVES, FOLLOWING, KEYS, ENTRIES = 19, 26, 33, 40  # of each child: the move, its SAFE, its key, the entry of its slot
FRAME = 48  # words

# The control words of a search.
DEPTH, NODES, LOW, HIGH, WINDOW, STONES, BITS = range(7)
CONTROL = 8
IDLE = -1  # a depth: no search is interrupted

# The table. A key is a position in 49 bits, mixed; its low bits choose a pair of entries, its others are the tag:
#     tag | work, 6 bits: log2 of the nodes it took | upper bound, 6 bits | lower bound, 6 bits
# An entry of 0 is empty, since the lowest bound is stored as 1.
BOUND_BITS = 6
BOUND_MASK = (1 << BOUND_BITS) - 1
WORK_SHIFT = 2 * BOUND_BITS
TAG_SHIFT = 3 * BOUND_BITS
LATE_BITS = 16  # log2 of the pairs of entries for late positions: 1 MB
LATE = 24  # stones: positions with as many are late
LATEST = 37  # stones: positions with as many are not stored


@kernel
def _slot_of(key: int, stones: int, bits: int) -> int:
    # The first of its pair of entries.
    if stones >= LATE:
        return (key & (1 << LATE_BITS) - 1) << 1
    return ((key & (1 << bits) - 1) << 1) + (2 << LATE_BITS)


@kernel
def _tag_of(key: int, stones: int, bits: int) -> int:
    return key >> (LATE_BITS if stones >= LATE else bits)


@kernel
def _paired_bound(mover: int, mask: int) -> int:
    # If every column has an even number of stones, the opponent can always answer in the same column (Allis'
    # claimeven), and so gets the upper cell of every pair, and the mover the lower one.
    if mask + BOTTOM & UPPER_ROWS:
        return BEST
    if completes(mover | LOWER_ROWS & FULL & ~mask):
        return BEST
    return -1 if completes(mask ^ mover | UPPER_ROWS & ~mask) else 0


@kernel
def _enter(table: Array, frames: Array, frame: int, stones: int, bits: int) -> int:
    # Returns a value that decides the window of a position without expanding it, else OPEN.
    if stones >= CELLS - 2:
        return 0  # a safe move, and one more that does not win
    mover, mask, alpha, beta = frames[frame + MOVER], frames[frame + MASK], frames[frame + ALPHA], frames[frame + BETA]
    # The mover wins with the second-next stone at the earliest: parents detect positions that end earlier.
    upper = BEST - 2 - (stones >> 1)
    lower = (stones + 5 >> 1) - BEST
    if stones & 1 == 0:
        upper = min(upper, _paired_bound(mover, mask))
    if stones < LATEST:
        key = key_of(mover, mask, stones)
        slot, tag = _slot_of(key, stones, bits), _tag_of(key, stones, bits)
        frames[frame + SLOT], frames[frame + TAG] = slot, tag
        entry = table[slot]
        if entry >> TAG_SHIFT != tag:
            entry = table[slot + 1]
        if entry >> TAG_SHIFT == tag and entry:
            lower = max(lower, (entry & BOUND_MASK) - BEST)
            upper = min(upper, (entry >> BOUND_BITS & BOUND_MASK) - BEST)
    if lower >= beta or lower >= upper:
        return lower
    if upper <= alpha:
        return upper
    frames[frame + ALPHA] = max(alpha, lower)
    frames[frame + BETA] = min(beta, upper)
    frames[frame + FOUND] = frames[frame + BEFORE] = lower
    return OPEN


@kernel
def _expand(table: Array, frames: Array, frame: int, stones: int, bits: int) -> int:
    # Finds the children and their table entries. Returns the value if a move wins by force at once, else OPEN.
    mover, mask, safe = frames[frame + MOVER], frames[frame + MASK], frames[frame + SAFE]
    children = 0
    for place in range(COLUMNS):
        move = safe & CENTRE_FIRST[place]
        if move:
            threats = completing(mover | move, ROWS) & FULL & ~mask
            following = safe_moves((mask | move) + BOTTOM & FULL, threats)
            if following == 0:
                return BEST - 2 - (stones >> 1)
            if stones + 1 < LATEST:
                key = key_of(mask ^ mover, mask | move, stones + 1)
                frames[frame + KEYS + children] = key
                frames[frame + ENTRIES + children] = table[_slot_of(key, stones + 1, bits)]
            frames[frame + RANKS + children] = 8 * count(threats) + 7 - place
            frames[frame + MOVES + children] = move
            frames[frame + FOLLOWING + children] = following
            children += 1
    frames[frame + CHILDREN] = frames[frame + LEFT] = children
    return _settle(table, frames, frame, stones, bits) if stones + 1 < LATEST else OPEN


@kernel
def _settle(table: Array, frames: Array, frame: int, stones: int, bits: int) -> int:
    # Removes the children that the table decides. Returns a value if that decides the position, else OPEN.
    alpha, beta, found = frames[frame + ALPHA], frames[frame + BETA], frames[frame + FOUND]
    for child in range(frames[frame + CHILDREN]):
        key, entry = frames[frame + KEYS + child], frames[frame + ENTRIES + child]
        tag = _tag_of(key, stones + 1, bits)
        if entry >> TAG_SHIFT != tag:
            entry = table[_slot_of(key, stones + 1, bits) + 1]
        if entry >> TAG_SHIFT == tag and entry:
            # The child's bounds are for the opponent, so they change sign and sides.
            lower = BEST - (entry >> BOUND_BITS & BOUND_MASK)
            upper = BEST - (entry & BOUND_MASK)
            if lower >= beta:
                return lower
            if lower == upper or upper <= alpha:
                found = max(found, upper)
                frames[frame + RANKS + child] = -1
                frames[frame + LEFT] -= 1
    frames[frame + FOUND] = found
    return found if frames[frame + LEFT] == 0 else OPEN


@kernel
def _choose(frames: Array, frame: int) -> None:
    # Sets the next frame to the most promising child that is left.
    best, rank = 0, -1
    for child in range(frames[frame + CHILDREN]):
        if frames[frame + RANKS + child] > rank:
            best, rank = child, frames[frame + RANKS + child]
    frames[frame + RANKS + best] = -1
    frames[frame + LEFT] -= 1
    frames[frame + FRAME + MOVER] = frames[frame + MOVER] ^ frames[frame + MASK]
    frames[frame + FRAME + MASK] = frames[frame + MASK] | frames[frame + MOVES + best]
    frames[frame + FRAME + SAFE] = frames[frame + FOLLOWING + best]
    frames[frame + FRAME + ALPHA] = -frames[frame + BETA]
    frames[frame + FRAME + BETA] = -max(frames[frame + ALPHA], frames[frame + FOUND])


@kernel
def _store(table: Array, frames: Array, frame: int, nodes: int) -> None:
    # Stores the bounds of a position: the first entry of a pair is for the one that took more work.
    slot, tag, found = frames[frame + SLOT], frames[frame + TAG], frames[frame + FOUND]
    lower = found if found > frames[frame + ALPHA] else frames[frame + BEFORE]
    upper = found if found < frames[frame + BETA] else BEST - 1
    work, spent = 0, nodes - frames[frame + ENTERED]
    while spent > 1:
        spent >>= 1
        work += 1
    if table[slot] >> TAG_SHIFT != tag:
        kept = table[slot] >> WORK_SHIFT & BOUND_MASK
        if table[slot + 1] >> TAG_SHIFT == tag:
            slot += 1
        elif work >= kept:
            table[slot + 1] = table[slot]
        else:
            table[slot] -= 1 << WORK_SHIFT  # it ages, to make room eventually
            slot += 1
    entry = table[slot]
    if entry >> TAG_SHIFT == tag and entry:
        lower = max(lower, (entry & BOUND_MASK) - BEST)
        upper = min(upper, (entry >> BOUND_BITS & BOUND_MASK) - BEST)
    table[slot] = tag << TAG_SHIFT | work << WORK_SHIFT | upper + BEST << BOUND_BITS | lower + BEST


@kernel
def _search(table: Array, frames: Array, control: Array, most_nodes: int) -> int:
    # Returns the value of the position in the first frame, clipped by its window; or OPEN when out of nodes.
    nodes, bits = control[NODES], control[BITS]
    depth = max(control[DEPTH], 0)
    while True:
        if nodes >= most_nodes:
            control[DEPTH], control[NODES] = depth, nodes
            return OPEN
        frame, stones = depth * FRAME, control[STONES] + depth
        nodes += 1
        frames[frame + ENTERED] = nodes
        value = _enter(table, frames, frame, stones, bits)
        if value == OPEN:
            value = _expand(table, frames, frame, stones, bits)
        while value != OPEN:
            if depth == 0:
                control[DEPTH], control[NODES] = IDLE, nodes
                return value
            depth -= 1
            frame = depth * FRAME
            frames[frame + FOUND] = max(frames[frame + FOUND], -value)
            value = OPEN
            if frames[frame + FOUND] >= frames[frame + BETA] or frames[frame + LEFT] == 0:
                value = frames[frame + FOUND]
                if control[STONES] + depth < LATEST:
                    _store(table, frames, frame, nodes)
        _choose(frames, frame)
        depth += 1


@kernel
def begin(frames: Array, control: Array, mover: int, mask: int, low: int, high: int) -> None:
    """Set the search to an unfinished position, and the bounds of its value to `low` and `high`, both included."""
    stones = count(mask)
    control[STONES], control[DEPTH], control[LOW], control[HIGH] = stones, IDLE, low, high
    playable = mask + BOTTOM & FULL
    safe = safe_moves(playable, completing(mask ^ mover, ROWS) & FULL & ~mask)
    frames[MOVER], frames[MASK], frames[SAFE] = mover, mask, safe
    # Bounds that need no search.
    lower, upper = (stones + 5 >> 1) - BEST, BEST - 2 - (stones >> 1)
    if playable & completing(mover, ROWS):
        lower = upper = BEST - 1 - (stones >> 1)
    elif stones >= CELLS - 1:
        lower = upper = 0
    elif safe == 0:
        lower = upper = (stones + 3 >> 1) - BEST
    elif stones == CELLS - 2:
        lower = upper = 0
    control[LOW] = min(max(lower, low), high)
    control[HIGH] = max(min(upper, high), low)


@kernel
def run(table: Array, frames: Array, control: Array, most_nodes: int) -> bool:
    """Search until LOW and HIGH of the control words meet, or until NODES has reached `most_nodes`.

    Returns:
        whether they met. If not, LOW and HIGH are bounds of the value, and the same call continues.
    """
    while control[LOW] < control[HIGH]:
        low, high = control[LOW], control[HIGH]
        if control[DEPTH] == IDLE:
            window = low + (high - low) // 2
            # Values far from 0 first: they are near the end of the game, so that the search is not deep.
            if window <= 0 and low // 2 < window:
                window = -(-low // 2)
            elif window >= 0 and high // 2 > window:
                window = high // 2
            control[WINDOW] = frames[ALPHA] = window
            frames[BETA] = window + 1
        value = _search(table, frames, control, most_nodes)
        if value == OPEN:
            return False
        if value <= control[WINDOW]:
            control[HIGH] = max(value, low)
        else:
            control[LOW] = min(value, high)
    return True
