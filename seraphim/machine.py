"""What this process may use of the processor, the quota of its container included; and what all of its code shares.

That is signals, streams, environment variables, imports, random states and loggers.

`docker --cpus=2` and Kubernetes' `limits.cpu` leave all cores visible and limit the time on them, by Linux's control
groups: in version 2 by `cpu.max`, in version 1 by `cpu.cfs_quota_us` and `cpu.cfs_period_us`. A group's quota also
applies to the groups inside it: the smallest on the way up counts.
"""

import atexit
import codecs
import contextlib
import functools
import io
import logging
import math
import os
import platform
import random
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from seraphim.errors import NotInstalledError

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended, as shells give it."""

_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}  # as Linux calls them
_PIPE_CLOSED = 128 + 13  # the exit code that a shell gives for SIGPIPE, a signal that Windows lacks
_SECONDS_UNTIL_RAISED_AGAIN = 0.5
_PLAIN = str.maketrans({"·": ".", "µ": "u", "▸": ">", "×": "x", "−": "-", "…": "...", "█": "#"})
_ESCAPED = re.compile(r"\\([0-7]{3})")  # a space in a mount's path, say

say = functools.partial(print, flush=True)
"""Prints a line at once, through a pipe too."""


@functools.cache
def processor_name() -> str:
    """Return the name of this machine's processor."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether the processor multiplies in bfloat16: x86 with AVX-512 BF16 or AMX, ARM with BF16; on Linux."""
    with contextlib.suppress(OSError):
        return not _BFLOAT16.isdisjoint(cpuinfo.read_text().split())
    return False


def count_cores() -> int:
    """Return how many processor cores this process may use, at least 1; a fraction counts as a whole core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Return the processors' time that this process's control groups allow, in cores; None without a limit."""
    quotas = [quota for folder in _groups(root) if (quota := _quota(folder)) is not None]
    return min(quotas, default=None)


def _groups(root: Path) -> Iterator[Path]:
    # The folders of this process's groups that may have a quota, and of their parents.
    try:
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    paths = {}  # of this process's group by controller; version 2 has one group for all
    for line in memberships:
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    for line in mounts:
        before, _, after = line.partition(" - ")
        kind, *_, options = after.split(" ")
        controller = {"cgroup": "cpu", "cgroup2": ""}.get(kind)
        if controller not in paths or (controller and controller not in options.split(",")):
            continue
        path = paths[controller]
        top, mount = (_ESCAPED.sub(lambda match: chr(int(match[1], 8)), word) for word in before.split(" ")[3:5])
        folder = mounted = root / mount.lstrip("/")
        with contextlib.suppress(ValueError):  # the group is outside of the mount, as in some containers
            folder = mounted / Path(path).relative_to(top)
        yield from (each for each in (folder, *folder.parents) if each.is_relative_to(mounted))


def _quota(folder: Path) -> float | None:
    with contextlib.suppress(OSError, ValueError):
        quota, period = (folder / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    with contextlib.suppress(OSError, ValueError):
        quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return None if int(quota) < 0 else int(quota) / int(period)
    return None


@contextlib.contextmanager
def on_interrupt(action: Callable[[], None]) -> Iterator[None]:
    """Let the first interrupt during the block call `action`; the next one raises KeyboardInterrupt as usual.

    Python lets the main thread alone receive interrupts: in another one, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(*_: int | FrameType | None) -> None:
        restore()
        action()

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()


def end_on_interrupt() -> None:
    """Let Ctrl-C end this program at once and without a word, while it is imported; unless it ignores Ctrl-C."""
    _handle_sigint(lambda *_: os._exit(INTERRUPTED))


def raise_interrupts() -> None:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt in this program, and again where that was dropped.

    Python drops what is raised in finalizers and in callbacks of the garbage collector, which TensorFlow and JAX have.
    """
    _handle_sigint(signal.default_int_handler)
    # A container stops its program with SIGTERM: end as cleanly as on Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report = sys.unraisablehook

    def raise_again(dropped: "sys.UnraisableHookArgs") -> None:
        if dropped.exc_type is KeyboardInterrupt:
            threading.Timer(_SECONDS_UNTIL_RAISED_AGAIN, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            report(dropped)

    sys.unraisablehook = raise_again


def leave_interrupted() -> None:
    """End this program, which Ctrl-C ended, before Python takes libraries apart: half imported ones crash then."""
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):  # nobody reads it
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(INTERRUPTED)


def _handle_sigint(handler: Callable[[int, FrameType | None], Any]) -> None:
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as a shell starts programs in the background
        signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def held_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back from this thread during the block, and for good from the processes that it starts."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def needed(message: str, kind: type[ImportError] = ModuleNotFoundError) -> Iterator[None]:
    """Raise a NotInstalledError if an import in the block fails; {} in its message is what was not found."""
    try:
        yield
    except kind as error:
        raise NotInstalledError(message.replace("{}", str(error.name))) from error


@contextlib.contextmanager
def environment(**defaults: str) -> Iterator[None]:
    """Set environment variables during the block, but for those that are set already."""
    added = {name: value for name, value in defaults.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def same_random_state() -> Iterator[None]:
    """Leave the random states of Python and NumPy, which belong to the program that uses Seraphim, as they are.

    For imports alone: other threads may draw numbers during the block.
    """
    import numpy as np  # which takes a tenth of a second

    state, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(of_numpy)  # noqa: NPY002


@contextlib.contextmanager
def no_root_handler() -> Iterator[None]:
    """Keep absl from giving the root logger a handler, as it does where there is none: the program may want its own."""
    if logging.root.handlers or logging.lastResort is None:
        yield
        return
    logging.root.addHandler(logging.lastResort)  # which shows the same
    try:
        yield
    finally:
        logging.root.removeHandler(logging.lastResort)


def prepare_streams() -> None:
    """Let this program print whatever the terminal can show, and read what it cannot decode; open closed streams.

    In place of a character that the terminal lacks, it gets one that looks alike, or a question mark. A width or height
    of 0 in the environment counts as none.
    """
    for variable in ("COLUMNS", "LINES"):  # with 0 of which Rich would show nothing
        if not os.environ.get(variable, "0").strip("0"):
            os.environ.pop(variable, None)
    codecs.register_error(_LIKE, _in_plain_letters)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:  # closed: takes its number, lest a file that is opened later gets it
            null = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(null, "w" if number else "r", errors="replace"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_LIKE if number else "replace")


_LIKE = "like"  # the name of how errors are handled


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "replace").decode(), error.end


def leave_closed_pipe() -> int:
    """Return the exit code of a program whose output nobody reads any more, such as `head`; print no more errors."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes when it ends
    return _PIPE_CLOSED
