"""Inference: the runtimes agree, batches do not matter, and errors are reported."""

import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from reference import random_states

from seraphim.errors import ModelError, NotInstalledError
from seraphim.game import Array
from seraphim.inference import litert, load_inference
from seraphim.inference.interface import LARGEST_BATCH, bucket_size, in_buckets
from seraphim.machine import has_bfloat16
from seraphim.network.architectures import build
from seraphim.network.saved_model import load_model, save_snapshot
from seraphim.search.evaluator import Inference, Uniform
from seraphim.settings import default_settings
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME

ROOT = Path(__file__).parents[2]
OBSERVATIONS = GAME.observe(random_states(GAME, 200, seed=1))
RUNTIMES = pytest.mark.parametrize("runtime", ["openvino", "litert", "tensorflow", "jax"])


@pytest.fixture
def snapshot(folder: ModelFolder) -> Path:
    return folder.champion().path


def loaded(snapshot: Path, runtime: str) -> Inference:
    return load_inference(snapshot, GAME, runtime, precision="float32")  # type: ignore[arg-type]


@RUNTIMES
def test_a_runtime_equals_the_keras_model(snapshot: Path, runtime: str) -> None:
    outputs = load_model(snapshot)(OBSERVATIONS, training=False)
    logits, values = loaded(snapshot, runtime).infer(OBSERVATIONS)
    assert (logits.dtype, values.dtype) == (np.float32, np.float32)
    assert logits == pytest.approx(outputs["policy"].numpy(), abs=1e-5)
    assert values == pytest.approx(outputs["value"].numpy()[:, 0], abs=1e-5)


def test_bfloat16_is_close_to_float32(snapshot: Path) -> None:
    exact, _ = loaded(snapshot, "openvino").infer(OBSERVATIONS)
    rounded, values = load_inference(snapshot, GAME, "openvino").infer(OBSERVATIONS)
    assert rounded == pytest.approx(exact, abs=0.05)
    assert (np.abs(values) <= 1).all()


def test_openvino_rounds_where_the_processor_does(snapshot: Path) -> None:
    """Elsewhere it would emulate bfloat16, and take up to 40 times as long."""
    precision = "bfloat16" if has_bfloat16() else "float32"
    assert f" in {precision} on " in load_inference(snapshot, GAME, "openvino", precision="bfloat16").description


@RUNTIMES
def test_a_position_alone_equals_itself_in_a_batch(snapshot: Path, runtime: str) -> None:
    model = loaded(snapshot, runtime)
    logits, values = model.infer(OBSERVATIONS[:64])
    for row in (0, 31, 63):
        alone = model.infer(OBSERVATIONS[row : row + 1])
        assert alone[0][0] == pytest.approx(logits[row], abs=1e-6)
        assert alone[1][0] == pytest.approx(values[row], abs=1e-6)


@RUNTIMES
def test_outputs_are_not_overwritten_by_the_next_call(snapshot: Path, runtime: str) -> None:
    model = loaded(snapshot, runtime)
    first, _ = model.infer(OBSERVATIONS[:10])
    kept = first.copy()
    model.infer(OBSERVATIONS[10:20])
    assert first.tolist() == kept.tolist()


@RUNTIMES
def test_a_loaded_model_outlives_its_snapshot(snapshot: Path, runtime: str) -> None:
    model = loaded(snapshot, runtime)
    logits, _ = model.infer(OBSERVATIONS[:1])
    shutil.rmtree(snapshot)
    assert model.infer(OBSERVATIONS[:50])[0][0] == pytest.approx(logits[0], abs=1e-6)


