"""Networks: shapes, seeds, statistics, and how TensorFlow starts."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_networks import KINDS, MLP, OTHER, RESNET, evaluate, observations

from seraphim.errors import SettingsError
from seraphim.network import architectures
from seraphim.options import NetworkOptions, Normalization
from tictactoe.game import GAME

ROOT = Path(__file__).parents[2]


@KINDS
def test_network_gives_a_logit_per_action_and_a_value_within_one(options: NetworkOptions) -> None:
    outputs = architectures.build(GAME, options, seed=0)(observations(5))
    assert outputs["policy"].shape == (5, 9)
    assert outputs["value"].shape == (5, 1)
    assert np.abs(outputs["value"]).max() <= 1


def test_mlp_takes_observations_of_any_shape() -> None:
    for shape in ((7,), (2, 3), (2, 3, 4, 5)):
        game = SimpleNamespace(name="odd", observation_shape=shape, num_actions=4)
        outputs = architectures.build(game, MLP, seed=0)(np.ones((3, *shape), np.uint8))  # type: ignore[arg-type]
        assert outputs["policy"].shape == (3, 4)


def test_resnet_refuses_observations_that_are_not_planes() -> None:
    game = SimpleNamespace(name="line", observation_shape=(7,), num_actions=4)
    with pytest.raises(SettingsError, match=r"those of line have shape \(7,\): choose --kind=mlp"):
        architectures.build(game, RESNET, seed=0)  # type: ignore[arg-type]


@KINDS
def test_same_seed_gives_the_same_weights_whatever_was_built_before(options: NetworkOptions) -> None:
    first = architectures.build(GAME, options, seed=3)
    architectures.build(GAME, MLP, seed=4)
    again = architectures.build(GAME, options, seed=3)
    assert [weight.path for weight in first.weights] == [weight.path for weight in again.weights]
    for before, after in zip(first.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


@KINDS
def test_another_seed_gives_other_weights_and_layers_differ_from_each_other(options: NetworkOptions) -> None:
    kernels = [
        weight.numpy()
        for seed in (0, 1)
        for weight in architectures.build(GAME, options, seed).weights
        if weight.path.endswith("kernel") and not weight.path.endswith("_b/kernel")  # zeros
    ]
    shared = [kernel.ravel()[:8].tobytes() for kernel in kernels]
    assert len(set(shared)) == len(shared)


@pytest.mark.parametrize("normalization", ["none", "batch"])
def test_a_residual_network_has_biases_or_batch_normalization(normalization: Normalization) -> None:
    model = architectures.build(GAME, replace(RESNET, normalization=normalization), seed=1)
    paths = {weight.path for weight in model.weights}
    assert ("stem/bias" in paths) == (normalization == "none")
    assert ("stem_norm/gamma" in paths) == (normalization == "batch")


def test_blocks_without_normalization_begin_as_the_identity() -> None:
    # So any number of them gives the outputs of the stem and the same heads.
    shallow, deep = (
        architectures.build(GAME, replace(RESNET, blocks=blocks, activation="relu"), seed=1) for blocks in (0, 4)
    )
    for layer in shallow.layers:
        deep.get_layer(layer.name).set_weights(layer.get_weights())
    for one, other in zip(evaluate(shallow, observations(8)), evaluate(deep, observations(8)), strict=True):
        np.testing.assert_array_equal(one, other)


@KINDS
def test_names_of_weights_are_unique(options: NetworkOptions) -> None:
    paths = [weight.path for weight in architectures.build(GAME, options, seed=0).weights]
    assert len(set(paths)) == len(paths)


@KINDS
def test_the_penalty_is_l2_times_the_sum_of_squared_kernels(options: NetworkOptions) -> None:
    model = architectures.build(GAME, options, seed=0)
    squares = sum(float((weight.numpy() ** 2).sum()) for weight in model.weights if weight.path.endswith("kernel"))
    assert float(sum(model.losses)) == pytest.approx(options.l2 * squares, rel=1e-5)


def test_kernels_and_heads_have_the_sizes_asked_for() -> None:
    weights = {weight.path: tuple(weight.shape) for weight in architectures.build(GAME, OTHER, seed=0).weights}
    assert weights["stem/kernel"] == (4, 4, 2, 5)
    assert weights["block_0_a/kernel"] == weights["block_0_b/kernel"] == (4, 4, 5, 5)
    assert weights["policy_conv/kernel"] == (1, 1, 5, 2)
    assert weights["value_conv/kernel"] == (1, 1, 5, 1)
    assert weights["policy/kernel"] == (9 * 2, 9)
    assert weights["value_hidden/kernel"] == (9, OTHER.value_width)


@pytest.mark.parametrize("options", [replace(MLP, activation="leaky_relu"), OTHER], ids=["mlp", "resnet"])
def test_a_leaky_network_keeps_a_share_of_what_is_below_zero(options: NetworkOptions) -> None:
    model = architectures.build(GAME, options, seed=1)
    leaky = [layer for layer in model.layers if type(layer).__name__ == "LeakyReLU"]
    assert not [layer for layer in model.layers if type(layer).__name__ == "ReLU"]
    assert len(leaky) == (3 if options.kind == "mlp" else 6)
    inputs = np.array([-2.0, 0.0, 3.0], np.float32)
    for layer in leaky:
        np.testing.assert_allclose(layer(inputs), [-0.6, 0.0, 3.0], rtol=1e-6)


@pytest.mark.parametrize("options", [MLP, RESNET], ids=["mlp", "resnet"])
def test_a_network_of_silus_has_no_other_hidden_activation(options: NetworkOptions) -> None:
    model = architectures.build(GAME, replace(options, activation="silu"), seed=1)
    kinds = [type(layer).__name__ for layer in model.layers]
    silus = [layer for layer in model.layers if type(layer).__name__ == "Activation"]
    assert not {"ReLU", "LeakyReLU"} & set(kinds)
    assert len(silus) == (3 if options.kind == "mlp" else 8)
    inputs = np.array([-2.0, 0.0, 3.0], np.float32)
    for layer in silus:
        np.testing.assert_allclose(layer(inputs), inputs / (1 + np.exp(-inputs)), rtol=1e-6)


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "cnn"},
        {"depth": 0},
        {"width": 0},
        {"filters": 0},
        {"kernel_size": 0},
        {"policy_filters": 0},
        {"value_filters": 0},
        {"activation": "tanh"},
        {"l2": -1.0},
    ],
)
def test_options_out_of_range_are_refused(values: dict[str, Any]) -> None:
    (name,) = values
    with pytest.raises(SettingsError, match=f"^{name} must be "):
        NetworkOptions(**values)


def test_tensorflow_starts_silently() -> None:
    program = "from seraphim.network import architectures; architectures.tensorflow().constant(1) + 1"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout + run.stderr == ""


def test_messages_of_others_while_tensorflow_starts_are_not_lost() -> None:
    program = """
