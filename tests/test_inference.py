"""A SavedModel as a function: the runtimes agree, batches do not matter, and misfits are told."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from reference import random_states

from seraphim import inference
from seraphim.errors import ModelError
from seraphim.game import Array
from seraphim.inference import LARGEST_BATCH, Inference, Uniform, bucket_size, in_buckets, load_inference
from seraphim.networks import load_model
from seraphim.store import ModelFolder
from tictactoe.game import GAME

OBSERVATIONS = GAME.observe(random_states(GAME, 200, seed=1))


@pytest.fixture
def snapshot(folder: ModelFolder) -> Path:
    return folder.champion().path


def loaded(snapshot: Path, runtime: str) -> Inference:
    return load_inference(snapshot, GAME, runtime, precision="float32")  # type: ignore[arg-type]


@pytest.mark.parametrize("runtime", ["openvino", "tensorflow"])
def test_a_runtime_equals_the_keras_model(snapshot: Path, runtime: str) -> None:
    outputs = load_model(snapshot)(OBSERVATIONS, training=False)
    logits, values = loaded(snapshot, runtime).infer(OBSERVATIONS)
    assert logits == pytest.approx(outputs["policy"].numpy(), abs=1e-5)
    assert values == pytest.approx(outputs["value"].numpy()[:, 0], abs=1e-5)


def test_bfloat16_is_close_to_float32(snapshot: Path) -> None:
    exact, _ = loaded(snapshot, "openvino").infer(OBSERVATIONS)
    rounded, values = load_inference(snapshot, GAME, "openvino").infer(OBSERVATIONS)
    assert rounded == pytest.approx(exact, abs=0.05)
    assert (np.abs(values) <= 1).all()


@pytest.mark.parametrize("runtime", ["openvino", "tensorflow"])
def test_a_position_alone_equals_itself_in_a_batch(snapshot: Path, runtime: str) -> None:
    model = loaded(snapshot, runtime)
    logits, values = model.infer(OBSERVATIONS[:64])
    for row in (0, 31, 63):
        alone = model.infer(OBSERVATIONS[row : row + 1])
        assert alone[0][0] == pytest.approx(logits[row], abs=1e-6)
        assert alone[1][0] == pytest.approx(values[row], abs=1e-6)


def test_outputs_are_not_overwritten_by_the_next_call(snapshot: Path) -> None:
    model = loaded(snapshot, "openvino")
    first, _ = model.infer(OBSERVATIONS[:10])
    kept = first.copy()
    model.infer(OBSERVATIONS[10:20])
    assert first.tolist() == kept.tolist()


@pytest.mark.parametrize("runtime", ["openvino", "tensorflow"])
def test_the_description_names_what_runs_the_network(snapshot: Path, runtime: str) -> None:
    assert runtime in loaded(snapshot, runtime).description.lower()
    assert "float32" in loaded(snapshot, runtime).description


def test_openvino_is_chosen_where_there_is_no_gpu(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_gpu_is_likely", lambda: False)
    assert load_inference(snapshot, GAME).description.startswith("OpenVINO")


@pytest.mark.parametrize(("seen", "chosen"), [(True, "TensorFlow"), (False, "OpenVINO")])
def test_tensorflow_is_chosen_where_it_sees_a_gpu(
    snapshot: Path, monkeypatch: pytest.MonkeyPatch, seen: bool, chosen: str
) -> None:
    monkeypatch.setattr(inference, "_gpu_is_likely", lambda: True)
    monkeypatch.setattr(inference, "_tensorflow_sees_gpu", lambda: seen)
    assert load_inference(snapshot, GAME).description.startswith(chosen)


@pytest.mark.parametrize("runtime", ["openvino", "tensorflow"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_actions": 7}, "policy head of .* has 9 outputs but othergame has 7 actions.*another game"),
        ({"observation_shape": (6, 7, 2)}, r"takes observations of shape \(3, 3, 2\) but othergame gives \(6, 7, 2\)"),
    ],
)
def test_a_model_of_another_game_is_told(
    snapshot: Path, runtime: str, changes: dict[str, object], message: str
) -> None:
    shape = {"name": "othergame", "num_actions": 9, "observation_shape": (3, 3, 2)}
    with pytest.raises(ModelError, match=message):
        load_inference(snapshot, SimpleNamespace(**{**shape, **changes}), runtime)  # type: ignore[arg-type]


@pytest.mark.parametrize("runtime", ["openvino", "tensorflow"])
def test_a_missing_model_is_told(tmp_path: Path, runtime: str) -> None:
    with pytest.raises(ModelError, match="holds no SavedModel: retrain"):
        loaded(tmp_path, runtime)


@pytest.mark.parametrize("runtime", ["openvino", "tensorflow"])
@pytest.mark.parametrize("damaged", ["saved_model.pb", "variables/variables.index"])
def test_a_damaged_model_is_told(snapshot: Path, runtime: str, damaged: str) -> None:
    (snapshot / damaged).write_bytes(b"\x00garbage")
    with pytest.raises(ModelError, match="SavedModel in .* is damaged"):
        loaded(snapshot, runtime)


def test_uniform_believes_nothing() -> None:
    logits, values = Uniform(GAME).infer(OBSERVATIONS)
    assert logits.shape == (200, 9)
    assert not logits.any()
    assert not values.any()


def test_buckets_hold_their_counts_with_little_waste_and_are_few() -> None:
    sizes = [bucket_size(count) for count in range(1, LARGEST_BATCH + 1)]
    assert all(count <= size <= max(8, 1.25 * count) for count, size in enumerate(sizes, 1))
    assert len(set(sizes)) < 40


@pytest.mark.parametrize("count", [1, 9, LARGEST_BATCH, LARGEST_BATCH + 1, 2 * LARGEST_BATCH + 300])
def test_buckets_give_each_position_its_own_outputs(count: int) -> None:
    def first_cell(padded: Array) -> tuple[Array, Array]:
        assert len(padded) == bucket_size(len(padded))
        return padded[:, :1].astype(np.float32), padded[:, 0].astype(np.float32)

    observations = np.random.default_rng(0).integers(0, 255, (count, 3)).astype(np.uint8)
    logits, values = in_buckets(observations, first_cell)
    assert logits[:, 0].tolist() == observations[:, 0].tolist() == values.tolist()
