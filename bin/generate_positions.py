"""Generate the solved positions of connect four: random positions, every move solved, sorted into six sets.

    python bin/generate_positions.py --split=test

writes connectfour/positions/test/*.txt, or continues where it was stopped; a complete file is left as it is. To
regenerate files, delete them. The same seed gives the same positions, however often the program was interrupted. No
position of a test set is in the validation set of its kind.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags

from seraphim import cli

SETS = flags.DEFINE_list("sets", None, "Comma-separated names of the sets. Default: all.")
COUNT = flags.DEFINE_integer("count", 1000, "Positions of each set.", lower_bound=1)
MINUTES = flags.DEFINE_float("minutes", None, "Time limit for each set. Default: none.", lower_bound=0)
SPLIT: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "split", "validation", ["validation", "test"], "Sets to choose models by, or sets for reported figures."
)
SEED = flags.DEFINE_integer("seed", None, "Random seed of the positions. Default: the split's own.", lower_bound=0)
TABLE = flags.DEFINE_integer("table", 1024, "Size of the solver's table in megabytes.", lower_bound=2)
FOLDER = flags.DEFINE_string("folder", None, "Folder to write to. Default: the folder of the package.")


def main(arguments: Sequence[str]) -> None:
    """Generate."""
    from connectfour import positions
    from connectfour.positions.generator import SEEDS, generate
    from connectfour.solver import Solver
    from seraphim.errors import SettingsError

    if len(arguments) > 1:
        raise SettingsError(f"expected only flags, not {arguments[1]!r}")
    unknown = set(SETS.value or []) - set(positions.NAMES)
    if unknown:
        raise SettingsError(f"there is no set {min(unknown)!r}: expected some of {','.join(positions.NAMES)}")
    folder = Path(FOLDER.value) if FOLDER.value else positions.FOLDER / SPLIT.value
    seed = SEEDS[SPLIT.value] if SEED.value is None else SEED.value
    folder.mkdir(parents=True, exist_ok=True)
    seconds = None if MINUTES.value is None else 60 * MINUTES.value
    solver = Solver(TABLE.value)
    for name in SETS.value or positions.NAMES:
        began, found = time.monotonic(), 0
        excluded = positions.read_positions(name).states if SPLIT.value == "test" else None
        lines = generate(name, COUNT.value, seed, folder, solver, seconds, excluded)
        for found, line in enumerate(lines, start=1):
            if sys.stdout.isatty():
                print(f"\r{name}: {found} more, {line:80}", end="", flush=True)
        print(f"{name}: {found} more positions in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    cli.run(main)
