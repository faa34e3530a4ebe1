"""The games of OpenSpiel for one player, or several who move in turns, with perfect information.

In dependency order:

    cache      states of OpenSpiel, up to a number of bytes
    boards     positions as boards, read from OpenSpiel's drawings
    catalog    which games of OpenSpiel are supported, within which bounds
    adapter    a game of OpenSpiel as one of ours
"""

from seraphim.game.openspiel.adapter import MOST_PLIES, PREFIX, SPARE_PLIES, OpenSpielGame, load_module
from seraphim.game.openspiel.cache import StateCache
from seraphim.game.openspiel.catalog import playable_games

__all__ = ["MOST_PLIES", "PREFIX", "SPARE_PLIES", "OpenSpielGame", "StateCache", "load_module", "playable_games"]
