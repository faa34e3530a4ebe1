"""A worker of a cluster: it plays games in a thread, and returns them when it is asked.

Knows no Ray: `seraphim.selfplay.cluster.nodes` makes it an actor on some machine. It receives the numbers of its games
a few at a time, so that few games are played again if it is lost.
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
from seraphim.selfplay.pool import MAX_BYTES, Work, WorkerReport, load_worker_inference, play_games
from seraphim.settings import Settings
from seraphim.storage.snapshots import step_of

_MAX_GAMES = 4096  # in a message, which may exceed this, and MAX_BYTES, by one report of the playing thread


class Assignment(NamedTuple):
    """What an actor plays, until no more numbers follow."""

    runtime: Runtime
    stream: str
    concurrent_games: int


class Status(NamedTuple):
    """What an actor has done, and whether it can go on."""

    report: WorkerReport
    starved: bool  # a game could be started if there were a number
    ended: bool  # all numbers are played, and no more follow
    error: SeraphimError | None  # why it stopped


class NumberQueue:
    """Numbers that one thread adds and another takes."""

    def __init__(self, changed: threading.Condition, numbers: list[int]) -> None:
        """Begin with some numbers; `changed` is notified when none are left."""
        self._changed = changed
        self._numbers = deque(numbers)
        self._closed = False
        self.starved = False

    def add(self, numbers: list[int], is_last: bool) -> None:
        """Add numbers; the caller holds the lock of `changed`."""
        self._numbers.extend(numbers)
        self._closed = is_last
        self.starved = False  # even if there are none yet, since that was reported
        if numbers or is_last:
            self._changed.notify_all()

    def __iter__(self) -> "NumberQueue":
        return self

    def __next__(self) -> int:
        with self._changed:
            while not self._numbers:
                if self._closed:
                    raise StopIteration
                self.starved = True
                self._changed.notify_all()
                self._changed.wait()
            return self._numbers.popleft()


class Actor:
    """A worker; its methods are called one at a time, and none of them blocks for long."""

    def __init__(self, settings: Settings, uses_gpu: bool) -> None:
        """Prepare to play with these settings; without `uses_gpu`, GPUs are hidden."""
        if not uses_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        self._settings = settings
        self._changed = threading.Condition()
        self._numbers = NumberQueue(self._changed, [])
        self._report = WorkerReport([], Work())
        self._ended = True
        self._error: SeraphimError | None = None

    def check_version(self, expected: Mapping[str, str]) -> SeraphimError | None:
        """Return why this machine cannot play, if its code differs from the `expected` one of `fingerprint_code`."""
        try:
            found = fingerprint_code(self._settings.game)
        except SeraphimError as error:
            return error
        different = [name for name, code in expected.items() if found.get(name) != code]
        if different:
            return WorkerError(
                f"{' and '.join(different)} on {socket.gethostname()} differs from the learner's: "
                "install the same version there"
            )
        return None

    def begin(self, assignment: Assignment, bundle: bytes | None, numbers: list[int]) -> None:
        """Begin to play with the model of a bundle, or with uniform priors, after the last assignment has ended."""
        self._numbers = NumberQueue(self._changed, numbers)
        self._report, self._ended, self._error = WorkerReport([], Work()), False, None
        threading.Thread(target=self._play, args=(assignment, bundle, self._numbers), daemon=True).start()

    def exchange(self, numbers: list[int], is_last: bool, seconds: float) -> Status:
        """Take more numbers, and return what has happened since the last call.

        Returns after `seconds`, or earlier if numbers are missing, a message is full, or the assignment has ended.
        """
        with self._changed:
            self._numbers.add(numbers, is_last)
            self._changed.wait_for(lambda: self._ended or self._numbers.starved or self._is_full(), timeout=seconds)
            report, self._report = self._report, WorkerReport([], self._report.work)
            self._changed.notify_all()
            return Status(report, self._numbers.starved, self._ended, self._error)

    def _play(self, assignment: Assignment, bundle: bytes | None, numbers: NumberQueue) -> None:
        # The main function of the thread that plays.
        error: SeraphimError | None = None
        try:
            game = load_game(self._settings.game)
            snapshot = None if bundle is None else unpack(bundle)
            inference = load_worker_inference(snapshot, game, assignment.runtime, self._settings)
            options = replace(self._settings.self_play, concurrent_games=assignment.concurrent_games)
            settings = replace(self._settings, self_play=options).at_step(step_of(snapshot))
            for report in play_games(game, inference, settings, assignment.stream, numbers):
                with self._changed:
                    self._changed.wait_for(lambda: not self._is_full())
                    self._report = WorkerReport(self._report.games + report.games, report.work)
                    self._changed.notify_all()
        except SeraphimError as found:
            error = found
        except BaseException:  # noqa: BLE001 (the learner has to know of any error)
            error = WorkerError(f"a worker on {socket.gethostname()} failed:\n{traceback.format_exc()}")
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def _is_full(self) -> bool:
        games = self._report.games
        return len(games) >= _MAX_GAMES or sum(len(each) for game in games for each in game.examples) >= MAX_BYTES


def fingerprint_code(game: str) -> dict[str, str]:
    """Return hashes of the code that games depend on, by name.

    Raises:
        GameError: there is no such game.
    """
    module = load_game_module(game)
    source = type(module.GAME).__module__ if ":" in game else game  # of a family of games, or of one game
    code = _hash_sources(sys.modules[source.partition(".")[0]])
    if ":" in game:  # its rules may be those of an installed package
        rules = module.GAME
        code += f" {rules.name} {rules.num_actions} {rules.observation_shape} {rules.state_words} {rules.max_plies}"
    return {"the code of seraphim": _hash_sources(sys.modules["seraphim"]), f"the game {game}": code}


def _hash_sources(module: ModuleType) -> str:
    # Covers the file of a module, or all files of a package.
    files = [Path(module.__file__ or "")]
    if hasattr(module, "__path__"):
        files = sorted(files[0].parent.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
