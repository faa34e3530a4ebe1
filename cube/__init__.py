"""The 2×2×2 cube: a puzzle for one player, solved in all of its 3,674,160 positions."""

from cube.distances import perfect_actions, position_sets
from cube.game import GAME, SETTINGS

__all__ = ["GAME", "SETTINGS", "perfect_actions", "position_sets"]
