"""Saving: a snapshot gives the outputs of the model, and trains on as if it had never been saved."""

import functools
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from one_of_each import one_of_each
from small_networks import KINDS, MLP, OTHER, RESNET, evaluate, observations

from seraphim.errors import ModelError
from seraphim.game import Array
from seraphim.inference import Runtime, load_inference
from seraphim.network import architectures, saved_model
from seraphim.network.saved_model import ARCHIVE
from seraphim.options import NetworkOptions, TrainingOptions
from seraphim.training import fit
from tictactoe.game import GAME

Snapshots = dict[NetworkOptions, Path]


@functools.cache
def trained(options: NetworkOptions) -> Any:
    """Return a model after some steps, so that batch norm's averages and the optimizer's slots have moved.

    The same model for all tests: a test may not change it.
    """
    model = architectures.build(GAME, options, seed=1)
    model.compile("adam", {"policy": "mse", "value": "mse"}, jit_compile=False)
    rng = np.random.default_rng(2)
    targets = {"policy": rng.normal(size=(96, 9)), "value": rng.normal(size=(96, 1))}
    model.fit(observations(96), targets, batch_size=32, verbose=0)
    return model


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    """Return a snapshot of each trained model; a test may not change it."""
    paths = {options: tmp_path_factory.mktemp(options.kind) / "snapshot" for options in (MLP, RESNET)}
    for options, path in paths.items():
        saved_model.save_snapshot(trained(options), path)
    return paths


def serve(path: Path, batch: Array) -> tuple[Array, Array]:
    loaded = architectures.tensorflow().saved_model.load(str(path))
    outputs = loaded.signatures["serving_default"](observation=architectures.tensorflow().constant(batch))
    return outputs["policy"].numpy(), outputs["value"].numpy()


@pytest.mark.parametrize(("options", "number"), one_of_each([MLP, OTHER], [np.nan, np.inf]))
def test_no_number_of_a_snapshot_is_a_nan_or_an_infinity(
    options: NetworkOptions, number: float, tmp_path: Path
) -> None:
    model = architectures.build(GAME, options, seed=1)
    fit.prepare(model, TrainingOptions(average_decay=0.9))
    for variable in (*model.weights, *model.optimizer.variables[2:]):  # the first two count and tell the rate
        before = variable.numpy()
        changed = before.copy()
        changed.flat[0] = number
        variable.assign(changed)
        with pytest.raises(ModelError, match="^training diverged: .* has a NaN or an infinity; no snapshot was"):
            saved_model.save_snapshot(model, tmp_path / "snapshot")
        assert not (tmp_path / "snapshot").exists()
        variable.assign(before)
    saved_model.save_snapshot(model, tmp_path / "snapshot")


@KINDS
def test_no_output_of_a_snapshot_is_a_nan_or_an_infinity(options: NetworkOptions, tmp_path: Path) -> None:
    model = architectures.build(GAME, options, seed=1)
    for variable in model.weights:
        variable.assign(1e30 * (0.1 + variable.numpy()))  # some are 0
    with pytest.raises(
        ModelError, match="^training diverged: the network's (policy|value) has a NaN or an infinity; no snapshot was"
    ):
        saved_model.save_snapshot(model, tmp_path / "snapshot")


@pytest.mark.parametrize("runtime", ["openvino", pytest.param("litert", marks=pytest.mark.slow)])
def test_a_snapshot_of_another_shape_gives_the_outputs_of_the_model(runtime: Runtime, tmp_path: Path) -> None:
    saved_model.save_snapshot(trained(OTHER), tmp_path / "snapshot")
    # Batch normalization must be that of inference, which differs.
    copy = saved_model.load_model(tmp_path / "snapshot")
    assert (
        np.abs(copy(observations(16), training=True)["policy"] - evaluate(trained(OTHER), observations(16))[0]).max()
        > 0.05
    )
    logits, values = load_inference(tmp_path / "snapshot", GAME, runtime, batch=16).infer(observations(16))
    for expected, served in zip(evaluate(trained(OTHER), observations(16)), (logits, values), strict=True):
        np.testing.assert_allclose(served, expected, atol=2e-2)  # in bfloat16


@KINDS
def test_served_snapshot_equals_the_model_outside_training(options: NetworkOptions, snapshots: Snapshots) -> None:
    model = trained(options)
    batch = observations(64, seed=5)
    for expected, served in zip(evaluate(model, batch), serve(snapshots[options], batch), strict=True):
        assert served.dtype == np.float32
        np.testing.assert_allclose(served, expected, atol=1e-5)


