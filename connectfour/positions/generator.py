"""Makes the sets of solved positions: draws positions at random, solves them, and keeps those that belong to a set.

How positions are drawn, for each set from a stream of its own that the seed and the set's name decide: first the number
of plies, uniformly among those of the set (6 to 14, but 8 to 14 for begin-hard; 15 to 28; 29 to 41); then as many
moves, each uniformly among the legal ones that do not end the game; where all end it, the draw is given up. A position
is kept if it has the remaining plies of the set; but not if the mover wins at once or loses by the reply (the published
sets have none of these either), nor if it or its mirror image is in the set already, nor, in a test set, in the
validation set of the kind. None is left out because it takes long.

So a set is the beginning of an endless list, whose length is what the solving time allows; a file that is interrupted
is continued where it was.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from connectfour.bitsets import CELLS
from connectfour.game import COLUMN, COLUMNS, GAME, STRIDE, moves_from_actions, position_from_moves
from connectfour.positions import NAMES, format_position
from connectfour.solver import Solver
from seraphim.game import Array
from seraphim.game.solved import Split


class Bounds(NamedTuple):
    """What belongs to a set, both ends included."""

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


SEEDS: dict[Split, int] = {"validation": 0, "test": 1}


def generate(
    name: str,
    count: int,
    seed: int,
    folder: Path,
    solver: Solver,
    max_seconds: float | None = None,
    excluded: Array | None = None,
) -> Iterator[str]:
    """Write the set of that name to `folder`, a line at a time as they are found, and yield each line.

    Lines that are there already are believed to be of the same seed, and followed by the next.

    Args:
        name: one of `connectfour.positions.NAMES`.
        count: how many positions the file is to have.
        seed: decides which they are.
        folder: where the file NAME.txt is, or is to be.
        solver: solves them.
        max_seconds: stop at the first position that is finished later, whatever the count.
        excluded: states int64 [P, 2] that do not get into the set, nor do their mirror images.
    """
    path, began = folder / f"{name}.txt", time.monotonic()
    written = path.read_text().splitlines(keepends=True) if path.exists() else []
    if written and not written[-1].endswith("\n"):
        written.pop()  # it was being written
        path.write_text("".join(written))
    outside = {_either_way(state) for state in ([] if excluded is None else excluded)}
    lines = _lines(name, seed, [line.split(" ")[0] for line in written], solver, outside)
    for _ in range(count - len(written)):
        line = next(lines)
        with path.open("a") as file:
            file.write(line + "\n")
        yield line
        if max_seconds is not None and time.monotonic() - began > max_seconds:
            break


def _lines(name: str, seed: int, written: list[str], solver: Solver, excluded: set[tuple[int, ...]]) -> Iterator[str]:
    # The lines of a set, without end, after those whose moves were written.
    bounds = BOUNDS[name]
    generator = np.random.default_rng([seed, NAMES.index(name)])
    seen = excluded | {_either_way(position_from_moves(moves)) for moves in written}
    last = written[-1] if written else None
    while True:
        moves = _draw(generator, bounds)
        if last is not None:  # all until the last one were decided about before
            last = None if moves == last else last
            continue
        if moves is None:
            continue
        state = position_from_moves(moves)
        if _either_way(state) in seen:
            continue
        if _belongs(state, bounds, solver):
            seen.add(_either_way(state))
            yield format_position(moves, *solver.solve_moves(state))


def _belongs(state: Array, bounds: Bounds, solver: Solver) -> bool:
    # The short searches first: most positions belong elsewhere.
    if solver.solve_within(state, max(bounds.fewest_left - 1, AT_ONCE)) is None:
        return solver.solve_within(state, bounds.most_left) is not None
    stones = sum(int(word).bit_count() for word in state)
    return bounds.fewest_left <= CELLS - stones <= AT_ONCE and solver.solve_weakly(state) == 0


def _draw(generator: np.random.Generator, bounds: Bounds) -> str | None:
    # The moves to a random position that is not over, None if the draw is given up.
    actions: list[int] = []
    states = GAME.initial(1)
    for _ in range(generator.integers(bounds.fewest_moves, bounds.most_moves + 1)):
        legal = np.flatnonzero(GAME.legal(states)[0])
        successors = GAME.step(np.repeat(states, len(legal), axis=0), legal)
        unfinished = np.flatnonzero(~GAME.outcome(successors)[0])
        if not len(unfinished):
            return None
        chosen = generator.choice(unfinished)
        actions.append(int(legal[chosen]))
        states = successors[chosen : chosen + 1]
    return moves_from_actions(actions)


def _either_way(state: Array) -> tuple[int, ...]:
    # The same for a position and its mirror image.
    words = tuple(int(word) for word in state)
    return min(words, tuple(_mirrored(word) for word in words))


def _mirrored(stones: int) -> int:
    columns = [stones >> STRIDE * column & COLUMN for column in range(COLUMNS)]
    return sum(column << STRIDE * place for place, column in enumerate(reversed(columns)))
