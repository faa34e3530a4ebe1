"""Looks at what a model of unknown origin holds, before any of it is run; imports and runs none of it.

A Keras archive names classes that are made when it is loaded; `settings.json` names a module that is imported. Each may
hold what the models of Seraphim are made of, and nothing else: a network with other layers needs them added to the
lists here. A SavedModel is a program for TensorFlow, and is not examined: see `seraphim.inference.archive`.
"""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seraphim.errors import ModelError

_CONFIG, _WEIGHTS = "config.json", "model.weights.h5"
_ENTRIES = {_CONFIG, "metadata.json", _WEIGHTS}
_MOST_BYTES_OF_CONFIG = 4 << 20  # connect four's has 50 KB, that of AlphaGo Zero's 39 blocks would have 0.4 MB

_MODEL = "keras.src.models.functional.Functional"
_KERAS_MODULES = frozenset(
    f"keras.{module}" for module in "initializers losses optimizers optimizers.schedules regularizers".split()
)
_KERAS_OBJECTS = frozenset(
    ["keras.DTypePolicy", _MODEL]
    + [
        f"seraphim.{module}.FusedBatchNormalization" for module in ("network.architectures", "networks")
    ]  # 0.1.0: networks
    + [
        f"keras.layers.{layer}"
        for layer in "Activation Add AveragePooling2D BatchNormalization Concatenate Conv2D Dense DepthwiseConv2D "
        "Dropout ELU Flatten GlobalAveragePooling2D GlobalMaxPooling2D InputLayer LayerNormalization LeakyReLU "
        "MaxPooling2D Multiply PReLU ReLU Rescaling Reshape SeparableConv2D Softmax ZeroPadding2D".split()
    ]
)
_TENSOR = "__keras_tensor__"  # how an archive writes what goes from a layer to the next


def check_archive(file: Path) -> dict[str, Any]:
    """Check that a Keras archive has the form that Keras gives it, and is made of layers that Seraphim knows.

    Nothing in it is compressed, so what is read from it is never larger than the file.

    Returns:
        Its configuration: what the network is made of.

    Raises:
        ModelError: it has another form, or holds other objects, or is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _check_entries(archive.infolist())
            config = json.loads(archive.read(_CONFIG))
        objects = set(_objects(config))
    except Exception as error:  # of zip, of JSON, of the system, of recursion, of decompression, of encryption
        raise damaged(file, error) from error
    foreign = {name for module, name in objects if not _is_known(module, name)}
    if foreign:
        raise ModelError(
            f"{file} holds {', '.join(sorted(foreign))}, which no network of Seraphim does: it is not loaded, "
            "see docs/security.md"
        )
    if not isinstance(config, dict) or f"{config.get('module')}.{config.get('class_name')}" != _MODEL:
        raise damaged(file, ValueError(f"{_CONFIG} describes no network"))
    return config


def bytes_of_weights(file: Path) -> int:
    """Return the size of the weights and the optimizer's state in an archive that was checked."""
    with zipfile.ZipFile(file) as archive:
        return archive.getinfo(_WEIGHTS).file_size


def class_names(config: dict[str, Any]) -> set[str]:
    """Return the names of the classes of all objects, such as layers, that a configuration describes."""
    return {name for _, name in _objects(config)}


def damaged(file: Path, error: Exception) -> ModelError:
    """Return the error for a Keras archive that cannot be read because of another error."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return ModelError(
        f"{file} is damaged ({reason}): point the champion at another snapshot, or start a new model with --init"
    )


# ---------------------------------------------------------------- Keras archives


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names) or set(names) != _ENTRIES:
        raise ValueError(f"it must hold {', '.join(sorted(_ENTRIES))}, not {', '.join(sorted(names)[:9])}")
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ValueError(f"{entry.filename} is compressed")
        if entry.filename != _WEIGHTS and entry.file_size > _MOST_BYTES_OF_CONFIG:
            raise ValueError(
                f"{entry.filename} has {entry.file_size:,} bytes, at most {_MOST_BYTES_OF_CONFIG:,} are read"
            )


def _objects(config: Any) -> Iterator[tuple[str | None, str]]:
    # The module and the class of everything that a configuration would make.
    if isinstance(config, dict):
        if "class_name" in config:
            yield config.get("module"), str(config["class_name"])
        for value in config.values():
            yield from _objects(value)
    elif isinstance(config, list):
        for value in config:
            yield from _objects(value)


def _is_known(module: str | None, name: str) -> bool:
    return name == _TENSOR or module in _KERAS_MODULES or f"{module}.{name}" in _KERAS_OBJECTS


# ---------------------------------------------------------------- modules of games
