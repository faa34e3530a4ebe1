"""2048 on smaller boards, as the games `twenty48:2x3`: rows, then columns; the smallest ones are solved."""

from functools import cache
from types import ModuleType

from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.exhaustive import Solution, solve
from seraphim.game.loading import PositionSet, Split
from twenty48.game import SETTINGS, Twenty48

_MOST_CELLS = 6  # of a board that is solved: 85,844 positions


def load_module(name: str) -> ModuleType:
    """Return a module with `GAME` and `SETTINGS` for `twenty48:ROWSxCOLUMNS`; of small boards with solved positions.

    Raises:
        GameError: the name is no size, or the board is not possible.
    """
    rows, _, columns = name.partition(":")[2].partition("x")
    if not (name.isascii() and rows.isdecimal() and columns.isdecimal() and len(rows + columns) == 2):
        raise GameError(f"{name!r} is no size of 2048: expected one such as twenty48:2x3, rows and columns")
    module, game = ModuleType(name), Twenty48(int(rows), int(columns))
    vars(module).update(GAME=game, SETTINGS=SETTINGS)
    module.__file__ = __file__  # rules.js beside it
    if game.cells <= _MOST_CELLS:

        @cache
        def solution() -> Solution:
            return solve(game)

        def position_sets(split: Split) -> list[PositionSet]:
            return solution().position_sets(split)

        def perfect_actions(states: Array, _seconds: float | None = None) -> Array:
            return solution().perfect_actions(states)

        vars(module).update(position_sets=position_sets, perfect_actions=perfect_actions)
    return module
