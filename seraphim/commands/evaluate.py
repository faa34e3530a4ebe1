"""Measures a model's errors in solved positions, by the network alone and by searches of several sizes.

    seraphim evaluate NAME                                   # in the test sets that the game offers
    seraphim evaluate NAME --split=validation                # in the sets that learning is checked against
    seraphim evaluate NAME --engine="gtp:gtp-rhino"          # another program's errors beside them
    seraphim evaluate NAME --positions=FILE --out=moves.csv  # writes its moves in other positions

FILE has one position per line, as the moves that lead to it (for connect four digits, 4453); the rest of the line after
a space is ignored. moves.csv has the network's move, the move, value (for the player to move) and visits of a search.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags

from seraphim import cli

if TYPE_CHECKING:
    from seraphim.players.model import Model

SEARCHES = flags.DEFINE_list("searches", ["0", "100", "400", "800"], "Readouts of each search; 0: the network alone.")
SPLIT: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "split", None, ["validation", "test"], "Which sets of the game. Default: test if offered, else validation."
)
POSITIONS = flags.DEFINE_string("positions", None, "File of positions to choose moves in.")
OUT = flags.DEFINE_string("out", "moves.csv", "File for the moves in --positions, by the largest of --searches.")
ENGINE = flags.DEFINE_string(
    "engine", None, "Another program to measure, too: gnubg:PLIES, gtp:COMMAND or uci:COMMAND."
)
MAX_POSITIONS = flags.DEFINE_integer("max_positions", None, "Positions of each set. Default: all.", lower_bound=1)
WORKERS = flags.DEFINE_integer("workers", 0, "Threads that search; 0: one for each processor core.", 0, 1024)
cli.define_tracking()
cli.define_options(["evaluation"])
cli.define_model()


def main(arguments: Sequence[str]) -> None:
    """Evaluate."""
    from seraphim import api
    from seraphim.errors import SettingsError
    from seraphim.evaluation import error_rates

    if not SEARCHES.value or not all(text.strip().isdecimal() and len(text) < 10 for text in SEARCHES.value):
        raise SettingsError(f"--searches must be whole numbers separated by commas, not {','.join(SEARCHES.value)!r}")
    searches = sorted({int(text) for text in SEARCHES.value})
    replaced = "--positions replaces the game's sets"
    cli.refuse_flags(bool(POSITIONS.value), "split", "max_positions", "mlflow", "engine", because=replaced)
    cli.refuse_flags(not POSITIONS.value, "out", because="it is for --positions")
    model = cli.load_model(arguments, ["evaluation"] if any(searches) or POSITIONS.value else [])
    cli.check_folders(OUT.value)
    if POSITIONS.value:
        write_moves(model, Path(POSITIONS.value), max(1, *searches))
        return
    found = api.evaluate(
        model,
        searches,
        split=SPLIT.value,
        max_positions=MAX_POSITIONS.value,
        engine=ENGINE.value,
        threads=WORKERS.value,
    )
    print(f"{model.name}, {model.snapshot}: {found.runtime}\n{found}")
    with cli.tracking(model.name, "evaluate", model.settings, snapshot=model.snapshot) as log:
        squared_error = found.calibration.squared_error
        log.write(model.step, error_rates.figures(found.errors) | {"value/squared_error": squared_error})


def write_moves(model: "Model", positions: Path, readouts: int) -> None:
    """Write the moves of the network and of a search in the positions of a file."""
    from seraphim.evaluation import position_lists
    from seraphim.inference.interface import LARGEST_BATCH
    from seraphim.machine import count_cores
    from seraphim.players.choose import search_positions

    listed = position_lists.read_positions(model.settings.game, positions)
    inferences = model.inferences(LARGEST_BATCH, WORKERS.value or count_cores())
    print(f"{model.name}, {model.snapshot}: {inferences[0].description}")
    options = replace(model.settings.search, readouts=readouts)
    found = search_positions(model.game, inferences, options, listed.states)
    raw = model.player(0, inferences)(listed.states)
    position_lists.write_moves(Path(OUT.value), model.game, listed, raw, found)
    print(f"{len(listed.states):,} positions, {options.effort}: {OUT.value}")
