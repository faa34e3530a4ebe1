"""Engines that speak the Universal Chess Interface (Huber and Meyer-Kahlen 2000)."""

import itertools
import re
import time

import numpy as np

from seraphim.errors import PlayerError, SettingsError
from seraphim.game import Game
from seraphim.game.features import features_of
from seraphim.players.external.move_names import SHOWN, uci_names
from seraphim.players.external.player import EnginePlayer, Moves, chosen
from seraphim.players.external.process import ANSWER_SECONDS, THINKING_SECONDS, EngineProcess

LIMIT = "movetime 1000"  # of a search, where the name does not say it
_LIMITS = re.compile("( (depth|nodes|movetime) [1-9][0-9]*)+")


class UciEngine:
    """A program that follows a game by UCI."""

    def __init__(self, game: Game, command: str) -> None:
        """Start it, and choose the game.

        Args:
            game: the rules.
            command: how to start it, and the limit of its searches behind ` go `, by default `movetime 1000`.

        Raises:
            SettingsError: the limit is not valid.
            NotInstalledError: there is no such program.
            PlayerError: it or UCI does not play this game.
            EngineLostError: it does not speak UCI.
        """
        self.moves: Moves = ()
        self._game, self._name, self._name_of = game, f"uci:{command}", uci_names(game)
        program, _, limit = command.partition(" go ")
        self._limit = " ".join(limit.split()) or LIMIT
        if not _LIMITS.fullmatch(f" {self._limit}"):
            raise SettingsError(f"{self._name}: expected depth, nodes or movetime and a number after go")
        self._process = EngineProcess(program)
        lines = self._ask("uci", "uciok")
        names = [line.removeprefix("id name ") for line in lines if line.startswith("id name ")]
        self.title = names[0] if names else program.split()[0]
        self._set_variant(_variants(lines))
        self._new_game()

    def choose(self, moves: Moves) -> int:
        """Return its action after some moves from the initial position; see `Engine`."""
        game = self._game
        if moves[: len(self.moves)] != self.moves:
            self._new_game()
        (state,), names = game.initial(1), list[str]()
        for action in moves:
            names.append(self._name_of(state, action))
            (state,) = game.step(state[None], np.array([action]))
        played = f" moves {' '.join(names)}" if moves else ""
        self._process.send(f"position startpos{played}")
        words = self._ask(f"go {self._limit}", "bestmove", THINKING_SECONDS)[-1].split()
        action = chosen(game, self._name_of, state, self._name, words[1] if len(words) > 1 else "")
        self.moves = (*moves, action)
        return action

    def close(self) -> None:
        """End the program."""
        self._process.close()

    def _set_variant(self, offered: list[str]) -> None:
        variant, played = features_of(self._game).uci_variant, offered or ["chess"]
        if variant not in played:
            shown = " ".join(played[:SHOWN]) + (" …" if len(played) > SHOWN else "")
            expected = f"expected an engine whose option UCI_Variant has {variant}, such as fairy-stockfish"
            raise PlayerError(f"{self._name} plays {shown}, not {variant}: {expected}")
        if offered:
            self._process.send(f"setoption name UCI_Variant value {variant}")

    def _new_game(self) -> None:
        self._process.send("ucinewgame")
        self._ask("isready", "readyok")
        self.moves = ()

    def _ask(self, command: str, expected: str, seconds: float | None = None) -> list[str]:
        # The lines of the answer, up to the first that begins with a word, within some seconds.
        self._process.send(command)
        deadline, lines = time.monotonic() + (seconds or ANSWER_SECONDS), list[str]()
        while not lines or lines[-1].split(" ")[0] != expected:
            lines.append(self._process.receive(deadline).strip())
        return lines


def _variants(lines: list[str]) -> list[str]:
    # The values of the option UCI_Variant, none if there is no such option; case does not matter.
    for words in (line.lower().split() for line in lines):
        if words[:3] == ["option", "name", "uci_variant"]:
            return [value for word, value in itertools.pairwise(words) if word == "var"]
    return []


def uci_player(game: Game, command: str) -> EnginePlayer:
    """Return the player that asks programs by UCI, which a command starts; errors as `EnginePlayer`."""
    return EnginePlayer(f"uci:{command}", lambda: UciEngine(game, command))
