"""The loop: it continues where it stopped, and ends with a player that was checked."""

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from event_files import shown

from seraphim.errors import ModelError, SettingsError
from seraphim.game import Game
from seraphim.inference import SavedNetwork
from seraphim.network.saved_model import load_model
from seraphim.options import GateOptions
from seraphim.records.files import published_files
from seraphim.records.index import played_numbers
from seraphim.search.evaluator import Inference
from seraphim.settings import Settings, default_settings
from seraphim.storage.models import ModelFolder
from seraphim.training import trainer
from seraphim.training.curve import read_curve
from seraphim.training.loop import Run, learn
from seraphim.training.trainer import bootstrap, retrain
from tictactoe.game import GAME

ONCE = Run("none", 1, num_workers=1, quiet=True)


def weights(folder: ModelFolder) -> list[np.ndarray]:
    return load_model(folder.champion().path).get_weights()


@pytest.mark.slow
def test_a_run_interrupted_between_generations_gives_the_same_model(tmp_path: Path, small_settings: Settings) -> None:
    champions = []
    for name, calls in (("at once", [2]), ("in two", [1, 1])):
        folder = ModelFolder(tmp_path / name, "model")
        bootstrap(folder, GAME, small_settings, seed=3)
        for generations in calls:
            run = Run("none", generations, seed=3, num_workers=2, quiet=True)
            result = learn(folder, small_settings, run, lambda _: None)
            assert result.generations == generations
        assert folder.champion().step == 2 * small_settings.training.steps
        champions.append(weights(folder))
    assert all(np.array_equal(mine, other) for mine, other in zip(*champions, strict=True))


@pytest.mark.slow
def test_every_generation_is_reported(folder: ModelFolder, small_settings: Settings) -> None:
    said: list[str] = []
    result = learn(folder, small_settings, Run("none", 2, num_workers=1, quiet=True), said.append)
    text = "\n".join(said)
    assert "generation 1," in text
    assert "generation 2," in text
    assert text.count("4,520") == 2
    assert text.count("bottleneck: ") == 2
    assert result.timing.games == 2 * small_settings.self_play.games_per_generation
    assert 0 < sum(result.timing.seconds.values()) <= result.seconds
    names = shown(folder.path / "logs" / "train")
    for name in ("self_play/games_per_hour", "training/loss", "time/training", "all positions/raw_mistakes"):
        assert len(names[name]) == 2, name
    assert result.evaluation is not None
    assert result.evaluation.errors[0].weak.trials == 4520


def test_no_other_program_trains_the_model_while_it_learns(folder: ModelFolder, small_settings: Settings) -> None:
    refused = []

    def rival(_: str) -> None:
        with pytest.raises(ModelError, match=f"being trained by process {os.getpid()} "):
            learn(folder, small_settings, Run("none", 1, quiet=True), lambda _: None)
        refused.append(1)

    learn(folder, small_settings, ONCE, rival)
    assert refused
    assert [snapshot.step for snapshot in folder.snapshots()] == [0, small_settings.training.steps]


def test_learning_ends_after_the_given_hours(folder: ModelFolder, small_settings: Settings) -> None:
    run = Run("none", hours=0.0, num_workers=1, quiet=True)
    assert learn(folder, small_settings, run, lambda _: None).generations == 1


def test_a_generation_larger_than_the_window_is_refused(folder: ModelFolder, small_settings: Settings) -> None:
    def run(max_window: int) -> None:
        settings = small_settings.override({"max_window": max_window, "games_per_generation": 30})
        learn(folder, settings, ONCE, lambda _: None)

    with pytest.raises(SettingsError, match="30 games has at least 30 positions, .* at most the newest 29"):
        run(29)
    assert not published_files(folder.game_data)
    # The exact number is known when the games have been played.
    with pytest.raises(SettingsError, match="or less, or raise max_window") as refusal:
        run(31)
    positions, games = map(
        int, re.findall(r"at least (\d+) positions, .* lower games_per_generation to (\d+)", str(refusal.value))[0]
    )
    assert games * positions / 30 <= 31 < (games + 1) * positions / 30
    assert len(played_numbers(folder.game_data, "0-0")) == 30
    assert folder.champion().step == 0


