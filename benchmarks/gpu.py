"""Measures what a GPU does: whether it computes what the processor does, the network alone, self-play, training, mctx.

Everything is connect four with the network and the search of `benchmarks.peers`, with random weights, unless a step
says otherwise. Each step runs in a process of its own and within a limit of time: what fails is said, and the others
go on. Needs no TensorFlow, but for training: the networks are archives in `benchmarks/networks`, made by
`python -m benchmarks.gpu`.
"""

import math
import multiprocessing
import statistics
import subprocess
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import copy, which
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from benchmarks import mctx_peer
from benchmarks.peers import GAME, NETWORK, PACKAGES, PUCT, settings_of
from seraphim.diagnostics.benchmark import Figures, show
from seraphim.errors import NotInstalledError, SettingsError
from seraphim.evaluation.match import make_openings
from seraphim.game import Array, Game, load_game
from seraphim.inference import Precision, Runtime, jax, load_inference, tensorflow
from seraphim.network import architectures, saved_model
from seraphim.options import SearchOptions, TrainingOptions
from seraphim.records.examples import Positions
from seraphim.search import naive
from seraphim.search.evaluator import Inference
from seraphim.search.search import Search
from seraphim.selfplay.pool import Work
from seraphim.selfplay.processes import WorkerPool
from seraphim.selfplay.served import IN_FLIGHT
from seraphim.settings import Settings, default_settings
from seraphim.storage.models import ModelFolder
from seraphim.training import fit

NETWORKS = Path(__file__).parent / "networks"
"""Archives of `NETWORK` with random weights, for each of `GAMES`."""
GAMES = (GAME, "othello")

NVIDIA_SMI = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")
"""Prints, for each GPU, the percentage of the last fraction of a second in which it computed something."""

_SECONDS_BETWEEN_SAMPLES = 0.5
_PRECISIONS: tuple[Precision, ...] = ("bfloat16", "float32")


class Scale(NamedTuple):
    """How large the measured programs are."""

    games: int = 5460  # concurrent ones of each core, half of which move while the others are evaluated
    batches: tuple[int, ...] = (512, 2048, 8192)  # of the network alone; the last is that of self-play
    peer_games: tuple[int, ...] = (1024, 4096)  # concurrent ones of mctx, one measurement each
    training: TrainingOptions = TrainingOptions(batch_size=2048, average_positions=False)
    positions: int = 100_000  # to train on
    compared: int = 256  # games that must be those of the processor
    compared_readouts: int = 32
    warm_up: float = 15.0  # seconds of self-play until what it runs is compiled
    limit: float = 90.0  # seconds of a step


class Run(NamedTuple):
    """What a step measures, and how."""

    runtime: Runtime
    workers: int  # processes of self-play; 0: see `WorkerPool`
    seconds: float  # for each figure
    scale: Scale


Step = Callable[[Run], Figures]


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
        "neither TensorFlow nor JAX sees a GPU here: check its driver with nvidia-smi, and pip install -e '.[gpu]', or "
        "leave --gpu out"
    )


def measure(
    runtime: Runtime,
    num_workers: int,
    seconds: float,
    report: Callable[[Figures], None] = lambda _: None,
    scale: Scale = Scale(),  # noqa: B008
) -> Figures:
    """Run all steps, print the figures of each, and return them.

    Args:
        runtime: runs Seraphim's network.
        num_workers: Seraphim's processes in self-play; 0 is one for each core.
        seconds: for each figure.
        report: receives all figures after each step.
        scale: how large the programs are.
    """
    figures: Figures = {}
    for name, step in STEPS.items():
        start = time.perf_counter()
        found, problem = _run_apart(step, Run(runtime, num_workers, seconds, scale))
        print(f"{name}: {problem or 'measured'} ({time.perf_counter() - start:.0f} s)", flush=True)
        show(found)
        figures |= found
        report(figures)
    ratios = _ratios(figures, scale)
    show(ratios)
    report(figures | ratios)
    return figures | ratios


def _run_apart(step: Step, run: Run) -> tuple[Figures, str]:
    # The figures of a step in a process of its own, and what went wrong.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run_step, args=(step, run, theirs))
    process.start()
    theirs.close()
    try:
        found: tuple[Figures, str] = ours.recv() if ours.poll(run.scale.limit) else ({}, "not measured: out of time")
    except EOFError:
        found = {}, "not measured: its process died"
    process.kill()
    process.join()
    return found


