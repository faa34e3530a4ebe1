"""A pool of processes on this machine: one a core, each with its own search and its own copy of the model.

Processes are spawned, never forked, since TensorFlow does not survive a fork. Whole games travel, as serialized
examples. A worker that dies ends the parent's iteration with its error; a parent that dies takes its workers along.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Iterator, Set
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple, Self

from seraphim.errors import SeraphimError, WorkerError
from seraphim.game import load_game
from seraphim.inference import Runtime
from seraphim.machine import count_cores
from seraphim.pool import ENDLESS, LONGEST_WAIT, FinishedGame, InOrder, Work, at_the_same_time, load_player, play_games
from seraphim.settings import Settings


class _Play(NamedTuple):
    snapshot: Path | None  # None plays with uniform priors
    runtime: Runtime
    stream: str
    skip: Set[int]


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
        self._connections: list[Connection] = []
        self._processes: list[SpawnProcess] = []
        for index in range(self.num_workers):
            ours, theirs = context.Pipe()
            arguments = (theirs, settings, self._next, self._end)
            process = context.Process(target=_work, args=arguments, name=f"worker {index}", daemon=True)
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes:
            process.terminate()
        for process, connection in zip(self._processes, self._connections, strict=True):
            process.join()
            connection.close()

    def play(
        self, snapshot: Path | None, stream: str, first: int = 0, end: int = ENDLESS, skip: Set[int] = frozenset()
    ) -> Iterator[FinishedGame]:
        """See `Pool.play`.

        Raises:
            SeraphimError: what a worker ran into.
            WorkerError: a worker died.
        """
        self._next.value = first
        self._end.value = end
        self._work = {}
        self._stopped = False
        playing: dict[Any, SpawnProcess] = dict(zip(self._connections, self._processes, strict=True))
        for connection, process in playing.items():
            self._send(connection, process, _Play(snapshot, self._runtime, stream, skip))
        games = InOrder(first, skip)
        while playing and not self._stopped:
            for ready in wait(list(playing), timeout=LONGEST_WAIT):
                report = self._receive(ready, playing[ready])
                if report is None:
                    del playing[ready]
                    continue
                games.add(report.games)
                self._work[ready] = report.work
            yield from games.ready()
        yield from games.rest()

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

    def _send(self, connection: Any, process: SpawnProcess, message: Any) -> None:
        try:
            connection.send(message)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise _death_of(process) from error

    def _receive(self, connection: Any, process: SpawnProcess) -> Any:
        try:
            message = connection.recv()
        except (EOFError, ConnectionResetError) as error:
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


def _work(connection: Connection, settings: Settings, next_number: Any, end: Any) -> None:
    # The main function of a worker process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while True:
            _play(connection, settings, next_number, end, connection.recv())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the parent is gone
    except SeraphimError as error:
        connection.send(error)
    except Exception:  # noqa: BLE001 (whatever it is, the parent has to know)
        connection.send(WorkerError(f"a worker failed:\n{traceback.format_exc()}"))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
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


def _play(connection: Connection, settings: Settings, next_number: Any, end: Any, command: _Play) -> None:
    game = load_game(settings.game)
    inference = load_player(command.snapshot, game, command.runtime, settings)
    for report in play_games(game, inference, settings, command.stream, _numbers(next_number, end, command.skip)):
        connection.send(report)
    connection.send(None)
