"""Tic-tac-toe: rules, defaults, and every position solved by minimax."""

from tictactoe.game import GAME, SETTINGS, state_from_board
from tictactoe.minimax import action_results, perfect_actions, position_sets
from tictactoe.presets import PRESETS

__all__ = ["GAME", "PRESETS", "SETTINGS", "action_results", "perfect_actions", "position_sets", "state_from_board"]
