"""Four in a row, on bit sets of cells in the numbering of `connectfour.rules`; `rows` are those of the board."""

from seraphim.jit import kernel


@kernel
def has_line(stones: int, rows: int) -> bool:
    """Return whether four stones are in a row."""
    # Each pair of neighbours is marked at its lower cell; two pairs, two cells apart, are four in a row.
    stride = rows + 1
    vertical = stones & stones >> 1
    horizontal = stones & stones >> stride
    rising = stones & stones >> stride + 1
    falling = stones & stones >> stride - 1
    fours = vertical & vertical >> 2
    fours |= horizontal & horizontal >> 2 * stride
    fours |= rising & rising >> 2 * (stride + 1)
    fours |= falling & falling >> 2 * (stride - 1)
    return fours != 0


@kernel
def completing(stones: int, rows: int) -> int:
    """Return the cells that make four in a row with three of `stones`.

    They include cells off the board and taken ones; of a vertical line only the upper end, which is free when the
    others are taken.
    """
    pairs = stones & stones >> 1
    cells = (pairs & stones << 1) << 2
    for stride in (rows, rows + 1, rows + 2):
        pairs = stones & stones >> stride  # each at its lower stone
        # Two stones below the cell, then one more below them or one above it; or the same upside down.
        cells |= pairs << 2 * stride & (stones << 3 * stride | stones >> stride)
        cells |= pairs >> stride & (stones << stride | stones >> 3 * stride)
    return cells


def cells_of_lines(stones: int, rows: int) -> int:
    """Return the bit set of the stones that are part of four or more in a row."""
    found = 0
    for step in (1, rows + 1, rows + 2, rows):
        lowest = stones & stones >> step & stones >> 2 * step & stones >> 3 * step
        found |= lowest | lowest << step | lowest << 2 * step | lowest << 3 * step
    return found
