"""Networks so small that they are built in no time."""

from typing import Any

import numpy as np
import pytest

from seraphim.game import Array
from seraphim.options import NetworkOptions
from tictactoe.game import GAME

MLP = NetworkOptions("mlp", depth=2, width=16, value_width=8)
RESNET = NetworkOptions("resnet", blocks=2, filters=8, value_width=8)
# Everything about a resnet that can be other than usual.
OTHER = NetworkOptions(
    "resnet",
    blocks=1,
    filters=5,
    kernel_size=4,
    normalization="batch",
    policy_filters=2,
    value_filters=1,
    activation="leaky_relu",
)
KINDS = pytest.mark.parametrize("options", [MLP, RESNET], ids=["mlp", "resnet"])


def observations(count: int, seed: int = 0) -> Array:
    shape = (count, *GAME.observation_shape)
    return np.random.default_rng(seed).integers(0, 2, shape).astype(np.uint8)


def evaluate(model: Any, batch: Array) -> tuple[Array, Array]:
    outputs = model(batch, training=False)
    return outputs["policy"].numpy(), outputs["value"].numpy()[:, 0]
