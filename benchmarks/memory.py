"""Measures whether the memory of learning stays flat: the slope of the resident size over the whole loop.

    PYTHONPATH=. python benchmarks/memory.py [GAME] [--minutes=30 --out=memory.png] [flags of bin/learn.py]

runs bin/learn.py for GAME, by default tictactoe, from random weights in a temporary folder: many small generations with
few readouts, and a window that is full after the first, since a growing window is not a leak. It measures the resident
size (VmRSS) of the program and of each of its workers, in megabytes of 10^6 bytes. The time after the warm-up is cut
into blocks, a line is fitted through their means, and its slope is printed in megabytes per hour, with the 95 %
interval of the fit. Exits with 1 if learning fails, or if the interval of the sum lies above --max_slope.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
# Small generations: a leak shows in each of them.
QUICK = ("--games_per_generation=200", "--steps=100", "--batch_size=128", "--readouts=30", "--max_snapshots=3")
WINDOW = ("--window_start=2000", "--max_window=2000")
BLOCKS = 24  # of the time after the warm-up
STUDENT_T = 2.07  # 95 % of Student's t with 22 degrees of freedom
SECONDS_BETWEEN_SAMPLES = 2.0
INTERRUPTED = 130  # exit code after SIGTERM


class Sample(NamedTuple):
    """The resident size of each process at one moment."""

    seconds: float  # since the start
    sizes: tuple[float, ...]  # megabytes: of the program, then of each worker in the order of their start


class Slope(NamedTuple):
    """A line through sizes."""

    per_hour: float  # megabytes
    margin: float  # half of the 95 % interval

    def __str__(self) -> str:
        return f"{self.per_hour:+,.1f} MB/h [{self.per_hour - self.margin:+,.1f}, {self.per_hour + self.margin:+,.1f}]"


def resident_megabytes(process: int) -> float:
    """Return the resident size of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def worker_ids(process: int) -> list[int]:
    """Return the ids of the processes that play for a program, oldest first."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return []


def sample(process: int, minutes: float) -> Iterator[Sample]:
    """Yield samples until the time is up."""
    began = time.perf_counter()
    while (seconds := time.perf_counter() - began) < 60 * minutes:
        yield Sample(seconds, tuple(map(resident_megabytes, [process, *worker_ids(process)])))
        time.sleep(SECONDS_BETWEEN_SAMPLES)


def fit(seconds: Sequence[float], sizes: Sequence[float]) -> Slope:
    """Return the slope of the line through the means of blocks, since neighboring samples are correlated."""
    blocks = np.array_split(np.stack([np.array(seconds) / 3600, np.array(sizes)]), BLOCKS, axis=1)
    hours, means = np.array([block.mean(axis=1) for block in blocks]).T
    distances = hours - hours.mean()
    slope = float(distances @ means / (distances @ distances))
    rest = means - means.mean() - slope * distances
    error = float(np.sqrt(rest @ rest / (BLOCKS - 2) / (distances @ distances)))
    return Slope(slope, STUDENT_T * error)


def report(samples: Sequence[Sample], warm_up: float) -> Slope:
    """Print the slopes after the warm-up, and return that of all processes together."""
    workers = max(len(each.sizes) for each in samples)
    late = [each for each in samples if each.seconds >= warm_up and len(each.sizes) == workers]
    seconds = [each.seconds for each in late]
    names = ["program", *(f"worker {number}" for number in range(workers - 1))]
    for index, name in enumerate(names):
        sizes = [each.sizes[index] for each in late]
        print(f"{name:12}{sizes[0]:8,.0f} MB first, {sizes[-1]:8,.0f} MB last, slope {fit(seconds, sizes)}")
    whole = fit(seconds, [sum(each.sizes) for each in late])
    print(f"{'all':12}slope {whole}, from {seconds[0] / 60:.1f} to {seconds[-1] / 60:.1f} minutes, {len(late)} samples")
    return whole


def draw(samples: Sequence[Sample], file: Path, title: str) -> None:
    """Draw the sizes over the minutes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.add_subplot()
    for index in range(max(len(each.sizes) for each in samples)):
        there = [each for each in samples if len(each.sizes) > index]
        name = f"worker {index - 1}" if index else "program"
        axes.plot([each.seconds / 60 for each in there], [each.sizes[index] for each in there], label=name)
    axes.set(title=title, xlabel="minutes", ylabel="resident size, MB", ylim=(0, None))
    axes.legend()
    figure.savefig(file)


def main() -> int:
    """Measure, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", nargs="?", default="tictactoe")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--warm_up", type=float, default=0.3, help="share of the time that is not measured")
    parser.add_argument("--max_slope", type=float, default=100, help="megabytes per hour that count as flat")
    parser.add_argument("--out", type=Path, help="draw into this file, such as memory.png")
    options, others = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as root, (Path(root) / "log").open("w+") as log:
        flags = [f"--game={options.game}", "--goal=none", *QUICK, *WINDOW, *others]
        command = [sys.executable, str(ROOT / "bin" / "learn.py"), "memory", *flags]
        environment = {**os.environ, "SERAPHIM_DATA": root}
        with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment) as program:
            samples = []
            for each in sample(program.pid, options.minutes):
                if program.poll() is not None:
                    break
                samples.append(each)
            program.terminate()
        log.seek(0)
        said = log.read()
    generations = sum(line.startswith("generation ") for line in said.splitlines())
    print(f"{options.game}: {generations} generations in {samples[-1].seconds / 60:.1f} minutes")
    if program.returncode != INTERRUPTED:
        print(f"learning failed:\n{said[-2000:]}")
        return 1
    slope = report(samples, 60 * options.minutes * options.warm_up)
    if options.out:
        draw(samples, options.out, f"{options.game}, {generations} generations, {slope}")
    return int(slope.per_hour - slope.margin > options.max_slope)


if __name__ == "__main__":
    sys.exit(main())
