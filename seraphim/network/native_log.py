"""Keeps off the terminal what C++ libraries log while they start, whatever their log level says. Knows none of them."""

import atexit
import contextlib
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from typing import IO

_ONE_AT_A_TIME = threading.Lock()


@contextlib.contextmanager
def without_native_log(noise: bytes) -> Iterator[None]:
    """Leave out the lines that begin with `noise`, a regular expression, of what is written to file descriptor 2.

    What others write there meanwhile, also from other threads, appears at the end of the block or of the process; so
    does everything if the block raises an error. A process that is started meanwhile inherits the redirection: start
    none.
    """
    with _ONE_AT_A_TIME, tempfile.TemporaryFile() as kept, contextlib.ExitStack() as end:
        stderr = os.dup(2)
        os.dup2(kept.fileno(), 2)
        end.callback(_restore, stderr, kept, noise)
        atexit.register(end.close)  # of a process whose last words are spoken while another thread is in the block
        try:
            yield
        except BaseException:
            end.pop_all()
            _restore(stderr, kept, noise=b"\0")
            raise
        finally:
            atexit.unregister(end.close)


def _restore(stderr: int, kept: IO[bytes], noise: bytes) -> None:
    os.dup2(stderr, 2)
    os.close(stderr)
    kept.seek(0)
    for line in kept:
        if not re.match(noise, line):
            os.write(2, line)
