"""2048: a puzzle for one player, in which chance adds tiles."""

from twenty48.game import GAME, SETTINGS

__all__ = ["GAME", "SETTINGS"]
