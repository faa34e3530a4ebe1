"""Hex on a rhombus of any size from 2×2 to 11×11, by default 7×7."""

from hex.game import GAME, SETTINGS, state_from_board

__all__ = ["GAME", "SETTINGS", "state_from_board"]
