"""The program `train.py`: makes a new model, or trains its champion on the games it has played."""

import sys
from collections.abc import Callable, Collection, Sequence

from seraphim import cli
from seraphim.effects import Part
from seraphim.errors import SettingsError
from seraphim.game import load_game
from seraphim.settings import default_settings
from seraphim.training.trainer import bootstrap, retrain

STORED: list[Part] = ["creation", "self_play", "cycle", "training", "gate", "checks", "evaluation", "analysis"]
"""The parts of a run whose options a new model stores."""


def define_command(
    game: str | None = None, presets: Collection[str] = ("such as deepfour for connectfour",)
) -> Callable[[Sequence[str]], None]:
    """Define the flags of `train.py`, and return its `main`.

    Args:
        game: package or module of the only game; None for any, which --game names.
        presets: of that game.
    """
    init, seed = cli.define_init()
    any_game = None if game else cli.define_game()
    preset = cli.define_preset(f"Settings that a new model starts from: {', '.join(presets)}.")
    cli.define_tracking()
    cli.define_options(STORED)
    cli.define_trust()

    def main(arguments: Sequence[str]) -> None:
        folder = cli.model_to_write(arguments, new=init.value)
        name = game if any_game is None else any_game.value
        cli.refuse_flags(init.value, "mlflow", because="making a model is not tracked")
        if init.value:
            if name is None:
                raise SettingsError("which game? Add --game=GAME, such as --game=tictactoe")
            settings = cli.with_flags(default_settings(name, preset.value), STORED)
            print(f"champion {bootstrap(folder, load_game(name), settings, seed.value).name}")
        else:
            settings = cli.check_preset(folder.settings(name), preset.value)
            settings = cli.with_flags(settings, ["training", "gate"])
            rules, quiet = load_game(settings.game), not sys.stdout.isatty()
            with cli.tracking(folder, "train", settings, seed=seed.value) as log:
                print(retrain(folder, rules, settings, seed.value, quiet=quiet, log=log))

    return main
