"""A game between a person and the computer: who plays which side, the current position, and the options.

Independent of the terminal. Each action of the user either succeeds, or raises an error and changes nothing.
"""

import re
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar, get_type_hints

import numpy as np

from seraphim.effects import unmet_needs
from seraphim.errors import GameError, SettingsError
from seraphim.game import CHANCE, load_game
from seraphim.game.features import features_of
from seraphim.game.notation import parse_move
from seraphim.game.tree import GameNode, GameTree
from seraphim.options import Options, SearchOptions
from seraphim.players.choose import HistoryPlayer
from seraphim.players.opponent import Opponent, PlayOptions, Watch
from seraphim.proof.known_moves import NO_ACTION, KnownMove, KnownMoves
from seraphim.search.analysis import PositionAnalysis, resumable
from seraphim.search.evaluator import Inference
from seraphim.settings import Human, Rolls
from seraphim.terminal import game_files

MOST_READOUTS = 1_000_000  # at a time

_HUMANS = {"first": {0}, "second": {1}, "none": set[int]()}
_SWITCHES = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class SessionOptions(Options):
    """The user's choices about a game."""

    human: Human = "first"
    """The user's side; the computer plays the others. With more than two players, `both` is all of them."""
    debug: bool = False
    """Shows the search's results in each position, and waits before each move."""
    rolls: Rolls = "program"
    """Whether the program draws the outcomes of chance, or waits until they are entered."""


_Options = TypeVar("_Options", SessionOptions, PlayOptions, SearchOptions)


