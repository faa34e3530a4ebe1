"""Generate the solved positions of connect four or Othello: positions of random games, every move solved.

    seraphim generate-positions --split=test
    seraphim generate-positions --game=othello --sets=12-empty

writes GAME/positions/SPLIT/*.txt, or continues where it was stopped; a complete file is left as it is. To regenerate
files, delete them. The same seed gives the same positions, however often the program was interrupted. No position of a
test set is in the validation set of its kind, nor in the former test set.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from seraphim import cli

GAME = flags.DEFINE_enum("game", "connectfour", ["connectfour", "othello"], "The game.")
SETS = flags.DEFINE_list("sets", None, "Comma-separated names of the sets. Default: all.")
COUNT = flags.DEFINE_integer("count", 1000, "Positions of each set; without --folder, at most its own.", lower_bound=1)
MINUTES = flags.DEFINE_float("minutes", None, "Time limit for each set. Default: none.", lower_bound=0)
SPLIT: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "split", "validation", ["validation", "test"], "Sets to choose models by, or sets for reported figures."
)
SEED = flags.DEFINE_integer("seed", None, "Random seed of the positions. Default: the split's own.", lower_bound=0)
TABLE = flags.DEFINE_integer("table", 1024, "Size of connect four's solver's table in megabytes.", lower_bound=2)
FOLDER = flags.DEFINE_string("folder", None, "Folder to write to. Default, in a clone: the folder of the package.")

SHORT = {"begin-easy": 500, "begin-medium": 500, "begin-hard": 501}
"""Positions of the validation sets that come with Seraphim; the others and the test sets have 1,000."""

PLAYERS = ("mcts:50", "mcts:100", "minimax:2")  # of the games of Othello


def main(arguments: Sequence[str]) -> None:
    """Generate."""
    import connectfour.positions
    import othello.positions
    from seraphim.errors import CLONE, SettingsError

    if len(arguments) > 1:
        raise SettingsError(f"expected only flags, not {arguments[1]!r}")
    cli.refuse_flags(GAME.value == "othello", "table", because="the solver of Othello needs none so large")
    positions: Any = connectfour.positions if GAME.value == "connectfour" else othello.positions
    known = list(connectfour.positions.NAMES if GAME.value == "connectfour" else othello.positions.EMPTY_CELLS)
    unknown = set(SETS.value or []) - set(known)
    if unknown:
        raise SettingsError(f"there is no set {min(unknown)!r}: expected some of {','.join(known)}")
    if not (FOLDER.value or CLONE):
        raise SettingsError("the sets of an installed game stay as they are: add --folder=FOLDER")
    too_small = [name for name in SETS.value or known if COUNT.present and COUNT.value > _count(name)]
    if too_small:
        size = f"{too_small[0]} comes with Seraphim and has {_count(too_small[0]):,} positions"
        raise SettingsError(f"{size}: add --folder=FOLDER for another set, or lower --count")
    folder = Path(FOLDER.value) if FOLDER.value else positions.FOLDER / SPLIT.value
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETS.value or known:
        began, found = time.monotonic(), 0
        excluded = positions.states_outside_test(name) if SPLIT.value == "test" else None
        lines = _of_connectfour if GAME.value == "connectfour" else _of_othello
        for found, line in enumerate(lines(name, folder, excluded), start=1):
            if sys.stdout.isatty():
                print(f"\r{name}: {found} more, {line[-80:]:80}", end="", flush=True)
            if MINUTES.value is not None and time.monotonic() - began > 60 * MINUTES.value:
                break
        print(f"{name}: {found} more positions in {time.monotonic() - began:.0f} s")


def _count(name: str) -> int:
    size = SHORT.get(name, 1000) if SPLIT.value == "validation" else 1000
    return COUNT.value if FOLDER.value else min(COUNT.value, size)


def _of_connectfour(name: str, folder: Path, excluded: Any) -> Iterator[str]:
    from connectfour.positions.generator import SEEDS, generate
    from connectfour.solver import Solver

    seed = SEEDS[SPLIT.value] if SEED.value is None else SEED.value
    yield from generate(name, _count(name), seed, folder, Solver(TABLE.value), None, excluded)


def _of_othello(name: str, folder: Path, excluded: Any) -> Iterator[str]:
    from othello.positions.generator import SEEDS, generate
    from seraphim.players.roster import Roster

    seed = SEEDS[SPLIT.value] if SEED.value is None else SEED.value
    entrants = Roster(Path(), "othello", games=2, seed=seed).entrants(PLAYERS)
    yield from generate(name, _count(name), seed, folder, [each.load() for each in entrants], excluded)
