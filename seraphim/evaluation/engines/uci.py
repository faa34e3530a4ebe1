"""Engines that speak the Universal Chess Interface (Huber and Meyer-Kahlen 2000)."""

import time

import numpy as np

from seraphim.evaluation.engines.move_names import uci_names
from seraphim.evaluation.engines.player import EnginePlayer, Moves, chosen
from seraphim.evaluation.engines.process import EngineProcess
from seraphim.game import Game
from seraphim.game.features import features_of

ANSWER_SECONDS = 300.0  # for a move
LIMIT = "movetime 1000"  # of a search, where the name does not say it


class UciEngine:
    """A program that follows a game by UCI."""

    def __init__(self, game: Game, command: str) -> None:
        """Start it, and choose the game.

        Args:
            game: the rules.
            command: how to start it, and the limit of its searches behind ` go `, by default `movetime 1000`.

        Raises:
            SettingsError: there is no such program, or UCI does not play this game.
            EngineLostError: it does not speak UCI.
        """
        self.moves: Moves = ()
        self._game, self._name, self._name_of = game, f"uci:{command}", uci_names(game)
        program, _, limit = command.partition(" go ")
        self._limit = limit or LIMIT
        self._process = EngineProcess(program)
        self.title = program.split()[0]
        self._ask("uci", "uciok")
        if (variant := features_of(game).uci_variant) != "chess":  # which not every engine has as a variant
            self._process.send(f"setoption name UCI_Variant value {variant}")
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
        words = self._ask(f"go {self._limit}", "bestmove").split()
        action = chosen(game, self._name_of, state, self._name, words[1] if len(words) > 1 else "")
        self.moves = (*moves, action)
        return action

    def close(self) -> None:
        """End the program."""
        self._process.close()

    def _new_game(self) -> None:
        self._process.send("ucinewgame")
        self._ask("isready", "readyok")
        self.moves = ()

    def _ask(self, command: str, expected: str) -> str:
        # The first line of the answer that begins with a word.
        self._process.send(command)
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            line = self._process.receive(deadline).strip()
            if line.startswith("id name "):
                self.title = line.removeprefix("id name ")
            if line.split(" ")[0] == expected:
                return line


def uci_player(game: Game, command: str) -> EnginePlayer:
    """Return the player that asks programs by UCI, which a command starts; errors as `EnginePlayer`."""
    return EnginePlayer(f"uci:{command}", lambda: UciEngine(game, command))
