"""What a game is: batched rules, an adapter for plain-Python rules, and how a game is found by name.

Knows no particular game. A game is any object with the members of `Game`; it is found through its package or
module, which offers it as `GAME` (and, optionally, its own defaults as `SETTINGS`, solved positions to be checked
against as `position_sets()`, other settings by name as `PRESETS`, and `state_from_board(text)`, which reads a drawing
of a position as `GAME.render` writes it). A game that is played on a board may offer `board(state)`, see `Board`; one
without is shown as the text of `render`. A game that calls an action by other names in other positions offers
`label_in(state, action)`, names without spaces and commas. A game whose fast wins may count more offers
`progress(states)`, see `seraphim.search.terminal_value`. `seraphim.game.conformance` checks a game.

Shape letters: `B` positions of a batch, `A` actions, `W` words of a state, `O` shape of an observation,
`S` symmetries.
"""

import importlib
import sys
from collections.abc import Callable, Hashable, Sequence
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from seraphim.errors import GameError
from seraphim.network.safety import check_game_module

Array = NDArray[Any]


class Symmetries(NamedTuple):
    """The symmetries of a game as index arrays; row 0 is the identity.

    The observation under symmetry `s` is `observation.ravel()[observations[s]]`, in the same shape, and the
    policy that belongs to it is `policy[actions[s]]`.
    """

    observations: Array  # int32 [S, prod(O)]
    actions: Array  # int32 [S, A]


class Board(NamedTuple):
    """A position as a grid of cells, for people.

    What the optional member `board(state)` of a game returns: of a `Game` for a state int64 [W], of a `PlainGame` for
    one of its own states. `board_of` asks any game for it.
    """

    cells: Array  # int8 [R, C]: index into marks, EMPTY for an empty cell; row 0 is the top
    marks: tuple[str, ...]  # what may stand in a cell: ("X", "O"), a piece of player 0 and one of player 1
    # For each legal action the cells (row, column) that name it. The first is where the piece lands; the others, such
    # as the rest of a column of connect four, play it as well. For a piece that moves: where it lands, where it stands.
    targets: dict[int, list[tuple[int, int]]]
    line: tuple[tuple[int, int], ...] = ()  # the cells (row, column) that decided the game, such as four in a row
    # What rows and columns are called, if cells have names: a cell is its column, then its row, such as c3 in chess.
    row_names: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()


def cell_name(board: Board, row: int, column: int) -> str:
    """Return what a cell of a board is called, `` if it has no name."""
    return board.column_names[column] + board.row_names[row] if board.row_names and board.column_names else ""


FAMILIES = "seraphim.games"  # the group of entry points of those who offer many games
EMPTY = -1  # a cell of a board where nothing stands


@runtime_checkable
class Game(Protocol):
    """The rules of a two-player, deterministic, perfect-information game, a batch of positions at a time.

    A state is a row of `W` int64 words that encodes a position exactly, player to move included: it is the key of
    every cache, so two rows are equal if and only if the positions are. No method modifies its arguments.
    """

    name: str
    num_actions: int  # A
    observation_shape: tuple[int, ...]  # O
    state_words: int  # W
    max_plies: int  # no game is longer; one that is cut off here has no result

    def initial(self, batch: int) -> Array:
        """Return `batch` copies of the initial state, int64 [B, W]."""

    def step(self, states: Array, actions: Array) -> Array:
        """Return the states int64 [B, W] after legal `actions` (any int type, [B]) in unfinished `states` [B, W]."""

    def legal(self, states: Array) -> Array:
        """Return the legal actions of each state, bool [B, A]; all False once the game has ended."""

    def to_play(self, states: Array) -> Array:
        """Return the player to move, 0 or 1, int8 [B]; a player may move twice in a row."""

    def outcome(self, states: Array) -> tuple[Array, Array]:
        """Return whether each game has ended, bool [B], and its result for player 0, float32 [B] in [-1, 1]."""

    def observe(self, states: Array) -> Array:
        """Return the network's input, uint8 [B, *O], as seen by the player to move."""

    def symmetries(self) -> Symmetries:
        """Return the symmetries of the board; at least the identity."""

    def render(self, state: Array) -> str:
        """Return a drawing of one state int64 [W] in plain text."""

    def action_label(self, action: int) -> str:
        """Return the game's usual name for an action."""

    def parse_action(self, text: str) -> int:
        """Return the action that `text` names; the inverse of `action_label`.

        Raises:
            GameError: `text` names no action of this game.
        """


