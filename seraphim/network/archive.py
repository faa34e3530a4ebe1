"""Reads a Keras archive by h5py, where there is no Keras."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from seraphim.errors import how_to_install
from seraphim.game import Array
from seraphim.machine import needed
from seraphim.network import safety


def read_archive(file: Path) -> tuple[dict[str, Any], dict[str, list[Array]]]:
    """Return the configuration of the network, and the weights float32 of each layer, in Keras's order, by its name.

    They take no more memory than the file is large.

    Raises:
        ModelError: `safety.check_archive` refuses the archive, or its weights are damaged.
        NotInstalledError: h5py is not installed.
    """
    with needed(f"reading {file} needs the package h5py: {how_to_install('gpu')}", ImportError):
        import h5py
    config = safety.check_archive(file)
    try:
        with h5py.File(open_weights(file)) as weights:
            return config, dict(_read_layers(weights, safety.bytes_of_weights(file)))
    except Exception as error:  # zip and HDF5 each have their own
        raise safety.damaged_archive(file, error) from error


def open_weights(file: Path) -> io.BytesIO:
    """Return the weights in a checked archive, in HDF5: they lie there as they are, each once.

    HDF5 would unpack a whole chunk for the smallest array, follow links to other files, and read a text anew for each
    reference to it. Keras writes none of these.

    Raises:
        ValueError: they hold one.
    """
    import h5py

    room = safety.bytes_of_weights(file)

    def refuse(name: str, found: Any) -> str | None:  # the first name ends the search
        nonlocal room
        if isinstance(found, h5py.Group | h5py.HardLink):
            return None
        is_plain = isinstance(found, h5py.Dataset) and found.chunks is None and not found.dtype.hasobject
        room -= found.nbytes if is_plain else 0
        return None if is_plain and not found.external and not found.is_virtual and room >= 0 else name

    with zipfile.ZipFile(file) as archive:
        stored = io.BytesIO(archive.read(safety.WEIGHTS))
    with h5py.File(stored) as weights:
        if refused := weights.visititems_links(refuse) or weights.visititems(refuse):
            raise ValueError(f"{refused} is no array that lies in the file as it is")
    return stored


def _read_layers(weights: Any, room: int) -> Iterator[tuple[str, list[Array]]]:
    # `room` is the number of bytes that all of them may take: several layers may name the same array.
    for layer in weights["layers"].values():
        variables = layer["vars"]
        arrays = []
        for number in range(len(variables)):
            dataset = variables[str(number)]
            room -= dataset.nbytes
            if dataset.dtype != np.float32 or room < 0:
                raise ValueError(f"{dataset.name} is no array of float32 in the file")
            arrays.append(dataset[()])
        yield str(variables.attrs["name"]), arrays
