"""Runs a model by LiteRT: a call takes microseconds, so it is the fastest for small networks and few positions.

Computes in float32. Reads the file that `seraphim.network.saved_model` writes into a snapshot for it.
"""

import functools
import threading
from importlib import metadata
from pathlib import Path
from typing import Any

from seraphim.errors import ModelError
from seraphim.game import Array, Game
from seraphim.inference.interface import Signature, check_fit, damaged_snapshot, in_buckets
from seraphim.machine import needed, processor_name
from seraphim.network import saved_model
from seraphim.network.native_log import without_native_log

PACKAGE = "ai-edge-litert"
TITLE = "LiteRT"

MOST_BYTES = 64 << 20
"""Size of the weights of all interpreters of a model. Resizing one takes up to milliseconds, so each batch size has its
own interpreter, which holds its own copy of the weights, up to this size."""

_NATIVE_LOG = rb"INFO: Created TensorFlow Lite XNNPACK delegate"


class LiteRtModel:
    """See `Inference`."""

    overlaps = False

    def __init__(self, snapshot: Path, game: Game, threads: int) -> None:
        """Load the model; raise a ModelError if that fails, or if it does not fit the game."""
        what = f"the runtime litert needs the package {PACKAGE}: pip install {PACKAGE}, or choose another runtime"
        with needed(what, ImportError):
            from ai_edge_litert.interpreter import Interpreter
        file = snapshot / saved_model.LITERT
        if not file.is_file():
            raise ModelError(
                f"{snapshot} holds no {saved_model.LITERT}, which LiteRT runs: choose another runtime, or retrain"
            )
        content = file.read_bytes()  # the file may be gone when an interpreter for another batch size is needed
        new = functools.partial(Interpreter, model_content=content, num_threads=threads)
        observation_shape = tuple(game.observation_shape)

        def interpreter_for(size: int) -> Any:
            interpreter = new()
            interpreter.resize_tensor_input(observation, [size, *observation_shape])
            interpreter.allocate_tensors()
            return interpreter

        self._interpreter_for = functools.lru_cache(max(1, MOST_BYTES // max(1, len(content))))(interpreter_for)
        try:
            signature = new().get_signature_runner(saved_model.SIGNATURE)
            inputs, outputs = signature.get_input_details(), signature.get_output_details()
            check_fit(snapshot, game, _shapes(inputs), _shapes(outputs))
            observation = self._observation = inputs["observation"]["index"]
            self._policy, self._value = outputs["policy"]["index"], outputs["value"]["index"]
            with without_native_log(_NATIVE_LOG):  # the first one of a process logs how it computes
                self._interpreter_for(1).invoke()
        except (ValueError, RuntimeError) as error:
            raise damaged_snapshot(snapshot, str(saved_model.LITERT)) from error
        self._lock = threading.Lock()  # an interpreter holds the inputs and outputs of one call
        self.name = str(snapshot)
        self.description = f"{TITLE} {metadata.version(PACKAGE)} in float32 on {processor_name()}"

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""

        def infer_bucket(padded: Array) -> tuple[Array, Array]:
            interpreter = self._interpreter_for(len(padded))
            interpreter.set_tensor(self._observation, padded)
            interpreter.invoke()
            return interpreter.get_tensor(self._policy), interpreter.get_tensor(self._value)

        with self._lock:
            return in_buckets(observations, infer_bucket)


def _shapes(details: dict[str, dict[str, Any]]) -> Signature:
    return {name: tuple(int(length) for length in each["shape_signature"][1:]) for name, each in details.items()}
