"""Measures a model's errors in solved positions, by the network alone and by searches of several sizes.

    seraphim evaluate NAME                                   # in the test sets that the game offers
    seraphim evaluate NAME --split=validation                # in the sets that learning is checked against
    seraphim evaluate NAME --engine="gtp:gtp-rhino"          # another program's errors beside them
    seraphim evaluate NAME --positions=FILE --out=moves.csv  # writes its moves in other positions

FILE has one position per line, as the moves that lead to it (for connect four digits, 4453); the rest of the line after
a space is ignored. moves.csv has the network's move, the move, value (for the player to move) and visits of a search.
"""

import sys

sys.path.insert(0, __file__.rpartition("/")[0])  # for PYTHONSAFEPATH, too
from _installed import flags
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seraphim import cli

SEARCHES = flags.DEFINE_list("searches", ["0", "100", "400", "800"], "Readouts of each search; 0: the network alone.")
SPLIT: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "split", None, ["validation", "test"], "Which sets of the game. Default: test if offered, else validation."
)
SNAPSHOT = flags.DEFINE_string("snapshot", None, "Snapshot of models/NAME, or a path. Default: the champion.")
POSITIONS = flags.DEFINE_string("positions", None, "File of positions to choose moves in.")
OUT = flags.DEFINE_string("out", "moves.csv", "File for the moves in --positions, by the largest of --searches.")
ENGINE = flags.DEFINE_string("engine", None, "Another program to measure, too: gtp:COMMAND or uci:COMMAND.")
MAX_POSITIONS = flags.DEFINE_integer("max_positions", None, "Positions of each set. Default: all.", lower_bound=1)
RUNTIME, WORKERS = cli.define_workers()
cli.define_tracking()
cli.define_options(["evaluation"])
cli.define_trust()


def main(arguments: Sequence[str]) -> None:
    """Evaluate."""
    from seraphim.errors import SettingsError
    from seraphim.evaluation import error_rates, position_lists
    from seraphim.game import load_game
    from seraphim.inference import load_inference
    from seraphim.machine import count_cores
    from seraphim.players import choose as players
    from seraphim.players.external.load import load_engine

    folder = cli.model_to_read(arguments)
    if not SEARCHES.value or not all(text.strip().isdecimal() and len(text) < 10 for text in SEARCHES.value):
        raise SettingsError(f"--searches must be whole numbers separated by commas, not {','.join(SEARCHES.value)!r}")
    readouts = sorted({int(text) for text in SEARCHES.value})
    replaced = "--positions replaces the game's sets"
    cli.refuse_flags(bool(POSITIONS.value), "split", "max_positions", "mlflow", "engine", because=replaced)
    cli.refuse_flags(not POSITIONS.value, "out", because="it is for --positions")
    settings = cli.with_flags(folder.settings(), ["evaluation"] if any(readouts) or POSITIONS.value else [])
    game = load_game(settings.game)
    snapshot = folder.choose(SNAPSHOT.value)
    cli.check_folders(OUT.value)
    listed = position_lists.read_positions(settings.game, Path(POSITIONS.value)) if POSITIONS.value else None
    inferences = [
        load_inference(snapshot.path, game, RUNTIME.value, trust=cli.FLAGS.trust)
        for _ in range(WORKERS.value or count_cores())
    ]
    print(f"{folder.name}, {snapshot.name}: {inferences[0].description}")
    raw = players.raw_player(game, inferences[0])
    if listed is not None:
        options = replace(settings.search, readouts=max(1, *readouts))
        found = players.search_positions(game, inferences, options, listed.states)
        position_lists.write_moves(Path(OUT.value), game, listed, raw(listed.states), found)
        print(f"{len(listed.states):,} positions, {options.readouts} readouts: {OUT.value}")
        return
    split = SPLIT.value or position_lists.default_split(settings.game)
    sets = position_lists.load_sets(settings.game, split, MAX_POSITIONS.value)
    if not sets:
        raise SettingsError(f"{settings.game} offers no {split} sets of solved positions: give a file with --positions")
    compared = {"network": raw} if 0 in readouts else {}
    for number in filter(None, readouts):
        options = replace(settings.search, readouts=number)
        compared[f"{number:,} readouts"] = players.search_player(game, inferences, options)
    if ENGINE.value:
        engine = load_engine(game, ENGINE.value)
        compared[engine.title] = engine
    with cli.tracking(folder, "evaluate", settings, snapshot=snapshot.name) as log:
        errors = error_rates.measure_errors(compared, sets)
        print(error_rates.errors_table(errors))
        calibration = error_rates.calibrate(game, inferences[0], sets)
        print(error_rates.calibration_table(calibration))
        log.write(snapshot.step, error_rates.figures(errors) | {"value/squared_error": calibration.squared_error})


if __name__ == "__main__":
    cli.run(main)
