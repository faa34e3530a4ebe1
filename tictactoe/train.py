"""Training: makes a new model of tic-tac-toe, or trains its champion on the games it has played.

    python tictactoe/train.py NAME --init      # models/NAME, with random weights
    python tictactoe/train.py NAME --init --preset=keras-tictactoe
    python tictactoe/train.py NAME             # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs.
"""

import sys
from collections.abc import Sequence

from absl import flags

from seraphim import cli
from seraphim.effects import Part
from tictactoe.presets import PRESETS

GAME_NAME = "tictactoe"
STORED: list[Part] = ["creation", "self_play", "cycle", "training", "gate", "checks", "evaluation", "analysis"]

INIT = flags.DEFINE_bool("init", False, "Make a new model; the flags given are stored in its settings.json.")
SEED = flags.DEFINE_integer("seed", 0, "The same seed gives the same weights, and the same batches.", lower_bound=0)
PRESET = cli.define_preset(f"Settings that a new model starts from: {', '.join(PRESETS)}.")
cli.define_tracking()
cli.define_options(STORED)
cli.define_trust()


def main(arguments: Sequence[str]) -> None:
    """Make or train a model."""
    from seraphim.game import load_game
    from seraphim.settings import default_settings
    from seraphim.training.trainer import bootstrap, retrain

    folder = cli.model_folder(arguments)
    game = load_game(GAME_NAME)
    cli.refuse_flags(INIT.value, "mlflow", because="making a model is not tracked")
    if INIT.value:
        settings = cli.with_flags(default_settings(GAME_NAME, PRESET.value), STORED)
        print(f"champion {bootstrap(folder, game, settings, SEED.value).name}")
    else:
        settings = cli.check_preset(folder.settings(GAME_NAME), PRESET.value)
        settings = cli.with_flags(settings, ["training", "gate"])
        with cli.tracking(folder, "train", settings, seed=SEED.value) as log:
            print(retrain(folder, game, settings, SEED.value, quiet=not sys.stdout.isatty(), log=log))


if __name__ == "__main__":
    cli.run(main)
