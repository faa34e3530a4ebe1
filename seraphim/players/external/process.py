"""A program that answers lines with lines, over its standard input and output."""

import contextlib
import os
import queue
import shlex
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from typing import IO, Any

from seraphim.errors import NotInstalledError, SettingsError

THINKING_SECONDS = 300.0  # at most, for a move
ANSWER_SECONDS = 60.0  # for any other command
GRACE_SECONDS = 2.0  # from the end of its input until a program is killed


class EngineLostError(Exception):
    """The program has ended, or did not answer in time."""


class EngineSilentError(EngineLostError):
    """The program did not answer in time."""


class EngineProcess:
    """A program that was started by a command, and ends with all that it has started, with this object at the latest.

    It does not receive Ctrl-C from the terminal: call `close`, which kills it unless it ends within `grace` seconds
    after the end of its input.

    Raises:
        SettingsError: the command is not valid, or cannot be started.
        NotInstalledError: there is no such program.
    """

    def __init__(self, command: str, grace: float = GRACE_SECONDS) -> None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise SettingsError(f"{command!r} is not a command: {error}") from error
        if not words:
            raise SettingsError("expected the command of a program, such as gtp:gnugo --mode gtp")
        self.command = command
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # is closed with the process
        self._process: Any = self._started(words)
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()
        self._finalizer = weakref.finalize(self, _end, self._process, self._errors, grace)

    def _started(self, words: list[str]) -> "subprocess.Popen[str]":
        try:
            return subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                encoding="utf-8",
                errors="replace",
                bufsize=1,
                start_new_session=True,  # so that it can be killed with all that it starts
            )
        except OSError as error:
            self._errors.close()
            if isinstance(error, FileNotFoundError):
                raise NotInstalledError(f"there is no program {words[0]!r}: install it, or give its path") from error
            raise SettingsError(f"cannot start {self.command!r}: {error.strerror}") from error

    def send(self, line: str) -> None:
        """Send a line.

        Raises:
            EngineLostError: nobody reads it.
        """
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise EngineLostError(self._last_words()) from error

    def receive(self, deadline: float) -> str:
        """Return the next line, without its end.

        Args:
            deadline: the time of `time.monotonic` until which to wait.

        Raises:
            EngineLostError: the program has ended.
            EngineSilentError: there is none in time.
        """
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise EngineSilentError("did not answer in time") from None
        if line is None:
            self._lines.put(None)  # for the next call
            raise EngineLostError(self._last_words())
        return line

    def close(self) -> None:
        """End the program; a thread that waits for a line gets an EngineLostError."""
        self._finalizer()

    def _last_words(self) -> str:
        # The exit status, and the last line that it wrote as an error.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        try:
            self._errors.seek(0)
            written = self._errors.read().decode(errors="replace").strip().splitlines()
        except ValueError:  # closed in the meantime
            written = []
        return f"ended with status {self._process.returncode}" + (f": {written[-1].strip()}" if written else "")


def _read(stream: IO[str], lines: "queue.Queue[str | None]") -> None:
    # This thread closes the stream: another one would have to wait for the end of the reading.
    with contextlib.suppress(OSError, ValueError), stream:
        for line in stream:
            lines.put(line.rstrip("\r\n"))
    lines.put(None)


def _end(process: Any, errors: IO[bytes], grace: float) -> None:
    with contextlib.suppress(OSError, ValueError):
        process.stdin.close()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    finally:  # also on a second Ctrl-C
        _kill(process)
        process.wait()
        errors.close()


def _kill(process: Any) -> None:
    # With all that it has started, even where it has ended itself.
    if os.name != "posix":
        process.kill()
        return
    with contextlib.suppress(OSError):  # there is nobody left
        os.killpg(process.pid, signal.SIGKILL)
