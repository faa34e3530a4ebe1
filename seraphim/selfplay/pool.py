"""What a pool of workers is: they play the games of a stream, and each game comes back when it is finished.

Here is what all pools share: what a worker does, and what it reports. How reports travel is the business of `workers`
(processes of this machine) and of `crew` (many machines).
"""

import contextlib
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, Queue
from typing import NamedTuple, Protocol, Self

from seraphim.game import Game
from seraphim.inference import Inference, Runtime, Uniform, load_inference
from seraphim.records.examples import GameRecord, encode_games
from seraphim.selfplay.games import SelfPlay, number_in, play_together
from seraphim.settings import Settings

ENDLESS = 2**62  # the number of a game that nobody gets to

STAGES = ("network", "rules", "search", "other")

LONGEST_WAIT = 0.2  # seconds until a pool notices `stop`

MOST_GAMES, MOST_BYTES = 64, 16 << 20
"""The most that one report holds, unless a single game is larger; a worker pauses while so many games wait."""

_SECONDS_BETWEEN_REPORTS = 1.0  # while no game is finished


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


def at_the_same_time(works: Iterable[Work]) -> Work:
    """Return what workers who play at the same time have done together."""
    each = list(works)
    return replace(sum(each, Work()), playing_seconds=max((work.playing_seconds for work in each), default=0.0))


class Pool(Protocol):
    """Workers, to be used in a `with` statement."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    @property
    def num_workers(self) -> int:
        """Return how many workers there are now."""

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

        A game counts as stored when the next one is asked for. An iteration that is closed early ends the workers.

        Args:
            snapshot: the model; None plays with uniform priors.
            stream: the name of the games' luck.
            first: the number of the first game.
            end: the number after the last game's.
            skip: numbers that are left out.
            journals: folder where workers of this machine keep finished games until they are stored, in a
                `records.Journal` each; None: they keep none.

        Raises:
            SeraphimError: what a worker ran into.
            WorkerError: workers died, and cannot be replaced.
        """

    def work(self) -> Work:
        """Return what the workers have reported since `play` was called; they report every second or so."""

    def finish(self) -> None:
        """Start no further games: `play` ends when those under way are finished."""

    def stop(self) -> None:
        """End `play` at once: games under way are lost, and so is the use of the pool."""


class Report(NamedTuple):
    """What a worker tells of its work."""

    games: list[FinishedGame]  # finished since the last report
    work: Work  # all of it


def load_player(snapshot: Path | None, game: Game, runtime: Runtime, settings: Settings) -> Inference:
    """Return the model that a worker plays with; without a snapshot, uniform priors.

    The runtimes round differently. `auto` depends on the settings and the machine alone, so workers agree on it.

    Raises:
        ModelError: the model is missing or damaged, or was made for another game.
    """
    if snapshot is None:
        return Uniform(game)
    return load_inference(snapshot, game, runtime, batch=settings.self_play.concurrent_games)


def play_games(
    game: Game, inference: Inference, settings: Settings, stream: str, numbers: Iterator[int]
) -> Iterator[Report]:
    """Play the games with these numbers, as one worker; yield a report when games are finished, and every second.

    Args:
        game: the rules.
        inference: the model.
        settings: how it is searched, and how many games at a time.
        stream: the name of the games' luck.
        numbers: asked whenever a game can be started; may be asked by any thread, one at a time.

    Raises:
        SeraphimError: what the search runs into.
    """
    options = settings.self_play
    if inference.overlaps:  # two groups, of which one moves while the network works for the other
        options = replace(options, concurrent_games=max(1, options.concurrent_games // 2))
    groups = 2 if inference.overlaps else 1
    players = [SelfPlay(game, inference, settings.self_play_search, options, stream) for _ in range(groups)]
    started = time.perf_counter()
    for records in _collect(play_together(players, numbers)):
        encoded = zip(records, encode_games(game, records), strict=True)
        games = [FinishedGame(number_in(record.game_id), examples) for record, examples in encoded]
        work, elapsed = Work(), time.perf_counter() - started
        for search in (player.search for player in players):
            seconds = search.seconds | {"other": elapsed - sum(search.seconds.values())}
            counts = search.readouts, search.evaluations, search.batches, search.cache_hits
            work += Work(*counts, seconds, runtime=inference.description)
        yield Report(games, replace(work, playing_seconds=elapsed))


def _collect(games: Iterator[GameRecord]) -> Iterator[list[GameRecord]]:
    # Takes games from a thread of their own, so that none waits for the next one. Yields those that are there as soon
    # as there is one, an empty list now and then while there is none, and what came last at the end.
    waiting: Queue[GameRecord | BaseException | None] = Queue(MOST_GAMES)

    def play() -> None:
        try:
            for record in games:
                waiting.put(record)
            waiting.put(None)
        except BaseException as error:  # noqa: BLE001 (raised again by whoever takes the games)
            waiting.put(error)

    threading.Thread(target=play, daemon=True).start()
    last: BaseException | bool = False
    while not last:
        records: list[GameRecord] = []
        with contextlib.suppress(Empty):
            while not last and len(records) < MOST_GAMES and sum(map(_size, records)) < MOST_BYTES:
                found = waiting.get(timeout=0.0 if records else _SECONDS_BETWEEN_REPORTS)
                if isinstance(found, GameRecord):
                    records.append(found)
                else:
                    last = found or True
        yield records
    if isinstance(last, BaseException):
        raise last


def _size(record: GameRecord) -> int:
    return record.policies.nbytes + record.states.nbytes
