"""How many points the plays of a model of backgammon lose, by GNU Backgammon's analysis.

    PYTHONPATH=. python benchmarks/backgammon_errors.py backgammon --games=200

plays a model against `gnubg:0`, each sequence of rolls twice with the sides swapped, and prints for both what a play of
a roll loses that can be played in several ways: by GNU Backgammon, which looks --plies ahead.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import seraphim
from seraphim.evaluation.intervals import Mean
from seraphim.evaluation.match import make_openings, play_games
from seraphim.machine import count_cores
from seraphim.players.external.gnubg import gnubg_player, lost_points


def main() -> None:
    """Play, analyze, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--plies", type=int, default=2, help="of the analysis, 0 to 4")
    arguments = parser.parse_args()
    model = seraphim.load(arguments.model)
    opponent, count = gnubg_player(model.game, "0"), arguments.games // 2
    seats = np.repeat([[0, 1], [1, 0]], count, axis=0)
    openings = make_openings(model.game, count, 0).repeated(2)
    played = play_games(model.game, (model.player(), opponent), seats, openings)
    opponent.close()
    with ThreadPoolExecutor(count_cores()) as threads:
        games = list(threads.map(lambda moves: lost_points(model.game, moves, arguments.plies), played.moves))
    print("| player | plays | points lost by a play [95 %, of the means of games] |\n|" + " --- |" * 3)
    for player, name in enumerate((arguments.model, "gnubg:0")):
        losses = [
            np.array([points for _, seat, points in game if seats[number, seat] == player])
            for number, game in enumerate(games)
        ]
        total, plays = sum(each.sum() for each in losses), sum(map(len, losses))
        low, high = Mean.of(np.array([each.mean() for each in losses if len(each)])).interval
        print(f"| {name} | {plays:,} | {total / plays:.4f} [{low:.4f}, {high:.4f}] |")


if __name__ == "__main__":
    main()
