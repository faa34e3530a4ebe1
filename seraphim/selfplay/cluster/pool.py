"""A pool of workers on many machines: which of them plays which games, and what comes back.

Game numbers are lent out in small lots, and lent anew when a worker is lost: each game of a stream comes exactly once,
and it is the game that any other worker would have played. Knows no Ray: see `cluster`.
"""

from collections.abc import Callable, Generator, Set
from pathlib import Path
from typing import Any, Self

from seraphim.inference import Runtime
from seraphim.selfplay.cluster.actor import Assignment, News
from seraphim.selfplay.cluster.bundle import pack
from seraphim.selfplay.cluster.nodes import Cluster, Lost, Worker
from seraphim.selfplay.cluster.work_queue import Leases
from seraphim.selfplay.pool import ENDLESS, LONGEST_WAIT, FinishedGame, Pool, Work, at_the_same_time
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import Settings

_SECONDS_BETWEEN_MESSAGES = 1.0  # of a worker that has numbers left: a message costs Ray some 3 ms of processor time
_MOST_MESSAGES = 500  # a second, that the learner takes: of many workers, each sends fewer
_MOST_RESERVE = 4096  # numbers that a worker has beyond those of the games under way


def open_pool(
    settings: Settings,
    runtime: Runtime = "auto",
    num_workers: int = 0,
    cluster: str | None = None,
    announce: Callable[[str], None] = print,
) -> Pool:
    """Return a pool of workers, to be used in a `with` statement.

    Args:
        settings: those of the model.
        runtime: what runs the network.
        num_workers: how many; 0 is one for each core.
        cluster: the address of a Ray cluster, or `auto`; None has workers on this machine only, without Ray.
        announce: takes a line whenever machines join or leave.
    """
    if cluster is None:
        return WorkerPool(settings, runtime, num_workers)
    return Crew(settings, runtime, num_workers, cluster, announce)


class Crew:
    """Workers on the machines of a Ray cluster; see `Pool`."""

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        num_workers: int,
        address: str,
        announce: Callable[[str], None] = print,
    ) -> None:
        """Take note of what is wanted; see `open_pool`."""
        uses_gpus = runtime in ("auto", "tensorflow")
        self._cluster = Cluster(settings, address, num_workers, uses_gpus, announce)
        self._concurrent_games = settings.self_play.concurrent_games
        self._runtime = runtime
        self._stopped = False
        self._leases = Leases(0, 0)
        self._model: _Model | None = None
        self._duties: dict[Worker, _Duty] = {}
        self._of_the_lost: list[Work] = []

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
        journals: Path | None = None,  # noqa: ARG002 (whose folder may be out of a worker's reach)
    ) -> Generator[FinishedGame, None, None]:
        """See `Pool.play`; no worker keeps a journal.

        Raises:
            SeraphimError: what a worker ran into.
            WorkerError: no machine of the cluster can be used.
        """
        self._leases = Leases(first, end, skip)
        self._stopped = False
        if self._model is None or self._model.snapshot != snapshot:
            self._model = _Model(self._cluster, snapshot)
        self._of_the_lost = []
        for duty in self._duties.values():
            duty.past = Work()
        while not self._stopped and not (self._leases.ended and not self._playing()):
            for worker, duty in self._duties.items():
                if not duty.playing and self._leases.free:
                    self._begin(worker, duty, self._model, stream)
            for worker, answer in self._cluster.answers(LONGEST_WAIT):
                yield from self._take(worker, answer)

    def work(self) -> Work:
        """See `Pool.work`."""
        return at_the_same_time([*(duty.total for duty in self._duties.values()), *self._of_the_lost])

    def finish(self) -> None:
        """See `Pool.finish`."""
        self._leases.finish()

    def stop(self) -> None:
        """See `Pool.stop`."""
        self._stopped = True

    def _playing(self) -> int:
        return sum(duty.playing for duty in self._duties.values())

    def _begin(self, worker: Worker, duty: "_Duty", model: "_Model", stream: str) -> None:
        # Nobody has more games under way than its share, so that the last ones do not take long.
        share = -(-(self._leases.free + self._leases.lent) // len(self._cluster.workers))
        numbers = self._leases.lend(worker, min(self._concurrent_games, share))
        duty.playing, duty.at_a_time, duty.reserve = True, len(numbers), 0
        assignment = Assignment(self._runtime, stream, len(numbers))
        self._cluster.call(worker, "begin", assignment, model.parcel, numbers)
        self._exchange(worker, [])

    def _take(self, worker: Worker, answer: Any) -> list[FinishedGame]:
        # Returns the games that came.
        if isinstance(answer, Lost):
            self._leases.forfeit(worker)
            if worker in self._duties:
                self._of_the_lost.append(self._duties.pop(worker).total)
            return []
        if answer is None:
            self._duties[worker] = _Duty()
            return []
        news: News = answer
        duty, games = self._duties[worker], news.report.games
        duty.work = news.report.work
        self._leases.settle(worker, (game.number for game in games))
        if games:
            self._cluster.praise(worker)
        if news.error:
            raise news.error
        if news.ended:
            self._leases.forfeit(worker)  # what came too late
            duty.end()
        else:
            self._exchange(worker, self._more(worker, duty, news.hungry))
        return games

    def _more(self, worker: Worker, duty: "_Duty", hungry: bool) -> list[int]:
        # Some numbers in reserve, so that a worker need not wait for them: more whenever it had to, fewer towards
        # the end, when somebody else might play them.
        if hungry:
            duty.reserve = min(2 * duty.reserve + 1, _MOST_RESERVE)
        reserve = min(duty.reserve, self._leases.free // len(self._duties))
        return self._leases.lend(worker, max(int(hungry), duty.at_a_time + reserve - self._leases.held(worker)))

    def _exchange(self, worker: Worker, numbers: list[int]) -> None:
        seconds = max(_SECONDS_BETWEEN_MESSAGES, len(self._cluster.workers) / _MOST_MESSAGES)
        self._cluster.call(worker, "exchange", numbers, not self._leases.free, seconds, seconds_to_wait=seconds)


class _Duty:
    # What a worker does, and has done.
    def __init__(self) -> None:
        self.playing = False
        self.at_a_time = 0  # games
        self.reserve = 0
        self.past = Work()  # of tasks that ended, in this call of `play`
        self.work = Work()

    @property
    def total(self) -> Work:
        return self.past + self.work

    def end(self) -> None:
        self.playing = False
        self.past += self.work
        self.work = Work()


class _Model:
    # What workers need to play with a snapshot.
    def __init__(self, cluster: Cluster, snapshot: Path | None) -> None:
        self.snapshot = snapshot
        self.parcel = None if snapshot is None else cluster.put(pack(snapshot))
