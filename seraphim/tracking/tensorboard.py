"""Metrics over steps in TensorBoard's files, written without TensorFlow, which takes five seconds to import.

Such a file is a sequence of records, framed as in `seraphim.records.tfrecord`, each of them a message
`tensorflow.Event`.
"""

import contextlib
import itertools
import os
import platform
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from seraphim.records.tfrecord import frame, to_varint, varint_bytes

_NUMBERS = itertools.count()  # of the logs of this process
# Tags of fields: their number times 8, plus how their value is stored.
_WALL_TIME, _STEP, _VERSION, _SUMMARY = 0x09, 0x10, 0x1A, 0x2A  # of an Event
_VALUE = 0x0A  # of a Summary
_NAME, _SIMPLE_VALUE = 0x0A, 0x15  # of a Value


class Log(Protocol):
    """Receives metrics."""

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Write metrics, by name, at a step: the number of batches that the model has been trained on."""


class ScalarLog:
    """A `Log` for TensorBoard."""

    def __init__(self, folder: Path) -> None:
        """Write to a new file in `folder`, which appears with the first metrics."""
        name = f"events.out.tfevents.{time.time():.6f}.{platform.node()}.{os.getpid()}.{next(_NUMBERS)}"
        self._file = folder / name

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """See `Log.write`.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        values = b"".join(
            _message(_VALUE, _message(_NAME, name.encode()) + struct.pack("<Bf", _SIMPLE_VALUE, scalar))
            for name, scalar in scalars.items()
        )
        event = _event(bytes([_STEP]) + _varint(step) + _message(_SUMMARY, values))
        size = self._file.stat().st_size if self._file.exists() else 0
        if size == 0:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            event = _event(_message(_VERSION, b"brain.Event:2")) + event
        try:
            with self._file.open("ab") as file:
                file.write(event)
        except OSError:
            # TensorBoard reads nothing after a truncated event.
            with contextlib.suppress(OSError):
                os.truncate(self._file, size)
            raise


def _event(fields: bytes) -> bytes:
    return frame(struct.pack("<Bd", _WALL_TIME, time.time()) + fields)


def _message(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    return to_varint(np.array([number]), varint_bytes(number)).tobytes()
