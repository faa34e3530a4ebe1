"""What TensorFlow does on a GPU, done on the processor: XLA compiles the network, for batches of few sizes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import random_states

from connectfour.game import GAME
from seraphim.inference import load_inference, tensorflow
from seraphim.inference.interface import FIXED_SIZES
from seraphim.inference.tensorflow import TensorFlowModel
from seraphim.network import architectures
from seraphim.network.saved_model import ARCHIVE, save_snapshot
from seraphim.options import NetworkOptions

pytestmark = pytest.mark.slow
OBSERVATIONS = GAME.observe(random_states(GAME, 100, seed=1))
RESNET = NetworkOptions("resnet", blocks=2, filters=16, value_width=8, normalization="batch")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A seed whose outputs are small: bfloat16 rounds in proportion to what it adds up, and a test allows 0.01.
    path = tmp_path_factory.mktemp("snapshots") / "snapshot"
    save_snapshot(architectures.build(GAME, RESNET, seed=2), path)
    return path


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("bfloat16", 1e-2)])
def test_a_compiled_network_gives_the_same_outputs(snapshot: Path, precision: Any, tolerance: float) -> None:
    expected = TensorFlowModel(snapshot, GAME).infer(OBSERVATIONS)
    model = TensorFlowModel(snapshot, GAME, compiled=precision)
    assert f"in {precision} on" in model.description
    for ours, theirs in zip(model.infer(OBSERVATIONS), expected, strict=True):
        assert ours.dtype == np.float32
        assert ours == pytest.approx(theirs, abs=tolerance * max(1.0, float(np.abs(theirs).max())))
        assert precision == "float32" or not np.array_equal(ours, theirs)


def test_it_is_compiled_where_tensorflow_sees_a_gpu(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "in float32" in load_inference(snapshot, GAME, "tensorflow").description
    monkeypatch.setattr(tensorflow, "sees_gpu", lambda: True)
    model: Any = load_inference(snapshot, GAME, "tensorflow")
    assert "in bfloat16" in model.description
    assert model._module.serve._jit_compile


def test_it_is_compiled_for_few_sizes(snapshot: Path) -> None:
    model = TensorFlowModel(snapshot, GAME, compiled="float32")
    serve, sizes = model._serve, set()

    def watched(observations: Any) -> Any:
        sizes.add(len(observations))
        return serve(observations)

    model._serve = watched
    for number in (1, 2, 9, 33, 65, 100):
        assert len(model.infer(OBSERVATIONS[:number])[1]) == number
    assert sizes == set(FIXED_SIZES[:4])


def test_a_trusted_saved_model_is_run_as_it_is(snapshot: Path) -> None:
    archive = (snapshot / ARCHIVE).read_bytes()
    (snapshot / ARCHIVE).unlink()
    try:
        assert "in float32" in TensorFlowModel(snapshot, GAME, compiled="bfloat16", trust=True).description
    finally:
        (snapshot / ARCHIVE).write_bytes(archive)


def test_a_model_is_as_before_when_it_was_computed_in_bfloat16() -> None:
    model = architectures.build(GAME, RESNET, seed=0)
    before = model.get_config()
    with architectures.computed_in_bfloat16(model):
        rounded = {layer.name for layer in model.layers if layer.compute_dtype == "bfloat16"}
        assert {"stem", "value_hidden"} <= rounded
        assert not rounded & {"policy", "value"}
    assert model.get_config() == before
