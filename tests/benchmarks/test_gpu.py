"""The parts of `bin/benchmark.py --gpu`, on the processor."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu
from seraphim.errors import SettingsError
from seraphim.game import load_game
from seraphim.inference import Uniform, jax, tensorflow
from seraphim.options import NetworkOptions, TrainingOptions
from seraphim.storage.models import ModelFolder

ROOT = Path(__file__).parents[2]
SMALL = gpu.Scale(4, (2, 8), TrainingOptions(batch_size=4), positions=50)


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


def test_two_threads_evaluate() -> None:
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


def test_self_play_is_watched_while_it_is_measured(
    folder: ModelFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 25\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    figures = gpu.measure_self_play(folder.settings(), folder.champion().path, "openvino", 1, seconds=1.0)
    assert figures["GPU busy share"] == 0.25
    assert figures["readouts/s"] > 0


def test_training_is_measured_in_positions() -> None:
    assert gpu.measure_training(load_game("tictactoe"), SMALL, seconds=0.1) > 0


def test_mctx_is_measured_by_the_games_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Player:
        def __init__(self, game: str, policy: str, readouts: int, network: NetworkOptions, games: int) -> None:
            assert (game, policy, readouts, network) == ("connect_four", "muzero_policy", 200, gpu.NETWORK)
            self._games = games

        def measure(self, seconds: float) -> float:
            return 10.0 * self._games

    monkeypatch.setattr(gpu, "PACKAGES", {})
    figures = gpu.measure_peer(40.0, 0.1, SMALL, Player)  # type: ignore[arg-type]
    assert list(figures.values()) == [20.0, 80.0, 0.5]
    assert [name for name in figures if "8 games" in name]


def test_without_mctx_the_rest_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu, "PACKAGES", {"nosuchmodule": "no-such-package"})
    assert gpu.measure_peer(40.0, 0.1, SMALL) == {}
    assert "because no-such-package cannot be found" in capsys.readouterr().out


def test_everything_is_printed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = gpu.settings_of(gpu.PUCT, cache=True)
    small = NetworkOptions("resnet", blocks=1, filters=4, value_width=4)
    few = gpu.replace(settings, network=small, search=gpu.replace(settings.search, readouts=5))
    monkeypatch.setattr(gpu, "settings_of", lambda _, cache: few)
    monkeypatch.setattr(gpu, "NETWORK", small)
    monkeypatch.setattr(gpu, "PACKAGES", {"nosuchmodule": "no-such-package"})
    figures: Any = gpu.measure("jax", 1, 0.3, SMALL)
    for name in ("network alone, bfloat16, 1,024 at a time: evaluations/s", "self-play: readouts/s"):
        assert figures[name] > 0
    assert [name for name in figures if name.startswith("training in float32 on the")]
    assert figures["self-play without the cache: evaluations/s"] > 0
