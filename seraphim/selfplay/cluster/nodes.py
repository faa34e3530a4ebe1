"""The machines of a Ray cluster, and an actor for each of their cores. `joining` imports Ray for it.

Machines may come and go: new ones get actors within seconds, and what an actor leaves undone is told, so that others do
it. Actors are never detached: they end with this program, however it ends.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from seraphim.errors import WorkerError
from seraphim.selfplay.cluster.actor import Actor, code_of
from seraphim.selfplay.cluster.ray_session import connect, import_ray, reason_of, same_handlers
from seraphim.settings import Settings

_SECONDS_BETWEEN_LOOKS = 2.0  # at which machines there are
_SECONDS_OF_SILENCE = 20.0  # without a worker, before the person is told
_MOST_FAILURES = 3  # times in a row that workers of a machine died without a game between, before it is left out
SECONDS_TO_ANSWER = 60.0
"""How long a worker may be silent, beyond the time that it was asked to wait, before its games are given to others."""


@dataclass(eq=False)
class Machine:
    """A node of the cluster."""

    identity: str
    address: str
    num_workers: int
    """As many as it has cores."""
    gpu_share: float
    """Of a GPU, for each worker."""
    failures: int = 0
    dying: str = ""
    """Why workers died since the last look."""
    refused: str = ""
    """Why it is not used."""


@dataclass(eq=False)
class Worker:
    """An actor; one call of it is under way at a time."""

    actor: Any
    machine: Machine
    pending: Any
    greeted: bool = False
    due: float = 0.0
    """When the answer is expected at the latest, from one that is well."""


@dataclass(frozen=True)
class Lost:
    """What comes instead of an answer: the worker is gone."""


class Cluster:
    """A connection to Ray, and the workers of this program, to be used in a `with` statement."""

    def __init__(
        self, settings: Settings, address: str, num_workers: int, uses_gpus: bool, announce: Callable[[str], None]
    ) -> None:
        """Take note of what is wanted.

        Args:
            settings: those of the model.
            address: see `joining.connect`; a Ray that is started here ends with the `with` statement.
            num_workers: at most, on all machines together; 0 is one for each core.
            uses_gpus: whether workers share the GPUs of their machine, where it has some.
            announce: takes a line whenever machines or workers come or go.
        """
        self.workers: list[Worker] = []
        self._settings = settings
        self._address = address
        self._most_workers = num_workers
        self._uses_gpus = uses_gpus
        self._announce = announce
        self._code = code_of(settings.game)
        self._machines: dict[str, Machine] = {}
        self._lost: list[Worker] = []
        self._looked = -1e9
        self._silent_since = 0.0

    def __enter__(self) -> Self:
        self._ray = import_ray()
        with same_handlers():
            where = connect(self._ray, self._address, self._most_workers)
        self._announce(where)
        return self

    def __exit__(self, *exception: object) -> None:
        with same_handlers():
            for worker in self.workers:
                self._ray.kill(worker.actor)
            self._ray.shutdown()

    def put(self, value: bytes) -> Any:
        """Return a reference to a value, by which it reaches each machine once."""
        return self._ray.put(value)

    def call(self, worker: Worker, method: str, *arguments: Any, seconds_to_wait: float = 0.0) -> None:
        """Call a method of an actor, which may wait so long; the answer comes by `answers`, of the last call only."""
        worker.pending = getattr(worker.actor, method).remote(*arguments)
        worker.due = time.perf_counter() + seconds_to_wait

    def answers(self, seconds: float) -> Iterator[tuple[Worker, Any]]:
        """Yield the answers that there are, after at most so many seconds; see to machines and workers meanwhile.

        A worker that is gone answers with `Lost`, once. New workers answer None when they are ready.

        Raises:
            WorkerError: no machine can be used.
        """
        if time.perf_counter() - self._looked > _SECONDS_BETWEEN_LOOKS:
            self._look()
            self._looked = time.perf_counter()
        pending = {worker.pending: worker for worker in self.workers if worker.pending is not None}
        for reference in self._wait(list(pending), seconds):
            worker = pending[reference]
            worker.pending = None
            answer = self._answer(worker, reference)
            if worker.greeted or isinstance(answer, Lost):
                yield worker, answer
            elif answer is None:
                worker.greeted = True
                yield worker, None
            else:
                self._refuse(worker.machine, str(answer))
        self._dismiss_silent()
        while self._lost:
            yield self._lost.pop(), Lost()

    def _wait(self, references: list[Any], seconds: float) -> list[Any]:
        # Returns those whose answer is there: all there are, as soon as there is one.
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
            raise WorkerError(f"a worker on {worker.machine.address} failed:\n{error}") from error
        except self._ray.exceptions.RayError as error:
            worker.machine.dying = reason_of(error)
            self._dismiss(worker)
            return Lost()

    def praise(self, worker: Worker) -> None:
        """Take note that a worker has done something, so that its machine is sound."""
        worker.machine.failures = 0

    def _look(self) -> None:
        # Sees which machines there are, and hires workers on their free cores.
        nodes = {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
        for machine in list(self._machines.values()):
            if machine.identity not in nodes:
                self._part_with(machine)
            elif machine.dying:
                self._count_failure(machine)
        for identity, node in nodes.items():
            if identity not in self._machines:
                self._machines[identity] = self._to_machine(node)
                self._hire(self._machines[identity], is_new=True)
        for machine in self._machines.values():
            self._hire(machine)
        self._check_usable()

    def _to_machine(self, node: dict[str, Any]) -> Machine:
        cores, gpus = int(node["Resources"].get("CPU", 0)), node["Resources"].get("GPU", 0)
        # All cores feed the GPUs; none of the shares is larger than what is left of one.
        share = int(1e4 / -(-cores // int(gpus))) / 1e4 if self._uses_gpus and gpus >= 1 and cores else 0.0
        return Machine(node["NodeID"], node["NodeManagerAddress"], cores, share)

    def _hire(self, machine: Machine, is_new: bool = False) -> None:
        there = sum(worker.machine is machine for worker in self.workers)
        missing = 0 if machine.refused else machine.num_workers - there
        if self._most_workers:
            missing = min(missing, self._most_workers - len(self.workers))
        for _ in range(missing):
            actor = self._actor(machine.identity, num_cpus=1, num_gpus=machine.gpu_share)
            self.workers.append(Worker(actor, machine, actor.greet.remote(self._code)))
        if is_new and missing > 0 and self._looked > 0:
            self._announce(f"machine {machine.address} joined: {missing} workers more, {len(self.workers)} in all")

    def _actor(self, identity: str, num_cpus: int, num_gpus: float) -> Any:
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        options = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "max_restarts": 0,
            "enable_task_events": False,  # which Ray's dashboard lists, and each call costs
            "scheduling_strategy": affinity(identity, soft=False),
        }
        return self._ray.remote(Actor).options(**options).remote(self._settings, num_gpus > 0)

    def _dismiss(self, worker: Worker) -> None:
        if worker in self.workers:
            self.workers.remove(worker)
            self._ray.kill(worker.actor)  # it may only be out of reach

    def _dismiss_silent(self) -> None:
        latest = time.perf_counter() - SECONDS_TO_ANSWER
        late = {each.pending: each for each in self.workers if each.greeted and each.pending and each.due < latest}
        if not late:
            return
        # Some have answered, while the answers of others were taken: they are not silent, but wait for their turn.
        _, silent = self._ray.wait(list(late), num_returns=len(late), timeout=0)
        for worker in map(late.__getitem__, silent):
            worker.machine.dying = f"no answer for {SECONDS_TO_ANSWER:.0f} s"
            self._dismiss(worker)
            self._lost.append(worker)

    def _lose_all(self, machine: Machine) -> int:
        workers = [worker for worker in self.workers if worker.machine is machine]
        for worker in workers:
            self._dismiss(worker)
        self._lost += workers
        return len(workers)

    def _part_with(self, machine: Machine) -> None:
        self._lose_all(machine)
        del self._machines[machine.identity]
        if not machine.refused:
            self._announce(f"machine {machine.address} is gone: {self._others()} play its games")

    def _count_failure(self, machine: Machine) -> None:
        machine.failures += 1
        if machine.failures >= _MOST_FAILURES:
            self._refuse(machine, f"its workers die again and again ({machine.dying})")
        elif not machine.refused:
            self._announce(
                f"workers on machine {machine.address} died ({machine.dying}): {self._others()} play their games, "
                "and new ones are started"
            )
        machine.dying = ""

    def _others(self) -> str:
        return f"the others ({len(self.workers)})" if self.workers else "those to come"

    def _refuse(self, machine: Machine, reason: str) -> None:
        if not machine.refused:
            machine.refused = reason
            self._lose_all(machine)
            self._announce(f"machine {machine.address} is left out: {reason}")

    def _check_usable(self) -> None:
        refusals = [machine.refused for machine in self._machines.values() if machine.num_workers]
        if refusals and all(refusals):
            raise WorkerError(f"no machine can play: {refusals[0]}")
        if any(worker.greeted for worker in self.workers):
            self._silent_since = 0.0
        elif not self._silent_since:
            self._silent_since = time.perf_counter()
        elif time.perf_counter() - self._silent_since > _SECONDS_OF_SILENCE:
            self._silent_since = float("inf")  # told once
            self._announce(
                "no worker plays: waiting for machines that join (ray start --address=…) or for cores that other "
                "programs use (ray status shows them); Ctrl-C ends, and finished games are kept"
            )