import sys, threading
from seraphim.network import architectures
start = threading.Thread(target=architectures.tensorflow)
start.start()
start.join(0.5)
sys.stderr.write("said meanwhile\\n")
architectures.tensorflow().constant(1)
sys.stderr.write("said afterwards\\n")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stderr == "said meanwhile\nsaid afterwards\n"


def test_a_failed_start_of_tensorflow_shows_its_messages() -> None:
    program = """
import os, sys
from seraphim.network import architectures
class Broken:
    def find_spec(self, name, path, target=None):
        if name == "tensorflow":
            os.write(2, b"I0000 broken.cc:1] why\\n")
            raise ImportError("no tensorflow here")
sys.meta_path.insert(0, Broken())
try:
    architectures.tensorflow()
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("no tensorflow here\n", "I0000 broken.cc:1] why\n")


def test_importing_networks_does_not_import_tensorflow() -> None:
    program = (
        "import sys; import seraphim.network.architectures, seraphim.training.fit; print('tensorflow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_missing_tensorflow_is_reported_with_what_to_do() -> None:
    # With None in its place, an import fails as if the package were not installed.
    program = (
        "import sys; sys.modules['tensorflow'] = None; "
        "from seraphim.network import architectures; architectures.tensorflow()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
    )
    assert "NotInstalledError: TensorFlow is not installed: pip install -e '.[train]'" in done.stderr


PUPIL = """
import keras
if {policy!r}:
    keras.config.set_dtype_policy({policy!r})
import seraphim
seraphim.new("odd", "tictactoe", width=8, games_per_generation=8, concurrent_games=8, steps=2)
seraphim.learn("odd", generations=1, callback=lambda line: None)
print(seraphim.load("odd").step, keras.config.dtype_policy().name, keras.config.floatx())
"""


REFUSED = """
import seraphim
try:
    seraphim.new("odd", "tictactoe")
except seraphim.errors.SettingsError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "policy", "kept"),
    [
        ('{"floatx": "float16"}', "", "float16 float16"),
        ('{"floatx": "float64", "image_data_format": "channels_first"}', "", "float64 float64"),
        ("{}", "mixed_float16", "mixed_float16 float32"),
        ("{}", "float64", "float64 float32"),
    ],
)
def test_a_model_learns_in_float32_whatever_keras_is_set_to_and_leaves_that_alone(
    config: str, policy: str, kept: str, tmp_path: Path
) -> None:
    (tmp_path / "keras.json").write_text(config)
    done = python(PUPIL.format(policy=policy), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"2 {kept}\n"


@pytest.mark.parametrize(
    ("config", "backend", "message"),
    [
        pytest.param(
            '{"floatx": "bfloat16"}',
            "",
            "TensorFlow does not start (AssertionError): check KERAS_BACKEND, ~/.keras/",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "[]",
            "",
            "TensorFlow does not start (AttributeError: 'list' object has no attribute 'get'): check KERAS_BACK",
            marks=pytest.mark.slow,
        ),
        pytest.param("{}", "theano", "TensorFlow does not start (ValueError: ", marks=pytest.mark.slow),
        (
            "{}",
            "numpy",
            "networks are trained by Keras on TensorFlow, but here it runs on numpy: set KERAS_BACKEND=tens",
        ),
    ],
)
def test_a_keras_that_cannot_train_is_refused_in_a_sentence(
    config: str, backend: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "keras.json").write_text(config)
    done = python(REFUSED, tmp_path, **({"KERAS_BACKEND": backend} if backend else {}))
    assert message in done.stdout, done.stderr
    assert done.stdout.count("\n") == 1


def python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program of a user whose `keras.json` is in this folder."""
    environment = {**os.environ, "KERAS_HOME": str(folder), "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
