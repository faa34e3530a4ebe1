"""The 2×2×2 cube as corners: its positions as two numbers, its turns as tables of these, its symmetries.

A corner, and the place it has in the solved cube, is named by the sides that it shows, clockwise, beginning with U or D
(up, right, front, down, left, back). DBL stays where it is: to turn the sides around it is to turn the opposite ones,
and then the cube as a whole. A position is a number for which corner is at each of the seven other places, and one for
how often each is twisted clockwise there; both are 0 in the solved cube. Any six twists are possible, and they
determine the seventh.
"""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np

from seraphim.game import Array, Symmetries

CORNERS = ("URF", "UFL", "ULB", "UBR", "DFR", "DLF", "DRB", "DBL")
SIDES = "URFDLB"
TURNS = tuple(side + times for side in "URF" for times in ("", "2", "'"))  # clockwise: once, twice, three times
PLACES = len(CORNERS) - 1  # without DBL
PERMUTATIONS, ORIENTATIONS = 5040, 729
_CYCLES = {"U": "FLBR", "R": "UBDF", "F": "URDL"}  # where a clockwise turn takes the stickers of the other sides


class Tables(NamedTuple):
    """Positions by their numbers, and where turns lead."""

    permutations: Array  # int64 [5040, 9]: the permutation after each turn
    orientations: Array  # int64 [729, 9]: the orientation after each turn
    corners: Array  # int64 [5040, 7]: which corner is at each place
    twists: Array  # int64 [729, 7]: how it is twisted there, 0 to 2


@cache
def tables() -> Tables:
    """Return the tables of all turns."""
    corners = np.array(list(itertools.permutations(range(PLACES))), np.int64)
    twists = np.array(list(itertools.product(range(3), repeat=PLACES - 1)), np.int64)
    twists = np.column_stack([twists, -twists.sum(axis=1) % 3])
    digits = 7 ** np.arange(PLACES)[::-1]  # which makes ascending numbers of permutations in their order
    permutations = np.empty((PERMUTATIONS, len(TURNS)), np.int64)
    orientations = np.empty((ORIENTATIONS, len(TURNS)), np.int64)
    for turn, name in enumerate(TURNS):
        if len(name) == 1:  # a turn once, to which the next two add
            origins, added = _quarter_turn(name)
            moved, twisted = corners, twists
        moved, twisted = moved[:, origins], (twisted[:, origins] + added) % 3
        permutations[:, turn] = np.searchsorted(corners @ digits, moved @ digits)
        orientations[:, turn] = twisted[:, :-1] @ (3 ** np.arange(PLACES - 1)[::-1])
    return Tables(permutations, orientations, corners, twists)


def stickers() -> Array:
    """Return what a corner shows, int64 [7, 3, 3]: the side (index into SIDES) by corner, twist, and sticker."""
    shown = np.array([[SIDES.index(side) for side in corner] for corner in CORNERS[:PLACES]])
    return np.stack([np.roll(shown, twist, axis=1) for twist in range(3)], axis=1)


def sticker_place(name: str) -> tuple[int, int]:
    """Return the place of a corner and the number of a sticker there, which the sides name, its own first: FUL."""
    place = next(place for place, corner in enumerate(CORNERS) if set(corner) == set(name))
    return place, CORNERS[place].index(name[0])


def symmetries() -> Symmetries:
    """Return the symmetries that keep DBL in place: the rotations about its diagonal, and their mirror images."""
    observations, actions = [], []
    for order in itertools.permutations(range(3)):
        images = [*order, *(3 + side for side in order)]  # what becomes of each side
        sides = {SIDES[side]: SIDES[image] for side, image in enumerate(images)}
        is_mirror = (order[1] - order[0]) % 3 == 2  # which turns the other way
        cells = np.empty((PLACES, 3, len(SIDES)), np.int32)
        for place, corner in enumerate(CORNERS[:PLACES]):
            target, _ = _image(corner, sides)
            for sticker, side in enumerate(corner):
                at = CORNERS[target].index(sides[side])
                cells[target, at, images] = len(SIDES) * (3 * place + sticker) + np.arange(len(SIDES))
        turns = np.empty((3, 3), np.int32)
        turns[list(order)] = np.arange(len(TURNS)).reshape(3, 3)[:, :: -1 if is_mirror else 1]
        observations.append(cells.ravel())
        actions.append(turns.ravel())
    return Symmetries(np.stack(observations), np.stack(actions))


def _quarter_turn(side: str) -> tuple[Array, Array]:
    # The place from which each place gets its corner, and how the corner is twisted on the way, int64 [7] each.
    cycle = _CYCLES[side]
    sides = dict(zip(cycle, cycle[1:] + cycle[0], strict=True))
    origins, added = np.arange(PLACES), np.zeros(PLACES, np.int64)
    for place, corner in enumerate(CORNERS[:PLACES]):
        if side in corner:
            target, twist = _image(corner, sides)
            origins[target], added[target] = place, twist
    return origins, added


def _image(corner: str, sides: dict[str, str]) -> tuple[int, int]:
    # The place to which a corner comes if its sides become others, and the number of its first sticker there.
    return sticker_place("".join(sides.get(side, side) for side in corner))
