"""The Universal Chess Interface (Huber and Meyer-Kahlen 2000): Seraphim as an engine of programs that speak it."""

import itertools
import math
import re
import time
from collections import deque
from collections.abc import Callable
from typing import IO

import numpy as np

from seraphim.errors import SeraphimError, version
from seraphim.game.features import features_of
from seraphim.gtp.clock import Clock
from seraphim.gtp.thinker import WAIT_SECONDS, Thinker
from seraphim.players.external.move_names import action_named, uci_names
from seraphim.search.analysis import PositionAnalysis
from seraphim.terminal.session import MOST_READOUTS

_INTERVAL = 1.0  # seconds between two reports of a search without a limit
_CHESS = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"  # its initial position
_LIMITS = ("movetime", "nodes", "wtime", "btime", "winc", "binc", "movestogo")
_INTEGER = re.compile("[+-]?[0-9]+")
_WITHOUT_ANSWER = ("debug", "setoption", "register", "ponderhit", "stop", "quit")  # commands of the protocol


class UciServer:
    """Answers commands about one game."""

    def __init__(self, thinker: Thinker, out: IO[str]) -> None:
        """Wait for commands; `out` gets the answers.

        Raises:
            SettingsError: UCI does not play this game.
        """
        self._thinker, self._out = thinker, out
        self._name_of = uci_names(thinker.game)
        self._later: deque[list[str]] = deque()  # commands that came during a search
        self._is_known = True  # whether the position that was sent last was understood
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "uci": self._uci,
            "isready": lambda _: self._say("readyok"),
            "ucinewgame": lambda _: thinker.new(),
            "position": self._position,
            "go": self._go,
            **dict.fromkeys(_WITHOUT_ANSWER, lambda _: None),
        }

    def run(self) -> None:
        """Answer until `quit`, or the end of the input."""
        while (words := self._later.popleft() if self._later else self._next_command())[:1] != ["quit"]:
            self._carry_out(words)

    def answer(self, line: str) -> None:
        """Carry out a command, and write its answer."""
        self._carry_out(self._command_in(line))

    def _next_command(self) -> list[str]:
        line = self._thinker.next_line()
        return ["quit"] if line is None else self._command_in(line)

    def _command_in(self, line: str) -> list[str]:
        # The words of a line from its first command on: those before it are ignored, as the protocol demands.
        return [*itertools.dropwhile(lambda word: word not in self._commands, line.split())]

    def _carry_out(self, words: list[str]) -> None:
        try:
            if words:
                self._commands[words[0]](words[1:])
        except SeraphimError as error:
            self._say(f"info string {' '.join(str(error).split())}")
            if words[0] == "go":
                self._say("bestmove 0000")  # the other program waits for one

    def _say(self, line: str) -> None:
        self._out.write(line + "\n")
        self._out.flush()

    def _uci(self, _: list[str]) -> None:
        variant = features_of(self._thinker.game).uci_variant
        self._say(f"id name Seraphim {version()}")
        self._say("id author The Seraphim Authors")
        self._say(f"option name UCI_Variant type combo default {variant} var {variant}")
        self._say("uciok")

    def _position(self, words: list[str]) -> None:
        self._is_known = False
        chess = ["fen", *_CHESS.split()]
        if features_of(self._thinker.game).uci_variant == "chess" and words[: len(chess)] == chess:
            words = ["startpos", *words[len(chess) :]]
        if words[:1] != ["startpos"] or words[1:2] not in ([], ["moves"]):
            self._say("info string only positions from the start are known: position startpos moves ...")
            return
        tree = self._thinker.tree
        tree.go(tree.root)
        for move in words[2:]:
            tree.play(action_named(self._thinker.game, self._name_of, tree.node.state, move))
        self._is_known = True

    def _go(self, words: list[str]) -> None:
        thinker, is_stopped, readouts = self._thinker, self._watch(), None
        if not (self._is_known and thinker.tree.legal()):
            while "infinite" in words and not is_stopped():
                time.sleep(WAIT_SECONDS)
            if self._is_known:
                self._say("info string the game is over by the rules of this engine")
            self._say("bestmove 0000")
            return
        limits, unknown = _limits(words)
        if unknown:
            self._say(f"info string not understood: {' '.join(unknown)}")
        if "infinite" in words:
            thinker.analyze(_INTERVAL, self._show, is_stopped)
            readouts = 0
        elif "nodes" in limits:
            readouts = int(min(limits["nodes"], MOST_READOUTS))
        action = thinker.choose(readouts, _seconds(limits, thinker), is_stopped, self._show)
        self._say(f"bestmove {self._name_of(thinker.tree.node.state, action)}")

    def _watch(self) -> Callable[[], bool]:
        # Returns whether a search was stopped since. Answers what may be asked meanwhile, and keeps the rest for later.
        stopped = False

        def is_stopped() -> bool:
            nonlocal stopped
            while not stopped and self._thinker.has_line:
                words = self._next_command()
                if words[:1] == ["isready"]:
                    self._say("readyok")
                elif words[:1] != ["stop"]:
                    self._later.append(words)
                stopped = words[:1] in (["stop"], ["quit"])
            return stopped

        return is_stopped

    def _show(self, found: PositionAnalysis) -> None:
        best = found.moves[0]
        if not found.readouts:  # as `choose` does before the first readout
            best = max(found.moves, key=lambda each: each.prior)
        game, state, names = self._thinker.game, self._thinker.tree.node.state, list[str]()
        for action in best.actions:
            names.append(self._name_of(state, action))
            (state,) = game.step(state[None], np.array([action]))
        self._say(
            f"info depth {len(names)} nodes {found.readouts} time {round(1000 * found.seconds)} "
            f"score cp {_centipawns(found.value)} pv {' '.join(names)}"
        )


def _limits(words: list[str]) -> tuple[dict[str, float], list[str]]:
    # The numbers that limit a search, none below 0, and the words that are not understood.
    limits, unknown, rest = dict[str, float](), list[str](), deque(words)
    while rest:
        word = rest.popleft()
        if word in _LIMITS and rest and _INTEGER.fullmatch(rest[0]):
            limits[word] = max(0.0, float(rest.popleft()))
        elif word != "infinite":
            unknown.append(word)
    return limits, unknown


def _seconds(numbers: dict[str, float], thinker: Thinker) -> float | None:
    # The time for a move, if the command limits it.
    if "movetime" in numbers:
        return Clock(0.0, numbers["movetime"] / 1000, 1).budget(1)
    side = "wb"[thinker.mover]
    if f"{side}time" not in numbers:
        return None
    main, more = numbers[f"{side}time"] / 1000, numbers.get(f"{side}inc", 0.0) / 1000
    return Clock(main, more).budget(numbers.get("movestogo", thinker.own_moves))


def _centipawns(value: float) -> int:
    # As Leela Chess Zero converts values.
    return round(90 * math.tan(1.5637541897 * value))
