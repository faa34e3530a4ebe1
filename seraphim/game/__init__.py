"""The rules of games: what a game offers, how it is found, its moves as text, and what is true in it.

interface      what a game is, batched; `PlainGame`, one position at a time; how a game is found by its name
notation       moves as text: labels, reading and writing
tree           the history of a game with its variations
saved_games    positions and games in text and in files
exhaustive     every position of a small game, solved
solved         exact results of the moves of a position
openspiel      the games of OpenSpiel
conformance/   checks a game against its contract, and two forms of a game against each other
"""

from seraphim.game.interface import (
    EMPTY,
    Array,
    Board,
    Game,
    Symmetries,
    board_of,
    cell_name,
    cells_from_drawing,
    identity_symmetry,
)
from seraphim.game.loading import FAMILIES, load_game, load_game_module
from seraphim.game.plain import PlainGame, PlainRules

__all__ = [
    "EMPTY",
    "FAMILIES",
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
    "load_game",
    "load_game_module",
]
