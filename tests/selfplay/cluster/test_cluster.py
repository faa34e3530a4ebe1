"""Workers on the machines of a Ray cluster play the games of local workers, whichever machines come and go."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.raynodes import actors, another_node, ray_environment, running_head
from seraphim.errors import ModelError, SeraphimError, WorkerError
from seraphim.inference import Runtime
from seraphim.network.saved_model import load_model
from seraphim.records.index import played_numbers
from seraphim.selfplay.cluster import pool
from seraphim.selfplay.cluster.pool import RayPool, open_pool
from seraphim.selfplay.generate import generate_games
from seraphim.selfplay.pool import FinishedGame
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training.loop import Run, learn

pytestmark = [
    pytest.mark.slow,
    # Not imported here: it reads its variables when it is.
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
    # Ray leaves files and sockets of processes that it has ended to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

ROOT = Path(__file__).parents[3]
FEW, MANY = 200, 1500  # games


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Set the variables of the module's cluster, and return them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        variables = ray_environment()
        for name, value in variables.items():
            patch.setenv(name, value)
        yield variables


@pytest.fixture(scope="module")
def head(environment: dict[str, str]) -> Iterator[str]:
    """Return the address of a cluster with one machine of two cores."""
    with running_head(environment) as address:
        yield address


@pytest.fixture(autouse=True)
def _alone() -> None:
    """Wait for the end of the actors of the test before: a test may take any actor for its own."""
    wait_for(lambda: not actors())


class Lines(list[str]):
    """Lines that the pool reported."""

    def has(self, pattern: str) -> bool:
        return any(re.search(pattern, line) for line in self)


def ray_pool(settings: Settings, address: str, lines: Lines, num_workers: int = 0) -> RayPool:
    return RayPool(settings, "auto", num_workers, address, lines.append)


def local_games(settings: Settings, snapshot: Path | None, stream: str, end: int) -> list[FinishedGame]:
    with WorkerPool(settings, num_workers=1) as pool:
        return sorted(pool.play(snapshot, stream, end=end))


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < deadline, "it did not happen in time"
        time.sleep(0.1)


def program(root: Path, *command: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, "SERAPHIM_DATA": str(root), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# This one comes before the others, whose cluster `auto` would find.
def test_learning_starts_ray_where_none_runs_and_ends_it(root: Path, environment: dict[str, str]) -> None:
    quick = ("--games_per_generation=20", "--steps=4", "--generations=2", "--goal=none", "--workers=2")
    with program(root, "bin/learn.py", "fresh", "--cluster=auto", *quick) as started:
        output, error = started.communicate(timeout=240)
    assert (started.returncode, error) == (0, "")
    output_lines = output.splitlines()
    assert re.fullmatch(r"started Ray 2\.\d+\.\d+ on this machine, 2 cores", output_lines[0])
    assert sum(line.startswith("generation ") for line in output_lines) == 2
    assert "Ray" not in "".join(output_lines[1:])
    assert not actors()


# So does this one: where a cluster runs, this machine is a node.
@pytest.mark.usefixtures("environment")
def test_a_learner_on_a_machine_without_a_node_gets_the_command_to_start_one(small_settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        expected = f"not part of the cluster yet: ray start --address={address}, then run again"
        with pytest.raises(WorkerError, match=expected), ray_pool(small_settings, address, Lines()):
            pass


# ---------------------------------------------------------------- the same games


def test_a_cluster_plays_the_games_that_local_workers_play(
    folder: ModelFolder, small_settings: Settings, head: str
) -> None:
    snapshot = folder.champion().path
    lines = Lines()
    with ray_pool(small_settings, head, lines) as pool:
        assert lines == [f"joined the Ray cluster at {lines[0].split()[5]} 1 machines, 2 cores"]
        found = sorted(pool.play(snapshot, "a", end=60))
        assert found == local_games(small_settings, snapshot, "a", 60)
        assert pool.num_workers == 2
        # Another call, another model, and some games that are there already.
        games = sorted(pool.play(None, "b", first=3, end=20, skip={5, 6, 19}))
        expected = local_games(small_settings, None, "b", 20)
        assert games == [game for game in expected if game.number >= 3 and game.number not in (5, 6, 19)]
        positions = sum(len(game.examples) for game in games)
        assert pool.work().readouts == positions * small_settings.search.readouts
        assert 0 < pool.work().playing_seconds < sum(pool.work().seconds.values()) + 1
    wait_for(lambda: not actors())


@pytest.mark.usefixtures("head")
def test_no_more_workers_than_asked_for_on_the_ray_that_runs_here(small_settings: Settings) -> None:
    lines = Lines()
    with ray_pool(small_settings, "auto", lines, num_workers=1) as pool:
        list(pool.play(None, "a", end=10))
        assert len(actors()) == pool.num_workers == 1
    assert lines.has("^joined the Ray cluster at ")


def test_a_new_champion_takes_over_while_games_are_generated(
    folder: ModelFolder, small_settings: Settings, head: str
) -> None:
    first = folder.champion()
    played_by = []

    def write(path: Path) -> None:
        subprocess.run(["cp", "-r", f"{first.path}/.", str(path)], check=True)

    class Watched(RayPool):
        def play(self, snapshot, *arguments, **options):
            played_by.append(snapshot.name)
            for games, game in enumerate(super().play(snapshot, *arguments, **options)):
                if games == 50 and len(played_by) == 1:
                    folder.promote(folder.publish(8, write))
                yield game

    with Watched(small_settings, "auto", 0, head, lambda _: None) as pool:
        assert generate_games(pool, folder, small_settings, "7", MANY, lambda _: None).games == MANY
    assert played_by == [first.name, folder.champion().name]
    assert played_numbers(folder.game_data, "7") == set(range(MANY))


def test_the_same_seed_gives_the_same_model_on_a_cluster(root: Path, small_settings: Settings, head: str) -> None:
    weights = []
    subprocess.run(["cp", "-r", str(root), str(root.with_name("other"))], check=True)
    folders = [ModelFolder(place, "fresh") for place in (root, root.with_name("other"))]
    for folder, cluster in zip(folders, (None, head), strict=True):
        run = Run("none", 1, seed=3, runtime="openvino", num_workers=1, cluster=cluster, quiet=True)
        learn(folder, small_settings, run, lambda _: None)
        weights.append(load_model(folder.champion().path).get_weights())
    assert all(np.array_equal(one, two) for one, two in zip(*weights, strict=True))


# ---------------------------------------------------------------- machines and workers come and go


def test_games_of_a_worker_that_is_killed_are_played_by_others(small_settings: Settings, head: str) -> None:
    lines = Lines()
    with ray_pool(small_settings, head, lines) as pool:
        games = []
        for game in pool.play(None, "a"):
            games.append(game)
            if len(games) == FEW // 2:
                os.kill(min(actors()), signal.SIGKILL)
            if len(lines) == 2 and len(actors()) == 2:
                pool.finish()
    assert lines.has(r"^workers on machine .* died \(Worker unexpectedly exits .*\): .* new ones are started$")
    games.sort()
    assert [game.number for game in games] == list(range(len(games)))
    assert games[:FEW] == local_games(small_settings, None, "a", FEW)


def test_games_of_a_worker_that_does_not_answer_are_played_by_others(
    small_settings: Settings, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seraphim.selfplay.cluster.nodes.SECONDS_TO_ANSWER", 3.0)
    lines, numbers = Lines(), []
    with ray_pool(small_settings, head, lines) as pool:
        for game in pool.play(None, "a"):
            numbers.append(game.number)
            if len(numbers) == FEW:
                silent = min(actors())
                os.kill(silent, signal.SIGSTOP)
            if len(lines) == 2:
                pool.finish()
        with contextlib.suppress(ProcessLookupError):  # Ray may have been faster
            os.kill(silent, signal.SIGKILL)
    assert lines.has(r"^workers on machine .* died \(no answer for 3 s\): ")
    assert sorted(numbers) == list(range(len(numbers)))


def test_workers_whose_answers_are_only_read_late_are_not_killed(
    small_settings: Settings, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seraphim.selfplay.cluster.nodes.SECONDS_TO_ANSWER", 3.0)
    lines, numbers = Lines(), []
    with ray_pool(small_settings, head, lines) as pool:
        for game in pool.play(None, "a", end=2 * FEW):
            numbers.append(game.number)
            if len(numbers) == FEW:
                time.sleep(5)  # both have answered long ago when the next answer is taken
    assert len(lines) == 1
    assert sorted(numbers) == list(range(2 * FEW))


def test_workers_that_are_asked_to_wait_long_are_not_killed(
    small_settings: Settings, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As with very many workers, each of which answers only now and then.
    monkeypatch.setattr("seraphim.selfplay.cluster.nodes.SECONDS_TO_ANSWER", 2.0)
    monkeypatch.setattr("seraphim.selfplay.cluster.pool._SECONDS_BETWEEN_MESSAGES", 8.0)
    slow = small_settings.override({"readouts": 400_000, "concurrent_games": 1})
    lines = Lines()
    with ray_pool(slow, head, lines) as pool:
        assert len(list(pool.play(None, "a", end=6))) == 6
    assert len(lines) == 1


def test_a_machine_that_joins_plays_and_one_that_is_lost_loses_nothing(
    small_settings: Settings, head: str, environment: dict[str, str], tmp_path: Path
) -> None:
    lines = Lines()
    with ray_pool(small_settings, head, lines) as pool:
        numbers = []
        play = pool.play(None, "a")
        numbers.append(next(play).number)
        with another_node(head, tmp_path, environment) as node:
            while not lines.has(r"^machine .* joined with 1 workers, 3 in all$") or len(actors()) < 3:
                numbers.append(next(play).number)
            node.kill()
            while not lines.has(r"^machine .* is gone: the others \(2\) play its games$"):
                numbers.append(next(play).number)
        pool.finish()
        numbers += [game.number for game in play]
    assert sorted(numbers) == list(range(len(numbers)))


def test_a_machine_with_different_code_is_excluded(
    small_settings: Settings, head: str, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for package in ("seraphim", "tictactoe"):
        subprocess.run(["cp", "-r", str(ROOT / package), str(other)], check=True)
    with (other / "tictactoe" / "game.py").open("a") as file:
        file.write("# changed\n")
    monkeypatch.chdir(tmp_path)  # which Ray puts before the installed packages
    lines = Lines()
    with (
        another_node(head, tmp_path, {**environment, "PYTHONPATH": str(other)}),
        ray_pool(small_settings, head, lines) as pool,
    ):
        wait_for(lambda: len(list(pool.play(None, "a", end=50))) == 50 and len(lines) > 1)
    assert lines.has(r"^machine .* is excluded: the game tictactoe on .* differs from the learner's: install the same")


def test_a_cluster_without_any_machine_that_can_play_is_an_error(small_settings: Settings, head: str) -> None:
    lacking = replace(small_settings, game="games")
    with (
        pytest.raises(WorkerError, match="no machine can play: there is no game 'games'"),
        ray_pool(lacking, head, Lines()) as pool,
    ):
        list(pool.play(None, "a", end=10))


def test_an_error_of_a_worker_is_the_learners_error(tmp_path: Path, small_settings: Settings, head: str) -> None:
    with pytest.raises(ModelError, match="holds no SavedModel"), ray_pool(small_settings, head, Lines()) as pool:
        list(pool.play(tmp_path, "a", end=10))


# ---------------------------------------------------------------- programs


def test_an_interrupt_keeps_finished_games_and_leaves_no_actors(root: Path, folder: ModelFolder, head: str) -> None:
    command = ("bin/generate_games.py", "fresh", "--seed=3", f"--cluster={head}")
    with program(root, *command) as started:
        assert started.stdout is not None
        while "self-play: 2 workers" not in started.stdout.readline():
            assert started.poll() is None
        time.sleep(1)
        started.send_signal(signal.SIGINT)
        output, error = started.communicate(timeout=60)
    assert (started.returncode, error) == (0, "")
    games = int(output.splitlines()[0].split(" games")[0].replace(",", ""))
    assert games == len(played_numbers(folder.game_data, "3")) > 0
    wait_for(lambda: not actors())


def test_a_learner_that_is_killed_leaves_no_actors_and_goes_on(root: Path, folder: ModelFolder, head: str) -> None:
    command = ("bin/generate_games.py", "fresh", "--seed=3", "--games_per_file=10", f"--cluster={head}")
    with program(root, *command) as started:
        wait_for(lambda: len(played_numbers(folder.game_data, "3")) > 100, 60)
        started.kill()
    wait_for(lambda: not actors())
    before = played_numbers(folder.game_data, "3")
    with program(root, *command, f"--games={max(before) + 100}") as started:
        _, error = started.communicate(timeout=120)
    assert (started.returncode, error) == (0, "")
    assert played_numbers(folder.game_data, "3") == set(range(max(before) + 100))


def test_a_missing_ray_is_reported_with_its_cure(root: Path, tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    with program(root, "bin/generate_games.py", "fresh", "--games=5", "--cluster=auto", PYTHONPATH=path) as started:
        _, error = started.communicate(timeout=120)
    assert started.returncode == 1
    assert error == "seraphim generate: --cluster needs Ray: pip install -e '.[cluster]'\n"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("here", "--cluster must be auto or the address of a head, such as 10.0.0.1:6379, not 'here'"),
        ("ray://127.0.0.1:10001", "--cluster must be auto or the address of a head"),
        ("127.0.0.1:1", "there is no Ray at 127.0.0.1:1 (.*): start one there with: ray start --head --port=1"),
        ("127.0.0.1:99999999", "there is no Ray at"),
    ],
)
@pytest.mark.usefixtures("environment")
def test_an_address_without_ray_is_reported_at_once(small_settings: Settings, address: str, message: str) -> None:
    began = time.perf_counter()
    with pytest.raises(SeraphimError, match=message), ray_pool(small_settings, address, Lines()):
        pass
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize(
    ("runtime", "uses_gpus"), [("auto", True), ("tensorflow", True), ("jax", True), ("litert", False)]
)
def test_runtimes_that_use_gpus_get_them(
    runtime: Runtime, uses_gpus: bool, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(pool, "Cluster", lambda *arguments: asked.append(arguments[3]))
    RayPool(small_settings, runtime, 1, "auto", print)
    assert asked == [uses_gpus]


def test_without_a_cluster_workers_are_local(small_settings: Settings) -> None:
    with open_pool(small_settings, num_workers=1) as pool:
        assert isinstance(pool, WorkerPool)
