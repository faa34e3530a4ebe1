"""Positions that the search for a proof saw, and those that the proof needs, by ply: a table and a picture.

    PYTHONPATH=. python benchmarks/proof_plies.py connectfour --out=docs/proof.png

searches anew for the proof that the first player wins, which takes as long as `bin/prove.py NAME --for=first`.
"""

import argparse
from pathlib import Path

import numpy as np

from seraphim.game import Array, load_game
from seraphim.game.saved_games import Position
from seraphim.inference import load_inference
from seraphim.machine import count_cores
from seraphim.proof.certificate import walk
from seraphim.proof.claims import Claim
from seraphim.proof.graph import PROVEN, UNDECIDED, Graph
from seraphim.proof.prover import Prover
from seraphim.storage.models import ModelFolder


def plies_of_nodes(graph: Graph, root: int) -> Array:
    """Return the number of moves from the root to each node by the shortest way, int32 [N]; -1 where there is none."""
    plies = np.full(graph.used[0], -1, np.int32)
    nodes = np.array([root])
    ply = 0
    while len(nodes):
        plies[nodes] = ply
        counts = np.maximum(graph.num_edges[nodes], 0)
        ends = np.cumsum(counts)
        edges = np.arange(counts.sum()) + np.repeat(graph.first_edges[nodes] - (ends - counts), counts)
        nodes = np.unique(graph.children[edges])
        nodes = nodes[plies[nodes] < 0]
        ply += 1
    return plies


def main() -> None:
    """Search, count, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--megabytes", type=int, default=8192, help="enough, or what is forgotten is not counted")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    folder = ModelFolder(Path(), arguments.model)
    game, claim = load_game(folder.settings().game), Claim(0, wins=True)
    inferences = [load_inference(folder.champion().path, game) for _ in range(count_cores())]
    start = game.initial(1)[0]
    prover = Prover(game, inferences, claim, start, arguments.megabytes)
    while prover.verdict == UNDECIDED:
        if not prover.advance():
            raise SystemExit("memory is full: raise --megabytes")
    if prover.verdict != PROVEN:
        raise SystemExit(f"it is not true that {claim}")
    layers = list(walk(game, Position(None, [], []), claim, len(game.symmetries().actions) > 1, prover.choose))
    graph, root = prover.graph, prover.root
    plies = plies_of_nodes(graph, root)
    nodes = np.flatnonzero(plies >= 0)
    proven, refuted = graph.proofs[nodes] == 0, graph.disproofs[nodes] == 0
    kinds = {"in the proof": None, "proven": proven, "refuted": refuted, "open": ~proven & ~refuted}
    counts = {
        kind: np.array([len(layer.states) for layer in layers])
        if chosen is None
        else np.bincount(plies[nodes[chosen]], minlength=len(layers))
        for kind, chosen in kinds.items()
    }
    print(f"{claim}: {prover.evaluations:,} positions evaluated, {len(plies):,} seen, {prover.seconds:.1f} s")
    print(f"| ply | {' | '.join(counts)} |\n|" + " --- |" * (1 + len(counts)))
    for ply in range(len(layers)):
        print(f"| {ply} | {' | '.join(f'{count[ply]:,}' for count in counts.values())} |")
    draw(counts, f"{game.name}: {claim}", arguments.out)


def draw(counts: dict[str, Array], title: str, out: Path) -> None:
    """Draw the counts by ply."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    colors = {"in the proof": "#1b5e20", "proven": "#66bb6a", "refuted": "#d84315", "open": "#90a4ae"}
    for kind, count in counts.items():
        shown = np.flatnonzero(count)
        width = 2.4 if kind == "in the proof" else 1.4
        axes.plot(shown, count[shown], label=kind, color=colors[kind], linewidth=width, marker="o", markersize=3)
    axes.set(yscale="log", xlabel="ply", ylabel="positions", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
