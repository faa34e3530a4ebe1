"""Tic-tac-toe for three players, and its exact solution."""

from threes.game import GAME, SETTINGS, state_from_board
from threes.optimal import perfect_actions, position_sets

__all__ = ["GAME", "SETTINGS", "perfect_actions", "position_sets", "state_from_board"]
