"""Draws the learning curve of a model over the minutes of seraphim learn: mistakes in solved positions, and strength.

    seraphim curve NAME --out=curve.png

The figures are in models/NAME/curve.csv.
"""

from collections.abc import Sequence
from pathlib import Path

from absl import flags

from seraphim import cli

OUT = flags.DEFINE_string("out", "curve.png", "The picture: .png, .svg or .pdf.")
cli.define_trust()


def main(arguments: Sequence[str]) -> None:
    """Draw."""
    from seraphim.errors import SettingsError
    from seraphim.training.curve import CURVE, plot_curve, read_curve

    cli.check_folders(OUT.value)
    folder = cli.model_to_read(arguments)
    folder.champion()  # fails if there is no such model
    rows = read_curve(folder.path / CURVE)
    if not any("/" in name for row in rows for name in row):
        raise SettingsError(
            f"{folder.path / CURVE} has no checks or matches yet: run seraphim learn {folder.name} for a while"
        )
    plot_curve(rows, Path(OUT.value), f"{folder.name}, {len(rows)} generations")
    print(OUT.value)
