"""Dual-head Keras networks: observations in, the policy's logits and the value for the player to move out.

Knows shapes, not rules, and nothing of training. TensorFlow is imported when `tensorflow()` is first called.
"""

import contextlib
import functools
import logging
import math
import os
import threading
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from seraphim.errors import NotInstalledError, SettingsError, how_to_install
from seraphim.game import Game
from seraphim.game.features import num_columns
from seraphim.machine import environment, no_root_handler, same_random_state
from seraphim.network.native_log import without_native_log
from seraphim.options import NetworkOptions

LEAKY_SLOPE = 0.3  # of a leaky ReLU below 0; Keras's default until version 3
# A line of the log of TensorFlow's C++ code, such as "I0000 00:00:1795220414.442667    3993 port.cc:153] oneDNN ...".
_NATIVE_LOG = rb"[IWEF]\d{4} .*\]|WARNING: All log messages before absl"
_STARTING = threading.Lock()
# What a keras.json that makes no sense raises, which TensorFlow's own copy of Keras reads as well.
_BY_CONFIGURATION = (AssertionError, AttributeError, LookupError, TypeError, ValueError)


def tensorflow() -> ModuleType:
    """Return TensorFlow, imported at the first call (some seconds) without its log messages.

    A GPU's memory is taken as it is needed, so that processes can share one. Any thread may call this; but start no
    process during the first call, because it would inherit a redirected standard error.
    """
    with _STARTING:
        return _start()


@contextlib.contextmanager
def _importing() -> Iterator[None]:
    # As TensorFlow and Keras are to be imported, which leaves the rest of the program as it was.
    settings = {
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "2",  # errors only
        # The kernels of oneDNN, which are TensorFlow's default on some processors only, with AVX-512 VNNI or later.
        # With AVX2 alone they train a residual network in two thirds of the time.
        "TF_ENABLE_ONEDNN_OPTS": "1",
    }
    if os.path.expanduser("~") == "~":  # noqa: PTH111  # a user without a home, which Keras would make here, as ./~
        settings["KERAS_HOME"] = os.devnull
    with environment(**settings), same_random_state(), no_root_handler():
        yield


@functools.cache
def _start() -> ModuleType:
    with _importing(), without_native_log(_NATIVE_LOG):
        try:
            import tensorflow as tf
        except ModuleNotFoundError as error:
            raise NotInstalledError(
                f"TensorFlow is not installed: {how_to_install('train')}, or choose another runtime"
            ) from error
        except _BY_CONFIGURATION as error:
            raise _does_not_start("TensorFlow", error) from error

        for gpu in tf.config.list_physical_devices("GPU"):
            with contextlib.suppress(RuntimeError):  # in use already
                tf.config.experimental.set_memory_growth(gpu, True)
        tf.config.experimental.enable_tensor_float_32_execution(False)  # float32 with 10 bits on a GPU
    # Keras does this, which would end a program for which warnings are errors.
    warnings.filterwarnings("ignore", "__array__ implementation doesn't accept a copy", DeprecationWarning)
    # Its Python code logs each file that it saves, and resets the loggers' levels: hence a filter.
    for name in ("absl", "tensorflow"):
        logging.getLogger(name).addFilter(
            lambda record: record.levelno >= logging.WARNING or "tensorflow" not in record.pathname
        )
    return tf


def _does_not_start(what: str, error: Exception) -> SettingsError:
    reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":")
    return SettingsError(f"{what} does not start ({reason}): check KERAS_BACKEND, ~/.keras/keras.json and its packages")


_CONFIGURING = threading.RLock()


@contextlib.contextmanager
def standard_keras() -> Iterator[None]:
    """Let Keras work in float32, with channels last, whatever the user's session or keras.json says.

    Raises:
        SettingsError: Keras runs on something else than TensorFlow, or its configuration does not let it start.
    """
    tensorflow()
    try:
        with _importing():
            import keras
    except (ImportError, *_BY_CONFIGURATION) as error:
        raise _does_not_start("Keras", error) from error

    config = keras.config
    if config.backend() != "tensorflow":
        raise SettingsError(
            f"networks are trained by Keras on TensorFlow, but here it runs on {config.backend()}: set "
            "KERAS_BACKEND=tensorflow, or leave it out"
        )
    with _CONFIGURING:  # it is of the whole process
        before = config.floatx(), config.image_data_format(), config.dtype_policy()
        _configure("float32", "channels_last", "float32")
        try:
            yield
        finally:
            _configure(*before)


def _configure(floatx: str, image_data_format: str, dtype_policy: Any) -> None:
    import keras

    keras.config.set_floatx(floatx)
    keras.config.set_image_data_format(image_data_format)
    keras.config.set_dtype_policy(dtype_policy)


def sees_gpu() -> bool:
    """Return whether TensorFlow can use a GPU; imports it."""
    return bool(tensorflow().config.list_physical_devices("GPU"))


@contextlib.contextmanager
def computed_in_bfloat16(model: Any) -> Iterator[None]:
    """Let functions that are traced inside the `with` block compute a Keras model in bfloat16, but for its outputs.

    Weights, sums and the last layers of both heads stay in float32, and the model is saved as it was.
    """
    outputs = set(model.output_names)
    layers = [(layer, layer.dtype_policy) for layer in model.layers if layer.name not in outputs]
    try:
        for layer, _ in layers:
            layer.dtype_policy = "mixed_bfloat16"
        yield
    finally:
        for layer, policy in layers:
            layer.dtype_policy = policy


