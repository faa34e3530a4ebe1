"""Hex on boards of other sizes, and with the swap rule, as the games `hex:5` and `hex:7,swap`."""

from types import ModuleType

from hex.game import SETTINGS, Hex
from seraphim.errors import GameError


def load_module(name: str) -> ModuleType:
    """Return a module with `GAME`, `SETTINGS` and `state_from_board` for `hex:SIZE` or `hex:SIZE,swap`.

    Raises:
        GameError: the name is no size, or the board is not possible.
    """
    size, comma, swap = name.partition(":")[2].partition(",")
    if not (name.isascii() and size.isdecimal() and len(size) <= 2 and (swap == "swap" or not comma)):
        raise GameError(f"{name!r} is no size of Hex: expected one such as hex:5, or hex:7,swap with the swap rule")
    module, game = ModuleType(name), Hex(int(size), swap=bool(swap))
    module.__file__ = __file__  # rules.js beside it
    vars(module).update(GAME=game, SETTINGS=SETTINGS, state_from_board=game.read_board)
    return module
