"""Dual-head Keras networks: observations in, the policy's logits and the value for the player to move out.

Knows shapes, not rules, and nothing of training. TensorFlow is imported when `tensorflow()` is first called.
"""

import contextlib
import functools
import logging
import math
import os
import threading
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Game
from seraphim.network.native_log import without_native_log
from seraphim.options import NetworkOptions

LEAKY_SLOPE = 0.3  # of a leaky ReLU below 0; Keras's default until version 3
# A line of the log of TensorFlow's C++ code, such as "I0000 00:00:1795220414.442667    3993 port.cc:153] oneDNN ...".
_NATIVE_LOG = rb"[IWEF]\d{4} .*\]|WARNING: All log messages before absl"
_STARTING = threading.Lock()

BATCH_NORM_MOMENTUM = 0.9  # the averages follow the weights within tens of steps, so a new network works well too


def tensorflow() -> ModuleType:
    """Return TensorFlow, imported at the first call (some seconds) without its log messages.

    A GPU's memory is taken as it is needed, so that processes can share one. Any thread may call this; but start no
    process during the first call, because it would inherit a redirected standard error.
    """
    with _STARTING:
        return _start()


@functools.cache
def _start() -> ModuleType:
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors only
    with without_native_log(_NATIVE_LOG):
        try:
            import tensorflow as tf
        except ModuleNotFoundError as error:
            raise SettingsError(
                "TensorFlow is not installed: pip install -e '.[train]', or leave --runtime=tensorflow out"
            ) from error

        for gpu in tf.config.list_physical_devices("GPU"):
            with contextlib.suppress(RuntimeError):  # in use already
                tf.config.experimental.set_memory_growth(gpu, True)
    # Its Python code logs each file that it saves, and resets the loggers' levels: hence a filter.
    for name in ("absl", "tensorflow"):
        logging.getLogger(name).addFilter(
            lambda record: record.levelno >= logging.WARNING or "tensorflow" not in record.pathname
        )
    return tf


def build(game: Game, options: NetworkOptions, seed: int) -> Any:
    """Return a Keras model with random weights; the same seed gives the same weights.

    It maps `observation` uint8 [B, *O] to `policy`, logits float32 [B, A], and `value` float32 [B, 1] in [-1, 1]
    for the player to move. Observations are small counts, mostly planes of 0 and 1, so they are not scaled.

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
        "value": builder.output(value, 1, "value", "tanh"),
    }
    return keras.Model(observation, outputs, name="network")


@functools.cache
def normalization() -> Any:
    """Return Keras's batch normalization, but trained by one fused operation, which is faster.

    Keras uses a dozen operations, each a pass over the memory; inference is unchanged. Call this before loading an
    archive: it registers the class, which Keras finds by its name.
    """
    tf = tensorflow()
    import keras

    @keras.saving.register_keras_serializable("seraphim")
    class FusedBatchNormalization(keras.layers.BatchNormalization):  # type: ignore[misc]
        def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
            if not training:
                return super().call(inputs, training=False, mask=mask)
            scale, offset, nothing = tf.convert_to_tensor(self.gamma), tf.convert_to_tensor(self.beta), tf.zeros([0])
            outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
                x=inputs, scale=scale, offset=offset, mean=nothing, variance=nothing, epsilon=self.epsilon
            )
            for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
                average.assign(self.momentum * average + (1 - self.momentum) * value)
            return outputs

    return FusedBatchNormalization


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
        hidden = self._conv(planes, options.filters, options.kernel_size, "stem")
        for number in range(options.blocks):
            inner = self._conv(hidden, options.filters, options.kernel_size, f"block_{number}_a")
            hidden = self._conv(inner, options.filters, options.kernel_size, f"block_{number}_b", skip=hidden)
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

    def _conv(self, tensor: Any, filters: int, size: int, name: str, skip: Any = None) -> Any:
        # activation(batch norm(convolution) + skip)
        layers, initial = self._keras.layers, self._initial(self._keras.initializers.HeNormal)
        convolved = layers.Conv2D(filters, size, padding="same", use_bias=False, name=name, **initial)(tensor)
        normalized = normalization()(momentum=BATCH_NORM_MOMENTUM, name=f"{name}_norm")(convolved)
        if skip is not None:
            normalized = layers.Add(name=f"{name}_skip")([normalized, skip])
        return self._activated(normalized, name)

    def _initial(self, initializer: Any) -> dict[str, Any]:
        seed = int(self._seeds.spawn(1)[0].generate_state(1)[0])
        regularizer = self._keras.regularizers.L2(self._options.l2)
        return {"kernel_initializer": initializer(seed), "kernel_regularizer": regularizer}

    def _activated(self, tensor: Any, name: str) -> Any:
        if self._options.activation == "leaky_relu":
            return self._keras.layers.LeakyReLU(LEAKY_SLOPE, name=f"{name}_leaky")(tensor)
        return self._keras.layers.ReLU(name=f"{name}_relu")(tensor)


def recompute_batch_norm(model: Any, observations: Iterable[Any]) -> None:
    """Recompute the means and variances of batch normalization on some batches of observations, uint8 [B, *O] each.

    The averages that training keeps lag behind the weights, and bias the values of the network by up to tenths. So they
    are computed again for the final weights (Wu and Johnson 2021, "Rethinking 'Batch' in BatchNorm", section 3).
    """
    tf = tensorflow()
    import keras

    layers = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    if not layers:
        return
    statistics = [statistic for layer in layers for statistic in (layer.moving_mean, layer.moving_variance)]
    sums, count = [np.zeros(statistic.shape) for statistic in statistics], 0
    momentums = [layer.momentum for layer in layers]
    if not hasattr(model, "forward"):  # compiled once
        model.forward = tf.function(lambda batch: model(batch, training=True), autograph=False)
    try:
        for layer in layers:
            layer.momentum = 0.0  # keeps the statistics of the last batch alone
        for batch in observations:
            model.forward(batch)
            sums, count = [total + np.array(one) for total, one in zip(sums, statistics, strict=True)], count + 1
    finally:
        for layer, momentum in zip(layers, momentums, strict=True):
            layer.momentum = momentum
    for statistic, total in zip(statistics, sums, strict=True):
        statistic.assign(total / count)


def multiply_adds(model: Any) -> int:
    """Return the multiply-adds of the network's convolutions and dense layers for one position."""
    total = 0
    for layer in model.layers:
        kernel = getattr(layer, "kernel", None)
        if kernel is not None:
            total += math.prod(kernel.shape) * math.prod(layer.output.shape[1:-1])
    return total
