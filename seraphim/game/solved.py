"""Solved positions, and exact results of the moves of a position, as far as a game offers them.

Solvers remember positions, so those of the games here serve one thread at a time.
"""

from types import ModuleType
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError
from seraphim.game import AnyGame, Array, Game, load_features, load_game, name_of
from seraphim.game.loading import PerfectActions, PositionSet, Split, module_features


class MoveValue(NamedTuple):
    """The value of an action under best play, for the player who moves."""

    result: int | None  # 1 a win, 0 a draw, -1 a loss; None where the game offers only the best moves
    best: bool
    plies: int | None  # to the end of the game, this move included; None where unknown
    proven: bool = False  # whether a proof says so, not a solver; then `plies` is a maximum


def load_position_sets(name: AnyGame, split: Split = "validation") -> list[PositionSet]:
    """Return the solved positions of a game, an empty list if it offers none; by default those to choose a model by.

    Raises:
        GameError: there is no such game, or its solved positions do not fit its rules.
    """
    offered = load_features(name).position_sets
    sets = [] if offered is None else offered(split)
    for positions in sets:
        _check(name, positions)
    return sets


def _check(name: AnyGame, positions: PositionSet) -> None:
    # That solved positions fit the rules.
    game = load_game(name)
    shapes = (positions.states.shape[1:], positions.action_values.shape)
    if shapes != ((game.state_words,), (len(positions.states), game.num_actions)):
        raise GameError(
            f"{positions.name!r} of {name_of(name)} has states {positions.states.shape} and action values "
            f"{positions.action_values.shape}: expected [P, {game.state_words}] and [P, {game.num_actions}]"
        )
    legal = game.legal(positions.states)
    wrong = (np.isnan(positions.action_values) == legal).any(axis=1) | ~legal.any(axis=1)
    if positions.plies is not None:
        wrong |= (np.isnan(positions.plies) == legal).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise GameError(
            f"{positions.name!r} of {name_of(name)} must hold unfinished positions, with a value for each legal "
            f"action and NaN for all others, but does not here:\n{game.render(positions.states[row])}"
        )


def load_perfect_actions(name: AnyGame) -> PerfectActions:
    """Return the solver that a game offers.

    Raises:
        GameError: there is no such game, or it offers none.
    """
    perfect_actions = load_features(name).perfect_actions
    if perfect_actions is None:
        raise GameError(f"{name_of(name)} has no solver: its module offers no perfect_actions(states, seconds)")
    return perfect_actions


def is_solved(module: ModuleType) -> bool:
    """Return whether a game's module offers exact results."""
    features = module_features(module)
    return features.action_results is not None or features.perfect_actions is not None


def solve(module: ModuleType, game: Game, state: Array, seconds: float) -> dict[int, MoveValue]:
    """Return the exact values of the legal actions of an unfinished state int64 [W], without those not found in time.

    Raises:
        GameError: the game offers none, play does not lead to the state, or none is found in `seconds`.
    """
    features = module_features(module)
    actions = np.flatnonzero(game.legal(state[None])[0]).tolist()
    if features.action_results is None:
        if features.perfect_actions is None:
            raise GameError(f"{game.name} has no solver: exact results are unavailable")
        best = features.perfect_actions(state[None], seconds)[0]
        return {action: MoveValue(None, bool(best[action]), None) for action in actions}
    found = features.action_results(state, seconds)
    results, plies = found.results[actions], found.plies[actions]
    if np.isnan(results).all():
        raise GameError(f"the solver needs more than {seconds:g} s here: ask again some moves later")
    values = zip(actions, results.tolist(), best_moves(results, plies).tolist(), plies.tolist(), strict=True)
    return {
        action: MoveValue(int(result), best, None if np.isnan(ply) else int(ply))
        for action, result, best, ply in values
        if not np.isnan(result)
    }


def best_moves(results: Array, plies: Array) -> Array:
    """Return which of all moves of a position are certain to be the best, bool [K], by their results and plies [K].

    They are the fastest wins, else draws, else the slowest losses; among these, moves of unknown plies count as well.
    """
    most = np.nanmax(results)
    if most < 1 and np.isnan(results).any():
        return np.zeros(len(results), np.bool_)
    best = results == most
    if most and not np.isnan(plies[best]).all():
        best &= np.isnan(plies) | (plies == (np.nanmin(plies[best]) if most > 0 else np.nanmax(plies[best])))
    return best
