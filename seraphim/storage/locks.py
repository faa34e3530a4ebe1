"""A file that one process holds at a time, and in which stands who that is; the hold ends with the process.

Knows nothing of what is guarded so. For work of hours, whose second worker is better refused than kept waiting.
"""

import contextlib
import fcntl
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from seraphim.storage.atomic import lock_file


class HeldError(Exception):
    """Another process holds the file; the text says which one, and since when."""


@contextlib.contextmanager
def hold(file: Path) -> Iterator[None]:
    """Hold a file, made if need be, while the block runs.

    Raises:
        HeldError: another process holds it, or this one does already.
        OSError: the file cannot be written.
    """
    with file.open("a+") as held:
        try:
            lock_file(held.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            raise HeldError(held.read().strip() or "a process that begins right now") from None
        held.truncate(0)
        held.write(f"{_who_is_this()}\n")
        held.flush()
        try:
            yield
        finally:
            held.truncate(0)


def _who_is_this() -> str:
    command = shlex.join([Path(sys.executable).name, *sys.argv])
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"process {os.getpid()} on {platform.node()} ({command}), since {now}"
