"""Othello on 8×8 cells."""

from othello.game import GAME, SETTINGS, state_from_board

__all__ = ["GAME", "SETTINGS", "state_from_board"]
