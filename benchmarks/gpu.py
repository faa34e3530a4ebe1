"""Measures what a GPU does: the network alone, self-play, training, and mctx with the rules of pgx beside them.

Everything is connect four with the network and the search of `benchmarks.peers`.
"""

import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from benchmarks import mctx_peer
from benchmarks.peers import GAME, NETWORK, PACKAGES, PUCT, settings_of
from seraphim.diagnostics.benchmark import Figures, measure_workers
from seraphim.errors import SettingsError
from seraphim.game import Game, load_game
from seraphim.inference import Inference, Runtime, jax, load_inference, tensorflow
from seraphim.inference.interface import LARGEST_BATCH
from seraphim.network import architectures
from seraphim.options import TrainingOptions
from seraphim.records.examples import Positions
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training import fit
from seraphim.training.trainer import bootstrap

NVIDIA_SMI = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")
"""Prints, for each GPU, the percentage of the last fraction of a second in which it computed something."""

_SECONDS_BETWEEN_SAMPLES = 0.5
_BATCHES = (128, LARGEST_BATCH)


class Scale(NamedTuple):
    """How large the measured programs are."""

    games: int = 1024  # concurrent ones, of each process of Seraphim
    peer_games: tuple[int, ...] = (128, 1024, 4096)  # concurrent ones of mctx, one measurement each
    training: TrainingOptions = TrainingOptions(precision="bfloat16", batch_size=2048)
    positions: int = 100_000  # to train on


def gpu_runtime() -> Runtime:
    """Return the runtime that `auto` takes on this machine's GPU.

    Raises:
        SettingsError: neither TensorFlow nor JAX sees one.
    """
    if tensorflow.sees_gpu():
        return "tensorflow"
    if jax.sees_gpu():
        return "jax"
    raise SettingsError(
        "neither TensorFlow nor JAX sees a GPU here: check its driver with nvidia-smi, and pip install -e "
        "'.[train,gpu]', or leave --gpu out"
    )


def measure(runtime: Runtime, num_workers: int, seconds: float, scale: Scale = Scale()) -> Figures:  # noqa: B008
    """Measure everything with a network of random weights.

    Args:
        runtime: runs Seraphim's network.
        num_workers: Seraphim's processes in self-play; 0 is one for each core.
        seconds: for each figure.
        scale: how large the programs are.
    """
    game = load_game(GAME)
    settings = {cache: _settings(cache, scale) for cache in (True, False)}
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        snapshot = bootstrap(ModelFolder(Path(folder), "benchmark"), game, settings[True], seed=0).path
        for precision in ("bfloat16", "float32"):
            inference = load_inference(snapshot, game, runtime, precision)
            print(f"network: {inference.description}", flush=True)
            for batch in _BATCHES:
                rate = measure_network(inference, game, batch, seconds)
                figures[f"network alone, {precision}, {batch:,} at a time: evaluations/s"] = rate
        for cache, title in ((True, "self-play"), (False, "self-play without the cache")):
            found = measure_self_play(settings[cache], snapshot, runtime, num_workers, seconds)
            figures |= {f"{title}: {name}": value for name, value in found.items()}
    where = "on the GPU" if architectures.sees_gpu() else "on the processor, because TensorFlow sees no GPU"
    figures[f"training in {scale.training.precision} {where}: positions/s"] = measure_training(game, scale, seconds)
    return figures | measure_peer(figures["self-play: readouts/s"], seconds, scale)


def _settings(cache: bool, scale: Scale) -> Settings:
    settings = settings_of(PUCT, cache)
    return replace(settings, self_play=replace(settings.self_play, concurrent_games=scale.games))


def measure_network(inference: Inference, game: Game, batch: int, seconds: float) -> float:
    """Return the evaluations/s of two threads that each evaluate one batch after another, as self-play does."""
    observations = np.random.default_rng(0).integers(0, 2, (batch, *game.observation_shape), np.uint8)
    inference.infer(observations)  # prepares the runtime
    start, evaluated = time.perf_counter(), [0, 0]

    def evaluate(thread: int) -> None:
        while time.perf_counter() - start < seconds:
            inference.infer(observations)
            evaluated[thread] += batch

    threads = [threading.Thread(target=evaluate, args=(number,)) for number in range(len(evaluated))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(evaluated) / (time.perf_counter() - start)


def measure_self_play(
    settings: Settings, snapshot: Path, runtime: Runtime, num_workers: int, seconds: float
) -> Figures:
    """Return the figures of `measure_workers`, and the share of the time in which the GPU computes, if it is known."""
    busy = BusyShare() if which(NVIDIA_SMI[0]) else None
    watch: AbstractContextManager[object] = busy or nullcontext()
    figures = measure_workers(settings, snapshot, runtime, num_workers, seconds, watch)
    return figures | ({"GPU busy share": busy.share} if busy and busy.samples else {})


class BusyShare:
    """Samples the busiest GPU inside a `with` block, by a program that prints a percentage for each."""

    def __init__(self, command: Sequence[str] = NVIDIA_SMI) -> None:
        """Prepare to run the command about twice a second."""
        self.samples: list[float] = []
        self._command = command
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    @property
    def share(self) -> float:
        """The mean share of the time in which the GPU computed, in [0, 1]; there must be a sample."""
        return statistics.mean(self.samples)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_SAMPLES):
            done = subprocess.run(self._command, check=False, capture_output=True, text=True)
            shares = [float(line) / 100 for line in done.stdout.split() if line.replace(".", "", 1).isdigit()]
            if shares:
                self.samples.append(max(shares))


def measure_training(game: Game, scale: Scale, seconds: float) -> float:
    """Return how many positions a second are trained on, drawn from random ones, after everything is compiled."""
    model = architectures.build(game, NETWORK, seed=0)
    fit.prepare(model, scale.training)
    batches = fit.Batches(game.observation_shape, game.symmetries(), scale.training, seed=0)
    training, positions = fit.TrainingSteps(model, batches), _random_positions(game, scale.positions)
    training.train(positions, 2, quiet=True)
    start, trained = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        training.train(positions, fit.LOG_EVERY, quiet=True)
        trained += fit.LOG_EVERY * scale.training.batch_size
    return trained / (time.perf_counter() - start)


def _random_positions(game: Game, count: int) -> Positions:
    rng = np.random.default_rng(0)
    ones = np.ones(count, np.float32)
    given = {
        "observations": rng.integers(0, 2, (count, *game.observation_shape), np.uint8),
        "policies": rng.dirichlet(np.ones(game.num_actions), count).astype(np.float32),
        "values": rng.choice([-1.0, 0.0, 1.0], count).astype(np.float32),
    }
    return Positions(*(given.get(name, ones) for name in Positions._fields))


def measure_peer(
    ours: float, seconds: float, scale: Scale, player: Callable[..., mctx_peer.SelfPlay] = mctx_peer.SelfPlay
) -> Figures:
    """Return mctx's readouts/s on the same GPU by the games at a time, and the ratio of `ours` to the fastest."""
    missing = [package for module, package in PACKAGES.items() if find_spec(module) is None]
    if missing:
        print(f"mctx is not measured, because {', '.join(missing)} cannot be found: pip install -e '.[bench]'")
        return {}
    title = f"mctx muzero_policy, PUCT with {PUCT.readouts}, {mctx_peer.PRECISION} on {mctx_peer.device()}"
    figures = {
        f"{title}, {games:,} games: readouts/s": player(
            "connect_four", "muzero_policy", PUCT.readouts, NETWORK, games
        ).measure(seconds)
        for games in scale.peer_games
    }
    return figures | {"self-play / fastest mctx": ours / max(figures.values())}