def _run_step(step: Step, run: Run, connection: Any) -> None:
    try:
        connection.send((step(run), ""))
    except (NotInstalledError, SettingsError) as error:
        connection.send(({}, f"not measured: {error}"))
    except Exception as error:  # noqa: BLE001 (whatever fails, the other steps go on)
        traceback.print_exc()
        connection.send(({}, f"not measured: {type(error).__name__}: {error}"))


def _ratios(figures: Figures, scale: Scale) -> Figures:
    alone = figures.get(_rate_name(GAME, "bfloat16", scale.batches[-1]))
    peers = [value for name, value in figures.items() if name.startswith("mctx")]
    ratios: Figures = {}
    for title in ("self-play", "self-play without the cache"):
        if peers and f"{title}: readouts/s" in figures:
            ratios[f"{title} / fastest mctx"] = figures[f"{title}: readouts/s"] / max(peers)
    if alone and "self-play without the cache: evaluations/s" in figures:
        ratios["self-play without the cache / network alone"] = (
            figures["self-play without the cache: evaluations/s"] / alone
        )
    return ratios


# ---------------------------------------------------------------- the networks


@contextmanager
def snapshot_of(game_name: str, settings: Settings | None = None) -> Iterator[Path]:
    """Make a model's folder with the network of random weights for a game, and give its snapshot."""
    with tempfile.TemporaryDirectory() as root:
        folder = ModelFolder(Path(root), "benchmark")
        folder.create(settings or replace(settings_of(PUCT, cache=True), game=game_name))

        def write(path: Path) -> None:
            (path / saved_model.ARCHIVE).parent.mkdir(parents=True)
            copy(NETWORKS / f"{game_name}.keras", path / saved_model.ARCHIVE)

        yield folder.publish(0, write, promote=lambda: True).path


def make_network(game_name: str, file: Path) -> None:
    """Write an archive of `NETWORK` for a game, with weights that are all random."""
    model = architectures.build(load_game(game_name), NETWORK, seed=0)
    generator = np.random.default_rng(0)
    for weight in model.weights:
        fan_in = math.prod(weight.shape[:-1]) or 1
        drawn = generator.normal(scale=(2 / fan_in) ** 0.5 if len(weight.shape) > 1 else 0.1, size=weight.shape)
        # In half precision, so that Git can compress them.
        weight.assign((drawn / (2 if weight.path.startswith("block") else 1)).astype(np.float16))
    model.save(file)


# ---------------------------------------------------------------- agreement with the processor


def measure_agreement(run: Run) -> Figures:
    """Compare what the GPU computes with what JAX computes on the processor in float32, and the games of both."""
    game, scale = load_game(GAME), run.scale
    states = make_openings(game, 4 * scale.compared, plies=30).states
    with snapshot_of(GAME) as snapshot:
        reference = jax.JaxModel(snapshot, game, "float32", "cpu")
        figures: Figures = {}
        for precision in _PRECISIONS:
            inference = load_inference(snapshot, game, run.runtime, precision)
            pairs = zip(reference.infer(game.observe(states)), inference.infer(game.observe(states)), strict=True)
            (logits, values) = (np.abs(ours - theirs).max() for ours, theirs in pairs)
            figures[f"{precision}, largest difference to the processor: logits"] = float(logits)
            figures[f"{precision}, largest difference to the processor: values"] = float(values)
        openings = make_openings(game, scale.compared, plies=10, seed=1).states
        options = replace(PUCT, readouts=scale.compared_readouts, cache_megabytes=0)
        played = [play_greedily(game, each, options, openings) for each in (reference, inference)]
        parted = [ply for pair in zip(*played, strict=True) if (ply := first_difference(*pair)) is not None]
        gaps = [score_gap(game, (reference, inference), state, options) for state in parted]
        figures["float32, games equal to the processor's: share"] = 1 - len(parted) / len(openings)
        figures["float32, largest gap of scores where games part"] = max(gaps, default=0.0)
    return figures


Played = list[tuple[bytes, int]]
"""A game: the words of each position, and the action there."""


