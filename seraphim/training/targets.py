"""What the value head learns: the part of a result, or of a mixture of results and values, that is not banked yet."""

from typing import NamedTuple

import numpy as np

from seraphim.game import Array, Game
from seraphim.game.features import features_of, mover_first, still_to_come
from seraphim.jit import kernel
from seraphim.records.examples import Positions, by_player, pick
from seraphim.records.sparse import SparseRows
from seraphim.search.afterstates import MOST_MOVES

_ROUNDING = 1e-6
_LUCK_EVERY = 4  # of the positions that only tell luck, one is kept


class Targets(NamedTuple):
    """Positions with the targets of training in place of their results."""

    positions: Positions
    clipped: float
    """The share of positions whose target was beyond ±1: where there are many, the game's `value_scale` is too small.
    """


def with_returns(game: Game, positions: Positions, td_lambda: float) -> Positions:
    """Return positions with the λ-returns of their games as results; `td_lambda` is λ.

    The return of a game's last position is its result. Any other mixes what was expected at the next position with the
    return there: G(t) = (1 - λ)·V(t + 1) + λ·G(t + 1), where V is the search's root value (TD(λ): Sutton and Barto,
    "Reinforcement learning", 2nd edition, 2018, section 12.1). From both, the luck after the move is subtracted where
    it was recorded: its mean is 0, but not its variance (De Asis and Sutton, "Per-decision multi-step temporal
    difference learning with control variates", 2018).
    """
    if td_lambda == 1:
        return positions
    values = by_player(game, positions)
    expected = by_player(game, positions._replace(values=positions.root_values))
    to_play = game.to_play(positions.states)
    luck = np.where(to_play == 0, positions.luck, -positions.luck)
    _mix(values, expected.astype(values.dtype), luck, positions.ends, td_lambda)
    returns = (
        mover_first(values, to_play) if positions.values.ndim > 1 else np.where(to_play == 0, 1, -1) * values[:, 0]
    )
    return positions._replace(values=returns.astype(np.float32))


@kernel
def _mix(values: Array, expected: Array, luck: Array, ends: Array, td_lambda: float) -> None:
    # Replaces results by player [P, V] by returns; luck [P] is player 0's, and 0 with more than two players.
    for row in range(len(values) - 1, -1, -1):
        for column in range(values.shape[1]):
            if not ends[row]:
                values[row, column] = (1 - td_lambda) * expected[row + 1, column] + td_lambda * values[row + 1, column]
            values[row, column] -= luck[row]


def valued_by_turns(game: Game, positions: Positions) -> Positions:
    """Leave out positions that self-play by afterstates never asks the network about, and most that only tell luck.

    It asks about positions in which a turn ends, at the latest after MOST_MOVES moves. About one right after a roll,
    where to roll was the only move, it asks for the luck alone. Other positions within a turn would take a small
    network's capacity from these.
    """
    to_play, legal = game.to_play(positions.states), positions.legal
    choices = np.diff(legal.starts) if isinstance(legal, SparseRows) else legal.sum(axis=1)
    goes_on = np.append(False, ~positions.ends[:-1] & (to_play[1:] == to_play[:-1]))
    rolled = goes_on & (np.diff(positions.plies, prepend=0) > 1)  # chance moved in between
    tells_luck = rolled & np.append(False, choices[:-1] == 1)
    rows = np.arange(len(to_play))
    begins = np.maximum.accumulate(np.where(goes_on & ~rolled, 0, rows))
    kept = (rows - begins) % MOST_MOVES == 0
    kept[tells_luck] = False
    kept[np.flatnonzero(tells_luck)[::_LUCK_EVERY]] = True
    return pick(positions, kept)


def to_targets(game: Game, positions: Positions) -> Targets:
    """Return positions with what their values should be, and with 0 in the words of what is banked.

    Positions that differ in nothing else are then the same. Of a game that banks nothing, all stay as they are; where
    results are points, the squared error of a value is in points.
    """
    features = features_of(game)
    if features.banked is None and features.value_scale is None:
        # Where most results are a fraction of the largest, the policy's loss would dwarf that of a value in [-1, 1].
        if features.points is not None:
            positions = positions._replace(value_weights=positions.value_weights * np.float32(features.points**2))
        return Targets(positions, 0.0)
    states = positions.states.copy()
    values, root_values = (still_to_come(game, states, each) for each in (positions.values, positions.root_values))
    largest = np.abs(values).reshape(len(values), -1).max(axis=1, initial=0)
    beyond = (largest > 1 + _ROUNDING) & (positions.value_weights > 0)
    states[:, game.state_words - (features.bank_words or 0) :] = 0
    values, root_values = np.clip(values, -1, 1), np.clip(root_values, -1, 1)
    changed = positions._replace(values=values, root_values=root_values, states=states)
    return Targets(changed, float(beyond.mean()))
