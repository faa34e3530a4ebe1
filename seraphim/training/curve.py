"""The learning curve of a model: a CSV file with a line for each generation, over all calls of `learn`.

Columns: `step` (batches trained on), `seconds` (of learning so far), what was done so far (`games`, and
`evaluations` by the network), and the figures of the check against solved positions.
"""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from seraphim.errors import SettingsError
from seraphim.storage.atomic import replace_file

CURVE = "curve.csv"
"""The file's name in a model's folder."""

_FIRST = ("step", "seconds")


class LearningCurve:
    """A file that grows by a line at a time."""

    def __init__(self, file: Path) -> None:
        """Go on with `file`, or begin it."""
        self._file = file
        self._rows = read_curve(file)

    @property
    def lines(self) -> int:
        """Return how many generations there are."""
        return len(self._rows)

    def add(self, step: int, seconds: float, done: Mapping[str, float], figures: Mapping[str, float]) -> None:
        """Add a generation.

        Args:
            step: batches that its snapshot has been trained on.
            seconds: that it took.
            done: what it did, by name; the file tells the sums.
            figures: what it reached, by name; a figure that earlier lines lack is empty there.
        """
        before = self._rows[-1] if self._rows else {}
        sums = {name: before.get(name, 0.0) + value for name, value in {"seconds": seconds, **done}.items()}
        self._rows.append({"step": step, **sums, **figures})
        names = list(dict.fromkeys([*_FIRST, *(name for row in self._rows for name in row)]))
        stream = io.StringIO()
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(
            {name: f"{value:g}" if name != "step" else value for name, value in row.items()} for row in self._rows
        )
        replace_file(self._file, stream.getvalue().encode())


def read_curve(file: Path) -> list[dict[str, float]]:
    """Return the lines of a learning curve, each by column; none if there is no such file."""
    if not file.is_file():
        return []
    with file.open(newline="") as stream:
        return [{name: float(text) for name, text in row.items() if text} for row in csv.DictReader(stream)]


def plot_curve(rows: list[dict[str, float]], file: Path, title: str) -> None:
    """Draw the share of mistakes in each set over the minutes of learning, with and without search.

    Args:
        rows: of `read_curve`, at least one.
        file: to be written; its ending decides the format, such as png or svg.
        title: of the picture.

    Raises:
        SettingsError: the picture needs a package that is not installed, or has an unknown format.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SettingsError("a picture needs matplotlib: pip install -e '.[arena]'") from error
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
    try:
        figure.savefig(file)
    except ValueError as error:
        raise SettingsError(f"{file} cannot be drawn: {error}") from error
