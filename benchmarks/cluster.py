"""Measures self-play on a Ray cluster against local workers, and the learner's cost of each game.

    PYTHONPATH=. python benchmarks/cluster.py [NAME] [--games=2000 --turns=12]

lets the champion of the model NAME in models/, by default connectfour, play in turns: by local workers, by a cluster of
one Ray node with the same cores, and by a cluster of two nodes (separate sets of processes) with half of the cores
each. In one turn all three play the same games, and each turn begins with another one. It prints games per hour, and
their ratios to local workers in the same turn: the median, and the mean with its 95 % interval over turns. It prints
how long it takes until every worker has played with a new champion. Then it trains for some steps, and prints how fast
a worker plays, how much time the learner spends on a game, and how fast it trains. Nothing else should run. It writes
only to a temporary folder.
"""

import argparse
import contextlib
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.raynodes import another_node, ray_environment, running_head
from seraphim.errors import SeraphimError
from seraphim.game import load_game
from seraphim.machine import count_cores
from seraphim.records.files import published_files, read_examples
from seraphim.records.schema import end_of
from seraphim.selfplay.cluster.actor import Assignment
from seraphim.selfplay.cluster.bundle import pack
from seraphim.selfplay.cluster.nodes import Cluster
from seraphim.selfplay.cluster.pool import open_pool
from seraphim.selfplay.generate import Generated, generate_games
from seraphim.selfplay.pool import Pool
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training.trainer import Trainer

LOCAL, ONE_NODE, TWO_NODES = "local workers", "one Ray node", "two Ray nodes"


@dataclass(frozen=True)
class Turn:
    """The result of one setup in one turn."""

    generated: Generated
    processor_seconds: float
    """Processor time of this process, which receives the games and writes them."""

    @property
    def games_per_hour(self) -> float:
        """Return the games per hour."""
        return 3600 * self.generated.games / self.generated.seconds


def main() -> None:
    """Measure, and print."""
    arguments = parse()
    source = ModelFolder(Path(os.environ.get("SERAPHIM_DATA") or "."), arguments.name)
    settings = source.settings()
    settings = replace(settings, self_play=replace(settings.self_play, concurrent_games=arguments.concurrent_games))
    environment = ray_environment()
    os.environ.update(environment)
    with tempfile.TemporaryDirectory() as root:
        turns: dict[str, list[Turn]] = {LOCAL: [], ONE_NODE: [], TWO_NODES: []}
        for number in range(arguments.turns):
            ways = list(turns)
            for way in ways[number % len(ways) :] + ways[: number % len(ways)]:  # the first one may have an advantage
                folder = copy_champion(source, Path(root, f"{way}-{number}"))  # without games
                with cluster_of(way, arguments.workers, environment, Path(root)) as address:
                    turns[way].append(play(folder, settings, arguments, address, f"turn-{number}"))
                    print(f"turn {number + 1}, {way}: {turns[way][-1].games_per_hour:,.0f} games/h", flush=True)
        print_ratios(turns)
        with cluster_of(TWO_NODES, arguments.workers, environment, Path(root)) as address:
            seconds, bundle_bytes = handover(folder, settings, arguments.workers, address or "")
        workers = f"all {arguments.workers} workers of two nodes"
        print(
            f"a new champion, {bundle_bytes / 1e6:.1f} MB: {workers} have played a game with it after {seconds:.2f} s"
        )
        print_costs(folder, settings, turns[ONE_NODE], arguments)


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="connectfour", help="model")
    parser.add_argument("--games", type=int, default=2000, help="games of each turn")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--workers", type=int, default=max(2, count_cores()), help="an even number")
    parser.add_argument("--concurrent_games", type=int, default=256, help="concurrent games of a worker")
    parser.add_argument("--steps", type=int, default=100, help="training steps")
    arguments = parser.parse_args()
    if arguments.turns < 2:
        parser.error(f"--turns must be at least 2, for the interval, not {arguments.turns}")
    return arguments


def copy_champion(source: ModelFolder, root: Path) -> ModelFolder:
    """Return a model with the same champion and no games."""
    folder = ModelFolder(root, source.name)
    champion = source.champion().path
    folder.create(source.settings())
    folder.publish(source.champion().step, lambda path: copy_tree(champion, path), promote=lambda: True)
    return folder


def copy_tree(here: Path, there: Path) -> None:
    """Copy what is in a folder into another one."""
    shutil.copytree(here, there, dirs_exist_ok=True)


