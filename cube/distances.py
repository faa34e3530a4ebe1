"""The cube solved breadth first: the fewest moves from each position, and what they say about moves.

A position is `729 · permutation + orientation`, by the numbers of `cube.corners`.
"""

from functools import cache

import numpy as np

from cube.corners import ORIENTATIONS, PERMUTATIONS, TURNS, tables
from cube.game import GAME, MOVES, ORIENTATION, PERMUTATION, TO_COME
from seraphim.game import Array
from seraphim.game.loading import PositionSet, Split

POSITIONS = PERMUTATIONS * ORIENTATIONS
_SAMPLE = 1000
_SEED = 48


@cache
def distances(quarter_turns: bool = False) -> Array:
    """Return the fewest moves that solve each position, int8 [3674160], read-only; in half turns or quarter turns."""
    turns = [turn for turn, name in enumerate(TURNS) if not (quarter_turns and name.endswith("2"))]
    found = np.full(POSITIONS, -1, np.int8)
    found[0], distance = 0, 0
    layer = np.zeros(1, np.int64)
    while len(layer):
        distance += 1
        for turn in turns:
            after = _turned(*np.divmod(layer, ORIENTATIONS), turn)
            found[after[found[after] < 0]] = distance
        layer = np.flatnonzero(found == distance)
    found.flags.writeable = False
    return found


def action_values(states: Array) -> Array:
    """Return the result after each move under best play, float32 [P, 9], of unfinished states int64 [P, 5]."""
    after = [_turned(states[:, PERMUTATION], states[:, ORIENTATION], turn) for turn in range(len(TURNS))]
    moves = states[:, [MOVES]] + 1 + distances()[np.stack(after, axis=1)]
    return (-moves / GAME.points).astype(np.float32)


def perfect_actions(states: Array, _seconds: float | None = None) -> Array:
    """Return which moves begin a shortest solution of unfinished states int64 [P, 5], bool [P, 9]."""
    values = action_values(states)
    best: Array = values == values.max(axis=1, keepdims=True)
    return best


def position_sets(split: Split = "validation") -> list[PositionSet]:
    """Return all 2,644 positions at eleven moves, for both splits; and 1,000 of all, others for each split."""
    hardest = np.flatnonzero(distances() == distances().max())
    drawn = 1 + np.random.default_rng(_SEED).choice(POSITIONS - 1, 2 * _SAMPLE, replace=False)  # 0 is solved
    sample = drawn[:_SAMPLE] if split == "validation" else drawn[_SAMPLE:]
    sets = [("hardest", hardest, False), ("random positions", sample, True)]
    return [
        PositionSet(name, _states(numbers), action_values(_states(numbers)), sampled=sampled)
        for name, numbers, sampled in sets
    ]


def _states(numbers: Array) -> Array:
    # Positions in which a player is to make the first move.
    states = GAME.initial(len(numbers))
    states[:, PERMUTATION], states[:, ORIENTATION] = np.divmod(numbers, ORIENTATIONS)
    states[:, TO_COME] = 0
    return states


def _turned(permutations: Array, orientations: Array, turn: int) -> Array:
    after: Array = tables().permutations[permutations, turn] * ORIENTATIONS + tables().orientations[orientations, turn]
    return after
