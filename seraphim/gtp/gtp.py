"""The Go Text Protocol, version 2 (Farnebäck 2002): Seraphim as an engine of programs that speak it.

A color is `black` or `b` for the player who moves first, `white` or `w` for the other one. A vertex is the label of a
move in the game: `d3` in Othello, `4` in connect four.
"""

import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from seraphim.errors import SeraphimError, version
from seraphim.game import Array
from seraphim.game.features import features_of
from seraphim.game.tree import GameNode
from seraphim.gtp.clock import Clock
from seraphim.gtp.thinker import Thinker
from seraphim.players.external.move_names import SWAP, action_named, board_size, mirror, must_pass, vertex, vertex_names
from seraphim.search.analysis import PositionAnalysis
from seraphim.storage.atomic import check_regular
from seraphim.terminal.sgf import bare_name, from_sgf, is_in_sgf

_COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}
_CENTISECONDS = 100
_INTERVAL = 0.5  # seconds between two results of an analysis
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # characters that the protocol ignores
_INTEGER = re.compile("[0-9]{1,9}")


class _CommandError(Exception):
    """The answer to a command that cannot be carried out."""


class GtpServer:
    """Answers commands about one game."""

    def __init__(self, thinker: Thinker, out: IO[str]) -> None:
        """Wait for commands; `out` gets the answers."""
        self._thinker, self._out = thinker, out
        self._name_of = vertex_names(thinker.game)
        self._title = bare_name(thinker.game).capitalize()
        self._clocks: dict[int, Clock] = {}  # of the players that have one
        self._settings: Clock | None = None  # that a game begins with
        self._exchange: GameNode | None = None  # after a swap of pieces, if the players exchanged colors there
        self._earlier: list[GameNode] = []  # to which `undo` goes back: before each move that was played
        self._ended = False
        self._number = ""  # of the command that is carried out, if the other program gave it one
        self._commands: dict[str, Callable[[list[str]], str | None]] = {
            "protocol_version": lambda _: "2",
            "name": lambda _: "Seraphim",
            "version": lambda _: version(),
            "known_command": lambda words: str(_only(words) in self._commands).lower(),
            "list_commands": lambda _: "\n".join(self._commands),
            "quit": self._quit,
            "boardsize": self._boardsize,
            "clear_board": self._clear_board,
            "komi": self._komi,
            "play": self._play,
            "genmove": self._genmove,
            "reg_genmove": self._reg_genmove,
            "undo": self._undo,
            "final_score": self._final_score,
            "showboard": lambda _: "\n" + thinker.game.render(thinker.tree.node.state),
            "time_settings": self._time_settings,
            "time_left": self._time_left,
            "analyze": self._analyze,
            "lz-analyze": self._analyze,
            "list_games": lambda _: self._title,
            "set_game": self._set_game,
        }
        if is_in_sgf(thinker.game):
            self._commands["loadsgf"] = self._loadsgf

    def run(self) -> None:
        """Answer until `quit`, or the end of the input."""
        while not self._ended and (line := self._thinker.next_line()) is not None:
            self.answer(line)

    def answer(self, line: str) -> None:
        """Carry out a command, and write its answer."""
        words = _CONTROLS.sub("", line).partition("#")[0].split()
        self._number = words.pop(0) if words and words[0].isdecimal() else ""
        if not words:
            return
        tree = self._thinker.tree
        before = tree.node
        try:
            if words[0] not in self._commands:
                raise _CommandError("unknown command")
            text = self._commands[words[0]](words[1:])
            if text is not None:
                self._say(f"={self._number} ", text)
        except (_CommandError, SeraphimError) as error:
            tree.go(before)  # a command that fails changes nothing
            self._say(f"?{self._number} ", str(error))

    def _say(self, mark: str, text: str) -> None:
        # An empty line ends an answer, so there is none in it.
        first, *others = (mark + text).split("\n")
        self._write("\n".join([first.rstrip(), *(line.rstrip() or "." for line in others)]) + "\n\n")

    def _quit(self, _: list[str]) -> str:
        self._ended = True
        return ""

    def _boardsize(self, words: list[str]) -> str:
        sizes = _integers(words, 2 if len(words) == 2 else 1)  # programs for Hex send columns and rows
        if set(sizes) != {board_size(self._thinker.game)}:
            raise _CommandError("unacceptable size")
        return self._clear_board([])

    def _clear_board(self, _: list[str]) -> str:
        self._thinker.new()
        self._earlier = []
        if self._settings:
            self._clocks = dict.fromkeys((0, 1), self._settings)
        return ""

    def _komi(self, words: list[str]) -> str:
        # Programs for Go always send it; the rules of the game have their own.
        try:
            is_number = math.isfinite(float(_only(words)))
        except ValueError:
            is_number = False
        if not is_number:
            raise _CommandError("syntax error: expected a number")
        return ""

    def _time_settings(self, words: list[str]) -> str:
        main, period, moves = _integers(words, 3)
        unlimited = period > 0 and moves == 0  # by the definition of the command
        self._settings = None if unlimited else Clock(main, period, moves)
        self._clocks = {} if self._settings is None else dict.fromkeys((0, 1), self._settings)
        return ""

    def _time_left(self, words: list[str]) -> str:
        player, (seconds, moves) = _color(words), _integers(words[1:], 2)
        period = self._settings or Clock()
        self._clocks[player] = Clock(0.0, seconds, moves) if moves else Clock(seconds, period.period, period.moves)
        return ""

    def _turn_to(self, words: list[str]) -> GameNode:
        # Lets a player pass who can do nothing else, where the other program leaves such a pass out. Returns the
        # position before that.
        tree, player = self._thinker.tree, _color(words)
        before = tree.node
        if tree.label_of(before) == SWAP:
            self._exchange = before if self._thinker.mover != player else None
        if self._is_exchanged:
            player = 1 - player
        if tree.legal() and self._thinker.mover != player:
            if not must_pass(tree.game, tree.node.state):
                raise _CommandError(f"it is not {words[0]}'s turn")
            tree.play(tree.legal()[0])
        return before

    @property
    def _is_exchanged(self) -> bool:
        return self._exchange is not None and self._exchange in self._thinker.tree.path()

    def _vertex(self, label: str) -> str:
        name = vertex(label).lower()
        return mirror(name) if self._is_exchanged else name

    def _name(self, state: Array, action: int) -> str:
        return self._vertex(self._name_of(state, action))

    def _label(self, action: int) -> str:
        return self._name(self._thinker.tree.node.state, action)

    def _play(self, words: list[str]) -> str:
        if len(words) != 2:
            raise _CommandError("syntax error: expected a color and a vertex")
        before, tree = self._turn_to(words), self._thinker.tree
        if tree.legal() or words[1].lower() != "pass":  # once the game has ended, players pass
            try:
                tree.play(action_named(tree.game, self._name, tree.node.state, words[1]))
            except SeraphimError as error:
                raise _CommandError(f"illegal move: {error}") from error
        self._earlier.append(before)
        return ""

    def _genmove(self, words: list[str]) -> str:
        began = time.monotonic()
        player, thinker, before = _color(words), self._thinker, self._turn_to(words)
        clock = self._clocks.get(player)
        label = self._choose(None if clock is None else clock.budget(thinker.own_moves))
        if clock is not None:
            self._clocks[player] = clock.after(time.monotonic() - began)
        self._earlier.append(before)
        return label

    def _choose(self, seconds: float | None) -> str:
        # Plays a move, and returns its vertex; once the game has ended, players pass.
        thinker = self._thinker
        if not thinker.tree.legal():
            return "pass"
        action = thinker.choose(seconds=seconds)
        label = self._label(action)
        thinker.tree.play(action)
        return label

    def _reg_genmove(self, words: list[str]) -> str:
        before = self._turn_to(words)
        label = self._choose(None)
        self._thinker.tree.go(before)
        return label

    def _undo(self, _: list[str]) -> str:
        if not self._earlier:
            raise _CommandError("cannot undo")
        self._thinker.tree.go(self._earlier.pop())
        return ""

    def _final_score(self, _: list[str]) -> str:
        # As programs for Hex say it, a plus without points where the game counts none.
        game, state = self._thinker.game, self._thinker.tree.node.state
        ended, results = game.outcome(state[None])
        if not ended[0]:
            raise _CommandError("cannot score: the game is not over")
        if not results[0]:
            return "0"
        score, winner = features_of(game).score, "BW"[int(results[0] < 0) ^ self._is_exchanged]
        return f"{winner}+" + ("" if score is None else f"{abs(score(state)):g}")

    def _set_game(self, words: list[str]) -> str:
        # Quarry names the game before everything else, and takes a program without this command for one that plays Go.
        if " ".join(words).lower() != self._title.lower():
            raise _CommandError(f"unsupported game: expected {self._title}")
        return self._clear_board([])

    def _loadsgf(self, words: list[str]) -> str:
        # A file, and the move before which to stop.
        if not words or len(words) > 2:
            raise _CommandError("syntax error: expected a file and perhaps the number of a move")
        before = _integers(words[1:], 1)[0] if len(words) > 1 else None
        try:
            check_regular(Path(words[0]), pipes=True)
            text = Path(words[0]).read_text(errors="replace")
        except OSError as error:
            raise _CommandError(f"cannot load file: {error.strerror}") from error
        tree = from_sgf(self._thinker.game, text)
        path = tree.path()
        if before is not None:
            tree.go(path[min(max(before - 1, 0), len(path) - 1)])
        self._clear_board([])
        self._thinker.tree = tree
        self._earlier = tree.path()[:-1]
        return ""

    def _analyze(self, words: list[str]) -> None:
        intervals = [int(word) for word in words if _INTEGER.fullmatch(word)]
        colors = [word for word in words if not _INTEGER.fullmatch(word)]
        if len(intervals) > 1 or len(colors) > 1:
            raise _CommandError("syntax error: expected a color, and an interval in hundredths of a second")
        before = self._turn_to(colors) if colors else self._thinker.tree.node
        if not self._thinker.tree.legal():
            raise _CommandError("the game is over")
        self._write(f"={self._number}\n")
        interval = intervals[0] / _CENTISECONDS if intervals else _INTERVAL
        self._thinker.analyze(interval, self._show, lambda: self._thinker.has_line)
        self._write("\n")
        self._thinker.tree.go(before)

    def _show(self, found: PositionAnalysis) -> None:
        # One line, in the format that Leela Zero introduced: shares of 10,000, for the player to move.
        parts = [
            f"info move {self._vertex(each.label)} visits {each.visits} winrate {_share(each.value)} "
            f"prior {round(10_000 * each.prior)} order {order} pv {' '.join(map(self._vertex, each.variation))}"
            for order, each in enumerate(found.moves)
            if each.visits or not order
        ]
        self._write(" ".join(parts) + "\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _share(value: float) -> int:
    return round(5_000 * (1 + value))


def _color(words: list[str]) -> int:
    if not words or words[0].lower() not in _COLORS:
        raise _CommandError("syntax error: expected a color, black or white")
    return _COLORS[words[0].lower()]


def _only(words: list[str]) -> str:
    if len(words) != 1:
        raise _CommandError("syntax error: expected one word")
    return words[0]


def _integers(words: list[str], count: int) -> list[int]:
    if len(words) != count or not all(map(_INTEGER.fullmatch, words)):
        raise _CommandError(f"syntax error: expected {count} non-negative integer{'s' * (count > 1)}")
    return [int(word) for word in words]
