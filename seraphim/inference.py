"""A model as a function from observations to logits and values, whatever runs it.

Knows how to run a SavedModel by OpenVINO or by TensorFlow, and imports either only when asked to. Knows no search.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from seraphim.errors import ModelError
from seraphim.game import Array, Game

Runtime = Literal["auto", "openvino", "tensorflow"]
Precision = Literal["bfloat16", "float32"]

SIGNATURE = "serving_default"
LARGEST_BATCH = 1024


class Inference(Protocol):
    """What the search needs of a model."""

    name: str  # which model, for messages
    description: str  # what runs it, and on which device

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """Evaluate observations uint8 [N, *O].

        Returns:
            The policy's logits float32 [N, A], and the expected results for the player to move float32 [N] in [-1, 1].
        """


class Uniform:
    """Believes nothing: the same logit for every action, and a value of 0."""

    name = "uniform"
    description = "no network"

    def __init__(self, game: Game) -> None:
        self._num_actions = game.num_actions

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""
        return np.zeros((len(observations), self._num_actions), np.float32), np.zeros(len(observations), np.float32)


def load_inference(
    snapshot: Path, game: Game, runtime: Runtime = "auto", precision: Precision = "bfloat16", threads: int = 1
) -> Inference:
    """Load the SavedModel of a snapshot.

    Args:
        snapshot: the directory.
        game: what the model has to fit.
        runtime: `auto` is TensorFlow where it sees a GPU, and OpenVINO elsewhere.
        precision: of the arithmetic inside OpenVINO, on processors that have it; TensorFlow computes in float32.
        threads: processor threads of OpenVINO.

    Raises:
        ModelError: the SavedModel is missing or damaged, or was made for another game.
    """
    if not (snapshot / "saved_model.pb").is_file():
        raise ModelError(
            f"{snapshot} holds no SavedModel: retrain the model, or start it anew with train.py NAME --init"
        )
    if runtime == "tensorflow" or (runtime == "auto" and _gpu_is_likely() and _tensorflow_sees_gpu()):
        return _TensorFlowModel(snapshot, game)
    return _OpenVinoModel(snapshot, game, precision, threads)


class _OpenVinoModel:
    def __init__(self, snapshot: Path, game: Game, precision: Precision, threads: int) -> None:
        import openvino

        core = openvino.Core()
        try:
            model = core.read_model(snapshot)
            inputs = {port.any_name: tuple(port.partial_shape)[1:] for port in model.inputs}
            outputs = {name: tuple(port.partial_shape)[1:] for port in model.outputs for name in port.names}
            _check_fit(snapshot, game, _lengths(inputs), _lengths(outputs))
            hints = {"f32": "float32", "bf16": "bfloat16"}
            hint = next(key for key, name in hints.items() if name == precision)
            compiled = core.compile_model(
                model,
                "CPU",
                {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": hint},
            )
        except RuntimeError as error:
            raise _damaged(snapshot) from error
        self.name = str(snapshot)
        used = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        version = openvino.__version__.split("-")[0]
        self.description = (
            f"OpenVINO {version} in {hints.get(used, used)} on {core.get_property('CPU', 'FULL_DEVICE_NAME')}"
        )
        self._observation_shape = game.observation_shape
        self._request = compiled.create_infer_request()
        self._policy = compiled.output("policy")
        self._value = compiled.output("value")

    def infer(self, observations: Array) -> tuple[Array, Array]:
        def infer_bucket(padded: Array) -> tuple[Array, Array]:
            outputs = self._request.infer({0: padded}, share_inputs=True, share_outputs=True)
            return outputs[self._policy], outputs[self._value]

        return in_buckets(observations, infer_bucket)


class _TensorFlowModel:
    def __init__(self, snapshot: Path, game: Game) -> None:
        from seraphim import networks

        tensorflow = networks.tensorflow()
        try:
            # The loaded object owns the variables: it has to live as long as the signature.
            self._model = tensorflow.saved_model.load(str(snapshot))
            self._signature = self._model.signatures[SIGNATURE]
        except (OSError, KeyError, ValueError, tensorflow.errors.OpError) as error:
            raise _damaged(snapshot) from error
        inputs = {name: tuple(spec.shape)[1:] for name, spec in self._signature.structured_input_signature[1].items()}
        outputs = {name: tuple(spec.shape)[1:] for name, spec in self._signature.structured_outputs.items()}
        _check_fit(snapshot, game, inputs, outputs)
        gpus = tensorflow.config.list_physical_devices("GPU")
        details = tensorflow.config.experimental.get_device_details(gpus[0]) if gpus else {}
        device = details.get("device_name", "GPU") if gpus else "the CPU"
        self.name = str(snapshot)
        self.description = f"TensorFlow {tensorflow.__version__} in float32 on {device}"
        self._constant = tensorflow.constant

    def infer(self, observations: Array) -> tuple[Array, Array]:
        def infer_bucket(padded: Array) -> tuple[Array, Array]:
            outputs = self._signature(observation=self._constant(padded))
            return outputs["policy"].numpy(), outputs["value"].numpy()

        return in_buckets(observations, infer_bucket)


def bucket_size(count: int) -> int:
    """Return the batch size in which `count` >= 1 positions are evaluated: 1 to 8, then 10, 12, 14, 16, 20, ….

    Runtimes prepare themselves anew for each new batch size, which takes them milliseconds: there are only four sizes
    to an octave.
    """
    step = 1 << max(0, (count - 1).bit_length() - 3)
    return -(-count // step) * step


def in_buckets(observations: Array, infer_bucket: Callable[[Array], tuple[Array, Array]]) -> tuple[Array, Array]:
    """Evaluate observations [N, *O] by a function that takes bucket-sized batches; return arrays of their own."""
    parts = []
    for start in range(0, len(observations), LARGEST_BATCH):
        chunk = observations[start : start + LARGEST_BATCH]
        padded = np.zeros((bucket_size(len(chunk)), *observations.shape[1:]), np.uint8)
        padded[: len(chunk)] = chunk
        policies, values = infer_bucket(padded)
        # The runtime may use its output buffers again.
        parts.append((policies[: len(chunk)].copy(), values[: len(chunk)].copy()))
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _lengths(shapes: dict) -> dict:  # type: ignore[type-arg]
    return {name: tuple(length.get_length() for length in shape) for name, shape in shapes.items()}


def _check_fit(snapshot: Path, game: Game, inputs: dict, outputs: dict) -> None:  # type: ignore[type-arg]
    if set(inputs) != {"observation"} or not {"policy", "value"} <= set(outputs):
        raise ModelError(
            f"{snapshot} maps {sorted(inputs)} to {sorted(outputs)} but observation to policy and value is expected: "
            "is this a model of Seraphim?"
        )
    if outputs["policy"] != (game.num_actions,):
        raise ModelError(
            f"policy head of {snapshot} has {outputs['policy'][0]} outputs but {game.name} has {game.num_actions} "
            "actions: was this model trained for another game?"
        )
    if inputs["observation"] != tuple(game.observation_shape):
        raise ModelError(
            f"{snapshot} takes observations of shape {inputs['observation']} but {game.name} gives "
            f"{tuple(game.observation_shape)}: was this model trained for another game?"
        )


def _damaged(snapshot: Path) -> ModelError:
    return ModelError(f"the SavedModel in {snapshot} is damaged: promote another snapshot, or retrain")


def _gpu_is_likely() -> bool:
    # Importing TensorFlow takes seconds: ask it only where there is a device to see.
    return Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()


def _tensorflow_sees_gpu() -> bool:
    from seraphim import networks

    return bool(networks.tensorflow().config.list_physical_devices("GPU"))
