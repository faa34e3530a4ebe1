"""Connect four: rules, defaults, notation, and sets of positions with every move solved."""

from connectfour.game import GAME, SETTINGS, position_from_moves
from connectfour.perfect import perfect_actions
from connectfour.positions import position_sets, strong_position_sets

__all__ = ["GAME", "SETTINGS", "perfect_actions", "position_from_moves", "position_sets", "strong_position_sets"]
