"""The Universal Chess Interface (Huber and Meyer-Kahlen 2000): Seraphim as an engine of programs that speak it."""

import itertools
import math
from collections.abc import Callable
from typing import IO

import numpy as np

from seraphim.errors import SeraphimError
from seraphim.evaluation.engines.move_names import action_named, uci_names
from seraphim.game.features import features_of
from seraphim.play.engine.clock import Clock
from seraphim.play.engine.thinker import Thinker
from seraphim.play.opponent import Reading
from seraphim.storage.shipped import version

_INTERVAL = 1.0  # seconds between two reports of a search without a limit


class UciServer:
    """Answers commands about one game."""

    def __init__(self, thinker: Thinker, out: IO[str]) -> None:
        """Wait for commands; `out` gets the answers.

        Raises:
            SettingsError: UCI does not play this game.
        """
        self._thinker, self._out = thinker, out
        self._name_of = uci_names(thinker.game)
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "uci": self._uci,
            "isready": lambda _: self._say("readyok"),
            "ucinewgame": lambda _: thinker.new(),
            "position": self._position,
            "go": self._go,
        }

    def run(self) -> None:
        """Answer until `quit`, or the end of the input."""
        while (line := self._thinker.next_line()) is not None and line.strip() != "quit":
            self.answer(line)

    def answer(self, line: str) -> None:
        """Carry out a command, and write its answer; what is not known is ignored, as the protocol demands."""
        words = line.split()
        try:
            if words and words[0] in self._commands:
                self._commands[words[0]](words[1:])
        except SeraphimError as error:
            self._say(f"info string {' '.join(str(error).split())}")

    def _say(self, line: str) -> None:
        self._out.write(line + "\n")
        self._out.flush()

    def _uci(self, _: list[str]) -> None:
        variant = features_of(self._thinker.game).uci_variant
        self._say(f"id name Seraphim {version()}")
        self._say(f"option name UCI_Variant type combo default {variant} var {variant}")
        self._say("uciok")

    def _position(self, words: list[str]) -> None:
        if words[:1] != ["startpos"]:
            self._say("info string only positions from the start are known: position startpos moves ...")
            return
        tree = self._thinker.tree
        tree.go(tree.root)
        for move in words[2:]:
            tree.play(action_named(self._thinker.game, self._name_of, tree.node.state, move))

    def _go(self, words: list[str]) -> None:
        thinker = self._thinker
        if not thinker.tree.legal():
            self._say("bestmove 0000")
            return
        given = dict(itertools.pairwise([*words, ""]))
        numbers = {name: float(text) for name, text in given.items() if text.isdecimal()}
        if "infinite" in given:
            thinker.analyze(_INTERVAL, self._show)
        readouts = int(numbers["nodes"]) if "nodes" in numbers else None
        action = thinker.choose(0 if "infinite" in given else readouts, _seconds(numbers, thinker))
        self._say(f"bestmove {self._name_of(thinker.tree.node.state, action)}")

    def _show(self, reading: Reading) -> None:
        best = reading.candidates[0]
        game, state, names = self._thinker.game, self._thinker.tree.node.state, list[str]()
        for action in best.variation:
            names.append(self._name_of(state, action))
            (state,) = game.step(state[None], np.array([action]))
        self._say(
            f"info nodes {reading.total} time {round(1000 * reading.seconds)} score cp {_centipawns(reading.value)} "
            f"pv {' '.join(names)}"
        )


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
