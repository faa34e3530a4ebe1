"""The runtime `auto` follows a rule, writes nothing, and imports TensorFlow and JAX only for a GPU."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from reference import random_states

from seraphim.errors import ModelError, SettingsError
from seraphim.game import load_game
from seraphim.inference import Runtime, jax, load_inference, tensorflow, uses_gpu
from seraphim.network.saved_model import ARCHIVE, LITERT
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for runtime in (tensorflow, jax):
        monkeypatch.setattr(runtime, "sees_gpu", lambda: False)


@pytest.fixture
def snapshot(folder: ModelFolder) -> Path:
    return folder.champion().path


@pytest.mark.parametrize(
    ("model", "batch", "title"),
    [
        ("tictactoe", 1, "LiteRT"),
        ("tictactoe", 16, "LiteRT"),
        ("tictactoe", 17, "OpenVINO"),
        ("connectfour", 1, "OpenVINO"),
        ("connectfour", 256, "OpenVINO"),
    ],
)
def test_litert_runs_an_mlp_in_small_batches_and_openvino_the_rest(model: str, batch: int, title: str) -> None:
    snapshot = ModelFolder(ROOT, model).champion().path
    kind = {"tictactoe": "an mlp", "connectfour": "a convolutional network"}[model]
    description = load_inference(snapshot, load_game(model), batch=batch).description
    assert description.startswith(f"{title} ")
    assert description.endswith(f", chosen for {kind} in batches of {batch}")


def test_an_unknown_runtime_is_refused(snapshot: Path) -> None:
    with pytest.raises(SettingsError, match="runtime must be one of auto, openvino, .*, not 'onnx'"):
        load_inference(snapshot, GAME, "onnx")  # type: ignore[arg-type]


def test_tensorflow_is_chosen_where_it_sees_a_gpu(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorflow, "sees_gpu", lambda: True)
    description = load_inference(snapshot, GAME).description
    assert description.startswith("TensorFlow ")
    assert description.endswith(", chosen because there is a GPU")
    (snapshot / ARCHIVE).unlink()
    assert load_inference(snapshot, GAME).description.startswith("OpenVINO ")
    assert load_inference(snapshot, GAME, trust=True).description.startswith("TensorFlow ")


def test_jax_is_chosen_where_it_alone_sees_a_gpu(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "sees_gpu", lambda: True)
    description = load_inference(snapshot, GAME).description
    assert description.startswith("JAX ")
    assert description.endswith(", chosen because there is a GPU that TensorFlow does not see")
    monkeypatch.setattr(jax, "LAYERS", jax.LAYERS - {"Dense"})
    assert load_inference(snapshot, GAME).description.startswith("OpenVINO ")
    monkeypatch.undo()
    monkeypatch.setattr(jax, "sees_gpu", lambda: True)
    (snapshot / ARCHIVE).unlink()
    assert load_inference(snapshot, GAME).description.startswith("OpenVINO ")


@pytest.mark.parametrize(
    ("seen_by", "using"), [((), ()), (("tensorflow",), ("auto", "tensorflow")), (("jax",), ("auto", "jax"))]
)
def test_a_runtime_uses_the_gpu_that_it_sees(
    seen_by: tuple[str, ...], using: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for runtime in (tensorflow, jax):
        seen = runtime.TITLE.lower() in seen_by
        monkeypatch.setattr(runtime, "sees_gpu", lambda seen=seen: seen)
    assert tuple(filter(uses_gpu, get_args(Runtime))) == using


def test_a_model_without_its_file_for_litert_is_run_by_openvino(snapshot: Path) -> None:
    (snapshot / LITERT).unlink()
    assert load_inference(snapshot, GAME, batch=1).description.startswith("OpenVINO ")


@pytest.mark.parametrize("content", [None, b"damaged"])
def test_a_model_without_an_intact_archive_is_run_by_openvino(snapshot: Path, content: bytes | None) -> None:
    (snapshot / ARCHIVE).unlink()
    if content:
        (snapshot / ARCHIVE).write_bytes(content)
    description = load_inference(snapshot, GAME, batch=1).description
    assert description.startswith("OpenVINO ")
    assert description.endswith("chosen for a network of unknown kind in batches of 1")


def test_a_runtime_that_is_asked_for_needs_no_reason(snapshot: Path) -> None:
    assert "chosen" not in load_inference(snapshot, GAME, "openvino", batch=1).description


def test_loading_a_model_writes_nothing_into_its_folder(folder: ModelFolder, snapshot: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in [folder.path, *folder.path.rglob("*")]}
    for batch in (1, 256):
        load_inference(snapshot, GAME, batch=batch)
    assert {path: path.stat().st_mtime_ns for path in [folder.path, *folder.path.rglob("*")]} == before


@pytest.mark.parametrize("damaged", ["saved_model.pb", "assets.extra/model.tflite"])
def test_a_damaged_model_is_an_error(snapshot: Path, damaged: str) -> None:
    (snapshot / damaged).write_bytes(b"\x00garbage")
    with pytest.raises(ModelError, match="is damaged"):
        load_inference(snapshot, GAME, batch=1 if "tflite" in damaged else 256)


def test_a_missing_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds no SavedModel"):
        load_inference(tmp_path, GAME)


def test_all_runtimes_that_may_be_chosen_agree(snapshot: Path) -> None:
    observations = GAME.observe(random_states(GAME, 50, seed=1))
    exact, _ = load_inference(snapshot, GAME, "tensorflow").infer(observations)
    for batch in (1, 256):
        logits, _ = load_inference(snapshot, GAME, batch=batch).infer(observations)
        assert logits == pytest.approx(exact, abs=0.05)


LOAD = """
import sys
from pathlib import Path
from seraphim.inference import load_inference
from tictactoe.game import GAME
for batch in (1, 256):
    load_inference(Path(sys.argv[1]), GAME, batch=batch)
print(" ".join({"tensorflow", "keras", "jax"} & set(sys.modules)))
"""


@pytest.mark.skipif(tensorflow.gpu_is_likely(), reason="there is a GPU, so both are asked whether they see it")
def test_without_a_gpu_neither_tensorflow_nor_jax_is_imported(snapshot: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOAD, snapshot], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "\n"


@pytest.mark.parametrize(("visible", "likely"), [(None, True), ("0,1", True), ("", False), ("-1", False)])
def test_a_gpu_that_is_hidden_from_a_process_is_not_looked_for(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, likely: bool
) -> None:
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == "/dev/nvidiactl")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert tensorflow.gpu_is_likely() == likely


def test_games_of_chance_are_never_rounded() -> None:
    pig = ModelFolder(ROOT, "pig").champion().path
    assert " in float32 on " in load_inference(pig, load_game("pig"), "jax", "bfloat16").description
