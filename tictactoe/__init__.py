"""Tic-tac-toe: rules, defaults, and every position solved by minimax."""

from tictactoe.game import GAME, SETTINGS
from tictactoe.minimax import position_sets

__all__ = ["GAME", "SETTINGS", "position_sets"]
