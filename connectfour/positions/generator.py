"""Makes the sets of solved positions: draws random positions, solves them, and keeps those that belong to a set.

Each set has a random stream of its own, decided by the seed and the set's name. First the number of plies is drawn,
uniformly among those of the set (6 to 14, but 8 to 14 for begin-hard; 15 to 28; 29 to 41); then as many moves, each
uniformly among the legal ones that do not end the game; where all end it, the draw is given up. A position is kept if
it has the remaining plies of the set; but not if the mover wins at once or loses by the reply (the published sets have
none of these either), nor if it or its mirror image is in the set already, nor, in a test set, in the validation set or
the former test set of the kind. No position is left out because it takes long.

So a set is the beginning of an endless list, as long as the solving time allows; an interrupted file is continued.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from connectfour.bitsets import CELLS
from connectfour.game import DIGITS, GAME, position_from_moves
from connectfour.positions import NAMES, format_position
from connectfour.solver import Solver
from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.loading import Split
from seraphim.game.solved_files import append_positions, canonical


class Bounds(NamedTuple):
    """The bounds of a set, both ends included."""

    fewest_moves: int
    most_moves: int
    fewest_left: int
    most_left: int


# By the names of `connectfour.positions.NAMES`.
BOUNDS = {
    "begin-easy": Bounds(6, 14, 1, 13),
    "begin-medium": Bounds(6, 14, 14, 27),
    "begin-hard": Bounds(8, 14, 28, 34),
    "middle-easy": Bounds(15, 28, 1, 13),
    "middle-medium": Bounds(15, 28, 14, 27),
    "end-easy": Bounds(29, 41, 1, 13),
}
AT_ONCE = 2  # plies in which a position is won by the next move or lost by the reply
SEEDS: dict[Split, int] = {"validation": 0, "test": 2}  # 1 made the former test sets


def generate(
    name: str,
    count: int,
    seed: int,
    folder: Path,
    solver: Solver,
    max_seconds: float | None = None,
    excluded: Array | None = None,
) -> Iterator[str]:
    """Append positions to the set of that name, the file NAME.txt in `folder`, and yield each line as it is written.

    Raises a GameError if the file is to be continued, and its first line is not of this seed.

    Args:
        name: one of `connectfour.positions.NAMES`.
        count: positions of the finished file.
        seed: of the random positions.
        folder: of the file.
        solver: solves them.
        max_seconds: stop after the first position that is finished later, whatever the count.
        excluded: states int64 [P, 2] that are left out of the set, with their mirror images.
    """
    path, began = folder / f"{name}.txt", time.monotonic()
    outside = {canonical(GAME, state) for state in ([] if excluded is None else excluded)}
    for line in append_positions(path, count, lambda written: _lines(path, seed, written, solver, outside)):
        yield line
        if max_seconds is not None and time.monotonic() - began > max_seconds:
            break


def _lines(path: Path, seed: int, written: list[str], solver: Solver, excluded: set[bytes]) -> Iterator[str]:
    # The lines of the set in a file, without end, after those whose moves are in `written`.
    bounds = BOUNDS[path.stem]
    generator = np.random.default_rng([seed, NAMES.index(path.stem)])
    seen = set(excluded)
    for moves in _belonging(generator, bounds, solver, seen):
        if written and moves != written[0]:
            raise GameError(f"{path} is not of seed {seed}: give the seed that it was made with, or remove the file")
        if not written:
            yield format_position(moves, *solver.solve_moves(position_from_moves(moves)))
        elif len(written) > 1:
            while _draw(generator, bounds) != written[-1]:  # all until the last one were decided before
                pass
        seen.update(canonical(GAME, position_from_moves(each)) for each in [moves, *written])
        written = []


def _belonging(generator: np.random.Generator, bounds: Bounds, solver: Solver, seen: set[bytes]) -> Iterator[str]:
    # The moves to random positions that belong to a set and are not `seen`, without end.
    while True:
        moves = _draw(generator, bounds)
        if moves is None:
            continue
        state = position_from_moves(moves)
        if canonical(GAME, state) not in seen and _belongs(state, bounds, solver):
            yield moves


def _belongs(state: Array, bounds: Bounds, solver: Solver) -> bool:
    # The short searches first: most positions belong elsewhere.
    if solver.solve_within(state, max(bounds.fewest_left - 1, AT_ONCE)) is None:
        return solver.solve_within(state, bounds.most_left) is not None
    stones = sum(int(word).bit_count() for word in state)
    return bounds.fewest_left <= CELLS - stones <= AT_ONCE and solver.solve_weakly(state) == 0


def _draw(generator: np.random.Generator, bounds: Bounds) -> str | None:
    # The moves to a random unfinished position, None if the draw is given up.
    moves, states = "", GAME.initial(1)
    for _ in range(generator.integers(bounds.fewest_moves, bounds.most_moves + 1)):
        legal = np.flatnonzero(GAME.legal(states)[0])
        successors = GAME.step(np.repeat(states, len(legal), axis=0), legal)
        unfinished = np.flatnonzero(~GAME.outcome(successors)[0])
        if not len(unfinished):
            return None
        chosen = generator.choice(unfinished)
        moves += DIGITS[legal[chosen]]
        states = successors[chosen : chosen + 1]
    return moves