def play_greedily(game: Game, inference: Inference, options: SearchOptions, states: Array) -> list[Played]:
    """Play a game from each of some states [N, W] by the most visited action of a new search at each ply."""
    search, rows = Search(game, inference, options, len(states)), np.arange(len(states))
    played: list[Played] = [[] for _ in rows]
    states = states.copy()
    while len(rows):
        search.reset(rows)
        search.begin(rows, states[rows])
        search.run()
        actions = search.result(rows).policies.argmax(axis=1)
        for row, action in zip(rows, actions, strict=True):
            played[row].append((states[row].tobytes(), int(action)))
        states[rows] = game.step(states[rows], actions)
        rows = rows[~game.outcome(states[rows])[0]]
    return played


def first_difference(ours: Played, theirs: Played) -> Array | None:
    """Return the last position that two games from one opening share, if they differ after it."""
    for (words, action), (_, other) in zip(ours, theirs, strict=False):
        if action != other:
            return np.frombuffer(words, np.int64)
    return None


def score_gap(game: Game, models: Sequence[Inference], state: Array, options: SearchOptions) -> float:
    """Return the difference of the scores of the first two edges between which the searches of two models part.

    Both are searched naively, readout by readout, from one position.
    """
    asked = [_Remembered(model) for model in models]
    before = naive.search(game, asked[0], state, options, readouts=0)
    for count in range(1, options.readouts + 1):
        ours, theirs = (naive.search(game, each, state, options, readouts=count) for each in asked)
        node: naive.Node | None = before
        while node is not None and node.edges:
            ((mine, one),) = (
                pair for pair in zip(ours.edges, node.edges, strict=True) if pair[0].visits > pair[1].visits
            )
            ((other, two),) = (
                pair for pair in zip(theirs.edges, node.edges, strict=True) if pair[0].visits > pair[1].visits
            )
            if one is not two:
                return abs(_score(node, one, options) - _score(node, two, options))
            node, ours, theirs = one.child, mine.child or ours, other.child or theirs
        before = naive.search(game, asked[0], state, options, readouts=count)
    return math.inf  # the searches are the same: what differs is not their scores


def _score(node: naive.Node, edge: naive.Edge, options: SearchOptions) -> float:
    bonus = options.cpuct * math.sqrt(max(1, node.visits)) * float(edge.prior) / (1 + edge.visits)
    return bonus + (edge.means[node.mover] if edge.visits else 0.0)


class _Remembered:
    # A model that is asked once about a position.

    overlaps = False

    def __init__(self, model: Inference) -> None:
        self.name, self.description = model.name, model.description
        self._model, self._found = model, dict[bytes, tuple[Array, Array]]()

    def infer(self, observations: Array) -> tuple[Array, Array]:
        key = observations.tobytes()
        if key not in self._found:
            self._found[key] = self._model.infer(observations)
        return self._found[key]


# ---------------------------------------------------------------- network, self-play, training, mctx


def measure_networks(run: Run) -> Figures:
    """Return the evaluations/s of the network by game, precision and batch."""
    figures: Figures = {}
    for name in GAMES:
        game = load_game(name)
        with snapshot_of(name) as snapshot:
            for precision in _PRECISIONS:
                inference = load_inference(snapshot, game, run.runtime, precision)
                print(f"network of {name}: {inference.description}", flush=True)
                for batch in run.scale.batches:
                    rate = measure_network(inference, game, batch, run.seconds / 3)
                    figures[_rate_name(name, precision, batch)] = rate
    return figures


def _rate_name(game: str, precision: Precision, batch: int) -> str:
    return f"network alone, {game}, {precision}, {batch:,} at a time: evaluations/s"


def measure_network(inference: Inference, game: Game, batch: int, seconds: float) -> float:
    """Return the evaluations/s of threads that each evaluate one batch after another, as self-play does."""
    observations = np.random.default_rng(0).integers(0, 2, (batch, *game.observation_shape), np.uint8)
    inference.infer(observations)  # prepares the runtime
    start, evaluated = time.perf_counter(), [0] * IN_FLIGHT

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


