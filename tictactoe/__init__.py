"""Tic-tac-toe: rules, defaults, and every position solved by minimax."""

from tictactoe.game import GAME, SETTINGS
from tictactoe.minimax import perfect_actions, position_sets

__all__ = ["GAME", "SETTINGS", "perfect_actions", "position_sets"]
