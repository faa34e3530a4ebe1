"""Worker processes that play: one a core, each with its own search and its own copy of the model.

Processes are spawned, never forked, since TensorFlow does not survive a fork. Whole games travel, as serialized
examples. A worker that dies ends the parent's iteration with its error; a parent that dies takes its workers along.
"""

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple, Self

from seraphim.errors import SeraphimError, WorkerError
from seraphim.game import load_game
from seraphim.inference import Choice, Runtime, Uniform, choose_runtime, load_inference
from seraphim.records import GameRecord, encode_games
from seraphim.selfplay import SelfPlay, number_in, play_together
from seraphim.settings import Settings

ENDLESS = 2**62  # the number of a game that nobody gets to

STAGES = ("network", "rules", "search", "other")

_SECONDS_BETWEEN_MESSAGES = 0.2
_LONGEST_WAIT = 0.2  # seconds until `stop` is noticed


class FinishedGame(NamedTuple):
    """A game as it travels."""

    number: int
    examples: list[bytes]  # one serialized example for each ply


@dataclass(frozen=True)
class Work:
    """What one or several workers have done since `play` was called."""

    readouts: int = 0
    evaluations: int = 0
    """Positions evaluated by the network."""
    batches: int = 0
    """Calls of the network."""
    cache_hits: int = 0
    """Positions whose evaluation the cache knew."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds by stage: network, rules, search, and other; summed over workers."""
    playing_seconds: float = 0.0
    """Seconds from the first game's start, by the clock."""
    runtime: str = ""
    """What runs the network, and on which device."""

    @property
    def hit_rate(self) -> float:
        """Return the share of evaluations that the cache saved."""
        return self.cache_hits / max(1, self.cache_hits + self.evaluations)

    def __add__(self, other: "Work") -> "Work":
        return Work(
            self.readouts + other.readouts,
            self.evaluations + other.evaluations,
            self.batches + other.batches,
            self.cache_hits + other.cache_hits,
            {stage: self.seconds.get(stage, 0.0) + other.seconds.get(stage, 0.0) for stage in STAGES},
            self.playing_seconds + other.playing_seconds,
            self.runtime or other.runtime,
        )


def count_cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Choose(NamedTuple):
    snapshot: Path


class _Play(NamedTuple):
    snapshot: Path | None  # None plays with uniform priors
    choice: Choice
    stream: str
    skip: Set[int]


class WorkerPool:
    """Worker processes, to be used in a `with` statement."""

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
        """Play games `first` … `end - 1` of a stream, and yield them in the order of their numbers.

        After `stop`, the games that are finished by then come last, and may lack predecessors.

        Args:
            snapshot: the model; None plays with uniform priors.
            stream: the name of the games' luck.
            first: the number of the first game.
            end: the number after the last game's.
            skip: numbers that are left out.

        Raises:
            SeraphimError: what a worker ran into.
            WorkerError: a worker died.
        """
        self._next.value = first
        self._end.value = end
        self._work = {}
        self._stopped = False
        choice = self._choose(snapshot)
        playing: dict[Any, SpawnProcess] = dict(zip(self._connections, self._processes, strict=True))
        for connection, process in playing.items():
            self._send(connection, process, _Play(snapshot, choice, stream, skip))
        early: dict[int, FinishedGame] = {}
        number = first
        while playing and not self._stopped:
            for ready in wait(list(playing), timeout=_LONGEST_WAIT):
                message = self._receive(ready, playing[ready])
                if message is None:
                    del playing[ready]
                    continue
                games, self._work[ready] = message
                early.update((game.number, game) for game in games)
            while number in early or number in skip:
                if number not in skip:
                    yield early.pop(number)
                number += 1
        for number in sorted(early):
            yield early.pop(number)

    def work(self) -> Work:
        """Return what the workers have reported since `play` was called; they report several times a second."""
        workers = self._work.values()
        playing_seconds = max((work.playing_seconds for work in workers), default=0.0)  # all at the same time
        return replace(sum(workers, Work()), playing_seconds=playing_seconds)

    def process_ids(self) -> list[int]:
        """Return the workers' process ids."""
        return [process.pid for process in self._processes if process.pid is not None]

    def finish(self) -> None:
        """Start no further games: `play` ends when those under way are finished."""
        with self._next.get_lock():
            self._end.value = min(self._end.value, self._next.value)

    def stop(self) -> None:
        """End `play` at once: games under way are lost, and so is the use of the pool."""
        self._stopped = True

    def _choose(self, snapshot: Path | None) -> Choice:
        # The runtimes give slightly different results, so all workers use the same one. The first worker finds out
        # which: in this process, other threads may be at work, and OpenVINO need not be loaded.
        if snapshot is None or self._runtime != "auto":
            return Choice(self._runtime, "")
        connection, process = self._connections[0], self._processes[0]
        self._send(connection, process, _Choose(snapshot))
        choice: Choice = self._receive(connection, process)
        return choice

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
            command = connection.recv()
            if isinstance(command, _Choose):
                batch = settings.self_play.concurrent_games
                connection.send(choose_runtime(command.snapshot, load_game(settings.game), batch=batch))
            else:
                _play(connection, settings, next_number, end, command)
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
    inference = Uniform(game) if command.snapshot is None else load_inference(command.snapshot, game, command.choice)
    options = settings.self_play
    if inference.overlaps:  # two groups, of which one moves while the network works for the other
        options = replace(options, concurrent_games=max(1, options.concurrent_games // 2))
    groups = 2 if inference.overlaps else 1
    players = [SelfPlay(game, inference, settings.search, options, command.stream) for _ in range(groups)]
    started = sent = time.perf_counter()
    records: list[GameRecord] = []

    def send() -> None:
        encoded = zip(records, encode_games(game, records), strict=True)
        games = [FinishedGame(number_in(record.game_id), examples) for record, examples in encoded]
        work, elapsed = Work(), time.perf_counter() - started
        for search in (player.search for player in players):
            seconds = search.seconds | {"other": elapsed - sum(search.seconds.values())}
            counts = search.readouts, search.evaluations, search.batches, search.cache_hits
            work += Work(*counts, seconds, runtime=inference.description)
        connection.send((games, replace(work, playing_seconds=elapsed)))
        records.clear()

    for record in play_together(players, _numbers(next_number, end, command.skip)):
        records.append(record)
        if time.perf_counter() - sent > _SECONDS_BETWEEN_MESSAGES:
            send()
            sent = time.perf_counter()
    send()
    connection.send(None)
