"""Exact results of the moves of a position, as far as a game offers them; one position at a time, in a bounded time.

A game's module may offer `action_results(state, seconds)`, or, with less to tell, `perfect_actions(states, seconds)`,
see `seraphim.evaluation.players`. Solvers keep what they found and are used by one thread.
"""

from types import ModuleType
from typing import Literal, NamedTuple, Protocol

import numpy as np

from seraphim.errors import GameError
from seraphim.game.interface import Array, Game
from seraphim.game.loading import load_game, load_game_module

Split = Literal["validation", "test"]
"""Solved positions to choose models by, and others for reported figures."""


class PositionSet(NamedTuple):
    """Unfinished positions, solved."""

    name: str
    states: Array  # int64 [P, W]
    action_values: Array  # float32 [P, A]: exact, for the player to move; NaN where illegal


class PerfectActions(Protocol):
    """What a game's module may offer as `perfect_actions`."""

    def __call__(self, states: Array, seconds: float | None = None, /) -> Array:
        """Return which actions keep the exact result of unfinished states int64 [P, W], bool [P, A].

        A game that knows how long wins take may leave out slower wins and faster losses. With `seconds`, the time for
        each position, it returns what is best as far as it knows by then.
        """


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


def load_position_sets(name: str, function: str = "position_sets") -> list[PositionSet]:
    """Return the solved positions that a game offers, an empty list if none.

    Args:
        name: package or module of the game.
        function: what it calls them: by default those that a model may be chosen by.

    Raises:
        GameError: there is no such game, or its solved positions do not fit its rules.
    """
    game = load_game(name)
    position_sets: list[PositionSet] = getattr(load_game_module(name), function, list)()
    for positions in position_sets:
        shapes = (positions.states.shape[1:], positions.action_values.shape)
        if shapes != ((game.state_words,), (len(positions.states), game.num_actions)):
            raise GameError(
                f"{positions.name!r} of {name} has states {positions.states.shape} and action values "
                f"{positions.action_values.shape}: expected [P, {game.state_words}] and [P, {game.num_actions}]"
            )
        legal = game.legal(positions.states)
        wrong = (np.isnan(positions.action_values) == legal).any(axis=1) | ~legal.any(axis=1)
        if wrong.any():
            row = int(wrong.argmax())
            raise GameError(
                f"{positions.name!r} of {name} must hold unfinished positions, with a value for each legal action and "
                f"NaN for all others, but does not here:\n{game.render(positions.states[row])}"
            )
    return position_sets


def load_perfect_actions(name: str) -> PerfectActions:
    """Return the solver that a game offers.

    Raises:
        GameError: there is no such game, or it offers none.
    """
    perfect_actions: PerfectActions | None = getattr(load_game_module(name), "perfect_actions", None)
    if perfect_actions is None:
        raise GameError(f"{name} has no solver: its module offers no perfect_actions(states, seconds)")
    return perfect_actions


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
