"""Pools of workers: they play the games of a stream, and each game comes back when it is finished.

This module has what all pools share: what a worker does and reports. How reports travel is up to
`seraphim.selfplay.processes` (this machine) and `seraphim.selfplay.cluster` (many machines).
"""

import contextlib
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, Queue
from typing import NamedTuple, Protocol, Self

from seraphim.game import Game
from seraphim.inference import Runtime, SavedNetwork
from seraphim.records.examples import GameRecord, encode_games
from seraphim.search.evaluator import Inference, Uniform
from seraphim.selfplay.games import SelfPlay, number_in
from seraphim.settings import Settings

ENDLESS = 2**62  # a number of games that is never reached
STAGES = ("network", "rules", "search", "other")
SECONDS_TO_STOP = 0.2  # until a pool notices `stop`

MAX_GAMES, MAX_BYTES = 64, 16 << 20
"""Limits of one report, which a single larger game may exceed; a worker pauses while that many games wait."""

_SECONDS_BETWEEN_REPORTS = 1.0  # while no game is finished


class FinishedGame(NamedTuple):
    """A game as workers send it."""

    number: int
    examples: list[bytes]  # one serialized example for each ply


@dataclass(frozen=True)
class Work:
    """What one or several workers have done since `play` was called."""

    readouts: int = 0
    evaluations: int = 0
    """Positions evaluated by the network."""
    batch_capacity: int = 0
    """Positions that the network's batches had room for."""
    cache_hits: int = 0
    """Positions whose evaluation was in the cache."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds by stage: network, rules, search, and other; summed over workers."""
    playing_seconds: float = 0.0
    """Wall-clock seconds since the first game began."""
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
            self.batch_capacity + other.batch_capacity,
            self.cache_hits + other.cache_hits,
            {stage: self.seconds.get(stage, 0.0) + other.seconds.get(stage, 0.0) for stage in STAGES},
            self.playing_seconds + other.playing_seconds,
            self.runtime or other.runtime,
        )


def sum_parallel(works: Iterable[Work]) -> Work:
    """Return the total work of workers that play at the same time."""
    each = list(works)
    return replace(sum(each, Work()), playing_seconds=max((work.playing_seconds for work in each), default=0.0))


