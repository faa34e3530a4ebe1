"""The learning curve of a model: a CSV file with a line for each generation, over all runs of `learn`.

Columns: `step` (batches trained on), totals so far (`seconds` of finished generations, `games`, and `evaluations` by
the network), and the figures of the check against solved positions.
"""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from seraphim.evaluation.ratings import check_plot
from seraphim.storage.atomic import replace_file

CURVE = "curve.csv"
"""The file's name in a model's folder."""


def add_to_curve(file: Path, step: int, done: Mapping[str, float], figures: Mapping[str, float]) -> None:
    """Add a line for a generation to a learning curve; the first one creates the file.

    `step` is that of the generation's snapshot; `done` is what it took, and is added to the totals; `figures` are its
    results. Each is a column, empty in lines that lack it.
    """
    rows = read_curve(file)
    before = rows[-1] if rows else {}
    totals = {name: before.get(name, 0.0) + value for name, value in done.items()}
    rows.append({"step": step, **totals, **figures})
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows({name: f"{value:.10g}" for name, value in row.items()} for row in rows)
    replace_file(file, stream.getvalue().encode())


def read_curve(file: Path) -> list[dict[str, float]]:
    """Return the lines of a learning curve, each by column; an empty list if there is no such file."""
    if not file.is_file():
        return []
    with file.open(newline="") as stream:
        return [{name: float(text) for name, text in row.items() if text} for row in csv.DictReader(stream)]


def plot_curve(rows: list[dict[str, float]], file: Path, title: str) -> None:
    """Draw the share of mistakes in each set over the minutes of learning, with and without search.

    Raises:
        SettingsError: see `seraphim.evaluation.ratings.check_plot`.
    """
    check_plot(file)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    sets = [name.removesuffix("/positions") for name in rows[-1] if name.endswith("/positions")]
    for place, (kind, heading) in enumerate((("searched", "searched move"), ("raw", "network alone")), start=1):
        axes = figure.add_subplot(1, 2, place)
        for name in sets:
            known = [row for row in rows if f"{name}/{kind}_mistakes" in row]
            shares = [100 * row[f"{name}/{kind}_mistakes"] / row[f"{name}/positions"] for row in known]
            axes.plot([row["seconds"] / 60 for row in known], shares, label=name, marker=".")
        axes.set(title=heading, xlabel="minutes of learning", ylabel="moves that lose the result, %", ylim=(0, None))
        axes.grid(alpha=0.3)
    axes.legend()
    figure.suptitle(title)
    figure.savefig(file)
