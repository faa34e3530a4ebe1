"""The learning curve of a model: a CSV file with a line for each generation, over all runs of `learn`.

Columns: `step` (batches trained on), totals so far (`seconds` of finished generations, `games`, and `evaluations` by
the network; of a generation that was interrupted and continued, the games of all runs, but the seconds and evaluations
of the last one alone), and the figures of the check against solved positions and of the matches.
"""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from seraphim.errors import FileError
from seraphim.evaluation.match_csv import read_rows
from seraphim.evaluation.ratings import drawable, new_figure
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
    """Return the lines of a learning curve, each by column; an empty list if there is no such file.

    Raises:
        FileError: the file is damaged.
    """
    try:
        rows = [{name: float(text) for name, text in row.items() if text} for row in read_rows(file)]
        if not all(math.isfinite(row.get("step", math.nan)) for row in rows):
            raise ValueError("a line has no step")
        return rows
    except ValueError as error:
        raise FileError(f"{file} is not a valid learning curve ({error}): fix it, or remove it") from error


def plot_curve(rows: list[dict[str, float]], file: Path, title: str) -> None:
    """Draw a learning curve over its minutes: the mistakes in each set, what they cost, and the strength in matches.

    Lines that lack a figure are left out.

    Raises:
        SettingsError, NotInstalledError: see `seraphim.evaluation.ratings.check_plot`.
    """
    sets = [name.removesuffix("/positions") for name in rows[-1] if name.endswith("/positions")]
    rated = _having(rows, "seconds", "strength/low", "strength/elo", "strength/high")
    kinds = {"searched": "searched move", "raw": "network alone"} if sets else {}
    has_regret = any(name.endswith("_regret") for name in rows[-1])
    count = len(kinds) * (1 + has_regret) + bool(rated)
    with new_figure(file, 5 * count, 4.5) as figure:
        for place, (kind, heading) in enumerate(kinds.items(), start=1):
            axes = figure.add_subplot(1, count, place)
            for name in sets:
                known = _having(rows, "seconds", f"{name}/{kind}_mistakes", f"{name}/positions")
                shares = [100 * row[f"{name}/{kind}_mistakes"] / max(1.0, row[f"{name}/positions"]) for row in known]
                axes.plot([row["seconds"] / 60 for row in known], shares, label=drawable(name), marker=".")
            axes.set(title=heading, ylabel="moves that lose the result, %", ylim=(0, None))
            if has_regret:
                axes = figure.add_subplot(1, count, len(kinds) + place)
                for name in sets:
                    known = _having(rows, "seconds", f"{name}/{kind}_regret")
                    regrets = [row[f"{name}/{kind}_regret"] for row in known]
                    axes.plot([row["seconds"] / 60 for row in known], regrets, label=drawable(name), marker=".")
                axes.set(title=f"{heading}: regret", ylabel="what a move loses on average, points", ylim=(0, None))
        if sets:
            axes.legend()
        if rated:
            axes = figure.add_subplot(1, count, count)
            minutes, low, elo, high = np.array(
                [(row["seconds"] / 60, row["strength/low"], row["strength/elo"], row["strength/high"]) for row in rated]
            ).T
            axes.errorbar(minutes, elo, yerr=(elo - low, high - elo), marker=".", capsize=3)
            axes.set(title="strength in matches", ylabel="Elo, 95 % intervals; random play = 0")
        for axes in figure.axes:
            axes.set(xlabel="minutes of learning")
            axes.grid(alpha=0.3)
        figure.suptitle(drawable(title))


def _having(rows: list[dict[str, float]], *names: str) -> list[dict[str, float]]:
    return [row for row in rows if row.keys() >= set(names)]
