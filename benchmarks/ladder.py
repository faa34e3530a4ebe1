"""The ladder: every model that comes with Seraphim against players of known strength, in one table.

    PYTHONPATH=. python benchmarks/ladder.py --games=100 --readouts=200

Openings are random, and each is played twice with the sides swapped. Othello's ladder needs gtp-rhino (Debian: grhino).
"""

import argparse

import seraphim

ANCHORS = {
    "tictactoe": ["random", "mcts:100", "mcts:1000", "solver"],
    "connectfour": ["random", "mcts:1000", "mcts:10000"],
    "hex": ["random", "mcts:200", "mcts:2000"],
    "othello": ["random", "mcts:2000", *(f"gtp:gtp-rhino --level={level}" for level in range(1, 4))],
}


def main() -> None:
    """Play, and print a row for each match."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(ANCHORS), choices=list(ANCHORS))
    parser.add_argument("--games", type=int, default=100, help="of each match")
    parser.add_argument("--readouts", type=int, default=200, help="of the models' searches")
    arguments = parser.parse_args()
    print("| model | opponent | wins | draws | losses | score [95 %] | distinct games |\n|" + " --- |" * 7)
    for model in arguments.models:
        for anchor in ANCHORS[model]:
            found = seraphim.match(model, anchor, arguments.games, readouts=arguments.readouts)
            low, high = found.interval
            print(
                f"| {model} | {anchor} | {found.tally.wins} | {found.tally.draws} | {found.tally.losses} "
                f"| {found.score:.1%} [{low:.1%}, {high:.1%}] | {found.distinct_games} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
