"""Runs a model by TensorFlow: on a GPU, or for comparison."""

import os
from importlib.util import find_spec
from pathlib import Path

from seraphim.game import Array, Game
from seraphim.inference.archive import load_module
from seraphim.inference.interface import check_fit, in_buckets
from seraphim.network import architectures

TITLE = "TensorFlow"


class TensorFlowModel:
    """See `Inference`."""

    def __init__(self, snapshot: Path, game: Game, trust: bool = False) -> None:
        """Load; raise a ModelError where that fails, or where the model does not fit the game.

        With `trust`, a SavedModel without a Keras archive is run as it is.
        """
        tensorflow = architectures.tensorflow()
        # The module owns the variables: it has to live as long as the function.
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
        self.description = f"{TITLE} {tensorflow.__version__} in float32 on {device}"
        self._constant = tensorflow.constant

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""

        def infer_bucket(padded: Array) -> tuple[Array, Array]:
            outputs = self._serve(self._constant(padded))
            return outputs["policy"].numpy(), outputs["value"].numpy()

        return in_buckets(observations, infer_bucket)


def gpu_is_likely() -> bool:
    """Return whether there is a device that TensorFlow may be able to use; asking itself takes seconds."""
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return (Path("/dev/nvidiactl").exists() and not is_hidden) or Path("/dev/kfd").exists()


def sees_gpu() -> bool:
    """Return whether TensorFlow is installed and can use a GPU."""
    return (
        gpu_is_likely()
        and find_spec("tensorflow") is not None
        and bool(architectures.tensorflow().config.list_physical_devices("GPU"))
    )
