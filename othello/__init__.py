"""Othello on 8×8 cells: rules, defaults, an exact solver of endgames, and sets of solved endgames."""

from othello.game import GAME, SETTINGS, state_from_board
from othello.perfect import action_results, perfect_actions
from othello.positions import position_sets

__all__ = ["GAME", "SETTINGS", "action_results", "perfect_actions", "position_sets", "state_from_board"]
