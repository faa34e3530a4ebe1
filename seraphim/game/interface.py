"""The contract of a game: batched rules.

Knows no particular game. A game is any object with the members of `Game`, which its package or module offers as `GAME`.
What a game may offer beyond that is in `seraphim.game.features`. `seraphim.game.conformance` checks a game.

Shape letters: `B` positions of a batch, `A` actions, `W` words of a state, `O` shape of an observation,
`S` symmetries.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from seraphim.errors import GameError

Array = NDArray[Any]


class Symmetries(NamedTuple):
    """The symmetries of a game as index arrays; row 0 is the identity.

    The observation under symmetry `s` is `observation.ravel()[observations[s]]`, in the same shape, and the
    policy that belongs to it is `policy[actions[s]]`.
    """

    observations: Array  # int32 [S, prod(O)]
    actions: Array  # int32 [S, A]


Look = Literal["marks", "stones", "hexagons", "pieces", "crossings", "race", "tiles", "net", "backgammon"]
"""How pages draw a board: marks in a grid or stones that drop, as its shape suggests; stones on squares; hexagons;
pieces of chess or checkers, which are marks such as ♘; stones on the crossings of lines; a race of points around a die;
numbered tiles that slide; the net of a cube in the colors of its sides U, R, F, D, L, and B; a board of backgammon, in
the cells of `backgammon/game.py`.

Where moves are not placed in cells, as in a race, with tiles and a net, `targets` may leave out legal actions: they are
buttons."""

LOOKS_WITHOUT_CELLS: tuple[Look, ...] = ("race", "tiles", "net")


class Board(NamedTuple):
    """A position as a grid of cells, for people: what the optional member `board(state)` of a game returns."""

    cells: Array  # int8 [R, C]: index into marks, EMPTY for an empty cell; row 0 is the top
    marks: tuple[str, ...]  # what may stand in a cell: ("X", "O"), a piece of player 0, one of player 1, and so on
    # For each legal action whose label does not end in one of OFF_BOARD, its cells (row, column): first where the piece
    # lands, then others that play it, such as the rest of a column of connect four. For a piece that moves: where it
    # lands, where it stands. Where chance moves, perhaps the cells of outcomes.
    targets: dict[int, list[tuple[int, int]]]
    line: tuple[tuple[int, int], ...] = ()  # the cells (row, column) that decided the game, such as four in a row
    # Names of rows and columns, if cells have names: the column's, then the row's, such as c3 in chess.
    row_names: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()
    look: Look = "marks"
    players: tuple[str, str] | tuple[()] = ()  # what to call players 0 and 1, by what one sees: ("White", "Black")
    # Of a race, for each player: the points they have, those at stake, and those that they need.
    tracks: tuple[tuple[int, int, int], ...] = ()


def cell_name(board: Board, row: int, column: int) -> str:
    """Return the name of a cell of a board, "" if it has none."""
    return board.column_names[column] + board.row_names[row] if board.row_names and board.column_names else ""


EMPTY = -1  # a cell of a board without a piece
OFF_BOARD = "pass", "swap-pieces"  # ends of the labels of actions that no cell names

CHANCE = -1
"""The player to move where chance does, such as dice."""


@runtime_checkable
class Game(Protocol):
    """The rules of a perfect-information game, a batch of positions at a time.

    Two players and no chance are what these members describe; `seraphim.game.features.GameFeatures` has those of games
    of chance and of other numbers of players.

    A state is a row of `W` int64 words that encodes a position exactly, player to move included: it is the key of
    every cache, so two rows are equal if and only if the positions are. No method modifies its arguments.
    """

    name: str
    num_actions: int  # A
    observation_shape: tuple[int, ...]  # O
    state_words: int  # W
    max_plies: int  # games are cut off here, without a result

    def initial(self, batch: int) -> Array:
        """Return `batch` copies of the initial state, int64 [B, W]."""

    def step(self, states: Array, actions: Array) -> Array:
        """Return the states int64 [B, W] after legal `actions` (any int type, [B]) in unfinished `states` [B, W]."""

    def legal(self, states: Array) -> Array:
        """Return the legal actions of each state, bool [B, A]; all False once the game has ended."""

    def to_play(self, states: Array) -> Array:
        """Return the player to move, 0 or 1, int8 [B], or CHANCE; a player may move twice in a row."""

    def outcome(self, states: Array) -> tuple[Array, Array]:
        """Return whether each game has ended, bool [B], and its result for player 0, float32 [B] in [-1, 1].

        Unless there are two players, the results are those of all, float32 [B, P].
        """

    def observe(self, states: Array) -> Array:
        """Return the network's input, uint8 [B, *O], as seen by the player to move."""

    def symmetries(self) -> Symmetries:
        """Return the symmetries of the board; at least the identity."""

    def render(self, state: Array) -> str:
        """Return a drawing of one state int64 [W] in plain text."""

    def action_label(self, action: int) -> str:
        """Return the usual name of an action."""

    def parse_action(self, text: str) -> int:
        """Return the action that `text` names; the inverse of `action_label`.

        Raises:
            GameError: `text` names no action of this game.
        """


def random_actions(legal: Array, generator: np.random.Generator) -> Array:
    """Return an action int [B] for each row of `legal`, bool [B, A], uniformly at random among those that are True."""
    return (generator.random(legal.shape) * legal).argmax(axis=1)


def cells_from_drawing(text: str, rows: int, columns: int, marks: str, labels: str) -> Array:
    """Return the cells int8 [R, C] of a drawn board: index into `marks`, EMPTY for an empty cell; row 0 is the top.

    A row is a line, or rows have `/` between them. Spaces, a line of nothing but `labels` (the characters that name
    rows and columns), and those before the cells of a row are ignored. Marks, one character for each piece, may
    be lower case; an empty cell is `·`, `.`, `_` or `-`.

    Raises:
        GameError: the drawing is not of this size, or has other marks.
    """
    values = {mark: index for index, mark in enumerate(marks)}
    values |= {mark.lower(): index for mark, index in values.items()} | dict.fromkeys("·._-", EMPTY)
    lines = ["".join(line.split()) for line in text.replace("/", "\n").splitlines()]
    lines = [line if line[:-columns].strip(labels) else line[-columns:] for line in lines if line.strip(labels)]
    expected = f"expected {rows} rows of {columns} cells, each of them one of {' '.join(marks)} or . where it is empty"
    if len(lines) != rows:
        raise GameError(f"a board of {len(lines)} rows: {expected}")
    for number, line in enumerate(lines, start=1):
        if len(line) != columns or not set(line) <= set(values):
            raise GameError(f"row {number} of the board is {line!r}: {expected}")
    return np.array([[values[mark] for mark in line] for line in lines], np.int8)


def identity_symmetry(observation_shape: Sequence[int], num_actions: int) -> Symmetries:
    """Return the identity alone, for a game without symmetries."""
    cells = int(np.prod(observation_shape))
    return Symmetries(np.arange(cells, dtype=np.int32)[None], np.arange(num_actions, dtype=np.int32)[None])
