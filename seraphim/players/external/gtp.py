"""Engines that speak the Go Text Protocol, version 2 (Farnebäck 2002)."""

import time

import numpy as np

from seraphim.errors import GameError, PlayerError
from seraphim.game import Array, Game
from seraphim.game.features import check_two_players
from seraphim.players.external.move_names import COLORS, board_size, must_pass, vertex_names
from seraphim.players.external.player import EnginePlayer, Moves, chosen
from seraphim.players.external.process import ANSWER_SECONDS, THINKING_SECONDS, EngineProcess


class GtpEngine:
    """A program that follows a game by GTP."""

    def __init__(self, game: Game, command: str) -> None:
        """Start it, and set up the board.

        Raises:
            NotInstalledError: there is no such program.
            PlayerError: it does not play on a board of this size.
            EngineLostError, GameError: it does not speak GTP.
        """
        self.moves: Moves = ()
        self._game, self._name, self._name_of = game, f"gtp:{command}", vertex_names(game)
        self._process = EngineProcess(command)
        self.ask("protocol_version")
        if size := board_size(game):
            ok, reply = self._send(f"boardsize {size}")
            if not ok:
                raise PlayerError(f"{self._name} does not play on a board of {size}x{size}: {reply}")
        self.ask("clear_board")
        ok, name = self._send("name")
        self.title = name if ok and name else command.split()[0]

    def choose(self, moves: Moves) -> int:
        """Return its action after some moves from the initial position; see `Engine`."""
        if moves[: len(self.moves)] != self.moves:
            self.ask("clear_board")
            self.moves = ()
        game = self._game
        (state,) = game.initial(1)
        for place, action in enumerate(moves):
            if place >= len(self.moves):
                self._play(state, action)
                self.moves = moves[: place + 1]
            (state,) = game.step(state[None], np.array([action]))
        answer = self.ask(f"genmove {COLORS[int(game.to_play(state[None])[0])]}", THINKING_SECONDS)
        action = chosen(game, self._name_of, state, self._name, answer)
        self.moves = (*moves, action)
        return action

    def _play(self, state: Array, action: int) -> None:
        color = COLORS[int(self._game.to_play(state[None])[0])]
        vertex = self._name_of(state, action).upper()  # some engines want capitals
        command = f"play {color} {vertex}"
        ok, reply = self._send(command)
        # Where a player can only pass, some engines do that by themselves, and refuse the command.
        if not (ok or must_pass(self._game, state)):
            raise self._broken(f"? {reply}", f"another answer to {command}")

    def close(self) -> None:
        """End the program."""
        self._process.close()

    def ask(self, command: str, seconds: float | None = None) -> str:
        """Return the answer to a command, which must come within some seconds, by default `ANSWER_SECONDS`.

        Raises:
            EngineLostError: the program has ended, or did not answer in time.
            GameError: it refuses the command.
        """
        ok, reply = self._send(command, seconds)
        if not ok:
            raise self._broken(f"? {reply}", f"another answer to {command}")
        return reply

    def _broken(self, reply: str, expected: str) -> GameError:
        return GameError(f"{self._name} answered {reply!r}: expected {expected}")

    def _send(self, command: str, seconds: float | None = None) -> tuple[bool, str]:
        # Whether the engine obeyed, and its answer: all up to an empty line, behind = or ?, with or without a number.
        self._process.send(command)
        deadline, lines = time.monotonic() + (seconds or ANSWER_SECONDS), list[str]()
        while not lines or lines[-1]:
            line = self._process.receive(deadline).strip()
            if line or lines:
                lines.append(line)
            if lines and lines[0][0] not in "=?":
                raise self._broken(lines[0], f"= or ? before the answer to {command}: does it speak GTP?")
        return lines[0][0] == "=", " ".join([lines[0][1:].lstrip("0123456789").strip(), *lines[1:-1]]).strip()


def gtp_player(game: Game, command: str) -> EnginePlayer:
    """Return the player that asks programs by GTP, which a command starts; errors as `EnginePlayer`.

    Raises:
        GameError: it is a game of chance, or not of two players.
    """
    check_two_players(game)
    return EnginePlayer(f"gtp:{command}", lambda: GtpEngine(game, command))
