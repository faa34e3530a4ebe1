"""Proofs of solved positions: are they right, and what is the network worth?

    PYTHONPATH=. python benchmarks/proofs.py connectfour --positions=1000
    PYTHONPATH=. python benchmarks/proofs.py connectfour --positions=100 --uniform

decides for both players whether they win positions of a model's game whose exact results are known, an equal number
from each set, and counts the right, wrong and undecided ones; --uniform without the network.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from seraphim.game import Array, Game, load_game
from seraphim.game.solved import load_position_sets
from seraphim.inference import Inference, Uniform, load_inference
from seraphim.machine import count_cores
from seraphim.proof.claims import Claim
from seraphim.proof.question import Question
from seraphim.storage.models import ModelFolder


def decide(
    game: Game, inferences: list[Inference], claim: Claim, state: Array, arguments: argparse.Namespace
) -> Question:
    """Search until the claim is decided, or a limit."""
    question = Question(game, inferences, claim, state, arguments.megabytes)
    while question.true_claim is None and question.seconds < arguments.seconds:
        if not question.advance():
            break
    return question


def main() -> None:
    """Prove, compare, and print a line for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--positions", type=int, default=60, help="in all sets together")
    parser.add_argument("--seconds", type=float, default=60, help="limit for each claim")
    parser.add_argument("--megabytes", type=int, default=2048)
    parser.add_argument("--uniform", action="store_true", help="without the network")
    arguments = parser.parse_args()
    folder = ModelFolder(Path(), arguments.model)
    name, snapshot = folder.settings().game, folder.champion().path
    game = load_game(name)
    inferences: list[Inference] = [Uniform(game)] * count_cores()
    if not arguments.uniform:
        inferences = [load_inference(snapshot, game) for _ in range(count_cores())]
    print(f"{folder.name}: {inferences[0].description}")
    print("| positions | claims | right | wrong | undecided | evaluations | seconds |\n|" + " --- |" * 7)
    sets = load_position_sets(name)
    total = np.zeros(5)
    for positions in sets:
        chosen = -(-arguments.positions // len(sets))
        found, start = np.zeros(5), time.perf_counter()
        for state, values in zip(positions.states[:chosen], positions.action_values[:chosen], strict=True):
            own = np.nanmax(values)
            result = own if game.to_play(state[None])[0] == 0 else -own
            for player in (0, 1):
                question = decide(game, inferences, Claim(player, wins=True), state, arguments)
                true_claim = question.true_claim
                right = true_claim is not None and true_claim.holds(np.array([result]))[0]
                undecided = true_claim is None
                found += 1, right, not right and not undecided, undecided, question.evaluations
        cells = [f"{cell:,.0f}" for cell in found]
        print(f"| {positions.name} | {' | '.join(cells)} | {time.perf_counter() - start:.1f} |", flush=True)
        total += found
    print(f"{total[0]:,.0f} claims: {total[1]:,.0f} right, {total[2]:,.0f} wrong, {total[3]:,.0f} undecided")


if __name__ == "__main__":
    main()
