"""A player that asks programs for its moves: a few processes, each of which follows one game at a time."""

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Protocol

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game
from seraphim.machine import count_cores
from seraphim.players.choose import HistoryPlayer
from seraphim.players.external.move_names import NameOf, action_named
from seraphim.players.external.process import EngineLostError, EngineSilentError

Moves = tuple[int, ...]


class Engine(Protocol):
    """A program that was started."""

    title: str
    """What the program calls itself."""
    moves: Moves
    """The game that it follows."""

    def choose(self, moves: Moves) -> int:
        """Return its action after some moves from the initial position.

        Raises:
            EngineLostError: the program has ended, or did not answer in time.
            GameError: it broke the rules of its protocol, or of the game.
        """

    def close(self) -> None:
        """End the program."""


class EnginePlayer(HistoryPlayer):
    """Plays the moves of programs, as many of them as there are cores.

    One that dies is started again, once a move; one that is silent or breaks the rules, when it is needed next.
    """

    def __init__(self, name: str, start: Callable[[], Engine]) -> None:
        """Start the first program.

        Args:
            name: of the player, for errors.
            start: starts a program.

        Raises:
            NotInstalledError: there is no such program.
            PlayerError: it does not play this game.
            GameError: it does not begin as its protocol demands.
        """
        self._name, self._start, self._closed = name, start, False
        self._engines = [self._started()]

    @property
    def title(self) -> str:
        """Return what the program calls itself."""
        return self._engines[0].title

    def close(self) -> None:
        """End the programs; one that thinks ends with a GameError."""
        self._closed = True
        for engine in self._engines:
            engine.close()

    def _started(self) -> Engine:
        try:
            return self._start()
        except EngineLostError as error:
            raise GameError(f"{self._name} {error}") from error

    def choose(self, lines: Sequence[Sequence[int]]) -> Array:
        """Return an action for each of some games, given as the moves from the initial position."""
        while len(self._engines) < min(len(lines), count_cores()):
            self._engines.append(self._started())
        games = [tuple(moves) for moves in lines]
        followed = self._followed(games)
        rest = iter([row for row in range(len(games)) if [row] not in followed])  # of a list, so threads may share it
        actions, interrupted = np.empty(len(games), np.int64), threading.Event()

        def work(place: int) -> None:
            try:
                for row in itertools.chain(followed[place], rest):
                    if interrupted.is_set():
                        return
                    actions[row] = self._choose(place, games[row])
            except BaseException:
                interrupted.set()  # the others finish the moves that they think about
                raise

        with ThreadPoolExecutor(len(self._engines)) as pool:
            try:
                turns = [pool.submit(work, place) for place in range(len(self._engines))]
                wait(turns)
            except KeyboardInterrupt:
                interrupted.set()
                self._closed = True
                for engine in self._engines:  # all at once, as one that thinks takes a while to end
                    threading.Thread(target=engine.close).start()
                raise
        for turn in turns:
            turn.result()  # raises its error
        return actions

    def _followed(self, games: Sequence[Moves]) -> list[list[int]]:
        # The game that each engine begins with, if there is one that it already follows: it only needs what is new.
        followed: list[list[int]] = []
        for known in (engine.moves for engine in self._engines):
            rows = [row for row, moves in enumerate(games) if known and moves[: len(known)] == known]
            followed.append([row for row in rows if [row] not in followed][:1])
        return followed

    def _choose(self, place: int, moves: Moves) -> int:
        try:
            return self._ask(place, moves)
        except EngineLostError as error:
            if self._closed or isinstance(error, EngineSilentError):
                raise GameError(f"{self._name} {error}") from error
        self._engines[place] = self._started()
        if self._closed:  # by now; `close` may not have seen the new one
            self._engines[place].close()
        try:
            return self._ask(place, moves)
        except EngineLostError as error:
            raise GameError(f"{self._name} {error}") from error

    def _ask(self, place: int, moves: Moves) -> int:
        engine = self._engines[place]
        try:
            return engine.choose(moves)
        except (EngineLostError, GameError):
            # What it writes next may answer this request, and what it follows may be another game: it is not asked
            # again. The next request finds that it has ended, and starts another one.
            engine.close()
            raise


def chosen(game: Game, name_of: NameOf, state: Array, player: str, name: str) -> int:
    """Return the action that a player's engine names in a state int64 [W].

    Raises:
        GameError: it names none, for instance because it resigns.
    """
    try:
        return action_named(game, name_of, state, name)
    except GameError as error:
        raise GameError(f"{player} plays {error}\n{game.render(state)}") from error
