"""A pool of workers on many machines: assigns games to them and collects the results.

Game numbers are leased a few at a time, and leased again when a worker is lost: each game of a stream comes exactly
once, and it is the game that any other worker would have played. Knows no Ray: see `seraphim.selfplay.cluster.nodes`.
"""

from collections.abc import Callable, Generator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from seraphim.inference import Runtime
from seraphim.selfplay.cluster.actor import Assignment, Status
from seraphim.selfplay.cluster.bundle import pack
from seraphim.selfplay.cluster.nodes import Cluster, Lost, Worker
from seraphim.selfplay.cluster.work_queue import WorkQueue
from seraphim.selfplay.pool import ENDLESS, SECONDS_TO_STOP, FinishedGame, Pool, Work, sum_parallel
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import Settings

_SECONDS_BETWEEN_MESSAGES = 1.0  # of a worker that has numbers left: a message takes Ray 3 ms of processor time
_MAX_MESSAGES = 500  # per second, to the learner; with more workers, each sends fewer
_MAX_RESERVE = 4096  # numbers that a worker has beyond its games under way


def open_pool(
    settings: Settings,
    runtime: Runtime = "auto",
    num_workers: int = 0,
    cluster: str | None = None,
    notify: Callable[[str], None] = print,
) -> Pool:
    """Return a pool of `num_workers`, or of one per core if it is 0, to be used as a context manager.

    `cluster` is the address of a Ray cluster, or `auto`; None for workers on this machine only, without Ray. `notify`
    receives a line whenever machines join or leave.
    """
    if cluster is None:
        return WorkerPool(settings, runtime, num_workers)
    return RayPool(settings, runtime, num_workers, cluster, notify)


@dataclass
class _State:
    # What a worker is doing and has done.
    playing: bool = False
    concurrent_games: int = 0
    reserve: int = 0
    """Numbers that it gets beyond its games under way, so that it need not wait for them."""
    past_work: Work = field(default_factory=Work)
    """Of assignments that ended, in this call of `play`."""
    work: Work = field(default_factory=Work)

    @property
    def total_work(self) -> Work:
        return self.past_work + self.work

    def end(self) -> None:
        self.playing = False
        self.past_work, self.work = self.total_work, Work()


class RayPool:
    """Workers on the machines of a Ray cluster; see `Pool`."""

    def __init__(
        self, settings: Settings, runtime: Runtime, num_workers: int, address: str, notify: Callable[[str], None]
    ) -> None:
        """Prepare to connect; see `open_pool`."""
        uses_gpus = runtime in ("auto", "tensorflow", "jax")
        self._cluster = Cluster(settings, address, num_workers, uses_gpus, notify)
        self._concurrent_games = settings.self_play.concurrent_games
        self._runtime = runtime
        self._stopped = False
        self._queue = WorkQueue(0, 0)
        self._snapshot: Path | None = None
        self._bundle: Any = None  # a reference to the packed snapshot
        self._states: dict[Worker, _State] = {}
        self._lost_work: list[Work] = []  # of workers that are gone

    def __enter__(self) -> Self:
        self._cluster.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._cluster.__exit__(*exception)

    @property
    def num_workers(self) -> int:
        """See `Pool.num_workers`."""
        return len(self._cluster.workers)

    def play(
        self,
        snapshot: Path | None,
        stream: str,
        first: int = 0,
        end: int = ENDLESS,
        skip: Set[int] = frozenset(),
        journals: Path | None = None,  # noqa: ARG002 (workers may not reach that folder)
    ) -> Generator[FinishedGame, None, None]:
        """See `Pool.play`; no worker keeps a journal.

        Raises:
            SeraphimError: an error of a worker.
            WorkerError: no machine of the cluster can be used.
        """
        self._queue = WorkQueue(first, end, skip)
        self._stopped = False
        if self._snapshot != snapshot:
            self._snapshot, self._bundle = snapshot, None if snapshot is None else self._cluster.put(pack(snapshot))
        self._lost_work = []
        for state in self._states.values():
            state.past_work = Work()
        while not self._stopped and (not self._queue.is_done or any(state.playing for state in self._states.values())):
            for worker, state in self._states.items():
                if not state.playing and self._queue.num_available:
                    self._begin(worker, state, stream)
            for worker, answer in self._cluster.answers(SECONDS_TO_STOP):
                yield from self._handle(worker, answer)

    def work(self) -> Work:
        """See `Pool.work`."""
        return sum_parallel([*(state.total_work for state in self._states.values()), *self._lost_work])

    def finish(self) -> None:
        """See `Pool.finish`."""
        self._queue.close()

    def stop(self) -> None:
        """See `Pool.stop`."""
        self._stopped = True

    def _begin(self, worker: Worker, state: _State, stream: str) -> None:
        # No worker gets more than its share, so that the last games do not take long.
        share = -(-(self._queue.num_available + self._queue.num_leased) // len(self._cluster.workers))
        numbers = self._queue.lease(worker, min(self._concurrent_games, share))
        state.playing, state.concurrent_games, state.reserve = True, len(numbers), 0
        assignment = Assignment(self._runtime, stream, len(numbers))
        self._cluster.call(worker, "begin", assignment, self._bundle, numbers)
        self._exchange(worker, [])

    def _handle(self, worker: Worker, answer: Status | Lost | None) -> list[FinishedGame]:
        # Returns the games of an answer, and sends the worker what it needs next.
        if isinstance(answer, Lost):
            self._queue.release(worker)
            if worker in self._states:
                self._lost_work.append(self._states.pop(worker).total_work)
            return []
        if answer is None:  # it is ready
            self._states[worker] = _State()
            return []
        state, games = self._states[worker], answer.report.games
        state.work = answer.report.work
        self._queue.complete(worker, (game.number for game in games))
        if games:
            self._cluster.record_success(worker)
        if answer.error:
            raise answer.error
        if answer.ended:
            self._queue.release(worker)  # numbers that came too late
            state.end()
        else:
            self._exchange(worker, self._lease_more(worker, state, answer.starved))
        return games

    def _lease_more(self, worker: Worker, state: _State, starved: bool) -> list[int]:
        # The reserve grows whenever the worker had to wait, and shrinks toward the end, when others might play them.
        if starved:
            state.reserve = min(2 * state.reserve + 1, _MAX_RESERVE)
        reserve = min(state.reserve, self._queue.num_available // len(self._states))
        missing = state.concurrent_games + reserve - self._queue.num_leased_to(worker)
        return self._queue.lease(worker, max(int(starved), missing))

    def _exchange(self, worker: Worker, numbers: list[int]) -> None:
        seconds = max(_SECONDS_BETWEEN_MESSAGES, len(self._cluster.workers) / _MAX_MESSAGES)
        is_last = not self._queue.num_available
        self._cluster.call(worker, "exchange", numbers, is_last, seconds, seconds_to_wait=seconds)
