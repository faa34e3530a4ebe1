"""The processor time of `make test`: measured with that of the programs it starts, and limited."""

import subprocess
import sys
from pathlib import Path

import cpu_seconds
import pytest

PROGRAM = Path(cpu_seconds.__file__)
BUSY = "import time\nwhile time.process_time() < 0.6: pass"


def test_the_time_of_a_program_that_the_command_starts_counts_and_its_exit_code_is_kept() -> None:
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}]); sys.exit(3)"
    command = [sys.executable, PROGRAM, sys.executable, "-c", starts]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    assert int(done.stdout.partition(" s of processor time")[0]) >= 1


@pytest.mark.parametrize(
    ("seconds", "slowness", "said", "within"),
    [
        (540, 1.0, "machine of reference (this one: 1.00)", True),
        (541, 1.0, "WARNING, more than 540 s", True),
        (1201, 1.0, "more than the limit of 1,200 s", False),
        (1000, 2.0, "1000 s of processor time, 500 s on", True),  # a slow machine is not blamed
        (601, 0.5, "more than the limit of 1,200 s", False),
    ],
)
def test_time_is_compared_with_its_limits_as_on_the_machine_of_reference(
    seconds: float, slowness: float, said: str, within: bool
) -> None:
    line, is_within = cpu_seconds.report(seconds, slowness)
    assert (said in line, is_within) == (True, within)
    assert ("WARNING" in line) == ("WARNING" in said)