def test_litert_may_drop_interpreters(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = loaded(snapshot, "litert").infer(OBSERVATIONS)
    monkeypatch.setattr(litert, "MOST_BYTES", 1)
    model = loaded(snapshot, "litert")
    for count in (3, 7, 3, 100, 7):
        assert model.infer(OBSERVATIONS[:count])[0] == pytest.approx(expected[:count], abs=1e-6)


@RUNTIMES
def test_the_description_names_what_runs_the_network(snapshot: Path, runtime: str) -> None:
    assert runtime in loaded(snapshot, runtime).description.lower()
    assert "float32" in loaded(snapshot, runtime).description


@pytest.mark.parametrize(
    "runtime", ["openvino", "litert", *(pytest.param(each, marks=pytest.mark.slow) for each in ("tensorflow", "jax"))]
)
def test_a_runtime_logs_nothing(snapshot: Path, runtime: str) -> None:
    code = """
import sys
from pathlib import Path
from seraphim.inference import load_inference
from tictactoe.game import GAME
load_inference(Path(sys.argv[1]), GAME, sys.argv[2]).infer(GAME.observe(GAME.initial(3)))
"""
    done = subprocess.run([sys.executable, "-c", code, snapshot, runtime], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@RUNTIMES
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_actions": 7}, "policy head of .* has 9 outputs but othergame has 7 actions.*another game"),
        ({"observation_shape": (6, 7, 2)}, r"takes observations of shape \(3, 3, 2\) but othergame gives \(6, 7, 2\)"),
    ],
)
def test_a_model_of_another_game_is_reported(
    snapshot: Path, runtime: str, changes: dict[str, object], message: str
) -> None:
    shape = {"name": "othergame", "num_actions": 9, "observation_shape": (3, 3, 2)}
    with pytest.raises(ModelError, match=message):
        load_inference(snapshot, SimpleNamespace(**{**shape, **changes}), runtime)  # type: ignore[arg-type]


@RUNTIMES
def test_a_missing_model_is_reported(tmp_path: Path, runtime: str) -> None:
    with pytest.raises(ModelError, match="holds no SavedModel: train again"):
        loaded(tmp_path, runtime)


@pytest.mark.parametrize("runtime", ["openvino", "tensorflow"])  # JAX reads the archive alone
@pytest.mark.parametrize("damaged", ["saved_model.pb", "variables/variables.index"])
def test_a_damaged_model_is_reported(snapshot: Path, runtime: str, damaged: str) -> None:
    (snapshot / damaged).write_bytes(b"\x00garbage")
    with pytest.raises(ModelError, match="the SavedModel in .* is damaged"):
        loaded(snapshot, runtime)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_damaged_model_for_litert_is_reported(snapshot: Path, share: float) -> None:
    file = snapshot / "assets.extra" / "model.tflite"
    whole = file.read_bytes()
    for content in (whole[: int(share * len(whole))], b"\0" * int(share * len(whole)) + b"garbage"):
        file.write_bytes(content)
        with pytest.raises(ModelError, match=r"assets.extra/model.tflite in .* is damaged: promote another"):
            loaded(snapshot, "litert")


def test_a_snapshot_without_the_file_for_litert_is_reported(snapshot: Path) -> None:
    (snapshot / "assets.extra" / "model.tflite").unlink()
    with pytest.raises(ModelError, match=r"holds no assets.extra/model.tflite, which LiteRT runs: choose another"):
        loaded(snapshot, "litert")


