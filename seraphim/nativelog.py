"""Keeps off the terminal what C++ libraries log while they start, whatever their log level says. Knows none of them."""

import contextlib
import os
import re
import tempfile
import threading
from collections.abc import Iterator

_ONE_AT_A_TIME = threading.Lock()


@contextlib.contextmanager
def without_native_log(noise: bytes) -> Iterator[None]:
    """Leave out the lines that begin with `noise`, a regular expression, of what is written to file descriptor 2.

    What others write there meanwhile, also from other threads, appears at the end; so does everything if the block
    raises an error. A process that is started meanwhile inherits the redirection: start none.
    """
    with _ONE_AT_A_TIME, tempfile.TemporaryFile() as kept:
        stderr = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            noise = b"\0"
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            kept.seek(0)
            for line in kept:
                if not re.match(noise, line):
                    os.write(2, line)
