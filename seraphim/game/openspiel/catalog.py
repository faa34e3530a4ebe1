"""Which games of OpenSpiel are supported, by what it declares them to be, and within which bounds."""

import math
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from seraphim.errors import GameError, how_to_install, shown
from seraphim.game.features import MOST_PLAYERS
from seraphim.machine import needed

MOST_ACTIONS = 2**16  # that a search has room for; as many outcomes of chance
MOST_SIZE, MOST_LENGTH = 50, 9_999  # of a parameter, where its square bounds the cells; of one like `max_moves`
MOST_ROLLS = 10_000  # of all dice together
_LONGEST_NUMBER = 4  # digits


def pyspiel_module() -> ModuleType:
    """Return the module; raise a NotInstalledError if OpenSpiel is not installed."""
    with needed(f"OpenSpiel is not installed: {how_to_install('openspiel')}"):
        import pyspiel
    return pyspiel


def playable_games() -> list[str]:
    """Return the names of all supported games of OpenSpiel that need no parameters."""
    pyspiel = pyspiel_module()
    return [kind.short_name for kind in pyspiel.registered_games() if not _obstacle(pyspiel, kind)]


def load(name: str) -> Any:
    """Return a game of OpenSpiel by its name there.

    Raises:
        GameError: there is no such game, or it is not supported here.
        NotInstalledError: OpenSpiel is not installed.
    """
    pyspiel = pyspiel_module()
    known = {kind.short_name: kind for kind in pyspiel.registered_games()}
    short_name = name.partition("(")[0]
    if short_name not in known:
        raise GameError(f"OpenSpiel has no game {short_name!r}: expected one like openspiel:hex(board_size=5)")
    _check_parameters(name, known[short_name].parameter_specification)
    obstacle = _obstacle(pyspiel, known[short_name], needs_defaults=False)
    if obstacle:
        raise GameError(f"openspiel:{name} is not supported: it {obstacle}")
    try:
        game = pyspiel.load_game(name)
    except pyspiel.SpielError as error:
        raise GameError(f"OpenSpiel cannot load {name!r}: {str(error).splitlines()[0]}") from error
    reasons = (
        (game.num_distinct_actions() <= MOST_ACTIONS, f"has {game.num_distinct_actions():,} actions"),
        (game.max_chance_outcomes() <= MOST_ACTIONS, f"has {game.max_chance_outcomes():,} outcomes of chance"),
        (1 <= game.num_players() <= MOST_PLAYERS, f"has {game.num_players()} players, not 1 to {MOST_PLAYERS}"),
        (0 < max(abs(game.min_utility()), abs(game.max_utility())) < math.inf, "has no bounds for its results"),
    )
    for holds, reason in reasons:
        if not holds:
            raise GameError(f"openspiel:{name} is not supported: it {reason}")
    return game


def _check_parameters(name: str, defaults: Mapping[str, Any]) -> None:
    # OpenSpiel's C++ crashes, or takes gigabytes, with some numbers that make no sense.
    numbers = dict(defaults)
    for parameter, value in re.findall(r"([a-z_]+)=([^,)]*)", name.partition("(")[2]):
        most = MOST_LENGTH if parameter.startswith("max_") else MOST_SIZE
        is_whole = re.fullmatch(r"\s*[-+]?\d+\s*", value)
        if is_whole and not (len(value) <= _LONGEST_NUMBER and 1 <= int(value) <= most):
            raise GameError(
                f"openspiel:{shown(name)[1:-1]}: expected {parameter} to be from 1 to {most:,}; leave it out for "
                "OpenSpiel's own number"
            )
        if any(len(number) > _LONGEST_NUMBER for number in re.findall(r"\d+", value)):
            raise GameError(f"openspiel:{shown(name)[1:-1]} is too large: expected numbers below 10,000")
        if is_whole:
            numbers[parameter] = int(value)
    for size, dimensions, most, what in (
        ("size", "dims", MOST_SIZE**2, "cells"),
        ("dice_sides", "num_dice", MOST_ROLLS, "rolls"),
    ):
        if dimensions in numbers and numbers[size] ** numbers[dimensions] > most:
            raise GameError(f"openspiel:{shown(name)[1:-1]} is too large: expected {most:,} {what} at most")


def _obstacle(pyspiel: ModuleType, kind: Any, needs_defaults: bool = True) -> str:
    # The reason why a kind of game is not supported; "" if it is.
    types = pyspiel.GameType
    requirements = (
        (kind.chance_mode != types.ChanceMode.SAMPLED_STOCHASTIC, "has chance without probabilities"),
        (kind.information == types.Information.PERFECT_INFORMATION, "has hidden information"),
        (kind.dynamics == types.Dynamics.SEQUENTIAL, "is not played in turns"),
        (kind.utility == types.Utility.ZERO_SUM or kind.max_num_players == 1, "is not zero-sum"),
        (kind.provides_observation_tensor, "has no observation for a network"),
        (kind.default_loadable or not needs_defaults, "needs parameters"),
    )
    return next((reason for holds, reason in requirements if not holds), "")
