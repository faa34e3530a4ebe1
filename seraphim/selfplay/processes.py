"""A pool of processes on this machine: one a core, each with its own search and its own copy of the model.

Processes are spawned, never forked, since TensorFlow does not survive a fork. Whole games travel, as serialized
examples. A worker that dies ends the parent's iteration with its error. A parent that dies takes its workers along, as
soon as they have written the games that were finished to their journals.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Generator, Iterator, Set
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple, Self

from seraphim.errors import SeraphimError, WorkerError
from seraphim.game import load_game
from seraphim.inference import Runtime
from seraphim.machine import count_cores
from seraphim.records.writer import Journal
from seraphim.selfplay.pool import ENDLESS, LONGEST_WAIT, FinishedGame, Work, at_the_same_time, load_player, play_games
from seraphim.settings import Settings

_SECONDS_ALONE = 1.0  # that a worker has, when its parent is gone, to write down which games are finished
_GONE = (EOFError, BrokenPipeError, ConnectionResetError)


class _Play(NamedTuple):
    snapshot: Path | None  # None plays with uniform priors
    runtime: Runtime
    stream: str
    skip: Set[int]
    journals: Path | None


class WorkerPool:
    """Worker processes; see `Pool`."""

    def __init__(self, settings: Settings, runtime: Runtime = "auto", num_workers: int = 0) -> None:
        """Start the processes.

        Args:
            settings: those of the model.
            runtime: what runs the network.
            num_workers: how many; 0 is one for each processor that this process may use.
        """
        context = multiprocessing.get_context("spawn")
        self.num_workers = num_workers or count_cores()
        self._runtime = runtime
        self._work: dict[Any, Work] = {}
        self._stopped = False
        self._next = context.Value("q", 0)  # the number of the next game
        self._end = context.Value("q", 0)  # no game with this number or a higher one is started
        self._stored = context.Array("q", self.num_workers)  # how many of the games of each worker are stored
        self._connections: list[Connection] = []
        self._processes: list[SpawnProcess] = []
        for index in range(self.num_workers):
            ours, theirs = context.Pipe()
            arguments = (theirs, index, settings, self._next, self._end, self._stored)
            process = context.Process(target=_work, args=arguments, name=f"worker {index}", daemon=True)
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end_workers()
        for connection in self._connections:
            connection.close()

    def play(
        self,
        snapshot: Path | None,
        stream: str,
        first: int = 0,
        end: int = ENDLESS,
        skip: Set[int] = frozenset(),
        journals: Path | None = None,
    ) -> Generator[FinishedGame, None, None]:
        """See `Pool.play`.

        Raises:
            SeraphimError: what a worker ran into.
            WorkerError: a worker died.
        """
        self._next.value = first
        self._end.value = end
        self._work = {}
        self._stopped = False
        playing: dict[Any, int] = {connection: index for index, connection in enumerate(self._connections)}
        try:
            for connection, index in playing.items():
                self._stored[index] = 0
                self._send(connection, self._processes[index], _Play(snapshot, self._runtime, stream, skip, journals))
            while playing and not self._stopped:
                for ready in wait(list(playing), timeout=LONGEST_WAIT):
                    report = self._receive(ready, self._processes[playing[ready]])
                    if report is None:
                        del playing[ready]
                        continue
                    self._work[ready] = report.work
                    yield from report.games
                    self._stored[playing[ready]] += len(report.games)
        finally:
            if playing:  # what they have finished is in their journals
                self._end_workers()

    def work(self) -> Work:
        """See `Pool.work`."""
        return at_the_same_time(self._work.values())

    def process_ids(self) -> list[int]:
        """Return the workers' process ids."""
        return [process.pid for process in self._processes if process.pid is not None]

    def finish(self) -> None:
        """See `Pool.finish`."""
        with self._next.get_lock():
            self._end.value = min(self._end.value, self._next.value)

    def stop(self) -> None:
        """See `Pool.stop`."""
        self._stopped = True

    def _end_workers(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def _send(self, connection: Any, process: SpawnProcess, message: Any) -> None:
        try:
            connection.send(message)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise _death_of(process) from error

    def _receive(self, connection: Any, process: SpawnProcess) -> Any:
        try:
            message = connection.recv()
        except (EOFError, OSError) as error:  # also in the middle of a message
            raise _death_of(process) from error
        if isinstance(message, BaseException):
            raise message
        return message


def _death_of(process: SpawnProcess) -> WorkerError:
    process.join(timeout=5)
    return WorkerError(
        f"{process.name} died with exit code {process.exitcode}; finished games are kept: if memory ran out, "
        "lower --concurrent_games or --workers, then run again"
    )


def _work(connection: Connection, index: int, settings: Settings, next_number: Any, end: Any, stored: Any) -> None:
    # The main function of a worker process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while True:
            command = connection.recv()
            numbers = _numbers(next_number, end, command.skip)
            _play(connection, settings, command, numbers, _WorkerJournal(command, index, stored))
    except _GONE:
        pass
    except (SeraphimError, OSError) as error:  # which is the person's business, such as a full disk
        connection.send(error)
    except Exception:  # noqa: BLE001 (whatever it is, the parent has to know)
        with contextlib.suppress(*_GONE):
            connection.send(WorkerError(f"a worker failed:\n{traceback.format_exc()}"))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        time.sleep(_SECONDS_ALONE)
        os._exit(1)


def _numbers(next_number: Any, end: Any, skip: Set[int]) -> Iterator[int]:
    while True:
        with next_number.get_lock():
            number = next_number.value
            if number >= end.value:
                return
            next_number.value = number + 1
        if number not in skip:
            yield number


class _WorkerJournal:
    # The journal of a worker, if it is to keep one.
    def __init__(self, command: _Play, index: int, stored: Any) -> None:
        self._journal = Journal(command.journals, f"{command.stream}.w{index}") if command.journals else None
        self._index = index
        self._stored = stored
        self._games = 0

    def add(self, games: list[FinishedGame]) -> None:
        if self._journal and games:
            if self._stored[self._index] == self._games:
                self._journal.clear()
            for game in games:
                self._journal.add(game.examples)
            self._games += len(games)

    def close(self) -> None:
        # When the last game is stored; this process ends with its parent, if that is killed before.
        while self._journal and self._stored[self._index] < self._games:
            time.sleep(0.01)
        if self._journal:
            self._journal.close(remove=True)


def _play(
    connection: Connection, settings: Settings, command: _Play, numbers: Iterator[int], journal: _WorkerJournal
) -> None:
    game = load_game(settings.game)
    inference = load_player(command.snapshot, game, command.runtime, settings)
    for report in play_games(game, inference, settings, command.stream, numbers):
        journal.add(report.games)
        with contextlib.suppress(*_GONE):  # the parent is: until this process ends too, it writes down what is finished
            connection.send(report)
    journal.close()
    connection.send(None)
