"""Reads a Keras archive by h5py, where there is no Keras."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from seraphim.errors import NotInstalledError, how_to_install
from seraphim.game import Array
from seraphim.network import safety


def read_archive(file: Path) -> tuple[dict[str, Any], dict[str, list[Array]]]:
    """Return the configuration of the network, and the weights float32 of each layer, in Keras's order, by its name.

    They take no more memory than the file is large.

    Raises:
        ModelError: `safety.check_archive` refuses the archive, or its weights are damaged.
        NotInstalledError: h5py is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise NotInstalledError(f"reading {file} needs the package h5py: {how_to_install('gpu')}") from error
    config = safety.check_archive(file)
    try:
        with zipfile.ZipFile(file) as archive:
            stored = archive.read(safety.WEIGHTS)
        with h5py.File(io.BytesIO(stored)) as weights:
            return config, dict(_read_layers(weights, len(stored)))
    except Exception as error:  # zip and HDF5 each have their own
        raise safety.damaged_archive(file, error) from error


def _read_layers(weights: Any, room: int) -> Iterator[tuple[str, list[Array]]]:
    # `room` is the number of bytes that all of them may take: a dataset may say that it is larger than what is stored.
    for layer in _members(_member(weights, "layers")):
        variables = _member(layer, "vars")
        arrays = []
        for number in range(len(variables)):
            dataset = _member(variables, str(number))
            room -= dataset.nbytes
            if dataset.dtype != np.float32 or dataset.external or dataset.is_virtual or room < 0:
                raise ValueError(f"{dataset.name} is no array of float32 in the file")
            arrays.append(dataset[()])
        yield str(variables.attrs["name"]), arrays


def _members(group: Any) -> Iterator[Any]:
    return (_member(group, name) for name in group)


def _member(group: Any, name: str) -> Any:
    # A link may lead to another file.
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{group.name}/{name} is missing, or a link")
    return group[name]
