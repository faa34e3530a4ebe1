"""Ablations: models learn from scratch for equal times, each with one setting changed.

    taskset -c 0 python benchmarks/ablations.py connectfour --minutes=3.5 --seeds=2 --out=/tmp/ablations

learns every variant with every seed, one after the other, on the processors that `taskset` allows; nothing else should
run there. `--generations=5` learns for five generations instead, which other load does not affect. Each champion is
then evaluated in the validation positions of the game. Models and results stay in the folder `--out`: the same command
continues where it stopped, and prints the table when everything is measured.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from seraphim.evaluation.error_rates import find_mistakes
from seraphim.game import Array, load_game
from seraphim.game.solved import load_position_sets
from seraphim.inference import load_inference
from seraphim.options import SearchOptions
from seraphim.players.choose import Choose, SearchPlayer, raw_player
from seraphim.storage.models import ModelFolder
from seraphim.training.curve import CURVE, read_curve

ROOT = Path(__file__).parents[1]
READOUTS = 200  # of the evaluation
MODEL = "model"

BASELINE = "the game's settings"
# Standard errors of a true difference that a two-sided test at 5 % finds with a probability of 80 %: 1.96 + 0.84.
_DETECTED = 2.8
# Flags that change the settings of the game.
VARIANTS: dict[str, dict[str, list[str]]] = {
    "connectfour": {
        BASELINE: [],
        "64 filters and 5 blocks": ["--filters=64", "--blocks=5"],
        "48 filters and 4 blocks": ["--filters=48", "--blocks=4"],
        # A tenth of its generation, which alone would take longer than a whole run.
        "preset deepfour": ["--preset=deepfour", "--games_per_generation=300", "--steps=30"],
        "Adam, a step size of 0.003": ["--optimizer=adam", "--learning_rate=0.003"],
        "batch normalization": ["--normalization=batch"],
        "ReLU": ["--activation=relu"],
        "the last weights play": ["--average_decay=0"],
        "step size 0.005": ["--learning_rate=0.005"],
        "step size 0.02": ["--learning_rate=0.02"],
        "batches of 1024": ["--batch_size=1024", "--learning_rate_decay_steps=2000"],
        "batches of 256": ["--batch_size=256", "--learning_rate_decay_steps=8000"],
        "a value head of 256 units": ["--value_width=256"],
        "2 samples a position": ["--samples_per_position=2"],
        "8 samples a position": ["--samples_per_position=8"],
        "float32": ["--precision=float32"],
        "game results alone as value": ["--root_value_share=0"],
        "search values alone as value": ["--root_value_share=1"],
        "equal positions not averaged": ["--noaverage_positions"],
        "no random openings": ["--random_plies=0"],
        "random openings of up to 28 plies in 70 % of the games": ["--random_plies=28", "--random_share=0.7"],
        "no proven results": ["--nosolver"],
        "PUCT, 200 readouts": ["--self_play_root=puct", "--self_play_readouts=200"],
        "32 readouts": ["--self_play_readouts=32"],
        "64 readouts": ["--self_play_readouts=64"],
        "readouts that do not grow": ["--readouts_growth_steps=0"],
    },
    "othello": {
        BASELINE: [],
        "64 filters and 5 blocks": ["--filters=64", "--blocks=5"],
        "step size 0.02": ["--learning_rate=0.02"],
        "random openings of up to 30 plies": ["--random_plies=30"],
        "16 readouts": ["--self_play_readouts=16"],
        "64 readouts that do not grow": ["--self_play_readouts=64", "--readouts_growth_steps=0"],
        "no known results": ["--noknown_results"],
    },
    "tictactoe": {
        BASELINE: [],
        "no random openings": ["--random_plies=0"],
        "preset keras-tictactoe": ["--preset=keras-tictactoe"],
    },
}


def learn(game: str, variant: str, seed: int, length: str, folder: Path) -> dict[str, float]:
    """Learn a variant in a folder, as long as a flag of bin/learn.py says; return the totals of the run."""
    flags = [*VARIANTS[game][variant], f"--seed={seed}"]
    environment = {**os.environ, "SERAPHIM_DATA": str(folder)}
    learning = ["bin/learn.py", MODEL, "--goal=none", length, f"--seed={seed}"]
    for command in ([f"{game}/train.py", MODEL, "--init", *flags], learning):
        with (folder / "log.txt").open("a") as log:
            subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, stdout=log, stderr=log, check=True)
    rows = read_curve(ModelFolder(folder, MODEL).path / CURVE)
    return {"generations": len(rows), **{name: rows[-1][name] for name in ("seconds", "games", "evaluations")}}


def check(game: str, folder: Path) -> dict[str, list[int]]:
    """Return whether the champion in a folder errs in each solved position, by the network and by a search."""
    rules, champion = load_game(game), ModelFolder(folder, MODEL).champion()
    inference = load_inference(champion.path, rules, "auto")
    players: dict[str, Choose] = {
        "network": raw_player(rules, inference),
        "search": SearchPlayer(rules, [inference], SearchOptions(readouts=READOUTS, solver=False)),
    }
    found: dict[str, list[int]] = {name: [] for name in players}
    for positions in load_position_sets(game):
        for name, choose in players.items():
            found[name] += find_mistakes(positions, choose(positions.states)).astype(int).tolist()
    return found


def table(game: str, results: dict[str, list[dict[str, Any]]]) -> str:
    """Return the results, for each variant a list with one result per seed, as a table in Markdown."""
    lines = [
        f"| {game} | minutes | generations | games | network errs, % | {READOUTS} readouts err, % | difference |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for variant, runs in results.items():
        cells = [" · ".join(f"{run['took']['seconds'] / 60:.1f}" for run in runs)]
        cells += [" · ".join(f"{run['took'][name]:,.0f}" for run in runs) for name in ("generations", "games")]
        cells += [" · ".join(f"{100 * np.mean(run[name]):.2f}" for run in runs) for name in ("network", "search")]
        lines.append(f"| {variant} | {' | '.join(cells)} | {_difference(results[BASELINE], runs)} |")
    return "\n".join(lines)


def _difference(baseline: list[dict[str, Any]], runs: list[dict[str, Any]]) -> str:
    # The difference of the searches' errors, with its standard error over seeds. Over positions it would be smaller but
    # meaningless: they are evaluated by the same few networks, each of which may have learned well or badly by chance.
    if runs is baseline:
        return ""
    by_seed = _differences(baseline, runs)
    each = ", ".join(f"{100 * one:+.2f}" for one in by_seed)
    error = f" ± {100 * by_seed.std(ddof=1) / math.sqrt(len(by_seed)):.2f}" if len(by_seed) > 1 else ""
    return f"{100 * by_seed.mean():+.2f}{error} ({each})"


def _differences(baseline: list[dict[str, Any]], runs: list[dict[str, Any]]) -> Array:
    # float64 [seeds]: the error rate of the search minus that of the baseline with the same seed.
    return np.array(
        [np.mean(run["search"]) - np.mean(other["search"]) for run, other in zip(runs, baseline, strict=True)]
    )


def spread(results: dict[str, list[dict[str, Any]]]) -> str:
    """Return the standard deviation between seeds, pooled over all variants, since one variant has few seeds."""
    baseline, seeds = results[BASELINE], len(results[BASELINE])
    variants = [runs for runs in results.values() if runs is not baseline]
    if seeds < 2 or not variants:
        return "One seed, or one variant, says nothing about random variation."
    deviation = 100 * math.sqrt(np.mean([_differences(baseline, runs).var(ddof=1) for runs in variants]))
    error = deviation / math.sqrt(seeds)
    return (
        f"Standard deviation of a difference between seeds, pooled over {len(variants)} variants: {deviation:.2f}; "
        f"resulting standard error of the mean of {seeds} seeds: {error:.2f}. So a true difference of "
        f"{_DETECTED * error:.2f} is found in four of five such ablations"
    )


def main() -> None:
    """Learn and evaluate what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", choices=sorted(VARIANTS))
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=6, help="of learning; the last generation is finished")
    length.add_argument("--generations", type=int, help="of learning, instead of minutes")
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds")
    parser.add_argument("--out", type=Path, required=True, help="folder for models, logs and results")
    parser.add_argument("--only", nargs="*", default=[], help="variants that contain one of these words")
    arguments = parser.parse_args()
    chosen = [
        variant
        for variant in VARIANTS[arguments.game]
        if variant == BASELINE or not arguments.only or any(word in variant for word in arguments.only)
    ]
    until, name = f"--hours={arguments.minutes / 60}", f"{arguments.minutes:g}-minutes"
    if arguments.generations:
        until, name = f"--generations={arguments.generations}", f"{arguments.generations}-generations"
    results: dict[str, list[dict[str, Any]]] = {variant: [] for variant in chosen}
    for seed in range(arguments.seeds):
        for variant in chosen:
            folder = arguments.out / arguments.game / f"{variant.replace(' ', '-').replace(',', '')}-{seed}"
            result = folder / f"result-{name}.json"
            if not result.is_file():
                shutil.rmtree(folder, ignore_errors=True)  # an interrupted run may have shared the machine
                folder.mkdir(parents=True)
                took = learn(arguments.game, variant, seed, until, folder)
                result.write_text(json.dumps({"took": took, **check(arguments.game, folder)}))
            results[variant].append(json.loads(result.read_text()))
            print(f"seed {seed}, {variant}: {results[variant][-1]['took']}", file=sys.stderr, flush=True)
    print(table(arguments.game, results))
    print(spread(results))


if __name__ == "__main__":
    main()
