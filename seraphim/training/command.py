"""The command `train.py` of a game: makes a new model, or trains its champion on the games it has played."""

import sys
from collections.abc import Callable, Collection, Sequence

from seraphim import cli
from seraphim.effects import Part
from seraphim.game import load_game
from seraphim.settings import default_settings
from seraphim.training.trainer import bootstrap, retrain

STORED: list[Part] = ["creation", "self_play", "cycle", "training", "gate", "checks", "evaluation", "analysis"]
"""The parts of a run whose options a new model stores."""


def define_command(game_name: str, presets: Collection[str]) -> Callable[[Sequence[str]], None]:
    """Define the flags of `train.py`, and return its `main` for a game, by package or module, with these presets."""
    init, seed = cli.define_init()
    preset = cli.define_preset(f"Settings that a new model starts from: {', '.join(presets)}.")
    cli.define_tracking()
    cli.define_options(STORED)
    cli.define_trust()

    def main(arguments: Sequence[str]) -> None:
        folder, game = cli.model_folder(arguments), load_game(game_name)
        cli.refuse_flags(init.value, "mlflow", because="making a model is not tracked")
        if init.value:
            settings = cli.with_flags(default_settings(game_name, preset.value), STORED)
            print(f"champion {bootstrap(folder, game, settings, seed.value).name}")
        else:
            settings = cli.check_preset(folder.settings(game_name), preset.value)
            settings = cli.with_flags(settings, ["training", "gate"])
            with cli.tracking(folder, "train", settings, seed=seed.value) as log:
                print(retrain(folder, game, settings, seed.value, quiet=not sys.stdout.isatty(), log=log))

    return main
