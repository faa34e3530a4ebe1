"""Exact results of the moves of a position, as far as a game offers them; one position at a time, in a bounded time.

A game's module may offer `action_results(state, seconds)`, or, with less to tell, `perfect_actions(states, seconds)`,
see `seraphim.evaluation.players`. Solvers keep what they found and are used by one thread.
"""

from types import ModuleType
from typing import NamedTuple, Protocol

import numpy as np

from seraphim.errors import GameError
from seraphim.evaluation.players import PerfectActions
from seraphim.game import Array, Game


class MoveResults(Protocol):
    """What `action_results` returns."""

    @property
    def results(self) -> Array:
        """Float32 [A]: 1, 0 or -1 for the player who moves; NaN where an action is illegal, or not solved in time."""

    @property
    def plies(self) -> Array:
        """Float32 [A]: plies to the end of the game, this move included; NaN where unknown."""


class ActionResults(Protocol):
    """What a game's module may offer as `action_results`."""

    def __call__(self, state: Array, seconds: float, /) -> MoveResults:
        """Return what the actions in an unfinished state int64 [W] are worth, as far as that is known in time."""


class Truth(NamedTuple):
    """What an action is worth under best play, for the player who moves."""

    result: int | None  # 1 a win, 0 a draw, -1 a loss; None where the game tells only what is best
    best: bool
    plies: int | None  # to the end of the game, this move included


def is_solved(module: ModuleType) -> bool:
    """Return whether a game's module offers exact results."""
    return hasattr(module, "action_results") or hasattr(module, "perfect_actions")


def solve(module: ModuleType, game: Game, state: Array, seconds: float) -> dict[int, Truth]:
    """Return the exact results of the legal actions of an unfinished state int64 [W], without those not found in time.

    Raises:
        GameError: the game offers none, play does not lead to the state, or so many seconds are too few for all.
    """
    if not is_solved(module):
        raise GameError(f"{game.name} has no solver, so nobody knows the truth")
    actions = np.flatnonzero(game.legal(state[None])[0]).tolist()
    if not hasattr(module, "action_results"):
        perfect_actions: PerfectActions = module.perfect_actions
        best = perfect_actions(state[None], seconds)[0]
        return {action: Truth(None, bool(best[action]), None) for action in actions}
    action_results: ActionResults = module.action_results
    found = action_results(state, seconds)
    known = [action for action in actions if not np.isnan(found.results[action])]
    if not known:
        raise GameError(f"the solver needs more than {seconds:g} s here: ask again some moves later")
    best = _best(found.results[actions], found.plies[actions])
    plies = [None if np.isnan(found.plies[action]) else int(found.plies[action]) for action in known]
    return {
        action: Truth(int(found.results[action]), bool(best[actions.index(action)]), ply)
        for action, ply in zip(known, plies, strict=True)
    }


def _best(results: Array, plies: Array) -> Array:
    # Which of all actions are certain to be the best, bool [K]: the fastest wins, else draws, else the slowest losses.
    most = np.nanmax(results)
    if most < 1 and np.isnan(results).any():
        return np.zeros(len(results), np.bool_)
    best = results == most
    if most and not np.isnan(plies[best]).all():
        best &= plies == (np.nanmin(plies[best]) if most > 0 else np.nanmax(plies[best]))
    return best
