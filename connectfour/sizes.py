"""Connect four on boards of other sizes, as the games `connectfour:5x6`: rows, then columns."""

from types import ModuleType

from connectfour.game import SETTINGS, ConnectFour
from seraphim.errors import GameError


def load_module(name: str) -> ModuleType:
    """Return a module with `GAME` and `SETTINGS` for `connectfour:ROWSxCOLUMNS`.

    Raises:
        GameError: the name is no size, or the board is not possible.
    """
    rows, _, columns = name.partition(":")[2].partition("x")
    if not (name.isascii() and rows.isdecimal() and columns.isdecimal() and len(rows + columns) <= 4):
        raise GameError(f"{name!r} is no size of connect four: expected one such as connectfour:5x6, rows and columns")
    module, game = ModuleType(name), ConnectFour(int(rows), int(columns))
    self_play = {**SETTINGS["self_play"], "random_plies": game.max_plies // 2}
    vars(module).update(GAME=game, SETTINGS={**SETTINGS, "self_play": self_play})
    return module
