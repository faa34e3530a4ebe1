"""Positions of OpenSpiel's games as boards, read from the drawings and the names of moves that it gives.

Knows the pieces of some games, and no rules.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from seraphim.game import EMPTY, Board
from seraphim.game.interface import Look


class Pieces(NamedTuple):
    """The pieces of a game and what they are in its drawings, by OpenSpiel's numbers of the players."""

    look: Look
    goal: str
    players: tuple[str, str]
    letters: str  # a piece of player 0, the same of player 1, and so on
    marks: str


PIECES = {
    "breakthrough": Pieces("pieces", "Get a piece to the far side.", ("Black", "White"), "bw", "♟♙"),
    "checkers": Pieces("pieces", "Leave your opponent no piece, or no move.", ("White", "Black"), "o+8*", "⛀⛂⛁⛃"),
    "chess": Pieces("pieces", "Checkmate the king.", ("Black", "White"), "pPnNbBrRqQkK", "♟♙♞♘♝♗♜♖♛♕♚♔"),
    "go": Pieces("crossings", "Surround more of the board than your opponent.", ("Black", "White"), "XO", "●○"),
}
"""By the short name of the game."""


class Diagram(NamedTuple):
    """A drawing as a grid; row 0 is the top."""

    rows: list[str]
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]

    @property
    def has_cell_names(self) -> bool:
        """Whether its cells are named as on a chessboard; OpenSpiel has other signs where a board is large."""
        return all(map(str.isdigit, self.row_names)) and all(map(str.isalpha, self.column_names))


def rows_of_line(text: str) -> list[str]:
    """Return the rows of a position of chess or a relative in one line; an empty cell is a dot."""
    rows = text.partition(" ")[0].split("/")
    return [re.sub(r"\d+", lambda number: "." * int(number[0]), row) for row in rows]


def read_diagram(text: str) -> Diagram:
    """Return OpenSpiel's drawing as a grid: a line of chess, or rows with their names above those of the columns."""
    if "/" in text:
        return Diagram(rows_of_line(text), tuple("87654321"), tuple("abcdefgh"))
    *lines, letters = [line for line in text.splitlines() if line.strip()]
    columns = tuple(letters.strip().lower())
    rows = [line for line in lines if len(line) == len(letters)]
    names = tuple(row[: -len(columns)].strip() for row in rows)
    return Diagram([row[-len(columns) :] for row in rows], names, columns)


def read_board(pieces: Pieces, first: int, drawing: str, moves: Mapping[int, str]) -> Board:
    """Return a position as a board.

    Args:
        pieces: of the game.
        first: OpenSpiel's number of the player who moves first, our player 0.
        drawing: the position, as OpenSpiel draws it.
        moves: by legal action a text with the names of its cells: where a piece lands, after where it stands. A pass
            names none.
    """
    diagram = read_diagram(drawing)
    letters, marks = ([text[index ^ first] for index in range(len(text))] for text in (pieces.letters, pieces.marks))
    cells = [[letters.index(each) if each in letters else EMPTY for each in row] for row in diagram.rows]
    places = {
        column + row: (r, c) for r, row in enumerate(diagram.row_names) for c, column in enumerate(diagram.column_names)
    }
    named = {action: re.findall(r"[a-z]\d+", text)[::-1] for action, text in moves.items()}
    targets = {action: [places[name] for name in names] for action, names in named.items() if names}
    players = pieces.players[first], pieces.players[1 - first]
    names = diagram.row_names, diagram.column_names
    return Board(np.array(cells, np.int8), tuple(marks), targets, (), *names, pieces.look, players)
