"""A snapshot's network as TensorFlow may run and train it: built from the Keras archive, not from the SavedModel.

A SavedModel is a program for TensorFlow, which can write files, and no examination of it is worth relying on. OpenVINO
translates what it knows into arithmetic, and runs nothing else. So TensorFlow gets the network from the archive, whose
layers are checked, and OpenVINO says whether that is the network that the SavedModel serves.
"""

from pathlib import Path
from typing import Any

import numpy as np

from seraphim.errors import ModelError
from seraphim.game import Game
from seraphim.inference.interface import check_fit
from seraphim.inference.openvino import OpenVinoModel
from seraphim.network import saved_model

TOLERANCE = 1e-2
"""The most by which an output may differ, absolutely and in proportion; rounding makes some 1e-5 of it."""

_NUM_OBSERVATIONS = 64


def load_network(snapshot: Path, game: Game) -> Any:
    """Return the Keras model of a snapshot's archive, which was compared with the SavedModel.

    Raises:
        ModelError: the archive is missing, damaged, made of other layers than Seraphim's, or for another game; or the
            SavedModel is another network.
    """
    model = saved_model.load_model(snapshot)
    inputs = {tensor.name: tuple(tensor.shape[1:]) for tensor in model.inputs}
    outputs = model.output if isinstance(model.output, dict) else {}
    check_fit(snapshot, game, inputs, {name: tuple(tensor.shape[1:]) for name, tensor in outputs.items()})
    observations = np.random.default_rng(0).integers(0, 2, (_NUM_OBSERVATIONS, *game.observation_shape), np.uint8)
    served = OpenVinoModel(snapshot, game, "float32", threads=1).infer(observations)
    found = model(observations, training=False)
    pairs = zip(served, (found["policy"].numpy(), found["value"].numpy().reshape(-1)), strict=True)
    if not all(
        one.shape == other.shape and np.allclose(one, other, TOLERANCE, TOLERANCE, equal_nan=True)
        for one, other in pairs
    ):
        raise ModelError(
            f"the SavedModel and {saved_model.ARCHIVE} in {snapshot} are different networks: promote "
            "another snapshot, or retrain"
        )
    return model


def load_module(snapshot: Path, game: Game, batch: int | None = None, trust: bool = False) -> Any:
    """Return a snapshot's network as a module for TensorFlow; see `seraphim.network.saved_model.to_module`.

    Args:
        snapshot: the directory.
        game: what the network has to fit.
        batch: how many positions the module takes at a time; any number, if None.
        trust: where there is no archive, let TensorFlow load the SavedModel as it is.

    Raises:
        ModelError: see `load_network`; or there is no archive, and the SavedModel is not trusted, or damaged.
    """
    if (snapshot / saved_model.ARCHIVE).is_file():
        return saved_model.to_module(load_network(snapshot, game), batch)
    if not trust:
        raise ModelError(
            f"TensorFlow cannot run {snapshot}, because {saved_model.ARCHIVE} is missing, and a SavedModel may be any "
            "program: choose another runtime; or, if you trust its maker and it is not for self-play, add --trust"
        )
    return saved_model.load_saved_model(snapshot, batch)
