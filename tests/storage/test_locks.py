"""A file that one process holds: who that is, and that the hold ends with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seraphim.storage.locks import HeldError, hold

HOLDER = """
import sys, time
from pathlib import Path
from seraphim.storage.locks import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_hold_tells_which_process_has_it_until_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "held"
    with subprocess.Popen([sys.executable, "-c", HOLDER, file], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        with pytest.raises(HeldError) as refusal, hold(file):
            pass
        holder.kill()
    said = str(refusal.value)
    assert said.startswith(f"process {holder.pid} on ")
    assert f" -c {file}), since 20" in said
    assert said.endswith(" UTC")
    with hold(file):
        assert f"process {os.getpid()} on " in file.read_text()
    assert file.read_text() == ""


def test_a_hold_ends_with_its_block_also_by_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), hold(tmp_path / "held"):
            raise ZeroDivisionError


def test_a_holder_that_has_not_said_who_it_is_keeps_others_out_too(tmp_path: Path) -> None:
    with hold(tmp_path / "held"):
        (tmp_path / "held").write_text("")
        with pytest.raises(HeldError, match="^a process that begins right now$"), hold(tmp_path / "held"):
            pass
