"""How far a model's moves are from the exact optimum in a game that is solved.

    PYTHONPATH=. python benchmarks/optimum.py pig                              # by 100 readouts, and the network alone
    PYTHONPATH=. python benchmarks/optimum.py NAME --readouts=400
    PYTHONPATH=. python benchmarks/optimum.py cube --readouts=1000             # solves the 2,644 hardest positions

Of a game that `seraphim.game.exhaustive` solves, it prints a line for each player, see
`seraphim.evaluation.exact_play`: what is expected of its moves exactly, by the value of all positions under them. Of
the cube it prints how many of the positions farthest from the end it solves, and in how many moves.
"""

import argparse
import time

import numpy as np

import seraphim
from cube.distances import distances, position_sets
from seraphim.evaluation.exact_play import measure_play, positions_to_choose
from seraphim.game import Array, Game
from seraphim.game.exhaustive import solve
from seraphim.inference.interface import LARGEST_BATCH
from seraphim.machine import count_cores
from seraphim.players.choose import Choose, random_player

MOST_MOVES = 30  # of a cube


def solve_cubes(game: Game, choose: Choose, states: Array) -> Array:
    """Return in how many moves each position is solved, int64 [P]; MOST_MOVES + 1 where it is not."""
    moves, open_rows = np.full(len(states), MOST_MOVES + 1), np.arange(len(states))
    for number in range(1, MOST_MOVES + 1):
        states = game.step(states, choose(states))
        solved = game.outcome(states)[0]
        moves[open_rows[solved]] = number
        states, open_rows = states[~solved], open_rows[~solved]
        if not len(states):
            break
    return moves


def each_position_once(game: Game, choose: Choose) -> Choose:
    """Return a player that asks another one once for all positions that look the same to the player to move."""

    def chosen(states: Array) -> Array:
        observed = np.packbits(game.observe(states).reshape(len(states), -1), axis=1)
        keys = np.ascontiguousarray(observed).view(f"V{observed.shape[1]}").ravel()
        _, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
        return choose(states[firsts])[places]

    return chosen


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--readouts", type=int, default=100)
    arguments = parser.parse_args()
    model = seraphim.load(arguments.model)
    inferences, game = model.inferences(LARGEST_BATCH, count_cores()), model.game
    players: dict[str, Choose] = {
        "network": model.player(0, inferences),
        f"{arguments.readouts:,} readouts": model.player(arguments.readouts, inferences),
    }
    print(model)
    if game.name == "cube":
        hardest = position_sets()[0].states
        for name, player in players.items():
            started = time.perf_counter()
            moves = solve_cubes(game, player, hardest)
            solved = moves <= MOST_MOVES
            print(
                f"{name}: {solved.sum():,} of {len(moves):,} positions solved that take {distances().max()} moves, in "
                f"{moves[solved].mean():.3f} moves on average, at most {moves[solved].max()}; "
                f"{time.perf_counter() - started:.0f} s"
            )
        return
    solution = solve(game)
    print(f"{solution}; players move in {len(positions_to_choose(solution)):,} positions")
    players = {"random": random_player(game), **players}
    for name, player in players.items():
        started = time.perf_counter()
        measured = measure_play(game, solution, each_position_once(game, player))
        print(f"{name}: {measured}; {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
