"""Interrupts a writer at each of its system calls, and checks that a later one saves its games.

A program, so that it forks nothing that has threads:

    python tests/support/crashing_writer.py FOLDER WAY

interrupts in one of three ways: `kill` before the call, kill during a `torn` write, or a `full` disk from that call on.
It prints one line per call: its name, and `kept` or what went wrong.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pairs import GAME, play

from seraphim.errors import RecordError
from seraphim.options import RecordOptions
from seraphim.records.examples import encode
from seraphim.records.files import published_files, read_examples
from seraphim.records.tfrecord import parse_example
from seraphim.records.window import read_window
from seraphim.records.writer import GameWriter

CALLS = ("open", "write", "fsync", "ftruncate", "replace", "unlink", "close")
FAILED = 3
OPTIONS = RecordOptions(games_per_file=2)
GAMES = [encode(GAME, play(seed, plies=2)) for seed in range(3)]


def ids(examples):
    return [parse_example(example)["game_id"].values[0] for example in examples[::2]]


def watched(name: str, real: Callable, before_call: Callable[[str, tuple], None]) -> Callable:
    def call(*arguments, **options):
        before_call(name, arguments)
        return real(*arguments, **options)

    return call


def write_games(folder: Path, log: int, before_call: Callable[[str, tuple], None]) -> None:
    """Write the games, and log which are finished."""
    real_write = os.write
    for name in CALLS:
        setattr(os, name, watched(name, getattr(os, name), before_call))
    with GameWriter(folder, OPTIONS) as writer:
        for game in GAMES:
            writer.add(game)
            real_write(log, ids(game)[0] + b"\n")


def run_and_break(folder: Path, number: int, way: str) -> str:
    """Return the call at which a writer was interrupted, and the result; empty if it made fewer calls."""
    log_reader, log = os.pipe()
    name_reader, name_writer = os.pipe()
    child = os.fork()
    if child == 0:
        calls = 0
        real_write = os.write

        def before_call(name: str, arguments: tuple) -> None:
            nonlocal calls
            calls += 1
            if calls == number:
                real_write(name_writer, name.encode())
            if calls >= number and name == "write" and way != "kill":
                real_write(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            if calls == number and way != "full":
                os.kill(os.getpid(), signal.SIGKILL)
            if calls >= number and way == "full" and name in ("write", "fsync", "replace"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        try:
            write_games(folder, log, before_call)
        except OSError as error:
            if error.__context__:
                real_write(name_writer, b" hides the first error and")
            os._exit(0 if way == "full" else FAILED)
        os._exit(0)
    os.close(log)
    os.close(name_writer)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == FAILED:
        sys.exit(f"the writer failed by itself, before call {number}")
    with os.fdopen(log_reader, "rb") as finished, os.fdopen(name_reader) as name:
        broken_at = name.read()
        return broken_at and f"{broken_at} {check(folder, finished.read().split())}"


def check(folder: Path, finished: list[bytes]) -> str:
    """Check the folder, let a later writer open it, and return what happened to the finished games."""
    try:
        _, report = read_window(folder, GAME, 1000)
        if report.damaged:
            return f"shows {report.damaged}"
    except RecordError as error:
        if "no game data" not in str(error):
            return f"shows {error}"
    with GameWriter(folder, OPTIONS):
        pass
    found = [game for path in published_files(folder) for game in ids(read_examples(path))]
    # One more may have been complete, but not logged, when its writer was interrupted.
    if sorted(found) != sorted(set(found)) or not set(finished) <= set(found) or len(found) > len(finished) + 1:
        return f"finished {finished}, found {found}"
    left = [path.name for path in folder.iterdir() if path.suffix in (".partial", ".new")]
    return f"left {left}" if left else "kept"


def main(root: Path, way: str) -> None:
    number = 1
    while line := run_and_break(root / str(number), number, way):
        print(line)
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
