"""Saves a network as a snapshot, and loads it again.

A snapshot is a folder that any TensorFlow loads as a SavedModel; what only Seraphim needs lies in its `assets.extra`.
"""

import contextlib
import errno
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from seraphim.errors import ModelError
from seraphim.machine import no_root_handler
from seraphim.network import architectures, safety
from seraphim.network.archive import open_weights
from seraphim.network.muon import muon

ARCHIVE = Path("assets.extra/model.keras")
"""Where a snapshot keeps its Keras archive; a SavedModel leaves `assets.extra` to its owner."""

LITERT = Path("assets.extra/model.tflite")
"""Where a snapshot keeps the same network for LiteRT."""

SIGNATURE = "serving_default"

_NUM_TRIED = 64  # positions

# What TensorFlow's error codes RESOURCE_EXHAUSTED and PERMISSION_DENIED mean where files are written.
_ERROR_NUMBERS = {8: errno.ENOSPC, 7: errno.EACCES}


@architectures.standard_keras()
@no_root_handler()
def save_snapshot(model: Any, path: Path) -> None:
    """Write a model into the folder `path`: a SavedModel, the same for LiteRT, and a Keras archive for training.

    The signature `serving_default` of the first two maps `observation` uint8 [N, *O] to `policy` float32 [N, A]
    (logits) and `value` float32 [N], or with more than two players [N, V]. The archive holds the weights, the
    optimizer's state and the step.

    Raises:
        ModelError: a weight, a number of the optimizer's, or an output is a NaN or an infinity.
        OSError: the folder cannot be written, or the disk is full.
    """
    tf = architectures.tensorflow()
    module = to_module(model)
    for name, tensor in _numbers(model, module):
        if not np.isfinite(tensor.numpy()).all():
            raise ModelError(
                f"training diverged: {name} has a NaN or an infinity; no snapshot was published: lower learning_rate"
            )
    try:
        tf.saved_model.save(module, str(path), signatures={SIGNATURE: module.serve})
    except tf.errors.OpError as error:
        number = _ERROR_NUMBERS.get(error.error_code, errno.EIO)
        raise OSError(number, os.strerror(number), str(path)) from error
    archive = path / ARCHIVE
    archive.parent.mkdir(exist_ok=True)
    model.save(archive)
    _remember_what_keras_skips()
    # A machine that only plays has no TensorFlow to convert with, so it is done here, in some tenths of a second.
    converter = tf.lite.TFLiteConverter.from_saved_model(str(path), signature_keys=[SIGNATURE])
    (path / LITERT).write_bytes(converter.convert())


def _numbers(model: Any, module: Any) -> Iterator[tuple[str, Any]]:
    # What is saved, and what it gives in positions of random bits: finite weights may be so large that outputs are not.
    for variable in (*model.weights, *(model.optimizer.variables if model.compiled else ())):
        yield variable.path, variable
    tf = architectures.tensorflow()
    observations = np.random.default_rng(0).integers(0, 2, (_NUM_TRIED, *model.input_shape[1:]), np.uint8)
    # The concrete function, as calls of a new `tf.function` for each snapshot make TensorFlow warn of retracing.
    for name, output in module.serve.get_concrete_function()(tf.constant(observations)).items():
        yield f"the network's {name}", output


def _remember_what_keras_skips() -> None:
    # Keras 3.15 caches the attributes of a class under another name than it looks for: each save would make an
    # optimizer to find them again, whose variables are never freed (70 KB).
    with contextlib.suppress(ImportError):
        from keras.src.backend.common import global_state

        for kind in ("Functional", "Layer", "Loss", "Metric", "Operation", "Optimizer"):
            known = global_state.get_global_attribute(f"saving_attr_skipset_{kind}")
            if known is not None:
                global_state.set_global_attribute(f"saving_attr_skiplist_{kind}", known)


def to_module(model: Any, batch: int | None = None, compiled: str | None = None) -> Any:
    """Return a module whose function `serve` has the signature `serving_default`, for `batch` positions or any number.

    It is what is saved of the Keras model, and run; with `compiled`, only run: XLA compiles it in this precision, anew
    for each number of positions.
    """
    tf = architectures.tensorflow()
    is_rounded = compiled == "bfloat16"

    def serve(observation: Any) -> dict[str, Any]:
        with architectures.computed_in_bfloat16(model) if is_rounded else contextlib.nullcontext():
            outputs = model(observation, training=False)
        value = outputs["value"]
        return {"policy": outputs["policy"], "value": tf.reshape(value, [-1]) if value.shape[1] == 1 else value}

    # The module holds the weights and nothing else, so that neither the optimizer nor Keras's own graphs are saved.
    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]
    observation = tf.TensorSpec([batch, *model.input_shape[1:]], tf.uint8, name="observation")
    module.serve = tf.function(
        serve, input_signature=[observation], autograph=False, jit_compile=True if compiled else None
    )
    return module


@no_root_handler()
def load_saved_model(path: Path, batch: int | None = None) -> Any:
    """Return the SavedModel of a snapshot as a module like that of `to_module`.

    It may run any operation of TensorFlow, such as those that write files: only for a SavedModel that is trusted.

    Raises:
        ModelError: it is damaged.
    """
    tf = architectures.tensorflow()
    module = tf.Module()
    try:
        module.loaded = tf.saved_model.load(str(path))
        signature = module.loaded.signatures[SIGNATURE]
        observation = signature.structured_input_signature[1]["observation"]
    except (OSError, KeyError, ValueError, tf.errors.OpError) as error:
        raise ModelError(f"the SavedModel in {path} is damaged: promote another snapshot, or retrain") from error
    spec = tf.TensorSpec([batch, *observation.shape[1:]], tf.uint8, name="observation")
    module.serve = tf.function(lambda observation: signature(observation=observation), input_signature=[spec])
    return module


@architectures.standard_keras()
def load_model(path: Path) -> Any:
    """Return the Keras model of a snapshot: compiled, if it was, with its optimizer and the optimizer's `iterations`.

    Raises:
        ModelError: the snapshot has no Keras archive, or a damaged one, or `safety` refuses it.
    """
    file = path / ARCHIVE
    if not file.is_file():
        raise ModelError(
            f"{path} cannot be trained, because {ARCHIVE} is missing: point the champion at another snapshot, or "
            "start a new model with seraphim train --init"
        )
    config = safety.check_archive(file)
    muon()  # registers the class
    import keras

    try:
        _check_size(config, safety.bytes_of_weights(file))
        open_weights(file)
        return keras.models.load_model(file, safe_mode=True)
    except MemoryError:
        raise
    except Exception as error:  # zip, HDF5 and JSON each have their own
        raise safety.damaged_archive(file, error) from error


def _check_size(config: dict[str, Any], stored: int) -> None:
    # Keras would allocate all weights that a configuration asks for before it checks that the file has them.
    import keras

    network = {key: value for key, value in config.items() if key != "compile_config"}
    with keras.StatelessScope(initialize_variables=False):  # so that no memory is taken
        model = keras.saving.deserialize_keras_object(network, safe_mode=True)
    needed = sum(math.prod(weight.shape) * np.dtype(weight.dtype).itemsize for weight in model.weights)
    if needed > stored:
        raise ValueError(f"its network has {needed:,} bytes of weights, but only {stored:,} are stored")
