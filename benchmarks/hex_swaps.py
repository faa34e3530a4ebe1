"""The swap rule in Hex: is the model's decision right after every opening?

    PYTHONPATH=. python benchmarks/hex_swaps.py hex                       # 7×7, beside the published winners
    PYTHONPATH=. python benchmarks/hex_swaps.py NAME --readouts=200       # a model of hex:5,swap, against proofs

prints two boards: S where the model swaps after that opening, and S where the opening wins, so that to swap is right. A
model of Hex without the swap rule swaps where its search holds the opening for won. The winners of 7×7 are those that
Hayward, Björnsson, Johanson, Kan, Po and van Rijswijck found (2005, "Solving 7×7 Hex with domination, fill-in, and
virtual connections"), as listed in regression/dfs-solve-7x7.tst of Benzene, their group's program. On other boards each
opening is proven, guided by the model; from 6×6 on that takes long.
"""

import argparse
import time

import numpy as np

import seraphim
from hex.game import Hex
from seraphim.game import Array

MEGABYTES = 512  # of a proof: more is slower where memory is short

# S where the first player wins with this opening, who connects top and bottom; a1 is an acute corner.
PUBLISHED = {7: ["......S", "..S.SSS", ".SSSSS.", "SSSSSSS", ".SSSSS.", "SSS.S..", "S......"]}


def decides_to_swap(model: seraphim.Model, game: Hex, opening: str, readouts: int) -> bool:
    """Return whether a search swaps after an opening, or, without the swap rule, holds the opening for won."""
    found = model.analyze(opening, readouts)
    return found.best == game.other if game.swap else found.value < 0


def prove_openings(model: seraphim.Model, game: Hex, openings: list[str]) -> Array:
    """Return whether the first player wins with each opening, bool [n·n]: a proof for each two that are symmetric."""
    won = np.empty(len(openings), np.bool_)
    for cell in range(-(-len(openings) // 2)):
        # After a swap the stone is the second player's. No game is drawn: who does not win loses.
        position, owner = (f"{openings[cell]} {game.other}", 1) if game.swap else (openings[cell], 0)
        (claim,) = seraphim.prove(position, model=model, goal="first", megabytes=MEGABYTES).claims
        won[cell] = won[~cell] = claim.player == owner
    return won


def draw(game: Hex, swaps: Array) -> list[str]:
    """Return a board with S where to swap, as lines."""
    rows = [" ".join("S" if swap else "·" for swap in row) for row in swaps]
    return ["  " + " ".join(game.column_names), *(f"{' ' * row}{row + 1} {text}" for row, text in enumerate(rows))]


def main() -> None:
    """Decide, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--readouts", type=int, default=800)
    arguments = parser.parse_args()
    model, start = seraphim.load(arguments.model), time.perf_counter()
    game = model.game
    if not isinstance(game, Hex):
        raise SystemExit(f"{arguments.model} plays {game.name}, not Hex")
    openings = [game.action_label(cell) for cell in range(game.size**2)]
    board = game.size, game.size
    decided = np.array([decides_to_swap(model, game, each, arguments.readouts) for each in openings]).reshape(board)
    print(f"{model}: {arguments.readouts} readouts after each opening, {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    if game.size in PUBLISHED:
        right, source = np.array([[mark == "S" for mark in row] for row in PUBLISHED[game.size]]), "published"
    else:
        right = prove_openings(model, game, openings).reshape(board)
        source = f"proven in {time.perf_counter() - start:.1f} s"
    ours, theirs = draw(game, decided), draw(game, right)
    width = max(map(len, ours)) + 4
    print(f"{'decided':{width}}{source}")
    for one, other in zip(ours, theirs, strict=True):
        print(f"{one:{width}}{other}")
    differ = [openings[cell] for cell in np.flatnonzero(decided != right)]
    print(f"{len(openings) - len(differ)} of {len(openings)} agree{': not ' + ' '.join(differ) if differ else ''}")


if __name__ == "__main__":
    main()
