"""A pool of worker processes on this machine, one per core, each with its own search and its own copy of the model.

For a GPU one more process has the model, and serves the others (`seraphim.selfplay.served`).

Processes are spawned, never forked, since TensorFlow does not survive a fork. Whole games travel, as serialized
examples. If a worker dies, the parent's iteration ends with an error. If the parent dies, its workers end as well, once
they have written finished games to their journals.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Set
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

from seraphim.errors import SeraphimError, WorkerError
from seraphim.game import load_game
from seraphim.inference import Runtime, uses_gpu
from seraphim.jit import UNCACHED
from seraphim.machine import count_cores, environment, held_interrupts
from seraphim.records.writer import Journal
from seraphim.search.evaluator import Inference
from seraphim.search.search import batch_size
from seraphim.selfplay.pool import (
    ENDLESS,
    SECONDS_TO_STOP,
    FinishedGame,
    Work,
    groups_of,
    load_worker_inference,
    play_games,
    sum_parallel,
)
from seraphim.selfplay.served import GONE, NetworkServer, Seat, ServedNetwork, make_seat
from seraphim.settings import Settings
from seraphim.storage.snapshots import step_of

_SECONDS_AFTER_PARENT = 1.0  # that a worker has, when its parent is gone, to write finished games to its journal
_NICENESS = 5  # of workers that wait for a server, which goes first
_STARTING = threading.Lock()


@contextlib.contextmanager
def _main_left_out() -> Iterator[None]:
    # A spawned process would run the main module again, which workers do not need: a script would have to be guarded.
    with _STARTING:
        main: dict[str, Any] = sys.modules["__main__"].__dict__
        kept: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
        main.pop("__file__", None)
        main["__spec__"] = None
        try:
            yield
        finally:
            main.update(kept)


class _Play(NamedTuple):
    # The command to play.
    snapshot: Path | None  # None plays with uniform priors
    runtime: Runtime
    stream: str
    skip: Set[int]
    journals: Path | None
    served: tuple[str, str] | None  # name and description of the model, if another process has it


class _Shared(NamedTuple):
    # Numbers in memory that the parent shares with its workers.
    next: Any  # number of the next game
    end: Any  # no game with this number or a higher one is started
    stored: Any  # for each worker, how many of its games are stored

    def take_numbers(self, skip: Set[int]) -> Iterator[int]:
        while True:
            with self.next.get_lock():
                number = self.next.value
                if number >= self.end.value:
                    return
                self.next.value = number + 1
            if number not in skip:
                yield number


class WorkerPool(contextlib.AbstractContextManager["WorkerPool"]):
    """Worker processes; see `Pool`."""

    # Else they and their resource tracker would find modules of the current folder before those of Python.
    @environment(PYTHONSAFEPATH="1")
    def __init__(self, settings: Settings, runtime: Runtime = "auto", num_workers: int = 0) -> None:
        """Start the processes: `num_workers`, or if it is 0, as many as there are cores."""
        context = multiprocessing.get_context("spawn")
        is_served = uses_gpu(runtime)
        self.num_workers = num_workers or max(1, count_cores() - is_served)
        self._runtime = runtime
        self._work: dict[Any, Work] = {}
        self._stopped = False
        self._silent = contextlib.ExitStack()
        self._shared = _Shared(context.Value("q", 0), context.Value("q", 0), context.Array("q", self.num_workers))
        self._connections: list[Connection] = []
        self._processes: list[SpawnProcess] = []
        seats: list[Seat] = []  # the server's ends
        for index in range(self.num_workers):
            own = _make_seats(context, settings) if is_served else []
            seats += [theirs for _, theirs in own]
            players = [ours for ours, _ in own]
            self._start(context, _run_worker, f"worker {index}", index, settings, self._shared, players)
            _close(players)
            self._silent.enter_context(environment(**{UNCACHED: "1"}))  # the first worker says it for all
        if is_served:
            self._start(context, _run_server, "the network's process", settings, runtime, seats)
            _close(seats)

    def _start(self, context: SpawnContext, target: Callable[..., None], name: str, *arguments: Any) -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=target, args=(theirs, *arguments), name=name, daemon=True)
        with _main_left_out(), held_interrupts():
            process.start()
        theirs.close()
        self._connections.append(ours)
        self._processes.append(process)

    def __exit__(self, *exception: object) -> None:
        self._silent.close()
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
            SeraphimError: an error of a worker.
            WorkerError: a worker died.
        """
        self._shared.next.value = first
        self._shared.end.value = end
        self._work = {}
        self._stopped = False
        workers = self._connections[: self.num_workers]
        playing: dict[Any, int] = {connection: index for index, connection in enumerate(workers)}
        try:
            served = self._serve(snapshot)
            command = _Play(snapshot, self._runtime, stream, skip, journals, served)
            for connection, index in playing.items():
                self._shared.stored[index] = 0
                self._send(connection, self._processes[index], command)
            while playing and not self._stopped:
                for ready in wait(list(playing), timeout=SECONDS_TO_STOP):
                    report = self._receive(ready, self._processes[playing[ready]])
                    if report is None:
                        del playing[ready]
                        continue
                    self._work[ready] = report.work
                    yield from report.games
                    self._shared.stored[playing[ready]] += len(report.games)
        finally:
            if playing:  # their finished games are in their journals
                self._end_workers()

    def _serve(self, snapshot: Path | None) -> tuple[str, str] | None:
        # Gives the model to the process that serves it, if there is one.
        if snapshot is None or len(self._processes) == self.num_workers:
            return None
        self._send(self._connections[-1], self._processes[-1], snapshot)
        served: tuple[str, str] = self._receive(self._connections[-1], self._processes[-1])
        return served

    def work(self) -> Work:
        """See `Pool.work`."""
        return sum_parallel(self._work.values())

    def process_ids(self) -> list[int]:
        """Return the processes' ids, the workers' first."""
        return [process.pid for process in self._processes if process.pid is not None]

    def finish(self) -> None:
        """See `Pool.finish`."""
        with self._shared.next.get_lock():
            self._shared.end.value = min(self._shared.end.value, self._shared.next.value)

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
            raise _to_error(process) from error

    def _receive(self, connection: Any, process: SpawnProcess) -> Any:
        try:
            message = connection.recv()
        except (EOFError, OSError) as error:  # possibly in the middle of a message
            raise _to_error(process) from error
        if isinstance(message, BaseException):
            raise message
        return message


