"""The whole cycle: generate games, train, check, and repeat until the player is perfect.

    python bin/learn.py NAME --game=tictactoe
    python bin/learn.py NAME --game=connectfour --preset=deepfour --hours=2 --mlflow
    python bin/learn.py NAME --cluster=auto

makes the model if there is none of that name, or goes on with it. Ctrl-C loses no finished game; the same command goes
on from there. Where a game has solved positions, the model is checked against all of them after every generation.
"""

import sys
from collections.abc import Sequence

from absl import flags

from seraphim import cli
from seraphim.effects import Part, has_checks
from seraphim.training.loop import Goal

PARTS: list[Part] = ["creation", "self_play", "cycle", "training", "gate", "checks"]
GAME = flags.DEFINE_string("game", None, "Package or module of the game of a new model, for instance tictactoe.")
PRESET = cli.define_preset("Settings that a new model starts from, such as deepfour for connectfour.")
GOAL = cli.define_choice("goal", Goal, "network", "Stop when the search, or the network alone too, has no mistakes.")
GENERATIONS = flags.DEFINE_integer("generations", None, "Stop after so many trainings.", lower_bound=1)
HOURS = flags.DEFINE_float("hours", None, "Stop after the first generation that ends later.", lower_bound=0)
SEED = flags.DEFINE_integer("seed", 0, "The same seed gives the same weights, games and batches.", lower_bound=0)
RUNTIME, WORKERS = cli.define_workers()
CLUSTER = cli.define_cluster()
cli.define_tracking()
cli.define_options(PARTS)
cli.define_trust()


def main(arguments: Sequence[str]) -> int:
    """Learn."""
    from seraphim.game import load_game
    from seraphim.settings import default_settings
    from seraphim.training.loop import Stop, learn
    from seraphim.training.trainer import bootstrap

    folder = cli.model_folder(arguments)
    new_game = GAME.value if folder.is_new() else None
    if new_game:
        settings = default_settings(new_game, PRESET.value)
    else:
        settings = cli.check_preset(folder.settings(GAME.value), PRESET.value)
    settings = cli.with_flags(settings, PARTS)
    unknowable = GOAL.value != "none" and not has_checks(settings.game)
    cli.refuse_flags(unknowable, "goal", because=f"{settings.game} offers no solved positions")
    if new_game:
        champion = bootstrap(folder, load_game(new_game), settings, SEED.value)
        print(f"made model {folder.name}, random weights {champion.name}, in {folder.path}")
    stop = Stop(GOAL.value, GENERATIONS.value, HOURS.value)
    quiet = not sys.stdout.isatty()
    with cli.tracking(folder, "learn", settings, seed=SEED.value) as log:
        workers = {"runtime": RUNTIME.value, "num_workers": WORKERS.value, "cluster": CLUSTER.value}
        learnt = learn(folder, settings, SEED.value, stop, **workers, quiet=quiet, log=log)
    if learnt.generations:
        print(learnt.pace)
    if learnt.interrupted:
        print("interrupted: all finished games are kept; the same command goes on from here")
        return 130
    perfect = " and plays perfectly" if learnt.evaluation and learnt.evaluation.perfect else ""
    print(f"champion {learnt.champion.path}{perfect} after {learnt.generations} generations, {learnt.seconds:.0f} s")
    return 0


if __name__ == "__main__":
    cli.run(main)
