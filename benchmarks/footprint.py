"""Measures the peak memory of learning, over all of its processes.

    PYTHONPATH=. python benchmarks/footprint.py GAME [--minutes=5] [flags of bin/learn.py]

runs bin/learn.py for GAME, such as openspiel:chess, from random weights in a temporary folder. Every second, it adds up
the proportional set size (PSS) of the program and of all processes that it started, in which shared memory counts once.
Prints the largest sum, in megabytes of 10^6 bytes, the size of each process at that moment, and the size of the game
data. Exits with 1 if learning fails, or if the sum is above --max_megabytes.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.memory import INTERRUPTED, ROOT
from seraphim.records.files import published_files
from seraphim.records.schema import end_of
from seraphim.records.tfrecord import frames


def proportional_megabytes(process: int) -> float:
    """Return the proportional set size of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def process_ids(process: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [process]
    for each in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def largest(program: "subprocess.Popen[str]", seconds: float) -> list[float]:
    """Return the sizes of all processes at the moment when their sum was largest."""
    most: list[float] = []
    began = time.perf_counter()
    while program.poll() is None and time.perf_counter() - began < seconds:
        sizes = [proportional_megabytes(each) for each in process_ids(program.pid)]
        most = max(most, sizes, key=sum)
        time.sleep(1)
    return most


def print_games(folder: Path) -> None:
    """Print the size of the games."""
    lengths = []
    for path in published_files(folder):
        game = 0
        for payload in frames(path.read_bytes()):
            game += len(payload)
            if end_of(payload):
                lengths.append(game)
                game = 0
    if lengths:
        sizes = [length / 1e3 for length in lengths]
        print(f"{len(sizes)} games on disk, {sum(sizes) / len(sizes):,.0f} kB each, {max(sizes):,.0f} kB at most")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--max_megabytes", type=float, default=4000, help="limit")
    options, others = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as root, (Path(root) / "log").open("w+") as log:
        command = [sys.executable, str(ROOT / "bin" / "learn.py"), "footprint", f"--game={options.game}", "--goal=none"]
        environment = {**os.environ, "SERAPHIM_DATA": root}
        with subprocess.Popen(
            [*command, *others], stdout=log, stderr=subprocess.STDOUT, env=environment, text=True
        ) as program:
            sizes = largest(program, 60 * options.minutes)
            program.terminate()
        log.seek(0)
        said = log.read()
        generations = [line for line in said.splitlines() if line.startswith("generation ")]
        print(f"{options.game}: {len(generations)} generations in {options.minutes:g} minutes")
        print_games(Path(root) / "gamedata" / "footprint")
    if program.returncode != INTERRUPTED:
        print(f"learning failed:\n{said[-2000:]}")
        return 1
    each = " + ".join(f"{size:,.0f}" for size in sizes)
    print(f"{sum(sizes):,.0f} MB at most, in {len(sizes)} processes: {each}")
    return int(sum(sizes) > options.max_megabytes)


if __name__ == "__main__":
    sys.exit(main())