@KINDS
def test_batch_of_one_equals_a_row_of_a_batch_of_64(options: NetworkOptions, snapshots: Snapshots) -> None:
    batch = observations(64, seed=6)
    policies, values = serve(snapshots[options], batch)
    policy, value = serve(snapshots[options], batch[17:18])
    np.testing.assert_allclose(policy[0], policies[17], atol=1e-5)
    np.testing.assert_allclose(value[0], values[17], atol=1e-5)


@KINDS
def test_openvino_gives_the_outputs_of_the_model(options: NetworkOptions, snapshots: Snapshots) -> None:
    openvino = pytest.importorskip("openvino")
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(snapshots[options]), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    batch = observations(64, seed=7)
    outputs = compiled(batch)
    for name, expected in zip(("policy", "value"), evaluate(trained(options), batch), strict=True):
        np.testing.assert_allclose(outputs[name], expected, atol=1e-5)


@KINDS
def test_loaded_model_has_the_same_weights_optimizer_and_step(options: NetworkOptions, snapshots: Snapshots) -> None:
    model = trained(options)
    loaded = saved_model.load_model(snapshots[options])
    assert int(loaded.optimizer.iterations) == 3
    assert len(loaded.optimizer.variables) > 2 * len(loaded.trainable_variables)
    pairs = [*zip(model.weights, loaded.weights, strict=True)]
    pairs += zip(model.optimizer.variables, loaded.optimizer.variables, strict=True)
    for before, after in pairs:
        np.testing.assert_array_equal(before.numpy(), after.numpy())


def test_saved_model_serves_without_seraphim_or_keras(snapshots: Snapshots, tmp_path: Path) -> None:
    np.save(tmp_path / "batch.npy", observations(3))
    program = """
import sys, numpy, tensorflow
sys.modules["seraphim"] = sys.modules["keras"] = None
served = tensorflow.saved_model.load(sys.argv[1]).signatures["serving_default"]
outputs = served(observation=tensorflow.constant(numpy.load("batch.npy")))
print([outputs["policy"].numpy().tolist(), outputs["value"].numpy().tolist()])
"""
    command = [sys.executable, "-c", program, snapshots[RESNET]]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    policies, values = evaluate(trained(RESNET), observations(3))
    served = json.loads(run.stdout)
    np.testing.assert_allclose(served[0], policies, atol=1e-5)
    np.testing.assert_allclose(served[1], values, atol=1e-5)


def test_saved_model_holds_the_weights_and_nothing_of_the_optimizer(snapshots: Snapshots) -> None:
    variables = architectures.tensorflow().train.list_variables(str(snapshots[RESNET] / "variables" / "variables"))
    saved = [shape for name, shape in variables if name != "_CHECKPOINTABLE_OBJECT_GRAPH"]
    assert sum(int(np.prod(shape)) for shape in saved) == trained(RESNET).count_params()


def test_the_error_for_a_missing_archive_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.keras is missing: point the champion at another snapshot"):
        saved_model.load_model(tmp_path)


@pytest.mark.parametrize("damage", ["empty", "truncated", "no zip", "config gone"])
def test_the_error_for_a_damaged_archive_says_what_to_do(damage: str, snapshots: Snapshots, tmp_path: Path) -> None:
    archive = tmp_path / ARCHIVE
    archive.parent.mkdir()
    content = (snapshots[MLP] / ARCHIVE).read_bytes()
    if damage == "config gone":
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("metadata.json", "{}")
    else:
        archive.write_bytes({"empty": b"", "truncated": content[: len(content) // 2], "no zip": b"?" * 999}[damage])
    with pytest.raises(ModelError, match=r"model\.keras is damaged .*: point the champion at another snapshot"):
        saved_model.load_model(tmp_path)


@pytest.mark.slow
def test_saving_again_leaks_no_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # TensorFlow never frees all memory of a variable.
    import keras

    model = architectures.build(GAME, NetworkOptions(depth=1, width=8), seed=0)
    fit.prepare(model, TrainingOptions())
    saved_model.save_snapshot(model, tmp_path / "first")
    made, make = [], keras.Variable.__init__
    monkeypatch.setattr(keras.Variable, "__init__", lambda *given, **named: (made.append(1), make(*given, **named))[1])
    saved_model.save_snapshot(model, tmp_path / "second")
    assert not made