class PlainGame:
    """Base class for rules written one position at a time in plain Python; `PlainRules` makes a `Game` of them.

    A state is any hashable object. If it is a tuple of `state_words` ints, nothing else is needed; otherwise
    override `to_words` and `from_words`, because states are also stored in files and sent between processes.
    """

    name: str
    num_actions: int
    observation_shape: tuple[int, ...]
    state_words: int
    max_plies: int

    def initial(self) -> Hashable:
        """Return the initial state."""
        raise NotImplementedError

    def step(self, state: Any, action: int) -> Hashable:
        """Return the state after a legal action."""
        raise NotImplementedError

    def legal(self, state: Any) -> Sequence[int]:
        """Return the legal actions of an unfinished state."""
        raise NotImplementedError

    def to_play(self, state: Any) -> int:
        """Return the player to move, 0 or 1."""
        raise NotImplementedError

    def outcome(self, state: Any) -> float | None:
        """Return the result for player 0 in [-1, 1], or None if the game goes on."""
        raise NotImplementedError

    def observe(self, state: Any) -> Array:
        """Return the network's input, small non-negative ints of shape `observation_shape`, for the player to move."""
        raise NotImplementedError

    def symmetries(self) -> Symmetries:
        """Return the symmetries of the board; by default the identity alone."""
        return identity_symmetry(self.observation_shape, self.num_actions)

    def render(self, state: Any) -> str:
        """Return a drawing of a state in plain text."""
        return str(state)

    def action_label(self, action: int) -> str:
        """Return the usual name of an action; by default its number."""
        return str(action)

    def parse_action(self, text: str) -> int:
        """Return the action that `text` names.

        Raises:
            GameError: `text` names no action of this game.
        """
        for action in range(self.num_actions):
            if self.action_label(action) == text.strip():
                return action
        raise GameError(f"{text!r} is no action of {self.name}: expected one like {self.action_label(0)!r}")

    def to_words(self, state: Any) -> Sequence[int]:
        """Return the state as `state_words` ints of 64 bits, exactly."""
        return tuple(state)

    def from_words(self, words: tuple[int, ...]) -> Hashable:
        """Return the state that `to_words` gave these ints for."""
        return words


class PlainRules:
    """A `Game` made of a `PlainGame`: loops over the rows of each batch in Python.

    It works everywhere a batched game does and is the slow path: about ten microseconds a readout.
    """

    def __init__(self, plain: PlainGame) -> None:
        self._plain = plain
        self.name = plain.name
        self.num_actions = plain.num_actions
        self.observation_shape = tuple(plain.observation_shape)
        self.state_words = plain.state_words
        self.max_plies = plain.max_plies
        self.symmetries = plain.symmetries
        self.action_label = plain.action_label
        self.parse_action = plain.parse_action
        if hasattr(plain, "board"):
            self.board = lambda state: plain.board(self._objects(state[None])[0])
        if hasattr(plain, "label_in"):
            self.label_in = lambda state, action: plain.label_in(self._objects(state[None])[0], action)

    def _objects(self, states: Array) -> list[Any]:
        return [self._plain.from_words(tuple(row)) for row in states.tolist()]

    def _words(self, objects: Sequence[Any]) -> Array:
        rows = [self._plain.to_words(state) for state in objects]
        if any(len(row) != self.state_words for row in rows):
            raise GameError(
                f"{self.name}: a state has {len(rows[0])} words but state_words is {self.state_words}: "
                "make states tuples of that many ints, or override to_words and from_words"
            )
        return np.array(rows, np.int64).reshape(len(rows), self.state_words)

    def initial(self, batch: int) -> Array:
        """See `Game.initial`."""
        return np.repeat(self._words([self._plain.initial()]), batch, axis=0)

    def step(self, states: Array, actions: Array) -> Array:
        """See `Game.step`."""
        pairs = zip(self._objects(states), actions.tolist(), strict=True)
        return self._words([self._plain.step(state, action) for state, action in pairs])

    def legal(self, states: Array) -> Array:
        """See `Game.legal`."""
        legal = np.zeros((len(states), self.num_actions), np.bool_)
        for row, state in enumerate(self._objects(states)):
            if self._plain.outcome(state) is None:
                legal[row, list(self._plain.legal(state))] = True
        return legal

    def to_play(self, states: Array) -> Array:
        """See `Game.to_play`."""
        return np.array([self._plain.to_play(state) for state in self._objects(states)], np.int8)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        """See `Game.outcome`."""
        results = [self._plain.outcome(state) for state in self._objects(states)]
        ended = np.array([result is not None for result in results], np.bool_)
        return ended, np.array([result or 0.0 for result in results], np.float32)

    def observe(self, states: Array) -> Array:
        """See `Game.observe`."""
        observations = np.empty((len(states), *self.observation_shape), np.uint8)
        for row, state in enumerate(self._objects(states)):
            observations[row] = self._plain.observe(state)
        return observations

    def render(self, state: Array) -> str:
        """See `Game.render`."""
        return self._plain.render(self._objects(state[None])[0])


