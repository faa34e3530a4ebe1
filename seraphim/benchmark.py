"""How fast self-play is on this machine, and where the time goes.

Each figure is a rate over a few seconds in which everything has been compiled and loaded before.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from seraphim.game import Game, load_game
from seraphim.inference import Runtime, Uniform
from seraphim.retraining import bootstrap
from seraphim.selfplay import SelfPlay, SelfPlayOptions
from seraphim.settings import Settings, default_settings
from seraphim.store import ModelFolder
from seraphim.workers import Work, WorkerPool, count_cores

Figures = dict[str, float]

_ROUNDS = 3  # of which the median counts


def measure_workers(settings: Settings, snapshot: Path, runtime: Runtime, num_workers: int, seconds: float) -> Figures:
    """Measure self-play by worker processes, the encoding of records included, their writing not.

    Args:
        settings: of the model.
        snapshot: the model.
        runtime: what runs the network.
        num_workers: 0 is one for each core.
        seconds: how long, after everything is warm.
    """
    with WorkerPool(settings, runtime, num_workers) as pool:
        marks: list[tuple[float, int, Work]] = []
        games = 0
        # Warm when as many games are finished as are played at a time: by then they are of all ages.
        warm = settings.self_play.concurrent_games * pool.num_workers
        for games, _ in enumerate(pool.play(snapshot, "benchmark"), 1):
            now = time.perf_counter()
            if games == warm or (marks and now - marks[0][0] > seconds):
                marks.append((now, games, pool.work()))
                if len(marks) == 2:
                    pool.stop()
    (start, games_before, before), (end, games_after, after) = marks[:2]
    elapsed = end - start
    spent = {stage: seconds - before.seconds[stage] for stage, seconds in after.seconds.items()}
    total = sum(spent.values())
    evaluations = after.evaluations - before.evaluations
    readouts = after.readouts - before.readouts
    return {
        "workers": pool.num_workers,
        "readouts/s": readouts / elapsed,
        "evaluations/s": evaluations / elapsed,
        "cache hits": (after.cache_hits - before.cache_hits)
        / max(1, evaluations + after.cache_hits - before.cache_hits),
        "games/h": 3600 * (games_after - games_before) / elapsed,
        **{f"share in {stage}": seconds / total for stage, seconds in spent.items()},
        **{f"µs a readout in {stage}": 1e6 * seconds / readouts for stage, seconds in spent.items()},
    }


def measure_uniform(game: Game, settings: Settings, concurrent_games: int, seconds: float) -> float:
    """Return the readouts/s of one process that plays with uniform priors, uncached: rules and search alone."""
    options = SelfPlayOptions(concurrent_games)
    search = replace(settings.search, cache_megabytes=0)
    player = SelfPlay(game, Uniform(game), search, options, "benchmark")
    games = player.play(_forever())
    for _ in range(concurrent_games):
        next(games)
    start, before = time.perf_counter(), player.search.readouts
    while time.perf_counter() - start < seconds:
        next(games)
    return (player.search.readouts - before) / (time.perf_counter() - start)


def _forever() -> Iterator[int]:
    return count()


def compare(first: Callable[[], float], second: Callable[[], float]) -> tuple[float, float, float]:
    """Return the medians of two rates that are measured in turns, and the median ratio of the first to the second."""
    pairs = [(first(), second()) for _ in range(_ROUNDS)]
    return (
        statistics.median(pair[0] for pair in pairs),
        statistics.median(pair[1] for pair in pairs),
        statistics.median(pair[0] / pair[1] for pair in pairs),
    )


def benchmark(game_name: str, plain_name: str | None, runtime: Runtime, num_workers: int, seconds: float) -> Figures:
    """Measure a game with its own settings and a network of random weights.

    Args:
        game_name: package or module of the game.
        plain_name: module of the same game in plain Python, or None.
        runtime: what runs the network.
        num_workers: 0 is one for each core.
        seconds: how long each figure is measured.

    Raises:
        GameError: there is no such game.
    """
    settings = default_settings(game_name)
    game = load_game(game_name)
    with tempfile.TemporaryDirectory() as folder:
        snapshot = bootstrap(ModelFolder(Path(folder), "benchmark"), game, settings, seed=0)
        figures = measure_workers(settings, snapshot.path, runtime, num_workers, seconds)
        uncached = replace(settings, search=replace(settings.search, cache_megabytes=0))
        without = measure_workers(uncached, snapshot.path, runtime, num_workers, seconds)
    for name in ("readouts/s", "games/h", "share in network"):
        figures[f"without the cache: {name}"] = without[name]
    figures["uniform priors, one process, 64 games: readouts/s"] = statistics.median(
        measure_uniform(game, settings, 64, seconds / _ROUNDS) for _ in range(_ROUNDS)
    )
    if plain_name:
        plain = load_game(plain_name)
        few = replace(settings, search=replace(settings.search, readouts=25))
        slow, fast, ratio = compare(
            lambda: measure_uniform(plain, few, 64, seconds / _ROUNDS),
            lambda: measure_uniform(game, few, 64, seconds / _ROUNDS),
        )
        figures["plain-Python rules: readouts/s"] = slow
        figures["plain-Python rules: µs a readout more"] = 1e6 / slow - 1e6 / fast
        figures["plain-Python rules: compiled ones are faster by"] = 1 / ratio
    figures["cores"] = count_cores()
    return figures
