"""Connect four: rules and defaults."""

from connectfour.game import GAME, SETTINGS

__all__ = ["GAME", "SETTINGS"]