def board_of(game: Game, state: Array) -> Board | None:
    """Return a state int64 [W] as a board, or None if the game offers no `board`."""
    board = getattr(game, "board", None)
    return None if board is None else board(state)


def cells_from_drawing(text: str, rows: int, columns: int, marks: str, labels: str) -> Array:
    """Read a drawn board: one row a line, or rows with `/` between them.

    Spaces, a line of nothing but `labels`, and one of them at the beginning of a row do not count. Marks may be small
    letters; an empty cell is `·`, `.`, `_` or `-`.

    Args:
        text: the drawing.
        rows: R.
        columns: C.
        marks: one character for each piece.
        labels: the characters that name rows and columns.

    Returns:
        int8 [R, C]: index into marks, EMPTY for an empty cell; row 0 is the top.

    Raises:
        GameError: the drawing is not of this size, or has other marks.
    """
    values = {mark: index for index, mark in enumerate(marks)}
    values |= {mark.lower(): index for mark, index in values.items()} | dict.fromkeys("·._-", EMPTY)
    lines = ["".join(line.split()) for line in text.replace("/", "\n").splitlines()]
    lines = [line[1:] if line[0] in labels else line for line in lines if line.strip(labels)]
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


def load_game_module(name: str) -> ModuleType:
    """Import the package or module of a game, e.g. `tictactoe` or `mine.breakthrough`; it offers `GAME`.

    A name such as `openspiel:hex` is a game of a family: a function that is installed as an entry point of the group
    FAMILIES makes what its module would be.

    Raises:
        GameError: there is no such module or family, or it offers no `GAME`.
    """
    cure = "name a package or module that offers GAME, such as tictactoe"
    family, colon, _ = name.partition(":")
    if colon:
        return _family(family)(name)
    if not all(part.isidentifier() for part in name.split(".")):
        raise GameError(f"{name!r} is not a game: {cure}")
    if "" not in sys.path:
        sys.path.append("")  # a game in the current folder needs no installation
    check_game_module(name)  # a settings.json may name any module there is
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise  # the game's own imports are its author's business
        raise GameError(f"there is no game {name!r}: {cure}") from error
    if not hasattr(module, "GAME"):
        raise GameError(f"module {name!r} offers no GAME: {cure}")
    return module


def _family(name: str) -> Callable[[str], ModuleType]:
    found = {point.name: point for point in entry_points(group=FAMILIES)}
    if name not in found:
        raise GameError(f"there is no family of games {name!r}: expected {' or '.join(sorted(found)) or 'none here'}")
    return found[name].load()


def load_game(name: str) -> Game:
    """Return the game that `load_game_module` finds.

    Raises:
        GameError: there is no such game.
    """
    game = load_game_module(name).GAME
    return PlainRules(game) if isinstance(game, PlainGame) else game
