"""Tracks runs: metrics go to TensorBoard's files and, optionally, to MLflow's server or database.

The only module that imports MLflow. A run never waits for it: a thread sends what a bounded queue holds, and what
cannot be sent is dropped, with one warning. Only the end of a run waits some seconds for the rest.
"""

import contextlib
import importlib.util
import logging
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from seraphim.errors import ModelError, NotInstalledError, how_to_install
from seraphim.settings import Settings
from seraphim.storage.atomic import locked
from seraphim.storage.models import ModelFolder
from seraphim.tracking.tensorboard import ScalarLog

Program = Literal["generate", "train", "evaluate", "learn"]

_LOCAL = "sqlite:///"
_MAX_WAITING = 1000  # tasks in the queue
_LOGGERS = ("mlflow", "alembic", "urllib3")  # silenced, since this module reports failures itself, once
_FORBIDDEN = re.compile(r"[^/\w.\- ]")  # in MLflow's names
# How many seconds the end of a run waits for MLflow at most: after a failure; and otherwise, as making a database or
# sending a champion takes its time.
_WAIT_AFTER_FAILURE, _WAIT = 1.0, 60.0
# Fails on an unreachable server after seconds, not minutes; sends no statistics on the use of MLflow.
_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}


def local_store(root: Path) -> str:
    """Return the address of the database below the data root, for use without a server."""
    return f"{_LOCAL}{(root / 'mlflow' / 'mlflow.db').resolve()}"


class Tracking(contextlib.AbstractContextManager["Tracking"]):
    """One run of a program, a `Log`; used as a context manager.

    When it exits, the run gets its final state; a champion that this run made becomes its artifact.
    """

    def __init__(
        self,
        folder: ModelFolder,
        program: Program,
        settings: Settings,
        facts: Mapping[str, object] | None = None,
        server: str | None = None,
        warn: Callable[[str], None] = print,
    ) -> None:
        """Begin a run, whose parameters are the settings and more `facts`; `warn` receives a line if metrics are lost.

        `server` is the address of MLflow's server, or `local_store`; None for TensorBoard alone.

        Raises:
            NotInstalledError: MLflow is not installed.
        """
        self._scalars = ScalarLog(folder.path / "logs" / program)
        self._folder = folder
        self._warn = warn
        self._warned = False
        self._champion = _champion_path(folder)
        self._sender: _Sender | None = None
        if server is not None:
            options = {
                f"{section}.{option}": value
                for section, values in settings.to_dict().items()
                if isinstance(values, dict)
                for option, value in values.items()
            }
            parameters = {"game": settings.game, "preset": settings.preset, **options, **(facts or {})}
            self._sender = _Sender(server, folder.name, program, parameters, warn)

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """See `seraphim.tracking.tensorboard.Log.write`."""
        if self._sender is not None:
            self._sender.write(step, scalars)
        try:
            self._scalars.write(step, scalars)
        except OSError as error:  # such as a read-only folder
            if not self._warned:
                self._warned = True
                self._warn(f"no figures for TensorBoard: {error}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the run."""
        if self._sender is None:
            return
        champion = _champion_path(self._folder)
        state = "FINISHED" if kind is None else "KILLED" if kind is KeyboardInterrupt else "FAILED"
        self._sender.end(state, champion if champion != self._champion else None)


def _champion_path(folder: ModelFolder) -> Path | None:
    with contextlib.suppress(ModelError):
        return folder.champion().path
    return None


class _Sender:
    # Sends to MLflow in its own thread. The asynchronous logging of MLflow itself would not do: where a server hangs,
    # it reports each figure as an error, and the program ends only when all have failed, ten at a time. Its queue has
    # no limit, and a run begins, ends and sends its artifacts in the calling thread.
    def __init__(
        self, server: str, model: str, program: str, parameters: Mapping[str, object], warn: Callable[[str], None]
    ) -> None:
        if importlib.util.find_spec("mlflow") is None:
            raise NotInstalledError(
                f"MLflow is not installed: {how_to_install('tracking')}, "
                "or run without --mlflow and MLFLOW_TRACKING_URI"
            )
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        # In this thread: two threads that import at the same time may find each other's modules half-initialized.
        import mlflow.tracking  # noqa: F401

        for logger in _LOGGERS:
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        self._server = server
        self._model = model
        self._program = program
        self._parameters = parameters
        self._warn = warn
        self._run = ""
        self._failed = False
        self._failing = threading.Lock()
        self._tasks: queue.Queue[Callable[[Any], None] | None] = queue.Queue(_MAX_WAITING)
        self._thread = threading.Thread(target=self._send_all, name="tracking", daemon=True)
        self._thread.start()

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [Metric(_FORBIDDEN.sub("_", name), float(value), now, step) for name, value in scalars.items()]
        self._offer(lambda client: client.log_batch(self._run, metrics=metrics))

    def end(self, state: str, champion: Path | None) -> None:
        if champion is not None:
            self._offer(lambda client: client.log_artifacts(self._run, str(champion), f"champion/{champion.name}"))
        self._offer(lambda client: client.set_terminated(self._run, state))
        self._offer(None)
        began = time.monotonic()
        while self._thread.is_alive() and time.monotonic() < began + (_WAIT_AFTER_FAILURE if self._failed else _WAIT):
            self._thread.join(0.05)
        if self._thread.is_alive():
            self._fail("it does not answer")

    def _offer(self, task: Callable[[Any], None] | None) -> None:
        try:
            self._tasks.put_nowait(task)
        except queue.Full:
            self._fail("it takes figures more slowly than they come")

    def _fail(self, reason: str) -> None:
        with self._failing:
            if self._failed:
                return
            self._failed = True
        self._warn(f"MLflow at {self._server}: {reason}; the run continues, and TensorBoard has its figures")

    def _send_all(self) -> None:
        client = None
        while (task := self._tasks.get()) is not None:
            try:
                client = client or self._connect()
                task(client)
            except Exception as error:  # noqa: BLE001 (of any library that the server's address requires)
                self._fail((str(error).strip() or type(error).__name__).splitlines()[0][:200])

    def _connect(self) -> Any:
        # Begins a run, and returns the client.
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        with _exclusive(self._server):
            client = MlflowClient(self._server)
            experiment = client.get_experiment_by_name(self._model)
            number = experiment.experiment_id if experiment else client.create_experiment(self._model, self._artifacts)
        tags = {"program": self._program, "model": self._model}
        run = client.create_run(number, run_name=self._program, tags=tags).info.run_id
        client.log_batch(run, params=[Param(name, str(value)) for name, value in self._parameters.items()])
        self._run = run
        return client

    @property
    def _artifacts(self) -> str | None:
        # Where artifacts go: beside a database in a file; None lets the server decide.
        if not self._server.startswith(_LOCAL):
            return None
        return (Path(self._server.removeprefix(_LOCAL)).parent / "artifacts" / self._model).resolve().as_uri()


def _exclusive(server: str) -> contextlib.AbstractContextManager[None]:
    # Keeps other programs from creating the same database at the same time.
    if not server.startswith(_LOCAL):
        return contextlib.nullcontext()
    folder = Path(server.removeprefix(_LOCAL)).parent
    folder.mkdir(parents=True, exist_ok=True)
    return locked(folder / ".lock")