@contextlib.contextmanager
def cluster_of(way: str, cores: int, environment: dict[str, str], root: Path) -> Iterator[str | None]:
    """Run the nodes of one setup, and yield the address; None for local workers."""
    with contextlib.ExitStack() as nodes:
        if way == LOCAL:
            yield None
            return
        address = nodes.enter_context(running_head(environment, cores if way == ONE_NODE else cores // 2))
        if way == TWO_NODES:
            nodes.enter_context(another_node(address, root, environment, cores // 2))
        yield address


def play(
    folder: ModelFolder, settings: Settings, arguments: argparse.Namespace, address: str | None, stream: str
) -> Turn:
    """Play the games of a turn, after a warm-up."""
    with open_pool(settings, "auto", arguments.workers, address, quiet) as pool:
        warm_up(pool, folder)
        before = time.process_time()
        generated = generate_games(pool, folder, settings, stream, arguments.games, quiet)
        return Turn(generated, time.process_time() - before)


def warm_up(pool: Pool, folder: ModelFolder) -> None:
    """Play until every worker has started and loaded its kernels and its model."""
    for _ in pool.play(folder.champion().path, "warm-up", end=10 * pool.num_workers or 20):
        pass


def quiet(_: str) -> None:
    """Announce nothing."""


def print_ratios(turns: dict[str, list[Turn]]) -> None:
    """Print the median of each setup, and its ratios to local workers."""
    local = [turn.games_per_hour for turn in turns[LOCAL]]
    for way, measured in turns.items():
        own = [turn.games_per_hour for turn in measured]
        ratios = [one / other for one, other in zip(own, local, strict=True)]
        listed = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        margin = 1.96 * statistics.stdev(ratios) / math.sqrt(len(ratios))
        print(
            f"{way}: {statistics.median(own):,.0f} games/h, {statistics.median(ratios):.3f} of local workers "
            f"(mean {statistics.mean(ratios):.3f} ± {margin:.3f}; by turn {listed})"
        )


def handover(folder: ModelFolder, settings: Settings, num_workers: int, address: str) -> tuple[float, int]:
    """Return the seconds until all workers have played a quick game with a new champion, and its size in bytes."""
    quick = settings.override({"readouts": 1})
    with tempfile.TemporaryDirectory() as other, Cluster(quick, address, 0, False, quiet) as cluster:
        copy_tree(folder.champion().path, Path(other))
        (Path(other) / "snapshot.json").write_text(f"{time.time()}\n")  # no worker has this one yet
        here = sum(1 for _ in greeted(cluster, num_workers))
        for run in range(2):  # the first one loads libraries and kernels
            began = time.perf_counter()
            (Path(other) / "snapshot.json").write_text(f"{time.time()}\n")
            bundle = pack(Path(other))
            reference = cluster.put(bundle)
            for number, worker in enumerate(cluster.workers):
                cluster.call(worker, "begin", Assignment("openvino", f"run-{run}", 1), reference, [number])
                cluster.call(worker, "exchange", [], True, 60.0)
            ended = 0
            while ended < here:
                ended += sum(1 for _ in cluster.answers(1.0))
            seconds = time.perf_counter() - began
    return seconds, len(bundle)


def greeted(cluster: Cluster, num_workers: int) -> Iterator[object]:
    """Wait until all workers have started, and yield them."""
    found = 0
    while found < num_workers:
        for worker, _ in cluster.answers(1.0):
            found += 1
            yield worker


def print_costs(folder: ModelFolder, settings: Settings, turns: list[Turn], arguments: argparse.Namespace) -> None:
    """Print the speed of a worker and the learner's costs; it trains twice, the first time as a warm-up."""
    options = replace(settings.training, steps=arguments.steps)
    trainer = Trainer(folder, load_game(settings.game), replace(settings, training=options), 0, quiet=True)
    for _ in range(2):
        generation = trainer.retrain()
        training_rate = generation.steps * options.batch_size / generation.training_seconds
    examples = [example for file in published_files(folder.game_data)[-10:] for example in read_examples(file)]
    plies = statistics.mean(turn.generated.positions / turn.generated.games for turn in turns)
    games_per_second = statistics.median(turn.games_per_hour for turn in turns) / 3600 / arguments.workers
    bytes_per_game = sum(map(len, examples)) / sum(map(end_of, examples))
    milliseconds = 1e3 * statistics.median(turn.processor_seconds / turn.generated.games for turn in turns)
    print(
        f"a worker: {games_per_second:.1f} games/s of {plies:.1f} plies and {bytes_per_game:,.0f} bytes\n"
        f"the learner: {milliseconds:.2f} ms of processor time per game; trains on {training_rate:,.0f} positions/s"
    )


if __name__ == "__main__":
    try:
        main()
    except SeraphimError as error:
        sys.exit(f"cluster.py: {error}")
