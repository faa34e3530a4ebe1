"""Whether the engine keeps to its clock on a busy machine: many games at once by GTP, each against random moves.

    PYTHONPATH=. python benchmarks/engine_clock.py connectfour --games=200 --seconds=10               # for a game
    PYTHONPATH=. python benchmarks/engine_clock.py connectfour --games=200 --seconds=1 --per_move

Prints how many games were lost on time, and how much of the time the slowest game or move took. Each of the --at_once
games has a process of its own, so there are more of them than cores.
"""

import shlex
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from absl import flags

from seraphim import cli
from seraphim.game import Game, load_game
from seraphim.players.external.gtp import GtpEngine
from seraphim.players.external.move_names import COLORS

GAMES = flags.DEFINE_integer("games", 200, "Games to play.", lower_bound=1)
SECONDS = flags.DEFINE_integer("seconds", 10, "Time for a game, or with --per_move for a move.", lower_bound=1)
PER_MOVE = flags.DEFINE_bool("per_move", False, "The time is for each move.")
AT_ONCE = flags.DEFINE_integer("at_once", 8, "Games that are played at the same time.", lower_bound=1)
cli.define_trust()


def play(name: str, game: Game, number: int) -> tuple[float, int]:
    """Play a game; return the time of the engine's slowest move, or of all its moves, and how many it made."""
    random, own = np.random.default_rng(number), number % 2
    engine = GtpEngine(game, shlex.join([sys.executable, "bin/engine.py", name]))
    engine.ask(f"time_settings 0 {SECONDS.value} 1" if PER_MOVE.value else f"time_settings {SECONDS.value} 0 0")
    state, moves, times = game.initial(1), list[int](), list[float]()
    while legal := np.flatnonzero(game.legal(state)[0]).tolist():
        player = int(game.to_play(state)[0])
        if player == own:
            began = time.monotonic()
            action = engine.choose(tuple(moves))
            times.append(time.monotonic() - began)
            if not PER_MOVE.value:
                engine.ask(f"time_left {COLORS[player]} {max(0, int(SECONDS.value - sum(times)))} 0")
        else:
            action = int(random.choice(legal))
        moves.append(action)
        state = game.step(state, np.array([action]))
    return (max(times) if PER_MOVE.value else sum(times)), len(times)


def main(arguments: Sequence[str]) -> None:
    """Play all games."""
    folder = cli.model_to_read(arguments)
    game = load_game(folder.settings().game)
    with ThreadPoolExecutor(AT_ONCE.value) as pool:
        played = list(pool.map(lambda number: play(folder.name, game, number), range(GAMES.value)))
    times, moves = np.array([each[0] for each in played]), sum(each[1] for each in played)
    unit = "move" if PER_MOVE.value else "game"
    print(
        f"{GAMES.value} games, {moves:,} moves, {SECONDS.value} s for a {unit}, {AT_ONCE.value} games at once: "
        f"{(times > SECONDS.value).sum()} lost on time; the slowest {unit} took {times.max():.2f} s, the median one "
        f"{np.median(times):.2f} s"
    )


if __name__ == "__main__":
    cli.run(main)
