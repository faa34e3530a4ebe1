"""Pig: a race of two players with one die, and its exact solution."""

from pig.game import GAME, SETTINGS
from pig.optimal import perfect_actions, position_sets

__all__ = ["GAME", "SETTINGS", "perfect_actions", "position_sets"]
