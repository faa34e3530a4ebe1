"""Backgammon, a race of two players with two dice."""

from backgammon.game import GAME, SETTINGS

__all__ = ["GAME", "SETTINGS"]
