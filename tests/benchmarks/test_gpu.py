"""The parts of `bin/benchmark.py --gpu`, on the processor."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import ArbitraryNetwork

from benchmarks import gpu
from seraphim.errors import NotInstalledError, SettingsError
from seraphim.game import Array, load_game
from seraphim.inference import jax, tensorflow
from seraphim.network.archive import read_archive
from seraphim.options import SearchOptions, TrainingOptions
from seraphim.search.evaluator import Uniform

ROOT = Path(__file__).parents[2]
SMALL = gpu.Scale(
    games=4,
    batches=(1, 2, 8),
    peer_games=(2, 8),
    training=TrainingOptions(batch_size=4),
    positions=50,
    compared=4,
    compared_readouts=8,
    warm_up=0.5,
    limit=120,
)
RUN = gpu.Run("jax", 1, 0.1, SMALL)
CONNECT_FOUR = load_game(gpu.GAME)
OPTIONS = SearchOptions(readouts=24, cache_megabytes=0, solver=False)


@pytest.fixture
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for runtime in (tensorflow, jax):
        monkeypatch.setattr(runtime, "sees_gpu", lambda: False)


@pytest.mark.usefixtures("_no_gpu")
def test_it_takes_the_runtime_that_auto_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="neither TensorFlow nor JAX sees a GPU here"):
        gpu.gpu_runtime()
    monkeypatch.setattr(jax, "sees_gpu", lambda: True)
    assert gpu.gpu_runtime() == "jax"
    monkeypatch.setattr(tensorflow, "sees_gpu", lambda: True)
    assert gpu.gpu_runtime() == "tensorflow"


@pytest.mark.skipif(tensorflow.gpu_is_likely(), reason="there may be a GPU")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--gpu",), "neither TensorFlow nor JAX sees a GPU"), (("--gpu", "--peers"), "leave GAME and --peers out")],
)
def test_without_a_gpu_the_program_says_so(arguments: tuple[str, ...], message: str) -> None:
    command = [sys.executable, "bin/benchmark.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert message in line


def test_several_threads_evaluate() -> None:
    game = load_game(gpu.GAME)
    assert gpu.measure_network(Uniform(game), game, batch=8, seconds=0.1) > 1000


def test_the_busy_share_is_the_mean_of_the_busiest_gpu(tmp_path: Path) -> None:
    percentages = tmp_path / "percentages"
    percentages.write_text("20\n40\n")
    with gpu.BusyShare(["cat", str(percentages)]) as busy:
        wait_for_samples(busy, 1)
        percentages.write_text("60\n0\n")
        wait_for_samples(busy, 2)
    assert busy.samples[0] == 0.4
    assert busy.samples[-1] == 0.6
    assert 0.4 < busy.share < 0.6


def test_what_is_no_percentage_is_not_counted() -> None:
    with gpu.BusyShare(["echo", "[N/A]\nFailed to initialize NVML"]) as busy:
        time.sleep(0.7)
    assert busy.samples == []


def wait_for_samples(busy: gpu.BusyShare, number: int) -> None:
    end = time.monotonic() + 30
    while len(busy.samples) < number and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize("game", gpu.GAMES)
def test_the_networks_are_those_that_the_program_makes(game: str, tmp_path: Path) -> None:
    gpu.make_network(game, tmp_path / "made.keras")
    (_, made), (_, stored) = read_archive(tmp_path / "made.keras"), read_archive(gpu.NETWORKS / f"{game}.keras")
    assert made.keys() == stored.keys()
    for name in made:
        for ours, theirs in zip(made[name], stored[name], strict=True):
            assert np.array_equal(ours, theirs)
            assert np.ptp(ours) > 0 or ours.size == 1


class Distorted:
    """A network whose logits and values are off by up to an amount."""

    name = description = "distorted"
    overlaps = False

    def __init__(self, amount: float) -> None:
        self._network = ArbitraryNetwork(CONNECT_FOUR)
        self._other = ArbitraryNetwork(CONNECT_FOUR, seed=1, scale=1.0)
        self._amount = amount

    def infer(self, observations: Array) -> tuple[Array, Array]:
        pairs = zip(self._network.infer(observations), self._other.infer(observations), strict=True)
        logits, values = (ours + np.float32(self._amount) * theirs for ours, theirs in pairs)
        return logits, values.clip(-1, 1)


@pytest.mark.parametrize(("amount", "most", "count"), [(1e-2, 1e-1, 40), (1e-4, 1e-3, 300)])
def test_where_games_part_the_scores_are_about_as_close_as_the_networks(amount: float, most: float, count: int) -> None:
    states = gpu.make_openings(CONNECT_FOUR, count, plies=10).states
    models = Distorted(0.0), Distorted(amount)
    games = [gpu.play_greedily(CONNECT_FOUR, model, OPTIONS, states) for model in models]
    parted = [gpu.first_difference(*pair) for pair in zip(*games, strict=True)]
    gaps = [gpu.score_gap(CONNECT_FOUR, models, state, OPTIONS) for state in parted if state is not None]
    assert gaps
    assert 0 < max(gaps) < most
    assert max(gaps) > amount / 100


def test_games_of_one_network_are_the_same() -> None:
    states = gpu.make_openings(CONNECT_FOUR, 20, plies=10).states
    games = [gpu.play_greedily(CONNECT_FOUR, Distorted(0.0), OPTIONS, states) for _ in range(2)]
    assert games[0] == games[1]
    for state, game in zip(states, games[0], strict=True):
        assert game[0][0] == state.tobytes()
    assert gpu.score_gap(CONNECT_FOUR, [Distorted(0.0)] * 2, states[0], OPTIONS) == math.inf


@pytest.mark.slow
def test_self_play_is_watched_after_a_warm_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 25\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    settings = gpu.settings_of(gpu.replace(gpu.PUCT, readouts=5), cache=True)
    figures = gpu.measure_self_play(RUN, "here", settings)
    assert figures["here: GPU busy share"] == 0.25
    assert figures["here: readouts/s"] > 0
    assert sum(value for name, value in figures.items() if "share in" in name) == pytest.approx(1)


@pytest.mark.slow
def test_training_is_measured_in_positions() -> None:
    ((name, rate),) = gpu.measure_training(RUN).items()
    assert name.startswith("training in bfloat16 on the")
    assert rate > 0


def test_mctx_is_measured_by_the_games_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Player:
        def __init__(self, game: str, policy: str, readouts: int, network: Any, games: int, precision: str) -> None:
            assert (game, policy, readouts, network) == ("connect_four", "muzero_policy", 200, gpu.NETWORK)
            assert precision == "bfloat16"
            self._games = games

        def measure(self, seconds: float) -> float:
            return 10.0 * self._games

    monkeypatch.setattr(gpu, "PACKAGES", {})
    figures = gpu.measure_peer(RUN, Player)  # type: ignore[arg-type]
    assert list(figures.values()) == [20.0, 80.0]
    assert "8 games" in list(figures)[1]


def test_without_mctx_it_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "PACKAGES", {"nosuchmodule": "no-such-package"})
    with pytest.raises(NotInstalledError, match="no-such-package cannot be found"):
        gpu.measure_peer(RUN)


# Steps run in processes of their own, which import this module.


def _measures(run: gpu.Run) -> dict[str, float]:
    return {"self-play: readouts/s": 10.0 * run.workers}


def _lacks_a_package(_: gpu.Run) -> dict[str, float]:
    raise NotInstalledError("this needs a package")


def _fails(_: gpu.Run) -> dict[str, float]:
    raise ValueError("a mistake")


def _dies(_: gpu.Run) -> dict[str, float]:
    os._exit(3)


def _hangs(_: gpu.Run) -> dict[str, float]:
    time.sleep(1000)
    return {}


def _is_mctx(_: gpu.Run) -> dict[str, float]:
    return {"mctx here": 4.0, "mctx there": 5.0}


def test_a_step_that_dies_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "STEPS", {"dies": _dies, "measures": _measures})
    assert gpu.measure("jax", 2, 0.1, lambda _: None, SMALL) == {"self-play: readouts/s": 20.0}
    assert "dies: not measured: its process died" in capsys.readouterr().out


@pytest.mark.slow
def test_each_step_stands_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    steps = {each.__name__[1:]: each for each in (_lacks_a_package, _fails, _dies, _hangs, _measures, _is_mctx)}
    monkeypatch.setattr(gpu, "STEPS", steps)
    reports: list[int] = []
    scale = SMALL._replace(limit=6.0)
    figures = gpu.measure("jax", 2, 0.1, lambda found: reports.append(len(found)), scale)
    assert figures == {
        "self-play: readouts/s": 20.0,
        "mctx here": 4.0,
        "mctx there": 5.0,
        "self-play / fastest mctx": 4.0,
    }
    assert reports == [0, 0, 0, 0, 1, 3, 4]
    lines = [line.partition(" (")[0] for line in capsys.readouterr().out.splitlines() if "measured" in line]
    assert lines == [
        "lacks_a_package: not measured: this needs a package",
        "fails: not measured: ValueError: a mistake",
        "dies: not measured: its process died",
        "hangs: not measured: out of time",
        "measures: measured",
        "is_mctx: measured",
    ]


@pytest.mark.slow
def test_everything_is_measured_where_there_is_no_tensorflow(tmp_path: Path) -> None:
    script = """
import sys
for name in ("tensorflow", "keras", "openvino", "ai_edge_litert"):
    sys.modules[name] = None
from importlib import util
find, util.find_spec = util.find_spec, lambda name: None if sys.modules.get(name, 0) is None else find(name)
sys.path.insert(0, ".")
from benchmarks import gpu
from test_gpu import RUN
for name, step in gpu.STEPS.items():
    if name not in ("training", "mctx"):
        gpu.show(step(RUN))
"""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}/tests/benchmarks:{ROOT}/tests/support"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=600
    )
    assert done.returncode == 0, done.stderr
    for name in ("games equal", "network alone, othello, float32, 8 at", "self-play without the cache: rea"):
        assert name in done.stdout
