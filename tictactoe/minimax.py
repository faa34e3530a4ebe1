"""Tic-tac-toe solved: every position that play can reach, and the exact value of each action in it."""

from functools import cache
from typing import NamedTuple

import numpy as np

from seraphim.game import Array
from seraphim.game.loading import MoveResults, PositionSet, Split
from tictactoe.game import GAME
from tictactoe.rules import CELLS, FULL


class Ply(NamedTuple):
    """The distinct reachable positions with one number of stones."""

    states: Array  # int64 [P, 2], in ascending order of the rows
    values: Array  # float32 [P]: exact, for the player to move
    action_values: Array  # float32 [P, A]: exact, for the player to move; NaN where illegal
    plies: Array  # float32 [P]: to the end of the game by fastest wins and slowest losses
    action_plies: Array  # float32 [P, A]: likewise, the action included; NaN where illegal


@cache
def solve() -> tuple[Ply, ...]:
    """Return the layers with 0 to 9 stones, 5,478 positions in all, as read-only arrays."""
    layers: list[Ply] = []
    # A move adds a stone, so it leads to the next layer: solve them from the full board backwards.
    for states in reversed(_reachable()):
        layers.append(_solve_layer(states, layers[-1] if layers else None))
        for array in layers[-1]:
            array.flags.writeable = False
    return tuple(reversed(layers))


def position_sets(split: Split = "validation") -> list[PositionSet]:
    """Return one set, all 4,520 reachable positions that are not over: a player without errors there is perfect.

    Nothing is left for the split `test`.
    """
    if split == "test":
        return []
    states = np.concatenate([layer.states for layer in solve()])
    action_values = np.concatenate([layer.action_values for layer in solve()])
    unfinished = ~GAME.outcome(states)[0]
    return [PositionSet("all positions", states[unfinished], action_values[unfinished], sampled=False)]


def perfect_actions(states: Array, _seconds: float | None = None) -> Array:
    """Return which actions keep the exact result of unfinished, reachable states int64 [P, 2], bool [P, A]."""
    (positions,) = position_sets()
    keys = _keys(positions.states)
    order = np.argsort(keys)
    values = positions.action_values[order[np.searchsorted(keys, _keys(states), sorter=order)]]
    return values == np.nanmax(values, axis=1, keepdims=True)


def action_results(state: Array, _seconds: float) -> MoveResults:
    """Return the results and plies of the actions of an unfinished, reachable state int64 [2]."""
    layer = solve()[int(state[0] | state[1]).bit_count()]
    row = np.searchsorted(_keys(layer.states), _keys(state[None]))[0]
    return MoveResults(layer.action_values[row], layer.action_plies[row])


def _reachable() -> list[Array]:
    layers = [GAME.initial(1)]
    for _ in range(CELLS):
        rows, actions = np.nonzero(GAME.legal(layers[-1]))
        keys = np.unique(_keys(GAME.step(layers[-1][rows], actions)))
        layers.append(np.stack([keys >> CELLS, keys & FULL], axis=1))
    return layers


def _solve_layer(states: Array, following: Ply | None) -> Ply:
    ended, results = GAME.outcome(states)
    action_values = np.full((len(states), CELLS), np.nan, np.float32)
    action_plies = action_values.copy()
    if following is not None:
        rows, actions = np.nonzero(GAME.legal(states))
        found = np.searchsorted(_keys(following.states), _keys(GAME.step(states[rows], actions)))
        # The other player moves there.
        action_values[rows, actions] = -following.values[found]
        action_plies[rows, actions] = following.plies[found] + 1
    values = np.where(GAME.to_play(states) == 0, results, -results)
    values[~ended] = np.nanmax(action_values[~ended], axis=1)
    # The fastest win, else the slowest draw or loss.
    hurry = np.where(values > 0, -1, 1)[~ended]
    best = np.where(action_values == values[:, None], action_plies, np.nan)[~ended]
    plies = np.zeros(len(states), np.float32)
    plies[~ended] = hurry * np.nanmax(hurry[:, None] * best, axis=1)
    return Ply(states, values, action_values, plies, action_plies)


def _keys(states: Array) -> Array:
    # One number for each state, in the order of the rows.
    return states[:, 0] << CELLS | states[:, 1]
