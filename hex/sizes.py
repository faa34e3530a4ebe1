"""Hex on boards of other sizes, as the games `hex:5`."""

from types import ModuleType

from hex.game import SETTINGS, Hex
from seraphim.errors import GameError


def load_module(name: str) -> ModuleType:
    """Return a module with `GAME` and `SETTINGS` for `hex:SIZE`.

    Raises:
        GameError: the name is no size, or the board is not possible.
    """
    size = name.partition(":")[2]
    if not (name.isascii() and size.isdecimal() and len(size) <= 2):
        raise GameError(f"{name!r} is no size of Hex: expected one such as hex:5")
    module = ModuleType(name)
    vars(module).update(GAME=Hex(int(size)), SETTINGS=SETTINGS)
    return module
