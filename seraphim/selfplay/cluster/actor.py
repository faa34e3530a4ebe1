"""A worker of a cluster: it plays games in a thread, and tells of them whenever it is asked.

Knows no Ray: `cluster` makes an actor of it, on whichever machine. It takes the numbers of its games in small lots, so
that little is played again if it is lost.
"""

import hashlib
import os
import socket
import sys
import threading
import traceback
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from seraphim.errors import SeraphimError, WorkerError
from seraphim.game import load_game, load_game_module
from seraphim.inference import Runtime
from seraphim.selfplay.cluster.bundle import unpack
from seraphim.selfplay.pool import MOST_BYTES, FinishedGame, Report, Work, load_player, play_games
from seraphim.settings import Settings

_MOST_GAMES = 4096  # of a message; one more report of the thread that plays comes on top, and as many bytes


class Assignment(NamedTuple):
    """What an actor plays, until it is told that there are no more numbers."""

    runtime: Runtime
    stream: str
    concurrent_games: int


class News(NamedTuple):
    """What an actor tells when it is asked."""

    report: Report
    hungry: bool  # a game could be started, if there were a number
    ended: bool  # all numbers are played, and no more will come
    error: SeraphimError | None  # why it plays no more


class Supply:
    """Numbers that one thread brings, and another takes."""

    def __init__(self, changed: threading.Condition, numbers: list[int]) -> None:
        """Begin with some numbers; `changed` is notified when there are none left."""
        self._changed = changed
        self._numbers = deque(numbers)
        self._closed = False
        self.hungry = False

    def bring(self, numbers: list[int], is_last: bool) -> None:
        """Add numbers; the lock of `changed` must be held."""
        self._numbers.extend(numbers)
        self._closed = is_last
        self.hungry = False  # if there are none yet, that has been told
        if numbers or is_last:
            self._changed.notify_all()

    def __iter__(self) -> "Supply":
        return self

    def __next__(self) -> int:
        with self._changed:
            while not self._numbers:
                if self._closed:
                    raise StopIteration
                self.hungry = True
                self._changed.notify_all()
                self._changed.wait()
            return self._numbers.popleft()


class Actor:
    """A worker; its methods are called one at a time, and none of them takes long."""

    def __init__(self, settings: Settings, uses_gpu: bool) -> None:
        """Prepare to play with these settings; an actor that is not to use a GPU sees none."""
        if not uses_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        self._settings = settings
        self._changed = threading.Condition()
        self._supply = Supply(self._changed, [])
        self._report = Report([], Work())
        self._ended = True
        self._error: SeraphimError | None = None

    def greet(self, expected: Mapping[str, str]) -> SeraphimError | None:
        """Return why this machine cannot take part, where its code is not the `expected` one, see `code_of`."""
        try:
            found = code_of(self._settings.game)
        except SeraphimError as error:
            return error
        different = [name for name, code in expected.items() if found.get(name) != code]
        if different:
            return WorkerError(
                f"{' and '.join(different)} on {socket.gethostname()} is not what the learner has: "
                "install the same there"
            )
        return None

    def begin(self, assignment: Assignment, parcel: bytes | None, numbers: list[int]) -> None:
        """Begin to play with the model of a parcel, or with uniform priors. The assignment before must have ended."""
        self._supply = Supply(self._changed, numbers)
        self._report, self._ended, self._error = Report([], Work()), False, None
        threading.Thread(target=self._play, args=(assignment, parcel, self._supply), daemon=True).start()

    def exchange(self, numbers: list[int], is_last: bool, seconds: float) -> News:
        """Take numbers, and return what has happened since the call before.

        Args:
            numbers: of games to be played after those under way.
            is_last: no more numbers will come.
            seconds: when to return; earlier only if numbers are missing, if there are as many games as a message may
                hold, or if the assignment has ended.
        """
        with self._changed:
            self._supply.bring(numbers, is_last)
            self._changed.wait_for(lambda: self._ended or self._supply.hungry or self._is_full(), timeout=seconds)
            report, self._report = self._report, Report([], self._report.work)
            self._changed.notify_all()
            return News(report, self._supply.hungry, self._ended, self._error)

    def _play(self, assignment: Assignment, parcel: bytes | None, supply: Supply) -> None:
        # The main function of the thread that plays.
        error: SeraphimError | None = None
        try:
            game = load_game(self._settings.game)
            snapshot = None if parcel is None else unpack(parcel)
            inference = load_player(snapshot, game, assignment.runtime, self._settings)
            options = replace(self._settings.self_play, concurrent_games=assignment.concurrent_games)
            settings = replace(self._settings, self_play=options)
            for report in play_games(game, inference, settings, assignment.stream, supply):
                self._add(report.games, report.work)
        except SeraphimError as found:
            error = found
        except BaseException:  # noqa: BLE001 (whatever it is, the learner has to know)
            error = WorkerError(f"a worker on {socket.gethostname()} failed:\n{traceback.format_exc()}")
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def _add(self, games: list[FinishedGame], work: Work) -> None:
        # Waits while the learner does not take what is there.
        with self._changed:
            self._changed.wait_for(lambda: not self._is_full())
            self._report = Report(self._report.games + games, work)
            self._changed.notify_all()

    def _is_full(self) -> bool:
        games = self._report.games
        return len(games) >= _MOST_GAMES or sum(len(each) for game in games for each in game.examples) >= MOST_BYTES


def code_of(game: str) -> dict[str, str]:
    """Return a fingerprint of the code that games depend on, by what people call it.

    Raises:
        GameError: there is no such game.
    """
    module = load_game_module(game)
    if ":" in game:  # made by a family of games, which is an installed package
        facts = module.GAME
        code = f"{facts.name} {facts.num_actions} {facts.observation_shape} {facts.state_words} {facts.max_plies}"
    else:
        code = _digest(sys.modules[game.partition(".")[0]])
    return {"the code of seraphim": _digest(sys.modules["seraphim"]), f"the game {game}": code}


def _digest(module: ModuleType) -> str:
    # Of the source files of a module, or of a package and all below it.
    files = [Path(module.__file__ or "")]
    if hasattr(module, "__path__"):
        files = sorted(files[0].parent.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
