"""Kills a program that creates models and snapshots at each system call that changes files, and checks the result.

A program, so that it forks nothing that has threads:

    python tests/support/crashing_store.py FOLDER

It prints one line per call: its name, and `kept` or what went wrong.
"""

import os
import signal
import sys
from functools import partial
from pathlib import Path

from seraphim.errors import ModelError
from seraphim.settings import default_settings
from seraphim.storage import atomic
from seraphim.storage.models import ModelFolder

CALLS = ("open", "write", "mkdir", "rmdir", "unlink", "rename", "replace", "link", "symlink")
STEPS = range(4)
KEPT = 2


def write(path: Path) -> None:
    (path / "variables").mkdir()
    atomic.write_file(path / "variables" / "data", path.name.removeprefix(".unfinished-").encode())


def learn(folder: ModelFolder) -> None:
    """Create and train a model, or continue; all snapshots but that of step 2 pass the gate."""
    try:
        last = folder.snapshots()[-1].step if not folder.is_new() else None
    except IndexError:
        last = None
    if last is None:
        with folder.lock():
            folder.create(default_settings("tictactoe"))
            folder.publish(0, write, promote=lambda: True)
        last = 0
    for step in STEPS[last + 1 :]:
        snapshot = folder.publish(step, write, {"loss": 1.0}, promote=partial(step.__ne__, 2))
        folder.annotate(snapshot, {"wrong": step})
        folder.prune(KEPT)


def run_and_kill(root: Path, number: int) -> str:
    """Return the call at which the program was killed, and the result; empty if it made fewer calls."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        calls, real_write = 0, os.write

        def watched(name, real):
            def call(*arguments, **options):
                nonlocal calls
                if name == "open" and not arguments[1] & os.O_CREAT:  # to read
                    return real(*arguments, **options)
                calls += 1
                if calls == number:
                    real_write(writer, name.encode())
                    if name == "write":
                        real_write(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **options)

            return call

        for name in CALLS:
            setattr(os, name, watched(name, getattr(os, name)))
        learn(ModelFolder(root, "first"))
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as name:
        killed_at = name.read()
        return killed_at and f"{killed_at} {check(root)}"


def problem(folder: ModelFolder) -> str:
    """Return what another program would find wrong now."""
    for snapshot in folder.snapshots():
        if (snapshot.path / "variables" / "data").read_text() != snapshot.name:
            return f"{snapshot.name} is half a snapshot"
    try:
        if folder.champion() not in folder.snapshots():
            return "the champion is not a snapshot"
        if folder.champion().step == 2:
            return "the champion did not pass the gate"
    except ModelError as error:
        return "" if folder.is_new() and "seraphim train first --init" in str(error) else str(error)
    return ""


def check(root: Path) -> str:
    """Check the state, run the program again, and return the result."""
    folder = ModelFolder(root, "first")
    if wrong := problem(folder):
        return wrong
    try:
        folder.recover()
        passed = [snapshot for snapshot in folder.snapshots() if snapshot.step != 2]
        if passed and folder.champion() != passed[-1]:
            return f"published {passed[-1].name} and promoted {folder.champion().name}"
        learn(folder)
        folder.prune(KEPT)
    except ModelError as error:
        return f"cannot continue: {error}"
    steps = [snapshot.step for snapshot in folder.snapshots()]
    left = sorted(path.name for path in folder.path.iterdir() if path.name.startswith((".u", ".n")))
    if steps != [2, 3] or folder.champion().step != 3 or folder.folders() != folder.snapshots() or left:
        return f"has snapshots {steps}, champion {folder.champion().name}, leftovers {left}"
    return problem(folder) or "kept"


def main(root: Path) -> None:
    os.fsync = lambda file: None  # slow, and no power fails here
    number = 1
    while line := run_and_kill(root / str(number), number):
        print(line)
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
