"""Proofs of solved positions: are they right, and what is the network worth?

    PYTHONPATH=. python benchmarks/proofs.py connectfour --positions=1000
    PYTHONPATH=. python benchmarks/proofs.py connectfour --positions=100 --uniform

proves the results of positions of a model's game whose exact results are known, an equal number from each set, and
counts the right, wrong and undecided ones; --uniform without the network.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from seraphim.game import Array, Game, load_game
from seraphim.game.solved import load_position_sets
from seraphim.inference import load_inference
from seraphim.machine import count_cores
from seraphim.proof.claims import Claim
from seraphim.proof.question import Question
from seraphim.search.evaluator import Inference, Uniform
from seraphim.storage.models import ModelFolder


def decide(
    game: Game, inferences: list[Inference], state: Array, arguments: argparse.Namespace
) -> tuple[list[Claim], int]:
    """Return what is proven about a position, as far as that says who wins, and the evaluations that it took."""
    value = inferences[0].infer(game.observe(state[None]))[1][0]
    likelier = int(game.to_play(state[None])[0]) ^ int(value < 0)
    claims, evaluations, seconds = [], 0, 0.0
    for player in (likelier, 1 - likelier):
        question = Question(game, inferences, Claim(player, wins=True), state, arguments.megabytes)
        while question.true_claim is None and seconds + question.seconds < arguments.seconds and question.advance():
            pass
        evaluations, seconds = evaluations + question.evaluations, seconds + question.seconds
        if question.true_claim is None:
            return [], evaluations
        claims.append(question.true_claim)
        if question.true_claim.wins:
            break
    return claims, evaluations


def main() -> None:
    """Prove, compare, and print a line for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--positions", type=int, default=60, help="in all of these sets together")
    parser.add_argument("--sets", nargs="*", default=[], help="those alone")
    parser.add_argument("--seconds", type=float, default=60, help="limit for each position")
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
    print("| set | positions | right | wrong | undecided | evaluations | seconds |\n|" + " --- |" * 7)
    sets = [each for each in load_position_sets(name) if not arguments.sets or each.name in arguments.sets]
    if not sets:
        raise SystemExit(f"{name} has no solved positions of that name")
    total = np.zeros(5)
    for positions in sets:
        chosen = -(-arguments.positions // len(sets))
        found, start = np.zeros(5), time.perf_counter()
        for state, values in zip(positions.states[:chosen], positions.action_values[:chosen], strict=True):
            own = np.nanmax(values)
            result = own if game.to_play(state[None])[0] == 0 else -own
            claims, evaluations = decide(game, inferences, state, arguments)
            is_right = all(claim.holds(np.array([result]))[0] for claim in claims)
            found += 1, bool(claims) and is_right, not is_right, not claims, evaluations
        cells = [f"{cell:,.0f}" for cell in found]
        print(f"| {positions.name} | {' | '.join(cells)} | {time.perf_counter() - start:.1f} |", flush=True)
        total += found
    print(f"{total[0]:,.0f} positions: {total[1]:,.0f} right, {total[2]:,.0f} wrong, {total[3]:,.0f} undecided")


if __name__ == "__main__":
    main()