class GameSession:
    """A game with its branches, and the computer as opponent."""

    def __init__(
        self,
        game_name: str,
        inference: Inference,
        search: SearchOptions,
        play: PlayOptions,
        options: SessionOptions,
        generator: np.random.Generator,
        proof: KnownMoves | None = None,
    ) -> None:
        """Begin a new game.

        Args:
            game_name: package or module of the game.
            inference: the model.
            search: options of the search; a Gumbel root is replaced by PUCT, which can resume a search.
            play: how the computer chooses its moves.
            options: the user's choices.
            generator: source of randomness.
            proof: where it leads, the computer plays its moves.

        Raises:
            GameError: there is no such game.
            SettingsError: there are too many readouts, or the user plays a side that the game does not have.
        """
        self.game_name = game_name
        self.game = load_game(game_name)
        self._features = features_of(self.game)
        self._check(options)
        self.options = options
        self._generator = generator
        _check_readouts(search.readouts)
        self.opponent = Opponent(self.game, inference, resumable(search), play, generator)
        self._proof = proof
        self.engine: HistoryPlayer | None = None  # an external engine that makes the computer's moves
        self.tree = GameTree(self.game)
        self.root_replaced = "" if search == resumable(search) else search.root
        self.analysis: PositionAnalysis | None = None  # of the current position
        self.visits_before: dict[int, int] = {}  # its last search, by action
        self.waiting = False  # whether the computer waits for a command before it moves
        self._values: dict[GameNode, tuple[float, ...]] = {}  # of positions that were searched

    @property
    def ended(self) -> bool:
        """Return whether the game is over."""
        return not self.tree.legal()

    @property
    def mover(self) -> int:
        """Return the player to move, 0 or higher, or CHANCE."""
        return int(self.game.to_play(self.tree.node.state[None])[0])

    @property
    def humans(self) -> set[int]:
        """Return the user's players."""
        return _HUMANS.get(self.options.human, {*range(self._features.num_players or 2)})

    @property
    def computer_moves(self) -> bool:
        """Return whether it is the computer's turn."""
        return not self.ended and self.mover not in {CHANCE, *self.humans}

    @property
    def chance_moves(self) -> bool:
        """Return whether chance moves, such as dice."""
        return not self.ended and self.mover == CHANCE

    @property
    def rolls_itself(self) -> bool:
        """Return whether the program draws the outcome here without being asked."""
        return self.chance_moves and self.options.rolls == "program" and not self.waiting

    @property
    def values(self) -> tuple[float, ...] | None:
        """Return the expected results here, or in the nearest earlier position that was searched.

        Those of all players if there are more than two, else that of player 0.
        """
        ended, results = self.game.outcome(self.tree.node.state[None])
        if ended[0]:
            return tuple(results.reshape(-1).tolist())
        return next((self._values[node] for node in reversed(self.tree.path()) if node in self._values), None)

    @property
    def proven(self) -> KnownMove | None:
        """Return what the proof says about this position, if it has a move for the player to move."""
        found = self._proof.find(self.tree.node.state) if self._proof and not self.ended else []
        return next((known for known in found if known.action != NO_ACTION), None)

    def choose_by_engine(self, engine: HistoryPlayer) -> int:
        """Return the action that an external engine chooses in this position.

        Raises:
            GameError: it broke the rules, or the game did not begin at the initial position.
        """
        if not self.tree.starts_afresh:
            raise GameError("an engine follows games from the initial position only: new begins one")
        return int(engine.choose([self.tree.actions()])[0])

    def check_unfinished(self) -> None:
        """Raise a GameError if no player moves here."""
        if self.ended:
            raise GameError("the game is over here: undo takes moves back, new begins another game")
        if self.chance_moves:
            raise GameError(f"chance moves here: Enter rolls, or type the outcome, such as {self.example}")

    @property
    def example(self) -> str:
        """Return the label of a move or of an outcome that may follow."""
        return self.tree.label(self.tree.legal()[0])

    def roll(self) -> str:
        """Draw an outcome of chance, by the probabilities of the rules, and return its label.

        Raises:
            GameError: they are no probabilities.
        """
        probabilities = self._features.chances(self.tree.node.state[None])[0]  # type: ignore[misc]
        try:
            outcome = int(self._generator.choice(len(probabilities), p=probabilities))
        except ValueError as error:
            wrong = f"{self.game.name} gives chances that are no probabilities: run seraphim check-game on it"
            raise GameError(wrong) from error
        label = self.tree.label(outcome)
        self.play(outcome)
        return label

    def find_action(self, text: str) -> int | None:
        """Return the action that a text names, legal or not; None if it names none."""
        try:
            return parse_move(self.game, text, self.tree.node.state)
        except GameError:
            return None

    def play(self, action: int) -> None:
        """Play an action for the player to move, or an outcome of chance.

        Raises:
            GameError: it is not legal, or the game is over.
        """
        if self.ended:
            self.check_unfinished()
        self.tree.play(action)
        self._moved(waiting=False)

    def read(self, readouts: int, watch: Watch | None = None) -> PositionAnalysis:
        """Add readouts to the search of the current position; see `Opponent.read`.

        Raises:
            GameError: the game is over, or chance moves.
            SettingsError: there are too many readouts.
            ModelError: the model gave a NaN or an infinity.
        """
        self.check_unfinished()
        _check_readouts(readouts)
        self.visits_before = {move.action: move.visits for move in self.opponent.read(self.tree, 0).moves}
        self.analysis = self.opponent.read(self.tree, readouts, watch)
        for_first = self.analysis.value if self.mover == 0 else -self.analysis.value
        self._values[self.tree.node] = self.analysis.values or (for_first,)
        return self.analysis

    def undo(self, plies: int | None = None) -> None:
        """Take back a number of moves; by default up to the user's last turn, or one move in debug mode.

        Raises:
            GameError: there are not as many moves.
        """
        self._step(self.tree.path()[-2::-1], plies, "take back")

    def redo(self, plies: int | None = None) -> None:
        """Replay a number of moves that were taken back; by default up to the user's next turn, or one in debug mode.

        Raises:
            GameError: there are not as many moves.
        """
        self._step(self.tree.ahead(), plies, "redo")

    def _step(self, nodes: list[GameNode], plies: int | None, verb: str) -> None:
        if not nodes:
            raise GameError(f"there is no move to {verb}")
        if plies is None:
            plies = self._plies_to_turn(nodes)
        if plies > len(nodes):
            raise GameError(f"cannot {verb} {plies} moves: there are only {len(nodes)}")
        self.tree.go(nodes[plies - 1] if plies else self.tree.node)
        self._moved()

    def _plies_to_turn(self, nodes: list[GameNode]) -> int:
        # The number of positions up to the next one with the user to move; 1 if there is none.
        if not self.options.debug:
            for count, node in enumerate(nodes, start=1):
                if int(self.game.to_play(node.state[None])[0]) in self.humans:
                    return count
        return 1

    def go(self, place: str) -> None:
        """Go to another position of the game.

        Args:
            place: `start`, `end`, a number of moves on the current line, a line (`B`), or both (`B3`).

        Raises:
            GameError: there is no such position.
        """
        tree, text = self.tree, "".join(place.split()).upper()
        match = re.fullmatch(r"([A-Z]*)([0-9]{0,9})", text)
        if text == "START":
            node = tree.root
        elif text == "END":
            node = (tree.ahead() or [tree.node])[-1]
        elif not match or not text:
            raise GameError(
                f"{place!r} is not a position: expected start, end, a number of moves, or a line such as B or B3"
            )
        elif match[1]:
            node = tree.find(match[1], int(match[2]) if match[2] else None)
        else:
            line = [*tree.path(), *tree.ahead()]
            if int(text) >= len(line):
                raise GameError(f"there are {len(line) - 1} moves here: expected a number from 0 to {len(line) - 1}")
            node = line[int(text)]
        tree.go(node)
        self._moved()

    def new(self) -> None:
        """Begin a new game."""
        self.tree = GameTree(self.game)
        self._values.clear()
        self._moved(waiting=False)

    def load(self, text: str) -> None:
        """Go to a position: moves, a board diagram, a record of a game file (`FILE:RECORD`), or a text file of these.

        Moves from the initial position become a branch of the game if it began there too. Anything else replaces the
        game.

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
        self._moved()

    def settings(self) -> dict[str, Any]:
        """Return all options that can be changed, by name."""
        options = asdict(self.options)
        if self._features.chances is None:
            del options["rolls"]
        return options | asdict(self.opponent.play) | asdict(self.opponent.search)

    def change(self, name: str, text: str) -> None:
        """Set an option from now on.

        Raises:
            SettingsError: there is no such option, or the value is not valid.
        """
        if name not in self.settings():
            raise SettingsError(f"there is no option {name!r}: expected one of {', '.join(self.settings())}")
        options = _changed(self.options, name, text)
        self._check(options)
        search = _changed(self.opponent.search, name, text)
        if name in get_type_hints(SearchOptions) and (needs := unmet_needs(name, search)):
            raise SettingsError(f"{name} changes nothing here: it needs {needs}")
        _check_readouts(search.readouts)
        self.opponent.change(search, _changed(self.opponent.play, name, text))
        if options == self.options:
            self.analysis = None  # it was made with other options
        self.options = options

    def _check(self, options: SessionOptions) -> None:
        if self._features.num_players == 1 and options.human in ("second", "both"):
            raise SettingsError(f"{self.game.name} has one player: human must be first or none, not {options.human}")

    def _moved(self, waiting: bool = True) -> None:
        # After a move or a new game the computer moves by itself; after a step in the history it waits.
        self.analysis = None
        self.waiting = waiting


def _check_readouts(readouts: int) -> None:
    if readouts > MOST_READOUTS:
        raise SettingsError(f"at most {MOST_READOUTS:,} readouts at a time, not {readouts:,}")


def _changed(options: _Options, name: str, text: str) -> _Options:
    # With the option set, if it is one of these.
    hints = get_type_hints(type(options))
    return replace(options, **{name: _parsed(text, hints[name])}) if name in hints else options


def _parsed(text: str, expected: Any) -> Any:
    try:
        if expected is bool:
            return _SWITCHES[text.lower()]
        return expected(text) if expected in (int, float) else text
    except (KeyError, ValueError):
        return text  # the options reject it
