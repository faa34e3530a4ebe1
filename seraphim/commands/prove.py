"""Proves what a player can force from a position: a win, or at least a draw.

    seraphim prove NAME                                  # the result of the initial position, by the model NAME
    seraphim prove NAME --position=4453 --for=first      # whether the first player wins after these moves
    seraphim prove --game=tictactoe                      # without a model

The network guides the search and decides nothing. The proof, a move for every position that its player can be led to,
is written to models/NAME/start.proof, which seraphim check-proof checks by the rules of the game alone. Ctrl-C or
--hours ends the search, and the same command goes on from start.proof.part. Without a model of your own the file is
NAME-start.proof, or tictactoe-start.proof.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags

from seraphim import cli

GOALS = ["result", "first", "second", "draw"]

GAME = flags.DEFINE_string("game", None, "Package or module of the game, instead of a model: no network guides then.")
POSITION = flags.DEFINE_string("position", "", "The moves that lead to the position.")
GOAL: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "for", "result", GOALS, "Whether the first or the second player wins, whether neither does; or whichever is true."
)
HOURS = flags.DEFINE_float("hours", None, "Limit on the time. Default: none.", lower_bound=0)
MEGABYTES = flags.DEFINE_integer("megabytes", 4096, "Memory for positions.", lower_bound=1)
OUT = flags.DEFINE_string("out", None, "File. Default: models/NAME/POSITION.proof, which the explorer shows.")
cli.define_model()


def main(arguments: Sequence[str]) -> None:
    """Prove."""
    from seraphim.errors import SettingsError
    from seraphim.game.saved_games import read_position
    from seraphim.inference.interface import LARGEST_BATCH
    from seraphim.machine import count_cores
    from seraphim.players.model import Model
    from seraphim.proof.display import show, summarize
    from seraphim.proof.proving import Limits, prove

    cli.check_folders(OUT.value)
    if GAME.value:
        if len(arguments) > 1:
            raise SettingsError("--game is for a proof without a model: leave it out, or the name")
        cli.refuse_flags(True, "snapshot", "runtime", because="--game runs no network")
        model, prefix = Model(GAME.value), re.sub(r"\W+", "-", GAME.value) + "-"
    else:
        folder, model = cli.model_to_read(arguments), cli.load_model(arguments)
        prefix = f"{folder.path}/" if cli.is_own(folder) else f"{folder.name}-"
    inferences = model.inferences(LARGEST_BATCH, count_cores())
    if not GAME.value:
        print(f"{model.name}, {model.snapshot}: {inferences[0].description}")
    position = read_position(model.origin, POSITION.value)
    moves = re.sub(r"\W+", "-", POSITION.value.strip()) or "start"
    out = Path(OUT.value or f"{prefix}{moves}.proof")
    limits = Limits(math.inf if HOURS.value is None else 3600 * HOURS.value, MEGABYTES.value)
    news = False
    with show() as report:
        for decision in prove(model.origin, position, GOAL.value, inferences, limits, out, report):
            print(summarize(decision), flush=True)
            news = True
    if out.exists():
        print(f"{out}{'' if news else ' holds this proof already'}: seraphim check-proof checks it")
