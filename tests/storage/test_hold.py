"""A file that one process holds: it names the process, and is free when that ends."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seraphim.storage.atomic import HeldError, hold, is_locked, locked

HOLDER = """
import sys, time
from pathlib import Path
from seraphim.storage.atomic import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_hold_names_the_process_that_has_it_until_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "held"
    with subprocess.Popen([sys.executable, "-c", HOLDER, file], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        with pytest.raises(HeldError) as refusal, hold(file):
            pass
        holder.kill()
    said = str(refusal.value)
    assert said.startswith(f"process {holder.pid} on ")
    assert f"(-c {file}), since 20" in said
    assert said.endswith(" UTC")
    with hold(file):
        assert f"process {os.getpid()} on " in file.read_text()
    assert file.read_text() == ""


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_neither_held_nor_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "file")
    with pytest.raises(OSError, match="not a regular file"), hold(tmp_path / "file"):
        pass
    with pytest.raises(OSError, match="not a regular file"), locked(tmp_path / "file", shared=True):
        pass
    assert not is_locked(tmp_path / "file")


def test_a_hold_ends_with_its_block_and_with_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), hold(tmp_path / "held"):
            raise ZeroDivisionError


def test_a_holder_that_has_not_written_its_name_yet_keeps_others_out(tmp_path: Path) -> None:
    with hold(tmp_path / "held"):
        (tmp_path / "held").write_text("")
        with pytest.raises(HeldError, match="^a process that is just starting$"), hold(tmp_path / "held"):
            pass