@standard_keras()
def build(game: Game, options: NetworkOptions, seed: int) -> Any:
    """Return a Keras model with random weights; the same seed gives the same weights.

    It maps `observation` uint8 [B, *O] to `policy`, logits float32 [B, A], and `value` float32 [B, V] in [-1, 1] for
    the player to move, and with more than two players for each, that one first. Observations are small counts, mostly
    planes of 0 and 1, so they are not scaled.

    Raises:
        SettingsError: a resnet is asked for, but the game's observation is not of rows, columns and planes.
    """
    shape = tuple(game.observation_shape)
    if options.kind == "resnet" and len(shape) != 3:
        raise SettingsError(
            f"a resnet needs observations of rows, columns and planes, but those of {game.name} have shape {shape}: "
            "choose --kind=mlp"
        )
    tensorflow()
    import keras

    builder = _Builder(keras, options, seed)
    observation = keras.Input(shape, dtype="uint8", name="observation")
    planes = keras.layers.Rescaling(1.0, name="cast")(observation)
    policy, value = builder.mlp(planes) if options.kind == "mlp" else builder.resnet(planes)
    outputs = {
        "policy": builder.output(policy, game.num_actions, "policy", None),
        "value": builder.output(value, num_columns(game), "value", "tanh"),
    }
    return keras.Model(observation, outputs, name="network")


class _Builder:
    """Applies Keras layers, each with its own name and seed."""

    def __init__(self, keras: ModuleType, options: NetworkOptions, seed: int) -> None:
        self._keras = keras
        self._options = options
        self._seeds = np.random.SeedSequence(seed)

    def mlp(self, planes: Any) -> tuple[Any, Any]:
        """Return what the heads' last layers take, for the policy and the value."""
        hidden = self._keras.layers.Flatten(name="flat")(planes)
        for number in range(self._options.depth):
            hidden = self._dense(hidden, self._options.width, f"hidden_{number}")
        return hidden, self._dense(hidden, self._options.value_width, "value_hidden")

    def resnet(self, planes: Any) -> tuple[Any, Any]:
        """Return what the heads' last layers take, for the policy and the value."""
        options, flatten = self._options, self._keras.layers.Flatten
        shape = options.filters, options.kernel_size
        hidden = self._conv(planes, *shape, "stem")
        for number in range(options.blocks):
            # As in Fixup (section 3), a block begins as the identity, and its first convolution smaller the more blocks
            # there are; its weights by L^(-1/4) where Fixup has L^(-1/2), and the heads are not zero.
            inner = self._conv(hidden, *shape, f"block_{number}_a", variance=2.0 / math.sqrt(options.blocks))
            hidden = self._conv(inner, *shape, f"block_{number}_b", variance=0.0, skip=hidden)
        policy = flatten(name="policy_flat")(self._conv(hidden, options.policy_filters, 1, "policy_conv"))
        value = flatten(name="value_flat")(self._conv(hidden, options.value_filters, 1, "value_conv"))
        return policy, self._dense(value, options.value_width, "value_hidden")

    def output(self, tensor: Any, width: int, name: str, activation: str | None) -> Any:
        """Return activation(dense layer)."""
        initial = self._initial(self._keras.initializers.GlorotUniform)
        return self._keras.layers.Dense(width, activation=activation, name=name, **initial)(tensor)

    def _dense(self, tensor: Any, width: int, name: str) -> Any:
        initial = self._initial(self._keras.initializers.HeNormal)
        return self._activated(self._keras.layers.Dense(width, name=name, **initial)(tensor), name)

    def _conv(self, tensor: Any, filters: int, size: int, name: str, variance: float = 2.0, skip: Any = None) -> Any:
        # activation(convolution + bias, or its batch norm, + skip)
        layers, has_norm = self._keras.layers, self._options.normalization == "batch"
        initial = self._initial(functools.partial(self._scaled, 2.0 if has_norm else variance))
        out = layers.Conv2D(filters, size, padding="same", use_bias=not has_norm, name=name, **initial)(tensor)
        if has_norm:
            out = layers.BatchNormalization(name=f"{name}_norm")(out)
        if skip is not None:
            out = layers.Add(name=f"{name}_skip")([out, skip])
        return self._activated(out, name)

    def _scaled(self, variance: float, seed: int) -> Any:
        # Weights of this variance, divided by the inputs of a filter.
        initializers = self._keras.initializers
        return initializers.VarianceScaling(variance, seed=seed) if variance else initializers.Zeros()

    def _initial(self, initializer: Any) -> dict[str, Any]:
        seed = int(self._seeds.spawn(1)[0].generate_state(1)[0])
        regularizer = self._keras.regularizers.L2(self._options.l2)
        return {"kernel_initializer": initializer(seed), "kernel_regularizer": regularizer}

    def _activated(self, tensor: Any, name: str) -> Any:
        if self._options.activation == "leaky_relu":
            return self._keras.layers.LeakyReLU(LEAKY_SLOPE, name=f"{name}_leaky")(tensor)
        if self._options.activation == "silu":
            return self._keras.layers.Activation("silu", name=f"{name}_silu")(tensor)
        return self._keras.layers.ReLU(name=f"{name}_relu")(tensor)


def multiply_adds(model: Any) -> int:
    """Return the multiply-adds of the network's convolutions and dense layers for one position."""
    total = 0
    for layer in model.layers:
        kernel = getattr(layer, "kernel", None)
        if kernel is not None:
            total += math.prod(kernel.shape) * math.prod(layer.output.shape[1:-1])
    return total
