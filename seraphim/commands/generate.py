"""Generate game data: the champion of a model plays against itself.

    seraphim generate NAME

plays until --games are finished, or Ctrl-C; files appear as gamedata/NAME/batch-0000001.tfrecord and so on. If another
snapshot becomes the champion, it plays the following games.
"""

import secrets
from collections.abc import Sequence

from absl import flags

from seraphim import cli

GAMES = flags.DEFINE_integer("games", None, "Number of games. Default: until Ctrl-C.", lower_bound=1)
RUNTIME, WORKERS = cli.define_workers()
CLUSTER = cli.define_cluster()
SEED = flags.DEFINE_integer(
    "seed", None, "Random seed; the same seed and champion give the same games. Default: random."
)
cli.define_tracking()
cli.define_options(["self_play"])
cli.define_trust()


def main(arguments: Sequence[str]) -> None:
    """Generate games."""
    from seraphim.machine import say
    from seraphim.selfplay.cluster.pool import open_pool
    from seraphim.selfplay.generate import generate_games
    from seraphim.selfplay.pool import ENDLESS

    folder = cli.model_to_write(arguments)
    settings = cli.with_flags(folder.settings(), ["self_play"])
    folder.champion()  # raises an error if there is none, before the workers start
    stream = secrets.token_hex(4) if SEED.value is None else str(SEED.value)
    count = GAMES.value or ENDLESS
    with (
        cli.tracking(folder.name, "generate", settings, stream=stream) as log,
        open_pool(settings, RUNTIME.value, WORKERS.value, CLUSTER.value) as pool,
    ):
        if GAMES.value is None:
            say("playing until Ctrl-C, which loses no finished game; --games=N sets a limit")
        generated = generate_games(pool, folder, settings, stream, count, log=log)
    print(generated)
    if generated.games:
        print(f"game data: {folder.game_data}")
