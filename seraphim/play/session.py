"""A game between a person and the computer: who plays which side, where the game is, and by which options.

The verbs that a person has, without a terminal: each either does what it says or raises an error of one sentence and
changes nothing.
"""

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_type_hints

import numpy as np

from seraphim.errors import GameError, SettingsError
from seraphim.game import load_game
from seraphim.game.notation import parse_move
from seraphim.game.tree import GameTree, Node
from seraphim.inference import Inference
from seraphim.options import SearchOptions
from seraphim.play import game_files
from seraphim.play.opponent import Opponent, PlayOptions, Reading, Watch

Human = Literal["first", "second", "both", "none"]

MOST_READOUTS = 1_000_000  # at a time

_HUMANS = {"first": {0}, "second": {1}, "both": {0, 1}, "none": set[int]()}
_SWITCHES = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class SessionOptions:
    """What a person chooses about a game."""

    human: Human = "first"
    """Which side the person plays; the computer plays the other."""
    debug: bool = False
    """Shows all that the search knows in each position, and waits before each move."""


_Options = TypeVar("_Options", SessionOptions, PlayOptions, SearchOptions)


class Session:
    """One person's game with its branches, and the computer at the other side of the board."""

    def __init__(
        self,
        game_name: str,
        inference: Inference,
        search: SearchOptions,
        play: PlayOptions,
        options: SessionOptions,
        generator: np.random.Generator,
    ) -> None:
        """Begin a new game.

        Args:
            game_name: package or module of the game.
            inference: the model.
            search: options of the search; a root by Gumbel is searched by PUCT instead, which can go on reading.
            play: how the computer chooses its moves.
            options: what the person chooses.
            generator: decides where chance does.

        Raises:
            GameError: there is no such game.
            SettingsError: there are too many readouts.
        """
        self.game_name = game_name
        self.game = load_game(game_name)
        self.options = options
        self.opponent = Opponent(self.game, inference, _checked(replace(search, root="puct")), play, generator)
        self.tree = GameTree(self.game)
        self.root_replaced = search.root != "puct"  # whether the search is another than the options say
        self.reading: Reading | None = None  # of the position where the game is
        self.waiting = False  # whether the computer waits to be told to move
        self._values: dict[Node, float] = {}  # for player 0, of positions that were read

    @property
    def ended(self) -> bool:
        """Return whether there is no move to make."""
        return not self.tree.legal()

    @property
    def mover(self) -> int:
        """Return the player to move, 0 or 1."""
        return int(self.game.to_play(self.tree.node.state[None])[0])

    @property
    def humans(self) -> set[int]:
        """Return which players are the person's."""
        return _HUMANS[self.options.human]

    @property
    def computer_moves(self) -> bool:
        """Return whether it is for the computer to move."""
        return not self.ended and self.mover not in self.humans

    @property
    def value(self) -> float | None:
        """Return the expected result for player 0, or that of the nearest position before which was read."""
        ended, results = self.game.outcome(self.tree.node.state[None])
        if ended[0]:
            return float(results[0])
        return next((self._values[node] for node in reversed(self.tree.path()) if node in self._values), None)

    def check_unfinished(self) -> None:
        """Raise a GameError if the game is over here."""
        if self.ended:
            raise GameError("the game is over here: undo takes moves back, new begins another game")

    def find_action(self, text: str) -> int | None:
        """Return the action that a text names, legal here or not, or None."""
        try:
            return parse_move(self.game, text, self.tree.node.state)
        except GameError:
            return None

    def play(self, action: int) -> None:
        """Play an action for whoever is to move.

        Raises:
            GameError: it is not legal, or the game is over.
        """
        self.check_unfinished()
        self.tree.play(action)
        self._arrive(waiting=False)

    def read(self, readouts: int, watch: Watch | None = None) -> Reading:
        """Add readouts to what the computer knows of this position; see `Opponent.read`.

        Raises:
            GameError: the game is over.
            SettingsError: there are too many readouts.
            ModelError: the model gave a NaN or an infinity.
        """
        self.check_unfinished()
        _check_readouts(readouts)
        self.reading = self.opponent.read(self.tree, readouts, watch)
        self._values[self.tree.node] = self.reading.value if self.mover == 0 else -self.reading.value
        return self.reading

    def undo(self, plies: int | None = None) -> None:
        """Take moves back: so many, or as many as lead to a turn of the person's, and one in debug mode.

        Raises:
            GameError: there are not so many.
        """
        here = self.tree.node
        if plies is None:
            plies = self._plies_to_turn(self.tree.path()[-2::-1])
        if not here.ply:
            raise GameError("there is no move to take back")
        if plies > here.ply:
            raise GameError(f"only {here.ply} moves were made here, so {plies} cannot be taken back")
        self.tree.go(self.tree.path()[here.ply - plies])
        self._arrive()

    def redo(self, plies: int | None = None) -> None:
        """Play again what was taken back: so many moves, or up to a turn of the person's, and one in debug mode.

        Raises:
            GameError: there are not so many.
        """
        ahead = self.tree.ahead()
        if plies is None:
            plies = self._plies_to_turn(ahead)
        if not ahead:
            raise GameError("there is no move to play again")
        if plies > len(ahead):
            raise GameError(f"only {len(ahead)} moves follow here, so {plies} cannot be played again")
        self.tree.go(ahead[plies - 1] if plies else self.tree.node)
        self._arrive()

    def _plies_to_turn(self, nodes: list[Node]) -> int:
        # How many of these positions there are up to the next at which the person is to move; 1 if there is none.
        if not self.options.debug and len(self.humans) == 1:
            for count, node in enumerate(nodes, start=1):
                if int(self.game.to_play(node.state[None])[0]) in self.humans:
                    return count
        return 1

    def go(self, place: str) -> None:
        """Go to another position of the game.

        Args:
            place: `start`, `end`, the number of moves on the line where we are, a line (`B`), or both (`B3`).

        Raises:
            GameError: there is no such place.
        """
        tree = self.tree
        text = "".join(place.split())
        match = re.fullmatch(r"([A-Za-z]*)([0-9]*)", text)
        if text.lower() == "start":
            tree.go(tree.root)
        elif text.lower() == "end":
            tree.go((tree.ahead() or [tree.node])[-1])
        elif match and text:
            tree.go(self._find(match[1].upper(), int(match[2]) if match[2] else None))
        else:
            raise GameError(f"{place!r} is no place: expected start, end, a number of moves, or a line such as B or B3")
        self._arrive()

    def _find(self, line: str, ply: int | None) -> Node:
        if line or ply is None:
            return self.tree.find(line, ply)
        here = [*self.tree.path(), *self.tree.ahead()]
        if ply >= len(here):
            raise GameError(f"there are {len(here) - 1} moves here: expected a number from 0 to {len(here) - 1}")
        return here[ply]

    def new(self) -> None:
        """Begin a new game."""
        self.tree = GameTree(self.game)
        self._values.clear()
        self._arrive(waiting=False)

    def load(self, text: str) -> None:
        """Go to a position: moves, a drawn board, a record of a game file (`FILE:RECORD`), or a text file of these.

        Moves from the initial position become a branch of the game, if that began there as well; anything else takes
        the place of the game.

        Raises:
            GameError: it is none of these, or a move is not legal.
            RecordError: the file cannot be read, or is of another game.
        """
        loaded = game_files.find(self.game_name, text.strip())
        if isinstance(loaded, GameTree):
            self.tree = loaded
        else:
            if loaded.start is not None or not self.tree.starts_afresh:
                self.tree = GameTree(self.game, loaded.start)
            self.tree.go(self.tree.root)
            for action in loaded.actions:
                self.tree.play(action)
            here = self.tree.node
            for action in loaded.ahead:
                self.tree.play(action)
            self.tree.go(here)
        self._arrive()

    def save(self, file: str) -> None:
        """Write the game with its branches into a text file.

        Raises:
            RecordError: it cannot be written, or there is such a file that is no saved game.
        """
        game_files.save(self.tree, Path(file))

    def settings(self) -> dict[str, Any]:
        """Return all options that can be changed, by name."""
        return asdict(self.options) | asdict(self.opponent.play) | asdict(self.opponent.search)

    def change(self, name: str, text: str) -> None:
        """Give an option another value from now on.

        Raises:
            SettingsError: there is no such option, or it cannot have that value.
        """
        if name not in self.settings():
            raise SettingsError(f"there is no option {name!r}: expected one of {', '.join(self.settings())}")
        options = _changed(self.options, name, text)
        play = _changed(self.opponent.play, name, text)
        search = _checked(_changed(self.opponent.search, name, text))
        self.opponent.change(search, play)
        if options == self.options:
            self.reading = None  # what was read by other options
        self.options = options

    def _arrive(self, waiting: bool = True) -> None:
        # The position or the options are others now. The computer moves by itself only where the game goes on.
        self.reading = None
        self.waiting = waiting


def _checked(search: SearchOptions) -> SearchOptions:
    _check_readouts(search.readouts)
    return search


def _check_readouts(readouts: int) -> None:
    if readouts > MOST_READOUTS:
        raise SettingsError(f"at most {MOST_READOUTS:,} readouts at a time, not {readouts:,}")


def _changed(options: _Options, name: str, text: str) -> _Options:
    # The same options where there is none of that name.
    hints = get_type_hints(type(options))
    return replace(options, **{name: _to_value(name, text, hints[name])}) if name in hints else options


def _to_value(name: str, text: str, expected: Any) -> Any:
    choices = get_args(expected)
    if choices:
        if text not in choices:
            raise SettingsError(f"{name} must be one of {', '.join(choices)}, not {text!r}")
        return text
    if expected is bool:
        if text.lower() not in _SWITCHES:
            raise SettingsError(f"{name} must be on or off, not {text!r}")
        return _SWITCHES[text.lower()]
    try:
        return expected(text)
    except ValueError as error:
        kind = "a whole number" if expected is int else "a number"
        raise SettingsError(f"{name} must be {kind}, not {text!r}") from error
