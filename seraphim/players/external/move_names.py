"""Moves as engines write them: vertices of GTP, moves of UCI.

A vertex is a column's letter and a row's number, or `pass`; the labels of our games are such names, in OpenSpiel's Go
behind the color. In UCI, a game says itself how its moves are written.

Programs for Hex write a swap in two ways. Either the stone is mirrored and colors alternate, as in SGF and in our
rules. Or, in HexGui and MoHex, the stone stays and the players exchange colors: white swaps, and white moves next. From
there on each color is the other player's, and cells are mirrored.
"""

import re
from collections.abc import Callable

import numpy as np

from seraphim.errors import GameError, PlayerError
from seraphim.game import Array, Game
from seraphim.game.features import features_of
from seraphim.game.grid import LETTERS
from seraphim.game.notation import label_in

COLORS = ("black", "white")  # of player 0, which moves first, and of player 1
SHOWN = 10  # legal moves in an error message
SWAP = "swap-pieces"  # the swap in Hex

_CELL = re.compile("([a-z])([1-9][0-9]?)")

NameOf = Callable[[Array, int], str]
"""Returns the name of a legal action in a state int64 [W]."""


def vertex_names(game: Game) -> NameOf:
    """Return what names the moves of a game in GTP."""
    return lambda state, action: vertex(label_in(game, state, action))


def vertex(label: str) -> str:
    """Return how GTP writes a move with this label."""
    return label.rpartition("_")[2]  # B_c3 in OpenSpiel's Go


def mirror(name: str) -> str:
    """Return the cell that mirrors a cell along the diagonal from a1: `c5` for `e3`; another name as it is."""
    cell = _CELL.fullmatch(name)
    if cell is None or int(cell[2]) > len(LETTERS):
        return name
    return f"{LETTERS[int(cell[2]) - 1]}{LETTERS.index(cell[1]) + 1}"


def must_pass(game: Game, state: Array) -> bool:
    """Return whether a pass is the only legal action in a state int64 [W]."""
    legal = np.flatnonzero(game.legal(state[None])[0])
    return len(legal) == 1 and vertex_names(game)(state, int(legal[0])).lower() == "pass"


def uci_names(game: Game) -> NameOf:
    """Return what names the moves of a game in UCI.

    Raises:
        PlayerError: UCI does not play it.
    """
    names = features_of(game).uci_in
    if names is None or features_of(game).uci_variant is None:
        raise PlayerError(f"UCI plays games such as openspiel:chess and openspiel:breakthrough, not {game.name}")
    return names


def board_size(game: Game) -> int | None:
    """Return the number of rows of a square board, None for another shape."""
    rows, *others = game.observation_shape
    return rows if len(others) == 2 and others[0] == rows else None


def action_named(game: Game, name_of: NameOf, state: Array, name: str) -> int:
    """Return the legal action that a name stands for in a state int64 [W]; case does not matter.

    Raises:
        GameError: it names none.
    """
    names = {name_of(state, action).lower(): action for action in np.flatnonzero(game.legal(state[None])[0]).tolist()}
    if name.lower() not in names:
        expected = f"one of {' '.join([*names][:SHOWN])}{' …' if len(names) > SHOWN else ''}" if names else "none"
        hint = "" if name.lower() != SWAP or game.name.endswith(",swap") else "; hex:7,swap is Hex with the swap rule"
        raise GameError(f"{name} is not legal here: expected {expected}{hint}")
    return names[name.lower()]
