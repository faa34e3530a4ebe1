"""Runs a network by TensorFlow, on a GPU or for comparison, or loads it to be trained.

On a GPU, XLA compiles the network for batches of few sizes; on the processor TensorFlow computes it in float32.

A SavedModel is a program for TensorFlow, which can write files, and no examination of it is reliable. OpenVINO
translates the operations that it knows into arithmetic, and runs nothing else. So TensorFlow gets the network from the
Keras archive, whose layers are checked, and OpenVINO says whether the SavedModel is the same network.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from seraphim.errors import ModelError
from seraphim.game import Array, Game
from seraphim.inference.interface import (
    FIXED_SIZES,
    LARGEST_BATCH,
    Precision,
    bucket_size,
    check_fit,
    check_process,
    fixed_size,
    in_buckets,
)
from seraphim.inference.openvino import OpenVinoModel
from seraphim.network import architectures, saved_model

TITLE = "TensorFlow"

TOLERANCE = 1e-2
"""How far outputs of the archive and the SavedModel may differ, absolutely and relatively; rounding makes some 1e-5."""

_NUM_OBSERVATIONS = 64  # that the two are compared on


class TensorFlowModel:
    """See `Inference`."""

    def __init__(self, snapshot: Path, game: Game, compiled: Precision | None = None, trust: bool = False) -> None:
        """Load the model; raise the errors of `load_module`, or a ModelError if it does not fit the game.

        With `compiled` XLA compiles the network in this precision; a SavedModel that is trusted is run as it is.
        """
        tensorflow = architectures.tensorflow()
        if not (snapshot / saved_model.ARCHIVE).is_file():
            compiled = None
        # The module owns the variables: it has to live as long as the function.
        if compiled:
            self._module = saved_model.to_module(load_network(snapshot, game), compiled=compiled)
        else:
            self._module = load_module(snapshot, game, trust=trust)
        self._serve = self._module.serve.get_concrete_function()
        (observation,) = self._serve.structured_input_signature[0]
        outputs = {name: tuple(spec.shape)[1:] for name, spec in self._serve.structured_outputs.items()}
        check_fit(snapshot, game, {"observation": tuple(observation.shape)[1:]}, outputs)
        gpus = tensorflow.config.list_physical_devices("GPU")
        details = tensorflow.config.experimental.get_device_details(gpus[0]) if gpus else {}
        device = details.get("device_name", "GPU") if gpus else "the CPU"
        self.name = str(snapshot)
        self.overlaps = bool(gpus)
        self.description = f"{TITLE} {tensorflow.__version__} in {compiled or 'float32'} on {device}"
        self._constant = tensorflow.constant
        self._process = os.getpid()
        self._sizes = (fixed_size, FIXED_SIZES[-1]) if compiled else (bucket_size, LARGEST_BATCH)

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""
        check_process(self._process)

        def infer_bucket(padded: Array) -> tuple[Array, Array]:
            outputs = self._serve(self._constant(padded))
            return outputs["policy"].numpy(), outputs["value"].numpy()

        return in_buckets(observations, infer_bucket, *self._sizes)


def load_module(snapshot: Path, game: Game, batch: int | None = None, trust: bool = False) -> Any:
    """Return a snapshot's network as a module for TensorFlow; see `seraphim.network.saved_model.to_module`.

    Args:
        snapshot: the directory.
        game: the game that the network has to fit.
        batch: how many positions the module takes at a time; any number, if None.
        trust: where there is no Keras archive, let TensorFlow load the SavedModel as it is.

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


def load_network(snapshot: Path, game: Game) -> Any:
    """Return the Keras model of a snapshot's archive, after comparing it with the SavedModel.

    Raises:
        ModelError: the archive is missing, damaged, of layers that Seraphim does not use, or for another game; or the
            SavedModel is another network.
    """
    model = saved_model.load_model(snapshot)
    inputs = {tensor.name: tuple(tensor.shape[1:]) for tensor in model.inputs}
    outputs = model.output if isinstance(model.output, dict) else {}
    check_fit(snapshot, game, inputs, {name: tuple(tensor.shape[1:]) for name, tensor in outputs.items()})
    observations = np.random.default_rng(0).integers(0, 2, (_NUM_OBSERVATIONS, *game.observation_shape), np.uint8)
    served = OpenVinoModel(snapshot, game, "float32", threads=1).infer(observations)
    found = model(observations, training=False)
    pairs = zip(served, (found["policy"].numpy(), found["value"].numpy().reshape(served[1].shape)), strict=True)
    if not all(a.shape == b.shape and np.allclose(a, b, TOLERANCE, TOLERANCE, equal_nan=True) for a, b in pairs):
        raise ModelError(
            f"the SavedModel and {saved_model.ARCHIVE} in {snapshot} are different networks: promote "
            "another snapshot, or retrain"
        )
    return model


def gpu_is_likely() -> bool:
    """Return whether there is a device that TensorFlow may be able to use; asking TensorFlow takes seconds."""
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return (Path("/dev/nvidiactl").exists() and not is_hidden) or Path("/dev/kfd").exists()


def sees_gpu() -> bool:
    """Return whether TensorFlow is installed and can use a GPU."""
    return gpu_is_likely() and find_spec("tensorflow") is not None and architectures.sees_gpu()