def test_a_missing_package_is_reported(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(NotInstalledError, match="litert needs the package ai-edge-litert: pip install ai-edge-litert"):
        loaded(snapshot, "litert")


@pytest.mark.parametrize("runtime", ["openvino", "litert"])
def test_the_memory_of_a_model_is_freed_with_it(snapshot: Path, runtime: str) -> None:
    model = loaded(snapshot, runtime)
    model.infer(OBSERVATIONS)
    alive = weakref.ref(model)
    del model
    assert alive() is None


FIRST_BATCHES = """
import sys
import threading
from pathlib import Path
import numpy as np
from seraphim.inference import load_inference
from tictactoe.game import GAME

models = [load_inference(Path(sys.argv[1]), GAME, sys.argv[2]) for _ in range(2)]
sys.setswitchinterval(1e-6)
together = threading.Barrier(2)

def evaluate(model):
    together.wait()
    model.infer(np.zeros((64, *GAME.observation_shape), np.float32))

threads = [threading.Thread(target=evaluate, args=(model,)) for model in models]
for step in (threading.Thread.start, threading.Thread.join):
    for thread in threads:
        step(thread)
"""


@pytest.mark.parametrize("runtime", ["openvino", pytest.param("litert", marks=pytest.mark.slow)])
def test_two_threads_of_a_new_process_may_evaluate_their_first_batches_at_once(snapshot: Path, runtime: str) -> None:
    # Two such threads could deadlock in OpenVINO, about every second time.
    command = [sys.executable, "-c", FIRST_BATCHES, str(snapshot), runtime]
    programs = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    try:
        assert [program.wait(60) for program in programs] == [0, 0, 0]
    finally:
        for program in programs:
            program.kill()
            program.wait()


INTERRUPTED = """
import signal, sys, threading
from pathlib import Path
from seraphim.inference import load_inference
from tictactoe.game import GAME

signal.signal(signal.SIGINT, lambda *_: print("handled"))
models = [load_inference(Path(sys.argv[1]), GAME, sys.argv[2]) for _ in range(2)]
while models:
    del models[0]
signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.parametrize(
    "runtime", ["openvino", *(pytest.param(each, marks=pytest.mark.slow) for each in ("litert", "tensorflow", "jax"))]
)
def test_signals_are_handled_after_models_were_released(snapshot: Path, runtime: str) -> None:
    # Two cores of OpenVINO, released in turn, left a stack for signal handlers that was gone.
    command = [sys.executable, "-c", INTERRUPTED, str(snapshot), runtime]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr


MEMORY = """
import gc
import sys
from pathlib import Path
import numpy as np
from seraphim.inference import load_inference
from tictactoe.game import GAME

def resident():
    if runtime in ("tensorflow", "jax"):
        gc.collect()  # what it loads refers to itself
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

snapshot, runtime = Path(sys.argv[1]), sys.argv[2]
observations = np.random.default_rng(0).integers(0, 2, (1000, *GAME.observation_shape)).astype(np.uint8)

def evaluate(reloads, evaluations):
    for _ in range(reloads):
        model, left = load_inference(snapshot, GAME, runtime), evaluations // reloads
        model.infer(observations)
        while left > 0:  # memory is lost by calls, if at all, rather than by positions
            for count in (256, 64, 10, 1):
                model.infer(observations[:count])
                left -= count

def lowest(evaluations):
    # TensorFlow's memory goes up and down by 15 MB, so take the lowest of several looks.
    looks = []
    for _ in range(5):
        evaluate(10, evaluations // 5)
        looks.append(resident())
    return min(looks)

before = lowest(30_000)
print(lowest(300_000) - before)
"""


@pytest.fixture(scope="module")
def full_size(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a snapshot of a network as large as the game's own settings say."""
    path = tmp_path_factory.mktemp("full") / "snapshot"
    save_snapshot(build(GAME, default_settings("tictactoe").network, seed=0), path)
    return path


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's account of memory")
@pytest.mark.slow
@RUNTIMES
def test_memory_stays_flat_over_reloads_and_evaluations(full_size: Path, runtime: str) -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY, full_size, runtime], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 20


def test_uniform_gives_equal_logits_and_zero_values() -> None:
    logits, values = Uniform(GAME).infer(OBSERVATIONS)
    assert logits.shape == (200, 9)
    assert not logits.any()
    assert not values.any()


def test_buckets_are_few_and_waste_little() -> None:
    sizes = [bucket_size(count) for count in range(1, LARGEST_BATCH + 1)]
    assert all(count <= size <= max(32, 1.0625 * count) for count, size in enumerate(sizes, 1))
    assert len(set(sizes)) < 120


def test_small_batches_are_padded_to_the_size_of_the_last(snapshot: Path) -> None:
    sizes: list[int] = []
    model = loaded(snapshot, "openvino")
    request = model._request

    class Watched:
        def infer(self, inputs, **options):
            sizes.append(len(inputs[0]))
            return request.infer(inputs, **options)

    model._request = Watched()
    exact = model.infer(OBSERVATIONS[:8])[0]
    for count in (7, 8, 4, 3, 8, 1):
        assert np.array_equal(model.infer(OBSERVATIONS[:count])[0], exact[:count])
    assert sizes == [8, 8, 8, 8, 3, 8, 1]


@pytest.mark.parametrize("count", [1, 9, LARGEST_BATCH, LARGEST_BATCH + 1, 2 * LARGEST_BATCH + 300])
def test_buckets_give_each_position_its_own_outputs(count: int) -> None:
    def first_cell(padded: Array) -> tuple[Array, Array]:
        assert len(padded) == bucket_size(len(padded))
        return padded[:, :1].astype(np.float32), padded[:, 0].astype(np.float32)

    observations = np.random.default_rng(0).integers(0, 255, (count, 3)).astype(np.uint8)
    logits, values = in_buckets(observations, first_cell)
    assert logits[:, 0].tolist() == observations[:, 0].tolist() == values.tolist()
