"""Pig: a race of two players with one die, and its exact solution."""

from pig.game import GAME, SETTINGS

__all__ = ["GAME", "SETTINGS"]
