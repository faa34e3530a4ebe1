"""The speed of self-play on this machine, and where its time goes.

Each figure is a rate over some seconds, after everything has been compiled and loaded.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from seraphim.game import Game, load_game
from seraphim.game.features import check_two_players
from seraphim.inference import Precision, Runtime, SavedNetwork, openvino
from seraphim.inference.interface import LARGEST_BATCH
from seraphim.machine import count_cores
from seraphim.network import architectures, saved_model
from seraphim.options import SearchOptions, SelfPlayOptions
from seraphim.search.analysis import LEAVES, Analysis
from seraphim.search.evaluator import Inference, Uniform
from seraphim.selfplay.games import SelfPlay
from seraphim.selfplay.pool import Work
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training.trainer import bootstrap

Figures = dict[str, float]

_ROUNDS = 3  # the result is their median
_POSITIONS = 12  # for the latency


def measure_workers(settings: Settings, snapshot: Path, runtime: Runtime, num_workers: int, seconds: float) -> Figures:
    """Measure self-play by worker processes, including the encoding of records but not their writing.

    It takes at least `seconds` after a warm-up. The number of games is a multiple of those played at a time, because
    games that start together end together. No workers (0) are as many as `WorkerPool` takes.
    """
    with WorkerPool(settings, runtime, num_workers) as pool:
        marks: list[tuple[float, int, Work]] = []
        # The warm-up ends when as many games are finished as are played at a time: by then they are of all ages.
        cycle = settings.self_play.concurrent_games * pool.num_workers
        for games, _ in enumerate(pool.play(snapshot, "benchmark"), 1):
            now = time.perf_counter()
            if games % cycle == 0 and (not marks or now - marks[0][0] > seconds):
                marks.append((now, games, pool.work()))
                if len(marks) == 2:
                    pool.stop()
    (start, games_before, before), (end, games_after, after) = marks[:2]
    elapsed = end - start
    spent = {stage: seconds - before.seconds[stage] for stage, seconds in after.seconds.items()}
    total = sum(spent.values())
    evaluations = after.evaluations - before.evaluations
    hits = after.cache_hits - before.cache_hits
    readouts = after.readouts - before.readouts
    return {
        "workers": pool.num_workers,
        "readouts/s": readouts / elapsed,
        "evaluations/s": evaluations / elapsed,
        "batch fill": evaluations / max(1, after.batch_capacity - before.batch_capacity),
        "cache hits": hits / max(1, evaluations + hits),
        "games/h": 3600 * (games_after - games_before) / elapsed,
        **{f"share in {stage}": seconds / total for stage, seconds in spent.items()},
        **{f"µs a readout in {stage}": 1e6 * seconds / readouts for stage, seconds in spent.items()},
        "µs an evaluation in network": 1e6 * spent["network"] / max(1, evaluations),
    }


def measure_latency(game: Game, inference: Inference, search: SearchOptions) -> float:
    """Return the median milliseconds of 800 readouts in one position, with 8 leaves at a time."""
    analysis = Analysis(game, inference, search)
    times = []
    for moves in range(_POSITIONS):
        state = game.initial(1)
        for move in range(moves % 4):
            legal = np.flatnonzero(game.legal(state)[0])
            state = game.step(state, legal[[(moves + move) % len(legal)]])
        analysis.start(state[0])
        start = time.perf_counter()
        analysis.more(800)
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[1:])  # the first one prepares the runtime


def measure_start(game_name: str) -> Figures:
    """Return the seconds from the start of a process to its first result of a search, without a network."""
    program = (
        "import sys, numpy; from seraphim.game import load_game; from seraphim.search.evaluator import Uniform\n"
        "from seraphim.options import SearchOptions; from seraphim.search.search import Search\n"
        "game = load_game(sys.argv[1]); search = Search(game, Uniform(game), SearchOptions(), 1)\n"
        "search.begin(numpy.array([0]), game.initial(1)); search.run(); search.result(numpy.array([0]))"
    )
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for _ in range(1 + _ROUNDS):
            start = time.perf_counter()
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            subprocess.run([sys.executable, "-c", program, game_name], env=environment, check=True)
            times.append(time.perf_counter() - start)
    return {
        "first search of a process, kernels compiled: s": times[0],
        "first search of a process, kernels cached: s": statistics.median(times[1:]),
    }


def measure_uniform(game: Game, settings: Settings, concurrent_games: int, seconds: float) -> float:
    """Return the readouts/s of one process with uniform priors and no cache: rules and search alone."""
    options = SelfPlayOptions(concurrent_games, random_plies=0)
    search = replace(settings.search, cache_megabytes=0)
    player = SelfPlay(game, Uniform(game), search, options, "benchmark")
    games = player.play(count())
    for _ in range(concurrent_games):
        next(games)
    start, before = time.perf_counter(), player.search.counters.readouts
    while time.perf_counter() - start < seconds:
        next(games)
    return (player.search.counters.readouts - before) / (time.perf_counter() - start)


def compare_rules(game: Game, plain: Game, settings: Settings, concurrent_games: int, seconds: float) -> Figures:
    """Measure a game by its rules in plain Python, beside the compiled ones; neither tells known results."""
    few = replace(settings, search=replace(settings.search, readouts=25, known_results=False))
    slow, fast = (measure_uniform(each, few, concurrent_games, seconds) for each in (plain, game))
    return {
        "plain-Python rules: readouts/s": slow,
        "plain-Python rules: µs a readout more": 1e6 / slow - 1e6 / fast,
        "plain-Python rules: compiled ones are faster by": fast / slow,
    }


def precision_of(inference: Inference) -> Precision:
    """Return the precision in which a network is computed on this machine."""
    return "bfloat16" if "bfloat16" in inference.description else "float32"


def benchmark(
    settings: Settings, plain_name: str | None, runtime: Runtime, num_workers: int, seconds: float
) -> Figures:
    """Measure self-play of a game with some settings and a network of random weights.

    Args:
        settings: of the game, the network, and the search.
        plain_name: module of the same game in plain Python, or None.
        runtime: runs the network.
        num_workers: 0 is one for each core.
        seconds: for each figure.

    Raises:
        GameError: there is no such game; or it is one of chance, or of one player.
    """
    game = load_game(settings.game)
    check_two_players(game)
    figures = measure_start(settings.game)
    with tempfile.TemporaryDirectory() as folder:
        snapshot = bootstrap(ModelFolder(Path(folder), "benchmark"), game, settings, seed=0).path
        figures |= measure_workers(settings, snapshot, runtime, num_workers, seconds)
        uncached = replace(settings, search=replace(settings.search, cache_megabytes=0))
        without = measure_workers(uncached, snapshot, runtime, num_workers, seconds)
        products = architectures.multiply_adds(saved_model.load_model(snapshot))
        inference = SavedNetwork(snapshot, runtime).load(game, LARGEST_BATCH)
        figures[f"one position, 800 readouts, {LEAVES} leaves: ms"] = measure_latency(game, inference, settings.search)
    for name in ("readouts/s", "games/h", "batch fill", "share in network", "µs an evaluation in network"):
        figures[f"without the cache: {name}"] = without[name]
    precision = precision_of(inference)
    rate = openvino.matrix_product_rate(precision, threads=1, seconds=seconds / _ROUNDS)
    figures[f"matrix products in {precision}, one core: G multiply-adds/s"] = rate / 1e9
    figures["network's multiply-adds: M a position"] = products / 1e6
    figures["network's share of the rate of matrix products"] = (
        products / rate / (without["µs an evaluation in network"] / 1e6)
    )
    figures["uniform priors, one process, 64 games: readouts/s"] = measure_uniform(game, settings, 64, seconds)
    if plain_name:
        figures |= compare_rules(game, load_game(plain_name), settings, 64, seconds)
    figures["cores"] = count_cores()
    return figures


def show(figures: Figures) -> None:
    """Print one figure per line."""
    for name, value in figures.items():
        digits = 0 if value >= 100 or float(value).is_integer() else 3
        print(f"{name:88} {value:14,.{digits}f}", flush=True)


def write(measured: Mapping[str, Figures], file: str | None) -> None:
    """Write the figures of each game to a file, in JSON; None: do not."""
    if file:
        Path(file).write_text(json.dumps(measured, indent=2, ensure_ascii=False) + "\n")
