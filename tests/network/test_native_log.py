"""What C++ libraries write to standard error while they start."""

import contextlib
import os
import subprocess
import sys

import pytest

from seraphim.network.native_log import without_native_log


def test_noise_is_dropped_and_the_rest_appears_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    with without_native_log(rb"INFO: |W\d+ "):
        os.write(2, b"INFO: started\nout of memory\nW12 port.cc\n")
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == "out of memory\n"


def test_everything_appears_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(ValueError), without_native_log(b"INFO"):
        os.write(2, b"INFO: started\n")
        int("no number")
    assert capfd.readouterr().err == "INFO: started\n"


def test_noise_is_dropped_on_ctrl_c(capfd: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(KeyboardInterrupt), without_native_log(b"INFO"):
        os.write(2, b"INFO: started\nout of memory\n")
        raise KeyboardInterrupt
    assert capfd.readouterr().err == "out of memory\n"


def test_standard_error_is_as_it_was_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        with without_native_log(b"INFO"):
            pass
    os.write(2, b"INFO: mine\n")
    assert capfd.readouterr().err == "INFO: mine\n"


def test_messages_at_exit_appear_while_another_thread_is_in_the_block() -> None:
    program = """
import os, sys, threading, time
from seraphim.network.native_log import without_native_log
within = threading.Event()
def start():
    with without_native_log(b"INFO"):
        os.write(2, b"INFO: started\\n")
        within.set()
        time.sleep(60)
threading.Thread(target=start, daemon=True).start()
within.wait()
print("the disk is full", file=sys.stderr)
sys.exit(1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "the disk is full\n")
