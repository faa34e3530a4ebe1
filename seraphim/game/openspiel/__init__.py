"""The games of OpenSpiel for two players who move in turns, with perfect information and without chance.

In dependency order:

    cache      states of OpenSpiel, up to a number of bytes
    boards     positions as boards, read from OpenSpiel's drawings
    adapter    a game of OpenSpiel as one of ours, and which games there are
"""

from seraphim.game.openspiel.adapter import (
    MOST_PLIES,
    PREFIX,
    SPARE_PLIES,
    OpenSpielGame,
    load_module,
    playable_games,
)
from seraphim.game.openspiel.cache import StateCache

__all__ = ["MOST_PLIES", "PREFIX", "SPARE_PLIES", "OpenSpielGame", "StateCache", "load_module", "playable_games"]
