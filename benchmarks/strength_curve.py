"""How strong a model became while it learned: each of its snapshots against players of known strength.

    PYTHONPATH=. python benchmarks/strength_curve.py othello --games=60 --out=strength.png \
        --opponents "gtp:gtp-rhino --level=1" "gtp:gtp-rhino --level=3" "gtp:gtp-rhino --level=5"

prints a row for each match and draws the scores over the minutes of learning. SERAPHIM_DATA names the folder with
`models/`. The snapshots have to be kept while the model learns: a model keeps its newest alone.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

import seraphim
from seraphim.storage.models import ModelFolder
from seraphim.training.curve import CURVE, read_curve


class Point(NamedTuple):
    """A match of a snapshot."""

    minutes: float
    score: float
    interval: tuple[float, float]


def main() -> None:
    """Play, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--opponents", nargs="+", required=True, help="as bin/arena.py takes them")
    parser.add_argument("--games", type=int, default=60, help="of each match")
    parser.add_argument("--readouts", type=int, default=200, help="of the model's searches")
    parser.add_argument("--out", type=Path, required=True, help="picture")
    arguments = parser.parse_args()
    root = Path(os.environ.get("SERAPHIM_DATA", "."))
    folder = ModelFolder(root, arguments.model)
    minutes = {int(row["step"]): row["seconds"] / 60 for row in read_curve(folder.path / CURVE)}
    found: dict[str, list[Point]] = {name: [] for name in arguments.opponents}
    print("| minutes | step | opponent | score [95 %] |\n|" + " --- |" * 4)
    for snapshot in folder.snapshots():
        if snapshot.step not in minutes:
            continue  # random weights
        for opponent in arguments.opponents:
            player = f"{arguments.model}/{snapshot.path.name}"
            result = seraphim.match(player, opponent, arguments.games, readouts=arguments.readouts, folder=root)
            point = Point(minutes[snapshot.step], result.score, result.interval)
            found[opponent].append(point)
            low, high = point.interval
            cells = [
                f"{point.minutes:.0f}",
                f"{snapshot.step:,}",
                opponent,
                f"{point.score:.1%} [{low:.1%}, {high:.1%}]",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)
    title = f"{arguments.model}: {arguments.games} games a match, {arguments.readouts} readouts a move"
    draw(found, title, arguments.out)


def draw(found: Mapping[str, Sequence[Point]], title: str, out: Path) -> None:
    """Draw the scores against each opponent, with their intervals."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for opponent, points in found.items():
        minutes = [point.minutes for point in points]
        (line,) = axes.plot(minutes, [100 * point.score for point in points], marker="o", label=opponent)
        low, high = ([100 * point.interval[side] for point in points] for side in (0, 1))
        axes.fill_between(minutes, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.axhline(50, color="0.6", linewidth=1)
    axes.set(xlabel="minutes of learning", ylabel="score, %", ylim=(0, 100), title=title)
    axes.legend(loc="lower right")
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
