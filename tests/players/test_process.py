"""Processes of engines: wrappers, what they write, and how they end."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seraphim.players.external.process import EngineProcess

PATIENCE = 60  # seconds; everything here takes a few

# When it is asked for a move, leaves a file in a folder that is named as its process, and neither answers nor ends.
STUBBORN = """
import os, pathlib, sys, time
for line in sys.stdin:
    if line.startswith("genmove"):
        pathlib.Path(sys.argv[1], str(os.getpid())).touch()
        time.sleep(1000)
    print("= \\n", flush=True)
"""


def shell(program: str) -> str:
    return shlex.join(["sh", "-c", program])


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(process: int) -> None:
    if is_running(process):
        os.kill(process, signal.SIGKILL)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("wrapper", "ends"),
    [
        ("sleep 1000 & echo $!; wait", True),
        ("sleep 1000 & echo $!", True),  # which leaves its program behind
        ("setsid sh -c 'echo $$; exec sleep 1000'", False),  # which does not want to be found
    ],
)
def test_a_program_ends_with_its_wrapper(wrapper: str, ends: bool) -> None:
    process = EngineProcess(shell(wrapper))
    program = int(process.receive(time.monotonic() + PATIENCE))
    closing = threading.Thread(target=process.close, daemon=True)
    closing.start()
    closing.join(PATIENCE / 4)
    try:
        assert not closing.is_alive()
        if ends:
            wait_for(lambda: not is_running(program))
    finally:
        kill(program)


def test_a_line_need_not_be_utf_8() -> None:
    process = EngineProcess(shell(r"printf 'id author Andr\351\nuciok\n'; cat"))
    end = time.monotonic() + PATIENCE
    assert [process.receive(end), process.receive(end)] == ["id author Andr\N{REPLACEMENT CHARACTER}", "uciok"]
    process.send("André")
    assert process.receive(end) == "André"
    process.close()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_arena_ends_the_programs(tmp_path: Path, sign: signal.Signals) -> None:
    script, asked = tmp_path / "stubborn.py", tmp_path / "asked"
    script.write_text(STUBBORN)
    asked.mkdir()
    engine = shlex.join([sys.executable, str(script), str(asked)])
    arena = subprocess.Popen(
        [sys.executable, "bin/arena.py", "random", f"gtp:{shell(f'{engine}; true')}", "--game=tictactoe", "--games=2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: any(asked.iterdir()))
    programs = [int(file.name) for file in asked.iterdir()]
    arena.send_signal(sign)
    try:
        printed, errors = arena.communicate(timeout=PATIENCE)
        assert (printed, errors, arena.returncode) == ("\ninterrupted\n", "", 0)
        wait_for(lambda: not any(map(is_running, programs)))
    finally:
        arena.kill()
        arena.communicate()
        for program in programs:
            kill(program)
