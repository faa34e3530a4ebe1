"""Presets: named settings, what they fix, and models that start from one, train, and resume."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import programs
import pytest

from seraphim.errors import SettingsError
from seraphim.game import load_game, load_game_module
from seraphim.network import architectures
from seraphim.network.saved_model import load_model
from seraphim.records.examples import encode
from seraphim.records.writer import GameWriter
from seraphim.search.evaluator import Uniform
from seraphim.selfplay.games import SelfPlay, check_options
from seraphim.settings import Settings, default_settings, load_settings
from seraphim.storage.models import ModelFolder
from seraphim.training.trainer import Trainer, bootstrap

ALL = [(game, preset) for game in ("connectfour", "tictactoe") for preset in load_game_module(game).PRESETS]
# The same method, but quick.
QUICK: dict[str, Any] = {
    "filters": 4,
    "blocks": 1,
    "readouts": 8,
    "concurrent_games": 8,
    "games_per_file": 6,
    "batch_size": 16,
    "steps": 5,
}


def quick(game: str, preset: str) -> Settings:
    settings = default_settings(game, preset)
    return settings.override(QUICK | ({"gate_games": 4} if settings.gate.gate != "off" else {}))


@pytest.mark.parametrize(("game", "preset"), ALL)
def test_a_preset_makes_settings_that_remember_its_name(game: str, preset: str, tmp_path: Path) -> None:
    settings = default_settings(game, preset)
    folder = ModelFolder(tmp_path, "model")
    folder.create(settings)
    assert settings.preset == preset
    assert load_settings(folder.path / "settings.json") == settings
    assert settings != default_settings(game)


SHIPPED = [(game, "") for game in ("connectfour", "cube", "hex", "othello", "pig", "tictactoe", "twenty48:2x3")]


@pytest.mark.parametrize(("game", "preset"), [*SHIPPED, *ALL])
def test_the_shipped_settings_play(game: str, preset: str) -> None:
    settings, rules = default_settings(game, preset), load_game(game)
    check_options(rules, settings.self_play_search, settings.self_play)
    few = settings.override({"readouts": 3, "self_play_readouts": 3, "concurrent_games": 2, "cache_megabytes": 0})
    played = SelfPlay(rules, Uniform(rules), few.self_play_search, few.self_play, "a").play(iter(range(2)))
    assert len([record for record in played if record.result is not None]) == 2


def test_deepfour_is_what_its_author_describes() -> None:
    settings = default_settings("connectfour", "deepfour")
    model = architectures.build(load_game("connectfour"), settings.network, seed=0)
    shapes = {weight.path: tuple(weight.shape) for weight in model.weights}
    assert shapes["stem/kernel"] == (4, 4, 6, 64)  # on the planes that the game has, four more than DeepFour's
    assert [name for name in shapes if name.endswith("_b/kernel")] == [f"block_{n}_b/kernel" for n in range(5)]
    assert shapes["policy_conv/kernel"] == (1, 1, 64, 2)
    assert shapes["value_conv/kernel"] == (1, 1, 64, 1)
    assert shapes["value_hidden/kernel"] == (42, 32)
    search, training, gate = settings.search, settings.training, settings.gate
    assert (search.readouts, search.cpuct, search.tempering_point) == (700, 2.0, 5)
    assert (search.dirichlet_alpha, search.noise_coefficient) == (1.0, 0.2)
    assert (training.optimizer, training.learning_rate) == ("sgd", 0.001)
    assert (training.steps, training.batch_size, training.max_window) == (300, 512, 500_000)
    assert settings.network.l2 == 1e-4
    assert (gate.gate, gate.gate_games, gate.gate_score) == ("score", 30, 0.55)


@pytest.mark.parametrize(("game", "fewest"), [("connectfour", 7), ("tictactoe", 5)])
def test_progress_is_linear_from_the_earliest_to_the_latest_end(game: str, fewest: int) -> None:
    rules = load_game(game)
    stones = np.arange(rules.max_plies + 1)
    states = np.array([[(1 << (n + 1) // 2) - 1, (1 << n // 2) - 1 << 32] for n in stones])
    expected = (stones - fewest) / (rules.max_plies - fewest)
    np.testing.assert_allclose(rules.progress(states), expected)  # type: ignore[attr-defined]


def test_terminal_values_follow_the_formula_of_deepfour() -> None:
    from seraphim.search.expansion import terminal_value

    game, fast_wins = load_game("connectfour"), default_settings("connectfour", "deepfour").search.fast_wins
    for plies in range(7, 43):
        state = np.array([[(1 << (plies + 1) // 2) - 1, (1 << plies // 2) - 1 << 32]])
        for result in (1.0, -1.0):
            found = terminal_value(game, state, np.array([result], np.float32), fast_wins)
            assert found[0] == pytest.approx(result * (1.18 - 9 * plies / 350), abs=1e-6)


def test_keras_tictactoe_has_leaky_4x4_filters_75_of_them() -> None:
    settings = default_settings("tictactoe", "keras-tictactoe")
    model = architectures.build(load_game("tictactoe"), settings.network, seed=0)
    shapes = {weight.path: tuple(weight.shape) for weight in model.weights}
    assert shapes["stem/kernel"] == (4, 4, 2, 75)
    assert shapes["policy_conv/kernel"] == (1, 1, 75, 2)
    assert shapes["value_hidden/kernel"] == (9, 20)
    assert [type(layer).__name__ for layer in model.layers if layer.name.endswith("leaky")]


def played_games(folder: ModelFolder, settings: Settings) -> None:
    game = load_game(settings.game)
    player = SelfPlay(game, Uniform(game), settings.self_play_search, settings.self_play, "a")
    with GameWriter(folder.game_data, settings.records) as writer:
        for record in player.play(iter(range(12))):
            writer.add(encode(game, record))


@pytest.mark.parametrize(("game", "preset"), ALL)
@pytest.mark.slow
def test_a_model_from_a_preset_is_trained_as_if_it_had_not_been_stopped_in_between(
    game: str, preset: str, tmp_path: Path
) -> None:
    models = []
    for name, trainings in (("at once", [2]), ("in two", [1, 1])):
        folder = ModelFolder(tmp_path / name, "model")
        bootstrap(folder, load_game(game), quick(game, preset), seed=3)
        settings = folder.settings(game)
        played_games(folder, settings)
        for times in trainings:
            trainer = Trainer(folder, load_game(game), settings, 3, quiet=True)
            for _ in range(times):
                trainer.retrain()
        models.append(load_model(folder.snapshots()[-1].path))
    one, other = ({each.path: each.numpy() for each in (*m.weights, *m.optimizer.variables)} for m in models)
    assert int(models[0].optimizer.iterations) == 2 * QUICK["steps"]
    assert any("momentum" in path for path in one)  # of sgd
    for path, array in one.items():
        np.testing.assert_array_equal(array, other[path], err_msg=path)


def test_an_unknown_preset_is_reported_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"^connectfour has no preset 'alpha': expected deepfour$"):
        default_settings("connectfour", "alpha")
    with pytest.raises(SettingsError, match=r"^tictactoe\.plain has no preset 'alpha': expected none"):
        default_settings("tictactoe.plain", "alpha")


def test_another_optimizer_than_that_of_the_model_is_refused(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path, "model")
    settings = quick("tictactoe", "keras-tictactoe")
    bootstrap(folder, load_game("tictactoe"), settings, seed=0)
    with pytest.raises(SettingsError, match="was made with optimizer sgd, not adam: leave that flag out"):
        Trainer(folder, load_game("tictactoe"), settings.override({"optimizer": "adam"}), 0)


def program(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return programs.run([sys.executable, *arguments], env={**os.environ, "SERAPHIM_DATA": str(root)}, timeout=100)


def test_the_programs_know_the_presets(tmp_path: Path) -> None:
    for game, preset in ALL:
        assert preset in program(tmp_path, f"{game}/train.py", "--help").stdout
    refused = program(tmp_path, "connectfour/train.py", "new", "--init", "--preset=nope")
    assert (refused.returncode, refused.stderr) == (
        1,
        "seraphim train: connectfour has no preset 'nope': expected deepfour\n",
    )
    assert not list(tmp_path.iterdir())


def test_a_preset_that_the_model_did_not_start_from_is_refused(root: Path) -> None:
    for arguments in (["tictactoe/train.py", "fresh"], ["bin/learn.py", "fresh", "--game=tictactoe"]):
        refused = program(root, *arguments, "--preset=keras-tictactoe")
        assert refused.returncode == 1
        assert "this model started from no preset: leave --preset=keras-tictactoe out" in refused.stderr
