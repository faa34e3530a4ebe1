"""How a network is saved as a snapshot, and loaded again: to be trained on, or as the SavedModel that it serves as.

A snapshot is a folder that anybody's TensorFlow loads as a SavedModel; what only we need lies in its `assets.extra`.
"""

import errno
import os
from pathlib import Path
from typing import Any

from seraphim import networks, vetting
from seraphim.errors import ModelError
from seraphim.game import Game

ARCHIVE = Path("assets.extra/model.keras")
"""Where a snapshot keeps its Keras archive; `assets.extra` is what a SavedModel leaves to its owner."""

LITERT = Path("assets.extra/model.tflite")
"""Where a snapshot keeps the same network as LiteRT runs it."""

SIGNATURE = "serving_default"

# What TensorFlow's error codes RESOURCE_EXHAUSTED and PERMISSION_DENIED mean where files are written.
_ERROR_NUMBERS = {8: errno.ENOSPC, 7: errno.EACCES}


def save_snapshot(model: Any, path: Path) -> None:
    """Write a model into the folder `path`: a SavedModel that serves, the same for LiteRT, and what is trained on.

    The signature `serving_default` of both maps `observation` uint8 [N, *O] to `policy` float32 [N, A] (logits) and
    `value` float32 [N]; it needs no code of ours. The Keras archive holds the weights, the optimizer's state and the
    step.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    tf = networks.tensorflow()

    def serve(observation: Any) -> dict[str, Any]:
        outputs = model(observation, training=False)
        return {"policy": outputs["policy"], "value": tf.reshape(outputs["value"], [-1])}

    # The module holds the weights and nothing else, so that neither the optimizer nor Keras's own graphs are saved.
    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]
    observation = tf.TensorSpec([None, *model.input_shape[1:]], tf.uint8, name="observation")
    module.serve = tf.function(serve, input_signature=[observation], autograph=False)
    try:
        tf.saved_model.save(module, str(path), signatures={SIGNATURE: module.serve})
    except tf.errors.OpError as error:
        number = _ERROR_NUMBERS.get(error.error_code, errno.EIO)
        raise OSError(number, os.strerror(number), str(path)) from error
    archive = path / ARCHIVE
    archive.parent.mkdir(exist_ok=True)
    model.save(archive)
    # Whoever plays has no TensorFlow to convert with, so this is done here, though it takes some tenths of a second.
    converter = tf.lite.TFLiteConverter.from_saved_model(str(path), signature_keys=[SIGNATURE])
    (path / LITERT).write_bytes(converter.convert())


def load_saved_model(path: Path) -> Any:
    """Return the SavedModel of a snapshot as TensorFlow loads it, which runs what it holds.

    Raises:
        ModelError: it is damaged, or holds something else than a network.
    """
    vetting.check_saved_model(path)
    tf = networks.tensorflow()
    try:
        return tf.saved_model.load(str(path))
    except (OSError, KeyError, ValueError, tf.errors.OpError) as error:
        raise ModelError(f"the SavedModel in {path} is damaged: promote another snapshot, or retrain") from error


def load_model(path: Path) -> Any:
    """Return the Keras model of a snapshot: compiled, if it was, with its optimizer and the optimizer's `iterations`.

    Raises:
        ModelError: the snapshot has no Keras archive, or a damaged one.
    """
    archive = path / ARCHIVE
    cure = "point the champion at another snapshot, or start a new model with --init"
    if not archive.is_file():
        raise ModelError(f"{path} cannot be trained, because {ARCHIVE} is missing: {cure}")
    vetting.check_archive(archive)
    networks.normalization()  # which Keras finds by its name from now on
    import keras

    try:
        return keras.models.load_model(archive, safe_mode=True)
    except MemoryError:
        raise
    except Exception as error:  # zip, HDF5 and JSON each have their own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{archive} is damaged ({reason}): {cure}") from error


def check_fit(model: Any, game: Game, path: Path) -> None:
    """Check that a Keras model, which was loaded from `path`, has the shapes of a game.

    Raises:
        ModelError: it has not.
    """
    shapes = model.input_shape[1:], model.output["policy"].shape[1]
    expected = tuple(game.observation_shape), game.num_actions
    if shapes != expected:
        raise ModelError(
            f"{path} takes observations of shape {shapes[0]} and has {shapes[1]} actions, but {game.name} has "
            f"{expected[0]} and {expected[1]}: was it trained for another game?"
        )