@pytest.mark.parametrize("moment", ["generation 1", "  trained", "  checked"])
@pytest.mark.slow
def test_an_interrupted_generation_is_finished_by_the_next_run(
    moment: str, folder: ModelFolder, small_settings: Settings
) -> None:
    def break_off(line: str) -> None:
        if line.startswith(moment):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(folder, small_settings, ONCE, break_off)
    said: list[str] = []
    learn(folder, small_settings, ONCE, said.append)
    steps, games = small_settings.training.steps, small_settings.self_play.games_per_generation
    curve = read_curve(folder.path / "curve.csv")
    assert [(line["step"], line["games"]) for line in curve] == [(steps, games), (2 * steps, 2 * games)]
    assert all("all positions/raw_mistakes" in line for line in curve)
    assert 0 < curve[0]["seconds"] < curve[1]["seconds"]
    assert 0 < curve[0]["evaluations"] < curve[1]["evaluations"]
    assert all("all positions/raw_mistakes" in each.metrics() for each in folder.snapshots()[1:])
    assert sum(line.startswith("  checked") for line in said) == 2


@pytest.mark.slow
def test_the_time_of_the_curve_continues_from_its_last_line(folder: ModelFolder, small_settings: Settings) -> None:
    seconds = [learn(folder, small_settings, ONCE, lambda _: None).seconds for _ in range(2)]
    first, second = read_curve(folder.path / "curve.csv")
    assert 0.5 * seconds[0] < first["seconds"] <= seconds[0]
    assert 0.5 * seconds[1] < second["seconds"] - first["seconds"] <= seconds[1]
    assert 0 < first["evaluations"] < second["evaluations"]


@pytest.mark.slow
def test_a_model_that_was_trained_outside_the_loop_has_no_unfinished_generation(
    folder: ModelFolder, small_settings: Settings
) -> None:
    learn(folder, small_settings, ONCE, lambda _: None)
    retrain(folder, GAME, small_settings, 0, quiet=True)
    learn(folder, small_settings, ONCE, lambda _: None)
    steps = small_settings.training.steps
    assert [line["step"] for line in read_curve(folder.path / "curve.csv")] == [steps, 3 * steps]


def test_a_game_without_solved_positions_is_learned_without_checks(tmp_path: Path, small_settings: Settings) -> None:
    settings = replace(small_settings, game="tictactoe.plain")
    folder = ModelFolder(tmp_path, "plain")
    bootstrap(folder, GAME, settings, seed=0)
    result = learn(folder, settings, Run(generations=1, num_workers=1, quiet=True), lambda _: None)
    assert result.evaluation is None
    assert result.generations == 1


@pytest.mark.slow
def test_tic_tac_toe_is_learned_to_perfection(tmp_path: Path) -> None:
    settings = default_settings("tictactoe")
    folder = ModelFolder(tmp_path, "perfect")
    bootstrap(folder, GAME, settings, seed=1)
    result = learn(folder, settings, Run("search", hours=4 / 60, seed=1, quiet=True), lambda _: None)
    assert result.evaluation is not None
    assert result.evaluation.perfect, str(result.evaluation)


@pytest.mark.slow
def test_the_gate_of_a_run_plays_by_its_runtime(
    folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtimes = []

    class Recorded(SavedNetwork):
        def load(self, game: Game, batch: int) -> Inference:
            runtimes.append(self.runtime)
            return super().load(game, batch)

    monkeypatch.setattr(trainer, "SavedNetwork", Recorded)
    gated = replace(small_settings, gate=GateOptions("score", gate_games=4))
    learn(folder, gated, replace(ONCE, runtime="litert"), lambda _: None)
    assert runtimes == ["litert", "litert"]


@pytest.mark.slow
def test_training_continues_from_a_snapshot_that_the_gate_rejected(
    folder: ModelFolder, small_settings: Settings
) -> None:
    first = folder.champion()
    strict = replace(small_settings, gate=GateOptions("score", gate_games=10, gate_score=0.99))
    said: list[str] = []
    for _ in range(2):  # the second call continues where the first one stopped
        learn(folder, strict, ONCE, said.append)
    assert folder.champion() == first
    assert [each.step for each in folder.snapshots()] == [0, strict.training.steps, 2 * strict.training.steps]
    assert [each.metrics().get("gate_passed") for each in folder.snapshots()] == [None, 0.0, 0.0]
    assert sum(f" {strict.self_play.games_per_generation} games, " in line for line in said) == 2  # new ones each time
    lenient = replace(small_settings, gate=GateOptions("score", gate_games=10, gate_score=0.5))
    learn(folder, lenient, ONCE, said.append)
    last = folder.snapshots()[-1]
    assert (folder.champion() == last) == (last.metrics()["gate_score"] > 0.5)