class Pool(Protocol):
    """Workers, used as a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    @property
    def num_workers(self) -> int:
        """Return the current number of workers."""

    def play(
        self,
        snapshot: Path | None,
        stream: str,
        first: int = 0,
        end: int = ENDLESS,
        skip: Set[int] = frozenset(),
        journals: Path | None = None,
    ) -> Generator[FinishedGame, None, None]:
        """Play games `first` … `end - 1` of a stream, and yield each when it is finished, in any order.

        A game counts as stored when the next one is requested. Closing the iteration early ends the workers.

        Args:
            snapshot: the model; None plays with uniform priors.
            stream: seed string of the games' random streams.
            first: number of the first game.
            end: the number after the last game's.
            skip: numbers to leave out.
            journals: folder in which workers of this machine keep finished games until they are stored, each in a
                `seraphim.records.writer.Journal`; None: they keep none.

        Raises:
            SeraphimError: an error of a worker.
            WorkerError: workers died and cannot be replaced.
        """

    def work(self) -> Work:
        """Return what the workers have reported since `play` was called, about once a second."""

    def finish(self) -> None:
        """Start no further games: `play` ends when those under way are finished."""

    def stop(self) -> None:
        """End `play` at once; games under way are lost, and the pool cannot be used again."""


class WorkerReport(NamedTuple):
    """What a worker reports."""

    games: list[FinishedGame]  # finished since the last report
    work: Work  # since it began


def load_worker_inference(snapshot: Path | None, game: Game, runtime: Runtime, settings: Settings) -> Inference:
    """Return the model that a worker plays with; without a snapshot, uniform priors.

    Runtimes round differently. `auto` depends only on the settings and the machine, so all workers agree on it.

    Raises:
        ModelError: the model is missing or damaged, or was made for another game.
    """
    if snapshot is None:
        return Uniform(game)
    return SavedNetwork(snapshot, runtime).load(game, settings.self_play.concurrent_games)


def groups_of(settings: Settings, overlaps: bool) -> tuple[int, int]:
    """Return in how many groups the games of a worker are, and how many games are in each.

    Where the network works elsewhere, one group moves while it evaluates the positions of the other.
    """
    games = settings.self_play.concurrent_games
    return (2, max(1, games // 2)) if overlaps else (1, games)


def play_games(
    game: Game, inference: Inference, settings: Settings, stream: str, numbers: Iterator[int]
) -> Iterator[WorkerReport]:
    """Play the games with these numbers, as one worker; yield a report when games are finished, and every second.

    Args:
        game: the rules.
        inference: the model.
        settings: how many games at a time, and how they are searched.
        stream: seed string of the games' random streams.
        numbers: advanced when a game can be started, by any thread, one at a time.

    Raises:
        SeraphimError: an error of the search.
    """
    groups, size = groups_of(settings, inference.overlaps)
    options = replace(settings.self_play, concurrent_games=size)
    players = [SelfPlay(game, inference, settings.self_play_search, options, stream) for _ in range(groups)]
    started = time.perf_counter()
    for records in play_together(players, numbers):
        encoded = zip(records, encode_games(game, records), strict=True)
        games = [FinishedGame(number_in(record.game_id), examples) for record, examples in encoded]
        work, elapsed = Work(), time.perf_counter() - started
        for search in (player.search for player in players):
            counters = search.counters
            work += Work(
                readouts=search.num_readouts,
                evaluations=counters.evaluations,
                batch_capacity=counters.batch_capacity,
                cache_hits=counters.cache_hits,
                seconds=counters.seconds | {"other": elapsed - sum(counters.seconds.values())},
                runtime=inference.description,
            )
        yield WorkerReport(games, replace(work, playing_seconds=elapsed))


def play_together(players: Sequence[SelfPlay], numbers: Iterator[int]) -> Iterator[list[GameRecord]]:
    """Play the games with these numbers, each player in its own thread, and yield those that are finished.

    While the network works for one player and leaves the processor free, another one moves its trees. They play the
    same games that one player would. Games are yielded as soon as there is one, with an empty list about every second
    while there is none, and a last list at the end.

    Raises:
        ModelError: see `SelfPlay.play`.
        GameError: see `SelfPlay.play`.
    """
    finished: Queue[GameRecord | BaseException | None] = Queue(MAX_GAMES)
    lock, abandoned = threading.Lock(), threading.Event()

    def take_numbers() -> Iterator[int]:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            yield number

    def play(player: SelfPlay) -> None:
        try:
            for record in player.play(take_numbers()):
                if abandoned.is_set():
                    return
                finished.put(record)
            finished.put(None)
        except BaseException as error:  # noqa: BLE001 (raised again by the consumer)
            finished.put(error)

    for player in players:
        threading.Thread(target=play, args=[player], daemon=True).start()
    playing, error = len(players), None
    try:
        while playing and error is None:
            records: list[GameRecord] = []
            with contextlib.suppress(Empty):
                while playing and error is None and len(records) < MAX_GAMES and sum(map(_size, records)) < MAX_BYTES:
                    found = finished.get(timeout=0.0 if records else _SECONDS_BETWEEN_REPORTS)
                    if isinstance(found, GameRecord):
                        records.append(found)
                    elif isinstance(found, BaseException):
                        error = found
                    else:
                        playing -= 1
            yield records
        if error is not None:
            raise error
    finally:
        abandoned.set()
        while not finished.empty():  # so that no player waits for room
            finished.get()


def _size(record: GameRecord) -> int:
    return record.policies.nbytes + record.states.nbytes
