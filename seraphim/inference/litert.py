"""Runs a model by LiteRT: a call takes microseconds, so it is the fastest for small networks and few positions.

Computes in float32. Reads the file that `seraphim.network.saved_model` writes into a snapshot for it.
"""

import functools
from collections import OrderedDict
from importlib import metadata
from pathlib import Path
from typing import Any

from seraphim.errors import ModelError, SettingsError
from seraphim.game import Array, Game
from seraphim.inference.interface import Shapes, check_fit, damaged_snapshot, in_buckets
from seraphim.machine import processor_name
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
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as error:
            raise SettingsError(
                f"the runtime litert needs the package {PACKAGE}: pip install {PACKAGE}, or choose another runtime"
            ) from error
        file = snapshot / saved_model.LITERT
        if not file.is_file():
            raise ModelError(
                f"{snapshot} holds no {saved_model.LITERT}, which LiteRT runs: choose another runtime, or retrain"
            )
        content = file.read_bytes()  # the file may be gone when an interpreter for another batch size is needed
        self._new = functools.partial(Interpreter, model_content=content, num_threads=threads)
        self._most = max(1, MOST_BYTES // max(1, len(content)))
        self._interpreters: OrderedDict[int, Any] = OrderedDict()
        self._observation_shape = tuple(game.observation_shape)
        try:
            signature = self._new().get_signature_runner(saved_model.SIGNATURE)
            inputs, outputs = signature.get_input_details(), signature.get_output_details()
            check_fit(snapshot, game, _shapes(inputs), _shapes(outputs))
            self._observation, self._policy, self._value = (
                details["index"] for details in (inputs["observation"], outputs["policy"], outputs["value"])
            )
            with without_native_log(_NATIVE_LOG):  # the first one of a process logs how it computes
                self._interpreter(1).invoke()
        except (ValueError, RuntimeError) as error:
            raise damaged_snapshot(snapshot, str(saved_model.LITERT)) from error
        self.name = str(snapshot)
        self.description = f"{TITLE} {metadata.version(PACKAGE)} in float32 on {processor_name()}"

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""

        def infer_bucket(padded: Array) -> tuple[Array, Array]:
            interpreter = self._interpreter(len(padded))
            interpreter.set_tensor(self._observation, padded)
            interpreter.invoke()
            return interpreter.get_tensor(self._policy), interpreter.get_tensor(self._value)

        return in_buckets(observations, infer_bucket)

    def _interpreter(self, size: int) -> Any:
        # The interpreter for batches of this size; a new one replaces the least recently used.
        interpreter = self._interpreters.pop(size, None)
        if interpreter is None:
            if len(self._interpreters) >= self._most:
                self._interpreters.popitem(last=False)
            interpreter = self._new()
            interpreter.resize_tensor_input(self._observation, [size, *self._observation_shape])
            interpreter.allocate_tensors()
        self._interpreters[size] = interpreter
        return interpreter


def _shapes(details: dict[str, dict[str, Any]]) -> Shapes:
    return {name: tuple(int(length) for length in each["shape_signature"][1:]) for name, each in details.items()}
