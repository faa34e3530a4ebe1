"""Runs a SavedModel by TensorFlow: on a GPU, or for comparison."""

from importlib.util import find_spec
from pathlib import Path

from seraphim import networks, saving
from seraphim.game import Array, Game
from seraphim.inference.interface import check_fit, damaged, in_buckets

TITLE = "TensorFlow"


class TensorFlowModel:
    """See `Inference`."""

    def __init__(self, snapshot: Path, game: Game) -> None:
        """Load; raise a ModelError where that fails, or where the model does not fit the game."""
        tensorflow = networks.tensorflow()
        # The loaded object owns the variables: it has to live as long as the signature.
        self._model = saving.load_saved_model(snapshot)
        try:
            self._signature = self._model.signatures[saving.SIGNATURE]
        except KeyError as error:
            raise damaged(snapshot) from error
        inputs = {name: tuple(spec.shape)[1:] for name, spec in self._signature.structured_input_signature[1].items()}
        outputs = {name: tuple(spec.shape)[1:] for name, spec in self._signature.structured_outputs.items()}
        check_fit(snapshot, game, inputs, outputs)
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
            outputs = self._signature(observation=self._constant(padded))
            return outputs["policy"].numpy(), outputs["value"].numpy()

        return in_buckets(observations, infer_bucket)


def gpu_is_likely() -> bool:
    """Return whether there is a device that TensorFlow may be able to use; asking itself takes seconds."""
    return Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()


def sees_gpu() -> bool:
    """Return whether TensorFlow is installed and can use a GPU."""
    return find_spec("tensorflow") is not None and bool(networks.tensorflow().config.list_physical_devices("GPU"))