def measure_self_play(run: Run, title: str, settings: Settings) -> Figures:
    """Return the figures of self-play after a warm-up, and the share of time in which the GPU computes, if known.

    Games begin after up to 20 random moves, so that they are of all ages from the first second.
    """
    options = replace(settings.self_play, concurrent_games=run.scale.games, random_plies=20)
    settings = replace(settings, self_play=options)
    marks: list[Work] = []
    with ExitStack() as stack:
        snapshot = stack.enter_context(snapshot_of(settings.game, settings))
        pool = stack.enter_context(WorkerPool(settings, run.runtime, run.workers))
        busy = BusyShare() if which(NVIDIA_SMI[0]) else None

        def watch() -> None:
            while not pool.work().readouts:
                time.sleep(0.1)
            time.sleep(run.scale.warm_up)
            marks.append(pool.work())
            with busy or ExitStack():
                time.sleep(max(run.seconds, 2.5))  # workers report every second
            marks.append(pool.work())
            pool.stop()

        threading.Thread(target=watch, daemon=True).start()
        for _ in pool.play(snapshot, "benchmark"):
            pass
    before, after = marks
    elapsed = after.playing_seconds - before.playing_seconds
    spent = {stage: seconds - before.seconds[stage] for stage, seconds in after.seconds.items()}
    evaluations, hits = after.evaluations - before.evaluations, after.cache_hits - before.cache_hits
    figures = {
        "readouts/s": (after.readouts - before.readouts) / elapsed,
        "evaluations/s": evaluations / elapsed,
        "batch fill": evaluations / max(1, after.batch_capacity - before.batch_capacity),
        "cache hits": hits / max(1, evaluations + hits),
        **{f"share in {stage}": seconds / sum(spent.values()) for stage, seconds in spent.items()},
        **({"GPU busy share": busy.share} if busy and busy.samples else {}),
    }
    return {f"{title}: {name}": value for name, value in figures.items()}


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


def measure_training(run: Run) -> Figures:
    """Return how many positions a second are trained on, drawn from random ones, after everything is compiled."""
    if find_spec("tensorflow") is None:
        raise NotInstalledError("training needs TensorFlow")
    game, scale = load_game(GAME), run.scale
    model = architectures.build(game, NETWORK, seed=0)
    fit.prepare(model, scale.training)
    batches = fit.Batches(game.observation_shape, game.symmetries(), scale.training, seed=0)
    training, positions = fit.TrainingSteps(model, batches), _random_positions(game, scale.positions)
    training.train(positions, 2, quiet=True)
    start, trained = time.perf_counter(), 0
    while time.perf_counter() - start < run.seconds:
        training.train(positions, fit.LOG_EVERY, quiet=True)
        trained += fit.LOG_EVERY * scale.training.batch_size
    where = "on the GPU" if architectures.sees_gpu() else "on the processor, because TensorFlow sees no GPU"
    rate = trained / (time.perf_counter() - start)
    return {f"training in {scale.training.precision} {where}: positions/s": rate}


def _random_positions(game: Game, count: int) -> Positions:
    rng = np.random.default_rng(0)
    ones = np.ones(count, np.float32)
    given = {
        "observations": rng.integers(0, 2, (count, *game.observation_shape), np.uint8),
        "policies": rng.dirichlet(np.ones(game.num_actions), count).astype(np.float32),
        "values": rng.choice([-1.0, 0.0, 1.0], count).astype(np.float32),
    }
    return Positions(*(given.get(name, ones) for name in Positions._fields))


def measure_peer(run: Run, player: Callable[..., mctx_peer.SelfPlay] = mctx_peer.SelfPlay) -> Figures:
    """Return mctx's readouts/s with the rules of pgx on the same GPU, by the games at a time, in bfloat16."""
    missing = [package for module, package in PACKAGES.items() if module != "pyspiel" and find_spec(module) is None]
    if missing:
        raise NotInstalledError(f"{', '.join(missing)} cannot be found: pip install -e '.[bench]'")
    title = f"mctx muzero_policy, PUCT with {PUCT.readouts}, bfloat16 on {mctx_peer.device()}"
    return {
        f"{title}, {games:,} games: readouts/s": player(
            "connect_four", "muzero_policy", PUCT.readouts, NETWORK, games, "bfloat16"
        ).measure(run.seconds)
        for games in run.scale.peer_games
    }


STEPS: dict[str, Step] = {
    "agreement": measure_agreement,
    "network": measure_networks,
    "self-play": partial(measure_self_play, title="self-play", settings=settings_of(PUCT, cache=True)),
    "without the cache": partial(
        measure_self_play, title="self-play without the cache", settings=settings_of(PUCT, cache=False)
    ),
    "mctx": measure_peer,
    "own settings": partial(
        measure_self_play,
        title="self-play with the game's own settings",
        settings=replace(default_settings(GAME), network=NETWORK),
    ),
    "training": measure_training,
}

if __name__ == "__main__":
    for made in GAMES:
        make_network(made, NETWORKS / f"{made}.keras")
