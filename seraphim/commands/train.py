"""Training: makes a new model, or trains the champion of a model on the games it has played.

    seraphim train NAME --init --game=hex    # models/NAME, with random weights
    seraphim train NAME                      # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs.
"""

import sys
from collections.abc import Sequence

from absl import flags

from seraphim import cli
from seraphim.options import MOST_SEED, Part

STORED: list[Part] = ["creation", "self_play", "cycle", "training", "gate", "checks", "evaluation", "analysis"]
"""The parts of a run whose options a new model stores."""

INIT = flags.DEFINE_bool("init", False, "Make a new model; the flags given are stored in its settings.json.")
SEED = flags.DEFINE_integer("seed", 0, "The same seed gives the same weights, and the same batches.", 0, MOST_SEED)
GAME = cli.define_game()
PRESET = cli.define_preset()
cli.define_tracking()
cli.define_options(STORED)
cli.define_trust()


def main(arguments: Sequence[str]) -> None:
    """Make a model, or train it."""
    from seraphim.errors import SettingsError
    from seraphim.game import load_game
    from seraphim.settings import default_settings
    from seraphim.training.trainer import bootstrap, retrain

    folder = cli.model_to_write(arguments, new=INIT.value)
    cli.refuse_flags(INIT.value, "mlflow", because="making a model is not tracked")
    if INIT.value:
        if GAME.value is None:
            raise SettingsError("which game? Add --game=GAME, such as --game=tictactoe")
        settings = cli.with_flags(default_settings(GAME.value, PRESET.value), STORED)
        print(f"champion {bootstrap(folder, load_game(GAME.value), settings, SEED.value).name}")
        return
    settings = cli.check_preset(folder.settings(GAME.value), PRESET.value)
    settings = cli.with_flags(settings, ["training", "gate"])
    game, quiet = load_game(settings.game), not sys.stdout.isatty()
    with cli.tracking(folder.name, "train", settings, seed=SEED.value) as log:
        print(retrain(folder, game, settings, SEED.value, quiet=quiet, log=log))
