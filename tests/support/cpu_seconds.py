"""Runs a command, and tells the processor time that it and the programs that it started took.

    python tests/support/cpu_seconds.py COMMAND…

The seconds are those of the machine on which REFERENCE was measured: they are divided by how much longer a short loop
takes here, so that a slow machine is not blamed. Warns above WARNING; exits with 1 above LIMIT, else as the command
does. The limit follows what the tests take down: it is to become 750.
"""

import resource
import subprocess
import sys
import time

WARNING, LIMIT = 540, 1_200  # seconds
REFERENCE = 0.18  # seconds that the loop took on two quiet cores of an AMD EPYC, in Python 3.11


def calibrate() -> float:
    """Return the processor time of a short loop, in seconds: the least of three, as others may use the machine too."""
    return min(_time_of_loop() for _ in range(3))


def _time_of_loop() -> float:
    start, found = time.process_time(), dict[int, int]()
    for number in range(2_000_000):
        found[number * 7919 % 100_003] = number * number % 1_000
    return time.process_time() - start


def report(seconds: float, slowness: float) -> tuple[str, bool]:
    """Return a line about the processor time of a run, and whether it is within the limit."""
    comparable = seconds / slowness
    line = (
        f"{seconds:.0f} s of processor time, {comparable:.0f} s on the machine of reference (this one: {slowness:.2f})"
    )
    if comparable > LIMIT:
        return f"{line}: more than the limit of {LIMIT:,} s; --durations lists what takes long", False
    return f"{line}: WARNING, more than {WARNING} s" if comparable > WARNING else line, True


def main(command: list[str]) -> int:
    """Run a command, and return its exit code, or 1 if it took too long."""
    before = calibrate()
    code = subprocess.run(command).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    line, is_within = report(used.ru_utime + used.ru_stime, (before + calibrate()) / 2 / REFERENCE)
    print(line, flush=True)
    return code or int(not is_within)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
