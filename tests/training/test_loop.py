"""The whole cycle: it goes on where it stopped, and it ends with a player that was checked."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from event_files import shown

from seraphim.errors import ModelError, SettingsError
from seraphim.network.saved_model import load_model
from seraphim.options import GateOptions
from seraphim.records.files import published_files
from seraphim.records.index import played_numbers
from seraphim.settings import Settings, default_settings
from seraphim.storage.models import ModelFolder
from seraphim.training.curve import read_curve
from seraphim.training.loop import Stop, learn
from seraphim.training.trainer import bootstrap
from tictactoe.game import GAME


def weights(folder: ModelFolder) -> list[np.ndarray]:
    return load_model(folder.champion().path).get_weights()


def test_the_same_seed_gives_the_same_model_whether_interrupted_between_generations_or_not(
    tmp_path: Path, small_settings: Settings
) -> None:
    champions = []
    for name, calls in (("at once", [2]), ("in two", [1, 1])):
        folder = ModelFolder(tmp_path / name, "model")
        bootstrap(folder, GAME, small_settings, seed=3)
        for generations in calls:
            stop = Stop("none", generations)
            learnt = learn(folder, small_settings, 3, stop, num_workers=2, announce=lambda _: None, quiet=True)
            assert learnt.generations == generations
        assert folder.champion().step == 2 * small_settings.training.steps
        champions.append(weights(folder))
    assert all(np.array_equal(mine, other) for mine, other in zip(*champions, strict=True))


def test_every_generation_is_reported(folder: ModelFolder, small_settings: Settings) -> None:
    said: list[str] = []
    learnt = learn(folder, small_settings, 0, Stop("none", 2), num_workers=1, announce=said.append, quiet=True)
    text = "\n".join(said)
    assert "generation 1," in text
    assert "generation 2," in text
    assert text.count("4,520") == 2
    assert text.count("bottleneck: the ") == 2
    assert learnt.pace.games == 2 * small_settings.self_play.games_per_generation
    assert 0 < sum(learnt.pace.seconds.values()) <= learnt.seconds
    names = shown(folder.path / "logs" / "train")
    for name in ("self_play/games_per_hour", "training/loss", "time/training", "all positions/raw_mistakes"):
        assert len(names[name]) == 2, name
    assert learnt.evaluation is not None
    assert learnt.evaluation.sets[0].positions == 4520


def test_nobody_else_trains_the_model_while_it_learns(folder: ModelFolder, small_settings: Settings) -> None:
    refused = []

    def rival(_: str) -> None:
        with pytest.raises(ModelError, match=f"being trained by process {os.getpid()} "):
            learn(folder, small_settings, 0, Stop("none", 1), announce=lambda _: None, quiet=True)
        refused.append(1)

    learn(folder, small_settings, 0, Stop("none", 1), num_workers=1, announce=rival, quiet=True)
    assert refused
    assert [snapshot.step for snapshot in folder.snapshots()] == [0, small_settings.training.steps]


def test_learning_ends_after_the_hours_it_was_given(folder: ModelFolder, small_settings: Settings) -> None:
    stop = Stop("none", hours=0.0)
    assert learn(folder, small_settings, 0, stop, num_workers=1, announce=lambda _: None, quiet=True).generations == 1


def test_a_generation_that_training_cannot_draw_from_is_refused(folder: ModelFolder, small_settings: Settings) -> None:
    def run(max_window: int) -> None:
        settings = small_settings.override({"max_window": max_window, "games_per_generation": 30})
        learn(folder, settings, 0, Stop("none", 1), num_workers=1, announce=lambda _: None, quiet=True)

    with pytest.raises(SettingsError, match="a generation of 30 games has at least 30 positions, .* newest 29 at most"):
        run(29)
    assert not published_files(folder.game_data)
    # That it has more of them is known when the games are played.
    with pytest.raises(SettingsError, match=r"lower games_per_generation to \d or less, or raise max_window"):
        run(31)
    assert len(played_numbers(folder.game_data, "0-0")) == 30
    assert folder.champion().step == 0


@pytest.mark.parametrize("moment", ["generation 1", "  trained", "  checked"])
def test_what_an_interrupt_left_out_of_a_generation_is_made_up_for(
    moment: str, folder: ModelFolder, small_settings: Settings
) -> None:
    def break_off(line: str) -> None:
        if line.startswith(moment):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(folder, small_settings, 0, Stop("none", 1), num_workers=1, announce=break_off, quiet=True)
    said: list[str] = []
    learn(folder, small_settings, 0, Stop("none", 1), num_workers=1, announce=said.append, quiet=True)
    steps, games = small_settings.training.steps, small_settings.self_play.games_per_generation
    curve = read_curve(folder.path / "curve.csv")
    assert [(line["step"], line["games"]) for line in curve] == [(steps, games), (2 * steps, 2 * games)]
    assert all("all positions/raw_mistakes" in line for line in curve)
    assert all("all positions/raw_mistakes" in each.metrics() for each in folder.snapshots()[1:])
    assert sum(line.startswith("  checked") for line in said) == 2


def test_a_game_without_solved_positions_is_learnt_unchecked(tmp_path: Path, small_settings: Settings) -> None:
    settings = replace(small_settings, game="tictactoe.plain")
    folder = ModelFolder(tmp_path, "plain")
    bootstrap(folder, GAME, settings, seed=0)
    learnt = learn(folder, settings, 0, Stop(generations=1), num_workers=1, announce=lambda _: None, quiet=True)
    assert learnt.evaluation is None
    assert learnt.generations == 1


@pytest.mark.slow
def test_tic_tac_toe_is_learnt_to_perfection(tmp_path: Path) -> None:
    settings = default_settings("tictactoe")
    folder = ModelFolder(tmp_path, "perfect")
    bootstrap(folder, GAME, settings, seed=1)
    learnt = learn(folder, settings, 1, Stop("search", hours=4 / 60), announce=lambda _: None, quiet=True)
    assert learnt.evaluation is not None
    assert learnt.evaluation.perfect, str(learnt.evaluation)


def test_a_snapshot_that_the_gate_stops_is_no_champion_and_training_goes_on_from_it(
    folder: ModelFolder, small_settings: Settings
) -> None:
    first = folder.champion()
    strict = replace(small_settings, gate=GateOptions("score", gate_games=10, gate_score=0.99))
    said: list[str] = []
    for _ in range(2):  # the second call goes on where the first one stopped
        learn(folder, strict, 0, Stop("none", 1), num_workers=1, announce=said.append, quiet=True)
    assert folder.champion() == first
    assert [each.step for each in folder.snapshots()] == [0, strict.training.steps, 2 * strict.training.steps]
    assert [each.metrics().get("gate_passed") for each in folder.snapshots()] == [None, 0.0, 0.0]
    assert sum(f" {strict.self_play.games_per_generation} games, " in line for line in said) == 2  # new ones each time
    lenient = replace(small_settings, gate=GateOptions("score", gate_games=10, gate_score=0.5))
    learn(folder, lenient, 0, Stop("none", 1), num_workers=1, announce=said.append, quiet=True)
    last = folder.snapshots()[-1]
    assert (folder.champion() == last) == (last.metrics()["gate_score"] > 0.5)
