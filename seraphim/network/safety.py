"""Checks the Keras archive of a model of unknown origin before it is loaded; imports and runs nothing of it.

An archive names classes that are instantiated when it is loaded. It may name only those that the models of Seraphim
use: a network with other layers needs them added to the lists here. A SavedModel is a program for TensorFlow, and is
not examined: see `seraphim.inference.tensorflow`.
"""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seraphim.errors import ModelError

WEIGHTS = "model.weights.h5"
"""The part of an archive that holds the weights, in HDF5."""

_CONFIG = "config.json"
_ENTRIES = {_CONFIG, "metadata.json", WEIGHTS}
_MOST_BYTES_OF_CONFIG = 4 << 20  # connect four has 50 KB, AlphaGo Zero's 39 blocks would have 0.4 MB

_MODEL = "keras.src.models.functional.Functional"
_KERAS_MODULES = {
    f"keras.{module}" for module in ("initializers", "losses", "optimizers", "optimizers.schedules", "regularizers")
}
_KERAS_LAYERS = (
    "Activation Add AveragePooling2D BatchNormalization Concatenate Conv2D Dense DepthwiseConv2D Dropout ELU Flatten "
    "GlobalAveragePooling2D GlobalMaxPooling2D InputLayer LayerNormalization LeakyReLU MaxPooling2D Multiply PReLU "
    "ReLU Rescaling Reshape SeparableConv2D Softmax ZeroPadding2D".split()
)
_KERAS_OBJECTS = {
    *("keras.DTypePolicy", _MODEL, "seraphim.network.muon.ConvolutionalMuon"),
    *(f"keras.layers.{layer}" for layer in _KERAS_LAYERS),
}
_TENSOR = "__keras_tensor__"  # the class name of what a layer passes to the next


def check_archive(file: Path) -> dict[str, Any]:
    """Return the configuration of a Keras archive after checking its form and the classes that it names.

    Nothing in it may be compressed, so what is read from it is never larger than the file.

    Raises:
        ModelError: it has another form, names other classes, or is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _check_entries(archive.infolist())
            config = json.loads(archive.read(_CONFIG))
        objects = set(_objects(config))
    except Exception as error:  # zip, JSON, system, recursion, decompression, encryption: each has its own
        raise damaged_archive(file, error) from error
    foreign = {name for module, name in objects if not _is_known(module, name)}
    if foreign:
        raise ModelError(
            f"{file} holds {', '.join(sorted(foreign))}, which no network of Seraphim does: it is not loaded, "
            "see docs/security.md"
        )
    if not isinstance(config, dict) or f"{config.get('module')}.{config.get('class_name')}" != _MODEL:
        raise damaged_archive(file, ValueError(f"{_CONFIG} describes no network"))
    return config


def bytes_of_weights(file: Path) -> int:
    """Return the size of the weights and the optimizer's state in a checked archive."""
    with zipfile.ZipFile(file) as archive:
        return archive.getinfo(WEIGHTS).file_size


def layer_names(config: dict[str, Any]) -> set[str]:
    """Return the class names of all layers in a configuration."""
    return {name for module, name in _objects(config) if module == "keras.layers"}


def damaged_archive(file: Path, error: Exception) -> ModelError:
    """Return the error for a Keras archive that cannot be read."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return ModelError(
        f"{file} is damaged ({reason}): point the champion at another snapshot, "
        "or start a new model with seraphim train --init"
    )


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names) or set(names) != _ENTRIES:
        raise ValueError(f"it must hold {', '.join(sorted(_ENTRIES))}, not {', '.join(sorted(names)[:9])}")
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ValueError(f"{entry.filename} is compressed")
        if entry.filename != WEIGHTS and entry.file_size > _MOST_BYTES_OF_CONFIG:
            raise ValueError(
                f"{entry.filename} has {entry.file_size:,} bytes, at most {_MOST_BYTES_OF_CONFIG:,} are read"
            )


def _objects(config: Any) -> Iterator[tuple[str | None, str]]:
    # The module and class of every object that Keras would make of a configuration.
    if isinstance(config, dict):
        if "class_name" in config:
            yield config.get("module"), str(config["class_name"])
        config = list(config.values())
    if isinstance(config, list):
        for value in config:
            yield from _objects(value)


def _is_known(module: str | None, name: str) -> bool:
    return name == _TENSOR or module in _KERAS_MODULES or f"{module}.{name}" in _KERAS_OBJECTS
