"""Checks every suitable game of OpenSpiel: the contract, then games of self-play and their records.

    python benchmarks/openspiel_games.py                  # all of them
    python benchmarks/openspiel_games.py hex othello      # some

prints a row for each game, and exits with 1 if one of them failed.
"""

import argparse
import itertools
import sys
import time

import numpy as np

from seraphim.errors import SeraphimError
from seraphim.game import Game, load_game
from seraphim.game.conformance import check_game
from seraphim.game.openspiel import PREFIX, playable_games
from seraphim.options import SearchOptions, SelfPlayOptions
from seraphim.records.examples import decode, encode_games
from seraphim.search.evaluator import Uniform
from seraphim.selfplay.games import SelfPlay

RANDOM_GAMES = 5
COLUMNS = ("game", "actions", "observation", "positions checked", "games", "plies", "cut off", "duplicates", "seconds")


def play(game: Game, games: int, readouts: int) -> tuple[float, int]:
    """Return the mean plies of games of self-play, and how many were cut off; check that records are read back."""
    options = SelfPlayOptions(concurrent_games=games, random_plies=0)
    player = SelfPlay(game, Uniform(game), SearchOptions(readouts=readouts, solver=False), options, stream="openspiel")
    plies, cut_off = [], 0
    for record in itertools.islice(player.play(iter(range(games))), games):
        (examples,) = encode_games(game, [record])
        positions = decode(game, examples)
        if not np.array_equal(positions.actions, record.actions):
            raise SystemExit(f"{game.name}: a game was not read back as it was written")
        plies.append(len(examples))
        cut_off += not positions.value_weights[-1]
    if len(plies) != games:
        raise SystemExit(f"{game.name}: {len(plies)} of {games} games were finished")
    return float(np.mean(plies)), cut_off


def main() -> None:
    """Check and play the games."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names in OpenSpiel; by default all games without parameters")
    parser.add_argument("--games", type=int, default=50, help="games of self-play")
    parser.add_argument("--readouts", type=int, default=8, help="readouts per move")
    arguments = parser.parse_args()
    names, failed = arguments.names or playable_games(), 0
    print(f"| {' | '.join(COLUMNS)} |\n| {' | '.join(['---'] * len(COLUMNS))} |", flush=True)
    for name in names:
        started = time.perf_counter()
        try:
            game = load_game(PREFIX + name)
            report = check_game(game, RANDOM_GAMES)
            plies, cut_off = play(game, arguments.games, arguments.readouts)
        except SeraphimError as error:
            failed += 1
            print(f"| {name} | failed: {error} |", flush=True)
            continue
        shape = "×".join(map(str, game.observation_shape))
        cells = (name, game.num_actions, shape, f"{report.positions:,}", arguments.games, f"{plies:.0f}", cut_off)
        seconds = time.perf_counter() - started
        print(f"| {' | '.join(map(str, cells))} | {report.duplicates:,} | {seconds:.0f} |", flush=True)
    print(f"\n{len(names) - failed} of {len(names)} games satisfy the contract and were played")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
