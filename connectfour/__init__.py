"""Connect four: rules, defaults, presets, an exact solver, and sets of solved positions."""

from connectfour.game import GAME, SETTINGS, position_from_moves, state_from_board
from connectfour.perfect import action_results, perfect_actions
from connectfour.positions import position_sets
from connectfour.presets import PRESETS

__all__ = [
    "GAME",
    "PRESETS",
    "SETTINGS",
    "action_results",
    "perfect_actions",
    "position_from_moves",
    "position_sets",
    "state_from_board",
]