def _to_error(process: SpawnProcess) -> WorkerError:
    process.join(timeout=5)
    return WorkerError(
        f"{process.name} died with exit code {process.exitcode}; finished games are kept: if memory ran out, "
        "lower --concurrent_games or --workers, then run again"
    )


def _make_seats(context: SpawnContext, settings: Settings) -> list[tuple[Seat, Seat]]:
    groups, size = groups_of(settings, overlaps=True)
    return [make_seat(context, load_game(settings.game), batch_size(size)) for _ in range(groups)]


def _close(seats: list[Seat]) -> None:
    # Else the process at the other end would not notice that the one with this end is gone.
    for seat in seats:
        seat.connection.close()


def _run_worker(connection: Connection, index: int, settings: Settings, shared: _Shared, seats: list[Seat]) -> None:
    # The main function of a worker process.
    if seats and hasattr(os, "nice"):
        os.nice(_NICENESS)
    _answer(connection, lambda command: _play(connection, settings, command, shared, index, seats))


def _run_server(connection: Connection, settings: Settings, runtime: Runtime, seats: list[Seat]) -> None:
    # The main function of the process that serves the network.
    game, servers = load_game(settings.game), list[NetworkServer]()

    def serve(snapshot: Path) -> None:
        inference = load_worker_inference(snapshot, game, runtime, settings)
        if servers:
            servers[0].inference = inference
        else:
            servers.append(NetworkServer(game, seats, inference))
        connection.send((inference.name, inference.description))

    _answer(connection, serve)


def _answer(connection: Connection, obey: Callable[[Any], None]) -> None:
    # Does what the parent commands, until it is gone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while True:
            obey(connection.recv())
    except GONE:
        pass
    except (SeraphimError, OSError) as error:  # which the user can fix, such as a full disk
        connection.send(error)
    except Exception:  # noqa: BLE001 (the parent has to know of any error)
        with contextlib.suppress(*GONE):
            connection.send(WorkerError(f"a worker failed:\n{traceback.format_exc()}"))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        time.sleep(_SECONDS_AFTER_PARENT)
        os._exit(1)


def _play(
    connection: Connection, settings: Settings, command: _Play, shared: _Shared, index: int, seats: list[Seat]
) -> None:
    journal = Journal(command.journals, f"{command.stream}.w{index}") if command.journals else None
    written = 0  # games in the journal since it was begun
    game = load_game(settings.game)
    inference: Inference
    if command.served is not None:
        inference = ServedNetwork(game, *command.served, seats)
    else:
        inference = load_worker_inference(command.snapshot, game, command.runtime, settings)
    numbers = shared.take_numbers(command.skip)
    settings = settings.at_step(step_of(command.snapshot))
    for report in play_games(game, inference, settings, command.stream, numbers):
        if journal and report.games:
            if shared.stored[index] == written:
                journal.clear()
            for finished in report.games:
                journal.add(finished.examples)
            written += len(report.games)
        with contextlib.suppress(*GONE):  # without a parent, this process keeps its journal until it ends as well
            connection.send(report)
    if journal:
        while shared.stored[index] < written:  # if the parent dies meanwhile, this process ends as well
            time.sleep(0.01)
        journal.close(remove=True)
    connection.send(None)
