"""The whole loop: generate games, train, check, and repeat until the player is perfect.

    seraphim learn NAME --game=tictactoe
    seraphim learn NAME --game=connectfour --preset=deepfour --hours=2 --mlflow
    seraphim learn NAME --cluster=auto

creates the model if there is none of that name, or continues with it. Ctrl-C loses no finished game; the same command
continues from there. If the game has solved positions, the model is checked against them after every generation. For
every game its champions play matches in at most 3 % of the time, and are rated in Elo above random play.
"""

import sys
from collections.abc import Sequence

from absl import flags

from seraphim import cli
from seraphim.effects import has_checks
from seraphim.machine import INTERRUPTED
from seraphim.options import MOST_SEED, Part
from seraphim.settings import Goal

PARTS: list[Part] = ["creation", "self_play", "cycle", "training", "gate", "checks"]
GAME = cli.define_game()
PRESET = cli.define_preset()
GOAL = cli.define_choice("goal", Goal, "network", "Stop when the search, or also the network alone, has no mistakes.")
GENERATIONS = flags.DEFINE_integer("generations", None, "Stop after this number of trainings.", lower_bound=1)
HOURS = flags.DEFINE_float("hours", None, "Stop after the first generation that ends later.", lower_bound=0)
SEED = flags.DEFINE_integer("seed", 0, "The same seed gives the same weights, games and batches.", 0, MOST_SEED)
RUNTIME, WORKERS = cli.define_workers()
CLUSTER = cli.define_cluster()
cli.define_tracking()
cli.define_options(PARTS)
cli.define_trust()


def main(arguments: Sequence[str]) -> int:
    """Learn."""
    from seraphim.game import load_game
    from seraphim.settings import default_settings
    from seraphim.training.loop import Run, learn
    from seraphim.training.trainer import bootstrap

    folder = cli.model_to_write(arguments, new=GAME.value is not None)
    new_game = GAME.value if folder.is_new() else None
    if new_game:
        settings = default_settings(new_game, PRESET.value)
    else:
        cure = f"seraphim learn {folder.name} --game=GAME"
        settings = cli.check_preset(folder.settings(GAME.value, cure), PRESET.value)
    settings = cli.with_flags(settings, PARTS)
    unchecked = GOAL.value != "none" and not has_checks(settings.game)
    cli.refuse_flags(unchecked, "goal", because=f"{settings.game} offers no solved positions")
    run = Run(
        goal=GOAL.value,
        generations=GENERATIONS.value,
        hours=HOURS.value,
        seed=SEED.value,
        runtime=RUNTIME.value,
        num_workers=WORKERS.value,
        cluster=CLUSTER.value,
        quiet=not sys.stdout.isatty(),
    )
    if new_game:
        champion = bootstrap(folder, load_game(new_game), settings, SEED.value)
        print(f"created model {folder.name}, random weights {champion.name}, in {folder.path}")
    with cli.tracking(folder.name, "learn", settings, seed=SEED.value) as log:
        result = learn(folder, settings, run, log=log)
    if result.generations:
        print(result.timing)
    if result.interrupted:
        print("interrupted: all finished games are kept; the same command continues from here")
        return INTERRUPTED
    perfect = " plays perfectly" if result.evaluation and result.evaluation.perfect else ""
    generations = f"{result.generations} generation{'' if result.generations == 1 else 's'}"
    print(f"champion {result.champion.path}{perfect} after {generations}, {result.seconds:.0f} s")
    return 0
