"""Value targets: λ-returns over the search's values along each game, cut at exploratory moves."""

import numpy as np

from seraphim.game import Array, Game
from seraphim.records.examples import Positions
from seraphim.records.sparse import SparseRows

_TOLERANCE = 1e-6  # probabilities that differ by less are equal


def with_value_targets(game: Game, positions: Positions, value_lambda: float) -> Positions:
    """Return the positions with `values` float32 [P] that the value learns; those of a game must be in succession.

    They are Watkins's λ-returns (Sutton and Barto, "Reinforcement Learning", 2nd edition, section 12.10), for the
    player to move. From the end of a game backwards,

        G(t) = (1 - c(t))·v(t) ± c(t)·G(t+1)    with G(T) = the result, and v(t) the search's value,

    where the sign is + if the same player moves again, and c(t) is λ if the move at t is one that the search gave the
    highest probability, else 0: what follows an exploratory move says little about the position before it. A λ of 1
    stands for the results themselves, as in AlphaGo Zero, whatever was played.
    """
    if value_lambda == 1.0:
        return positions
    traces = np.where(_is_preferred(positions), value_lambda, 0.0)
    to_play = game.to_play(positions.states)
    flips = np.append(to_play[1:] != to_play[:-1], False)
    signs = np.where(flips & ~positions.ends, -1.0, 1.0)
    returns = positions.values.astype(np.float64)
    left = _moves_left(positions.ends)
    order = np.argsort(left, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(left))[:-1]):
        following = np.where(positions.ends[rows], positions.values[rows], returns[np.minimum(rows + 1, len(left) - 1)])
        trace = traces[rows]
        returns[rows] = (1 - trace) * positions.root_values[rows] + trace * signs[rows] * following
    return positions._replace(values=returns.astype(np.float32))


def _moves_left(ends: Array) -> Array:
    # How many positions of its game come after each position, int64 [P].
    last = np.flatnonzero(ends)
    rows = np.arange(len(ends))
    return last[np.searchsorted(last, rows)] - rows


def _is_preferred(positions: Positions) -> Array:
    # Whether the move that was played has the highest probability, bool [P].
    policies, actions = positions.policies, positions.actions
    if isinstance(policies, SparseRows):
        highest = np.maximum.reduceat(policies.values, policies.starts[:-1])
        played = np.zeros(len(actions), policies.values.dtype)
        is_played = policies.columns == actions[policies.rows()]
        played[policies.rows()[is_played]] = policies.values[is_played]
    else:
        highest, played = policies.max(axis=1), policies[np.arange(len(actions)), actions]
    return np.asarray(played >= highest - _TOLERANCE)
