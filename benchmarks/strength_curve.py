"""How strong a model became while it learned: each of its snapshots against players of known strength.

    PYTHONPATH=. python benchmarks/strength_curve.py othello --games=60 --out=strength.png \
        --opponents "gtp:gtp-rhino --level=1" "gtp:gtp-rhino --level=3" "gtp:gtp-rhino --level=5"

prints a row for each match and draws the scores, or points a game, over the minutes of learning. SERAPHIM_DATA names
the folder with `models/`. The snapshots have to be kept while the model learns: a model keeps its newest alone.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

import seraphim
from seraphim.game import load_game
from seraphim.game.features import features_of
from seraphim.storage.models import ModelFolder
from seraphim.training.curve import CURVE, read_curve


class Point(NamedTuple):
    """What a snapshot made of a match."""

    minutes: float
    value: float  # score in percent, or points a game
    interval: tuple[float, float]


def main() -> None:
    """Play, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--opponents", nargs="+", required=True, help="as bin/arena.py takes them")
    parser.add_argument("--games", type=int, default=60, help="of each match")
    parser.add_argument("--readouts", type=int, help="of the model's searches; by default the model's own")
    parser.add_argument("--out", type=Path, required=True, help="picture")
    arguments = parser.parse_args()
    root = Path(os.environ.get("SERAPHIM_DATA", "."))
    folder = ModelFolder(root, arguments.model)
    minutes = {int(row["step"]): row["seconds"] / 60 for row in read_curve(folder.path / CURVE)}
    in_points = features_of(load_game(folder.settings().game)).points is not None
    unit = "points a game" if in_points else "score, %"
    found: dict[str, list[Point]] = {name: [] for name in arguments.opponents}
    print(f"| minutes | step | opponent | {unit} [95 %] |\n|" + " --- |" * 4)
    for snapshot in folder.snapshots():
        if snapshot.step not in minutes:
            continue  # random weights
        for opponent in arguments.opponents:
            player = f"{arguments.model}/{snapshot.path.name}"
            result = seraphim.match(player, opponent, arguments.games, readouts=arguments.readouts, folder=root)
            if in_points and result.points:
                value, (low, high) = result.points.value, result.points.interval
            else:
                value, (low, high) = 100 * result.score, (100 * end for end in result.interval)
            found[opponent].append(Point(minutes[snapshot.step], value, (low, high)))
            cells = (
                f"{minutes[snapshot.step]:.0f}",
                f"{snapshot.step:,}",
                opponent,
                f"{value:.3g} [{low:.3g}, {high:.3g}]",
            )
            print(f"| {' | '.join(cells)} |", flush=True)
    search = folder.settings().search
    readouts = f"{arguments.readouts or search.readouts} readouts a move"
    title = f"{arguments.model}: {arguments.games} games a match, "
    title += search.root if search.root == "afterstates" else readouts
    draw(found, title, unit, arguments.out)


def draw(found: Mapping[str, Sequence[Point]], title: str, unit: str, out: Path) -> None:
    """Draw the scores, or points, against each opponent, with their intervals."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for opponent, points in found.items():
        minutes = [point.minutes for point in points]
        (line,) = axes.plot(minutes, [point.value for point in points], marker="o", label=opponent)
        low, high = ([point.interval[side] for point in points] for side in (0, 1))
        axes.fill_between(minutes, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.axhline(50 if "%" in unit else 0, color="0.6", linewidth=1)
    axes.set(xlabel="minutes of learning", ylabel=unit, ylim=(0, 100) if "%" in unit else None, title=title)
    axes.legend(loc="lower right")
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
