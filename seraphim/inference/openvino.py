"""Runs a SavedModel by OpenVINO, without TensorFlow: the fastest on a processor, in large batches."""

import os
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from seraphim.game import Array, Game
from seraphim.inference.interface import Precision, Signature, bucket_size, check_fit, damaged_snapshot, in_buckets

PACKAGE = "openvino"
TITLE = "OpenVINO"

_FEW = 16
_PRODUCTS = ((512, 256, 20), (1024, 512, 10), (1024, 1024, 10))  # rows, columns, and length of the chain
_HINTS = {"f32": "float32", "bf16": "bfloat16"}

_CORES: dict[int, Any] = {}  # by process, as none survives a fork
_MAKING = threading.Lock()


class OpenVinoModel:
    """See `Inference`."""

    overlaps = False

    def __init__(self, snapshot: Path, game: Game, precision: Precision, threads: int) -> None:
        """Load the model; raise a ModelError if that fails, or if it does not fit the game."""
        openvino, core = _openvino(), _core()
        try:
            model = core.read_model(snapshot)
            inputs = {port.any_name: tuple(port.partial_shape)[1:] for port in model.inputs}
            outputs = {name: tuple(port.partial_shape)[1:] for port in model.outputs for name in port.names}
            check_fit(snapshot, game, _lengths(inputs), _lengths(outputs))
            compiled = core.compile_model(model, "CPU", _configuration(precision, threads))
        except RuntimeError as error:
            raise damaged_snapshot(snapshot) from error
        self.name = str(snapshot)
        used = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        version = openvino.__version__.split("-")[0]
        self.description = (
            f"{TITLE} {version} in {_HINTS.get(used, used)} on {core.get_property('CPU', 'FULL_DEVICE_NAME')}"
        )
        # Fills a table of OpenVINO 2026.4.1 on which the first batches of two threads would deadlock.
        openvino.Type.f32.to_dtype()
        self._request = compiled.create_infer_request()
        self._policy = compiled.output("policy")
        self._value = compiled.output("value")
        self._size = 0  # of the last batch
        self._lock = threading.Lock()  # the request holds the inputs and outputs of one call

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""

        def infer_bucket(padded: Array) -> tuple[Array, Array]:
            self._size = len(padded)
            outputs = self._request.infer({0: padded}, share_inputs=True, share_outputs=True)
            return outputs[self._policy], outputs[self._value]

        with self._lock:
            return in_buckets(observations, infer_bucket, self._size_for)

    def _size_for(self, count: int) -> int:
        # A change of the batch size takes as long as ten positions: small batches are padded to the last size.
        size = bucket_size(count)
        return self._size if size <= self._size <= min(2 * size, _FEW) else size


def matrix_product_rate(precision: Precision, threads: int, seconds: float) -> float:
    """Return the multiply-adds/s of matrix products on this machine, a bound for networks of this precision.

    It is that of the fastest call among chains of products of several sizes.
    """
    openvino = _openvino()
    opset13, fastest = openvino.opset13, 0.0
    for rows, width, length in _PRODUCTS:
        inputs = opset13.parameter([rows, width], np.float32)
        product = inputs
        for number in range(length):
            weights = np.random.default_rng(number).normal(size=(width, width)).astype(np.float32)
            product = opset13.relu(opset13.matmul(product, opset13.constant(weights), False, False))
        model = openvino.Model([product], [inputs])
        request = _core().compile_model(model, "CPU", _configuration(precision, threads)).create_infer_request()
        request.infer({0: np.ones((rows, width), np.float32)})
        end = time.perf_counter() + seconds / len(_PRODUCTS)
        while (start := time.perf_counter()) < end:
            request.infer()
            fastest = max(fastest, length * rows * width**2 / (time.perf_counter() - start))
    return fastest


def _openvino() -> ModuleType:
    # Without its converter of models, which is not used: its import writes a number that identifies the user for
    # Intel's telemetry into the home folder, and fails where there is none. OpenVINO does not insist on it.
    converter = "openvino.tools.ovc"
    sys.modules.setdefault(converter, None)  # type: ignore[arg-type]  # then importing it fails
    try:
        import openvino
        import openvino.opset13
    finally:
        if sys.modules.get(converter, ...) is None:
            sys.modules.pop(converter, None)
    return openvino


def _core() -> Any:
    # The core of this process, never released. Each sets a stack for signal handlers. Where two are released in
    # the order in which they were made, OpenVINO 2026.4.1 restores one that is gone, and the next signal, such as that
    # of Ctrl-C, ends the process with a segmentation fault.
    with _MAKING:
        if os.getpid() not in _CORES:
            _CORES[os.getpid()] = _openvino().Core()
        return _CORES[os.getpid()]


def _configuration(precision: Precision, threads: int) -> dict[str, Any]:
    # A processor without bfloat16 would emulate it, and take 3 (convolutions) to 40 times (an mlp) as long.
    rounds = precision == "bfloat16" and "BF16" in _core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "bf16" if rounds else "f32",
        # Otherwise each process pins its thread to the same core, and two workers run at half speed.
        "ENABLE_CPU_PINNING": False,
    }


def _lengths(shapes: dict[str, tuple[Any, ...]]) -> Signature:
    return {name: tuple(length.get_length() for length in shape) for name, shape in shapes.items()}
