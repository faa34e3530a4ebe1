"""Othello on 8×8 cells: rules, defaults, and an exact solver of endgames."""

from othello.game import GAME, SETTINGS, state_from_board
from othello.perfect import action_results, perfect_actions

__all__ = ["GAME", "SETTINGS", "action_results", "perfect_actions", "state_from_board"]
