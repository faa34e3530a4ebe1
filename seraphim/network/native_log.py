"""Keeps start-up messages of C++ libraries, which ignore their log level, off the terminal."""

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
    """Drop lines that match `noise`, a regular expression, at their beginning from what is written to stderr.

    All other lines, from all threads, appear at the end of the block or of the process; if the block raises an error,
    other than Ctrl-C, so does the noise. Start no process inside the block: it would inherit the redirection.
    """
    with _ONE_AT_A_TIME, tempfile.TemporaryFile() as kept, contextlib.ExitStack() as end:
        stderr = os.dup(2)
        os.dup2(kept.fileno(), 2)
        end.callback(_restore, stderr, kept, noise)
        atexit.register(end.close)  # the process may end while another thread is in the block
        try:
            yield
        except Exception:
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
