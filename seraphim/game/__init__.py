"""Games: the contract, loading by name, moves as text, and exact results.

In dependency order:

    interface       the contract of a game: batched rules
    features        the optional members of a game
    notation        moves as text: labels, reading and writing
    grid            names of moves, drawings and symmetries of games on a board
    tree            the history of a game with its variations
    saved_games     positions and games in text and in files
    plain           rules in plain Python, one position at a time
    openspiel/      the games of OpenSpiel
    conformance/    checks a game against its contract, and two forms of a game against each other
    loading         what the module of a game offers; a game by its name, and its name
    solved          exact results of the moves of a position
    solved_files    solved positions in files
    game_graph      the positions of a small game, and how their values follow from one another
    exhaustive      every position of a small game, solved
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seraphim.game.interface import (
    CHANCE,
    EMPTY,
    Array,
    Board,
    Game,
    Symmetries,
    cell_name,
    cells_from_drawing,
    identity_symmetry,
    random_actions,
)

if TYPE_CHECKING:
    from seraphim.game.features import board_of
    from seraphim.game.loading import (
        FAMILIES,
        AnyGame,
        is_same,
        load_features,
        load_game,
        load_game_module,
        module_name,
        name_of,
    )
    from seraphim.game.plain import PlainGame, PlainRules

__all__ = [
    "CHANCE",
    "EMPTY",
    "FAMILIES",
    "AnyGame",
    "Array",
    "Board",
    "Game",
    "PlainGame",
    "PlainRules",
    "Symmetries",
    "board_of",
    "cell_name",
    "cells_from_drawing",
    "identity_symmetry",
    "is_same",
    "load_features",
    "load_game",
    "load_game_module",
    "module_name",
    "name_of",
    "random_actions",
]

_MODULES = {"board_of": "features", "PlainGame": "plain", "PlainRules": "plain"}  # of the others: loading


def __getattr__(name: str) -> Any:
    """Import what the search does not need when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'loading')}"), name)
