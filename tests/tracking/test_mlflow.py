"""Tracking: parameters, metrics and champion of a run in a real database, and a run that loses its server."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from event_files import shown
from mlflow.tracking import MlflowClient

from seraphim.errors import NotInstalledError
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.tracking import mlflow
from seraphim.tracking.mlflow import Tracking, local_store

FIGURES = {"training/loss": 0.5, "begin-hard/800 readouts, raw": 0.25}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Making its tables takes seconds.
    root = tmp_path_factory.mktemp("tracked")
    (root / "mlflow").mkdir()
    MlflowClient(local_store(root)).search_experiments()
    return root


@contextlib.contextmanager
def server(*, answers: bool) -> Iterator[str]:
    """Yield the address of a server that accepts connections and never answers, or of no server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        if answers:
            yield address
    if not answers:
        yield address


def publish(folder: ModelFolder, content: str) -> None:
    step = folder.champion().step + 10
    folder.publish(step, lambda path: (path / "weights").write_text(content) and None, promote=lambda: True)


def runs(root: Path, model: str) -> list[Any]:
    client = MlflowClient(local_store(root))
    experiment = client.get_experiment_by_name(model)
    return client.search_runs([experiment.experiment_id], order_by=["attributes.start_time"]) if experiment else []


def test_a_run_is_in_the_database_with_parameters_figures_and_champion(
    folder: ModelFolder, small_settings: Settings, database: Path
) -> None:
    said: list[str] = []
    with Tracking(folder, "learn", small_settings, {"seed": 7}, local_store(database), said.append) as log:
        log.write(100, FIGURES)
        log.write(200, {"training/loss": 0.25})
        publish(folder, "better")
    (run,) = runs(database, "fresh")
    assert said == []
    assert run.info.status == "FINISHED"
    assert run.data.tags["program"] == "learn"
    parameters = run.data.params
    assert (parameters["game"], parameters["seed"]) == ("tictactoe", "7")
    assert parameters["search.readouts"] == str(small_settings.search.readouts)
    assert parameters["training.optimizer"] == "muon"
    client = MlflowClient(local_store(database))
    points = [(point.step, point.value) for point in client.get_metric_history(run.info.run_id, "training/loss")]
    assert points == [(100, 0.5), (200, 0.25)]
    assert run.data.metrics["begin-hard/800 readouts_ raw"] == 0.25
    champion = folder.champion().name
    (kept,) = (database / "mlflow" / "artifacts" / "fresh").rglob(f"champion/{champion}/weights")
    assert kept.read_text() == "better"
    assert [each.path for each in client.list_artifacts(run.info.run_id, "champion")] == [f"champion/{champion}"]
    assert shown(folder.path / "logs" / "learn")["training/loss"] == [(100, 0.5), (200, 0.25)]


def test_a_champion_of_other_runs_is_not_an_artifact_and_a_failure_is_recorded(
    folder: ModelFolder, small_settings: Settings, database: Path, tmp_path: Path
) -> None:
    other = ModelFolder(tmp_path / "data", "fresh")
    settings = small_settings
    with (
        contextlib.suppress(ZeroDivisionError),
        Tracking(other, "evaluate", settings, None, local_store(database)) as log,
    ):
        log.write(1, FIGURES)
        raise ZeroDivisionError
    run = runs(database, "fresh")[-1]
    assert run.info.status == "FAILED"
    assert MlflowClient(local_store(database)).list_artifacts(run.info.run_id) == []


def test_the_database_is_made_when_it_is_first_used(
    folder: ModelFolder, small_settings: Settings, tmp_path: Path
) -> None:
    with Tracking(folder, "train", small_settings, None, local_store(tmp_path)) as log:
        log.write(1, FIGURES)
    (run,) = runs(tmp_path, "fresh")
    assert run.data.metrics["training/loss"] == 0.5


@pytest.mark.parametrize("answers", [True, False], ids=["hangs", "refuses"])
def test_a_lost_server_neither_stops_nor_slows_a_run_and_is_reported_once(
    answers: bool, folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow, "_WAIT", 1.5)
    said: list[str] = []

    def seconds_of_writing(log: Tracking) -> float:
        began = time.perf_counter()
        for step in range(3000):
            log.write(step, {"training/loss": 1.0})
        return time.perf_counter() - began

    with Tracking(folder, "alone", small_settings) as log:
        alone = seconds_of_writing(log)
    with server(answers=answers) as address:
        with Tracking(folder, "learn", small_settings, None, address, said.append) as log:
            spent = seconds_of_writing(log)
            publish(folder, "better")
            ending = time.perf_counter()
        waited = time.perf_counter() - ending
    assert spent < 5 * alone + 1.5  # of the waits that it gives a server, no more than one
    assert waited < 20  # not for each of the figures
    assert len(said) == 1
    assert said[0].startswith(f"MLflow at {address}: ")
    assert "the run continues, and TensorBoard has its figures" in said[0]
    assert len(shown(folder.path / "logs" / "learn")["training/loss"]) == 3000


def test_without_a_server_tensorboard_has_the_figures_and_mlflow_is_not_imported(
    folder: ModelFolder, small_settings: Settings
) -> None:
    program = f"""
import sys
from pathlib import Path
from seraphim.storage.models import ModelFolder
from seraphim.tracking.mlflow import Tracking
folder = ModelFolder(Path({str(folder.path.parents[1])!r}), "fresh")
with Tracking(folder, "generate", folder.settings()) as log:
    log.write(3, {{"a": 1.0}})
print([name for name in ("mlflow", "tensorflow") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert shown(folder.path / "logs" / "generate") == {"a": [(3, 1.0)]}


def test_a_read_only_folder_is_reported_once_and_the_run_continues(
    folder: ModelFolder, small_settings: Settings
) -> None:
    (folder.path / "logs").write_text("in the way")
    said: list[str] = []
    with Tracking(folder, "evaluate", small_settings, warn=said.append) as log:
        for step in range(3):
            log.write(step, FIGURES)
    assert len(said) == 1
    assert said[0].startswith("no figures for TensorBoard: ")


def test_a_missing_mlflow_is_reported_with_its_cure(
    folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NotInstalledError, match=r"^MLflow is not installed: pip install -e '\.\[tracking\]', or run"):
        Tracking(folder, "learn", small_settings, None, "http://127.0.0.1:9")
