"""Runs are tracked: their figures go to TensorBoard's files and, if there is one, to MLflow's server or database.

The only module that imports MLflow. A run never waits for it: a thread sends what a bounded queue holds, and what
cannot be sent is lost, which is told once. Only at the end of a run there is a wait for the rest, of some seconds.
"""

import contextlib
import fcntl
import importlib.util
import logging
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from seraphim.errors import ModelError, SettingsError
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.tracking.tensorboard import ScalarLog

Program = Literal["generate", "train", "evaluate", "learn"]

_LOCAL = "sqlite:///"
_MOST_WAITING = 1000  # calls of `write` that the queue holds
_MOST_PARAMETERS = 100  # that MLflow takes at a time
_LOGGERS = ("mlflow", "alembic", "urllib3")  # of what MLflow uses; what fails is told by this module, once
_FORBIDDEN = re.compile(r"[^/\w.\- ]")  # in MLflow's names
# How long the end of a run waits for what is being sent: seconds, once something failed; while nothing has; and where
# the database is a file, which takes some seconds to be made.
_WAIT_FOR_LOST, _WAIT_FOR_SERVER, _WAIT_FOR_FILE = 1.0, 8.0, 60.0
# So that a server that is gone is given up after seconds, not minutes. MLflow is not to send statistics of its use.
_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}


def local_store(root: Path) -> str:
    """Return the address of the database that holds the runs if there is no server: a file below the data root."""
    return f"{_LOCAL}{(root / 'mlflow' / 'mlflow.db').resolve()}"


class Tracking:
    """One run of a program, in a `with` statement; a `Log` of figures.

    At its end the run gets its state, and the champion, if this run made it, becomes its artifact.
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
        """Begin.

        Args:
            folder: of the model.
            program: what runs.
            settings: of the model, and what flags put in their place: the run's parameters.
            facts: more parameters, by name.
            server: address of MLflow's server, or see `local_store`; None for TensorBoard alone.
            warn: takes a sentence if figures are lost.

        Raises:
            SettingsError: MLflow is not installed.
        """
        self._scalars = ScalarLog(folder.path / "logs" / program)
        self._folder = folder
        self._warn = warn
        self._complained = False
        self._champion = _champion_path(folder)
        self._sender: _Sender | None = None
        if server is not None:
            named = {"game": settings.game, "preset": settings.preset, **_parameters(settings), **(facts or {})}
            self._sender = _Sender(server, folder.name, program, named, warn)

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """See `seraphim.tracking.tensorboard.Log.write`."""
        if self._sender is not None:
            self._sender.write(step, scalars)
        try:
            self._scalars.write(step, scalars)
        except OSError as error:  # such as a model in a folder that is read-only
            if not self._complained:
                self._complained = True
                self._warn(f"no figures for TensorBoard: {error}")

    def __enter__(self) -> Self:
        """Return the tracking."""
        return self

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


def _parameters(settings: Settings) -> dict[str, object]:
    # Every option, by section and name.
    return {
        f"{section}.{option}": value
        for section, options in settings.to_dict().items()
        if isinstance(options, dict)
        for option, value in options.items()
    }


class _Sender:
    """Sends to MLflow in a thread of its own."""

    def __init__(
        self, server: str, model: str, program: str, parameters: Mapping[str, object], warn: Callable[[str], None]
    ) -> None:
        if importlib.util.find_spec("mlflow") is None:
            raise SettingsError(
                "MLflow is not installed: pip install -e '.[tracking]', or run without --mlflow and MLFLOW_TRACKING_URI"
            )
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        # In this thread: two threads that import at the same time may find each other's modules unfinished.
        import mlflow.tracking  # noqa: F401

        for logger in _LOGGERS:
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        self._server = server
        self._model = model
        self._program = program
        self._parameters = parameters
        self._warn = warn
        self._run = ""
        self._lost = False
        self._losing = threading.Lock()
        self._busy_since = time.monotonic()
        self._waiting: queue.Queue[Callable[[Any], None] | None] = queue.Queue(_MOST_WAITING)
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
        ended = time.monotonic()
        while self._thread.is_alive() and time.monotonic() < self._deadline(ended):
            self._thread.join(0.05)
        if self._thread.is_alive():
            self._lose("it does not answer")

    def _deadline(self, ended: float) -> float:
        # Until when the rest is waited for: as long as it gets less, at most _WAIT_FOR_FILE.
        if self._lost:
            return ended + _WAIT_FOR_LOST
        patience = _WAIT_FOR_FILE if self._server.startswith(_LOCAL) else _WAIT_FOR_SERVER
        return min(max(ended, self._busy_since) + patience, ended + _WAIT_FOR_FILE)

    def _offer(self, task: Callable[[Any], None] | None) -> None:
        try:
            self._waiting.put_nowait(task)
        except queue.Full:
            self._lose("it takes figures more slowly than they come")

    def _lose(self, reason: str) -> None:
        with self._losing:
            if self._lost:
                return
            self._lost = True
        self._warn(f"MLflow at {self._server}: {reason}; the run goes on, and TensorBoard has its figures")

    def _send_all(self) -> None:
        client = None
        while (task := self._waiting.get()) is not None:
            self._busy_since = time.monotonic()
            try:
                client = client or self._connect()
                task(client)
            except Exception as error:  # noqa: BLE001 (of any library that the server's address asks for)
                self._lose((str(error).strip() or type(error).__name__).splitlines()[0][:200])

    def _connect(self) -> Any:
        # Returns the client of a run that has begun.
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        with _alone(self._server):
            client = MlflowClient(self._server)
            experiment = client.get_experiment_by_name(self._model)
            number = experiment.experiment_id if experiment else client.create_experiment(self._model, self._artifacts)
        tags = {"program": self._program, "model": self._model}
        run = client.create_run(number, run_name=self._program, tags=tags).info.run_id
        parameters = [Param(name, str(value)) for name, value in self._parameters.items()]
        for start in range(0, len(parameters), _MOST_PARAMETERS):
            client.log_batch(run, params=parameters[start : start + _MOST_PARAMETERS])
        self._run = run
        return client

    @property
    def _artifacts(self) -> str | None:
        # Where the artifacts of a model go: beside a database that is a file, else where the server says.
        if not self._server.startswith(_LOCAL):
            return None
        return (Path(self._server.removeprefix(_LOCAL)).parent / "artifacts" / self._model).resolve().as_uri()


@contextlib.contextmanager
def _alone(server: str) -> Iterator[None]:
    # Keeps other programs from making the same database at the same time.
    if not server.startswith(_LOCAL):
        yield
        return
    file = Path(server.removeprefix(_LOCAL))
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
