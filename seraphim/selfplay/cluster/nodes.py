"""The nodes of a Ray cluster, with an actor for each of their cores. `ray_session` imports Ray.

Nodes may come and go: new ones get actors within seconds, and the loss of an actor is reported, so that other workers
play its games. Actors are never detached: they end with this program, however it ends.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from seraphim.errors import WorkerError
from seraphim.selfplay.cluster.actor import Actor, fingerprint_code
from seraphim.selfplay.cluster.ray_session import connect, import_ray, preserved_signals, shorten_reason
from seraphim.settings import Settings

_SECONDS_BETWEEN_UPDATES = 2.0  # of the list of nodes
_SECONDS_WITHOUT_WORKERS = 20.0  # before the user is notified
_MAX_FAILURES = 3  # times in a row that workers of a node died before one finished a game; then it is excluded
SECONDS_TO_ANSWER = 60.0
"""How long a worker may take, beyond the time that it was asked to wait, before its games are given to others."""


@dataclass(eq=False)
class Machine:
    """A machine of the cluster."""

    identity: str
    address: str
    num_workers: int
    """As many as it has cores."""
    gpu_share: float
    """Of a GPU, for each worker."""
    failures: int = 0
    death: str = ""
    """Why workers died since the last update."""
    exclusion: str = ""
    """Why it is not used."""


@dataclass(eq=False)
class Worker:
    """An actor; one call of it is under way at a time."""

    actor: Any
    node: Machine
    pending: Any
    ready: bool = False
    due: float = 0.0
    """When the answer is expected at the latest."""


@dataclass(frozen=True)
class Lost:
    """Takes the place of an answer if the worker is gone."""


class Cluster:
    """A connection to Ray, with the workers of this program; used as a context manager."""

    def __init__(
        self, settings: Settings, address: str, num_workers: int, uses_gpus: bool, notify: Callable[[str], None]
    ) -> None:
        """Prepare to connect to `address`, see `ray_session.connect`; a Ray that is started here ends with the context.

        At most `num_workers` play on all nodes together, or one per core if it is 0; they share the GPUs of their node
        if `uses_gpus`. `notify` receives a line whenever nodes or workers come or go.
        """
        self.workers: list[Worker] = []
        self._settings = settings
        self._address = address
        self._max_workers = num_workers
        self._uses_gpus = uses_gpus
        self._notify = notify
        self._code = fingerprint_code(settings.game)
        self._nodes: dict[str, Machine] = {}
        self._lost: list[Worker] = []
        self._updated = -1e9
        self._idle_since = 0.0

    def __enter__(self) -> Self:
        self._ray = import_ray()
        with preserved_signals():
            self._notify(connect(self._ray, self._address, self._max_workers))
        return self

    def __exit__(self, *exception: object) -> None:
        with preserved_signals():
            for worker in self.workers:
                self._ray.kill(worker.actor)
            self._ray.shutdown()

    def put(self, value: bytes) -> Any:
        """Return a reference to a value, which is sent to each machine once."""
        return self._ray.put(value)

    def call(self, worker: Worker, method: str, *arguments: Any, seconds_to_wait: float = 0.0) -> None:
        """Call a method of an actor, which may wait that long; `answers` yields the answer to the last call only."""
        worker.pending = getattr(worker.actor, method).remote(*arguments)
        worker.due = time.perf_counter() + seconds_to_wait

    def answers(self, seconds: float) -> Iterator[tuple[Worker, Any]]:
        """Yield the available answers, after at most `seconds`; also starts and removes nodes and workers.

        A worker that is gone answers once, with `Lost`. New workers answer None when they are ready.

        Raises:
            WorkerError: no node can be used.
        """
        if time.perf_counter() - self._updated > _SECONDS_BETWEEN_UPDATES:
            self._update_nodes()
            self._updated = time.perf_counter()
        pending = {worker.pending: worker for worker in self.workers if worker.pending is not None}
        for reference in self._wait(list(pending), seconds):
            worker = pending[reference]
            worker.pending = None
            answer = self._answer(worker, reference)
            if worker.ready or isinstance(answer, Lost):
                yield worker, answer
            elif answer is None:
                worker.ready = True
                yield worker, None
            else:
                self._exclude(worker.node, str(answer))
        self._kill_late()
        while self._lost:
            yield self._lost.pop(), Lost()

    def record_success(self, worker: Worker) -> None:
        """Note that a worker has finished a game, which clears the failures of its node."""
        worker.node.failures = 0

    def _wait(self, references: list[Any], seconds: float) -> list[Any]:
        # Waits for the first answer, and returns all that are available then.
        if not references:
            time.sleep(seconds)
            return []
        self._ray.wait(references, num_returns=1, timeout=seconds)
        ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        return ready

    def _answer(self, worker: Worker, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise WorkerError(f"a worker on {worker.node.address} failed:\n{error}") from error
        except self._ray.exceptions.RayError as error:
            worker.node.death = shorten_reason(error)
            self._kill(worker)
            return Lost()

    def _update_nodes(self) -> None:
        # Starts workers on free cores, removes nodes that are gone, and counts failures.
        found = {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
        for node in list(self._nodes.values()):
            if node.identity not in found:
                self._kill_all(node)
                del self._nodes[node.identity]
                if not node.exclusion:
                    self._notify(f"machine {node.address} is gone: {self._others()} play its games")
            elif node.death:
                self._count_failure(node)
        for identity, facts in found.items():
            if identity not in self._nodes:
                self._nodes[identity] = self._to_node(facts)
                self._start_workers(self._nodes[identity], is_new=True)
        for node in self._nodes.values():
            self._start_workers(node)
        self._check_usable()

    def _to_node(self, facts: dict[str, Any]) -> Machine:
        cores, gpus = int(facts["Resources"].get("CPU", 0)), facts["Resources"].get("GPU", 0)
        # All cores feed the GPUs; rounded down, so that the shares of a GPU do not exceed it.
        share = int(1e4 / -(-cores // int(gpus))) / 1e4 if self._uses_gpus and gpus >= 1 and cores else 0.0
        return Machine(facts["NodeID"], facts["NodeManagerAddress"], cores, share)

    def _start_workers(self, node: Machine, is_new: bool = False) -> None:
        missing = 0 if node.exclusion else node.num_workers - sum(worker.node is node for worker in self.workers)
        if self._max_workers:
            missing = min(missing, self._max_workers - len(self.workers))
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        options = {
            "num_cpus": 1,
            "num_gpus": node.gpu_share,
            "max_restarts": 0,
            "enable_task_events": False,  # only Ray's dashboard lists them, and each call costs
            "scheduling_strategy": affinity(node.identity, soft=False),
        }
        for _ in range(missing):
            actor = self._ray.remote(Actor).options(**options).remote(self._settings, node.gpu_share > 0)
            self.workers.append(Worker(actor, node, actor.check_version.remote(self._code)))
        if is_new and missing > 0 and self._updated > 0:
            self._notify(f"machine {node.address} joined with {missing} workers, {len(self.workers)} in all")

    def _kill(self, worker: Worker) -> None:
        if worker in self.workers:
            self.workers.remove(worker)
            self._ray.kill(worker.actor)  # it may be merely unreachable

    def _kill_all(self, node: Machine) -> None:
        workers = [worker for worker in self.workers if worker.node is node]
        for worker in workers:
            self._kill(worker)
        self._lost += workers

    def _kill_late(self) -> None:
        latest = time.perf_counter() - SECONDS_TO_ANSWER
        late = {each.pending: each for each in self.workers if each.ready and each.pending and each.due < latest}
        if not late:
            return
        # Some may have answered while this program was busy with other answers.
        _, silent = self._ray.wait(list(late), num_returns=len(late), timeout=0)
        for worker in map(late.__getitem__, silent):
            worker.node.death = f"no answer for {SECONDS_TO_ANSWER:.0f} s"
            self._kill(worker)
            self._lost.append(worker)

    def _count_failure(self, node: Machine) -> None:
        node.failures += 1
        if node.failures >= _MAX_FAILURES:
            self._exclude(node, f"its workers keep dying ({node.death})")
        elif not node.exclusion:
            self._notify(
                f"workers on machine {node.address} died ({node.death}): {self._others()} play their games, "
                "and new ones are started"
            )
        node.death = ""

    def _others(self) -> str:
        return f"the others ({len(self.workers)})" if self.workers else "workers that join later"

    def _exclude(self, node: Machine, reason: str) -> None:
        if not node.exclusion:
            node.exclusion = reason
            self._kill_all(node)
            self._notify(f"machine {node.address} is excluded: {reason}")

    def _check_usable(self) -> None:
        exclusions = [node.exclusion for node in self._nodes.values() if node.num_workers]
        if exclusions and all(exclusions):
            raise WorkerError(f"no machine can play: {exclusions[0]}")
        if any(worker.ready for worker in self.workers):
            self._idle_since = 0.0
        elif not self._idle_since:
            self._idle_since = time.perf_counter()
        elif time.perf_counter() - self._idle_since > _SECONDS_WITHOUT_WORKERS:
            self._idle_since = float("inf")  # notified once
            self._notify(
                "no worker is playing: waiting for machines to join (ray start --address=…) or for cores that other "
                "programs use (see ray status); Ctrl-C ends, and finished games are kept"
            )
