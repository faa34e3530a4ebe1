"""Generations: a model is started, trained on its game data, published and promoted, and reports what prevents that."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import programs
import pytest

from seraphim.errors import ModelError, RecordError, SettingsError
from seraphim.game import Array, Game, load_game
from seraphim.inference import SavedNetwork, load_inference
from seraphim.network import saved_model
from seraphim.options import MOST_SEED, RecordOptions, SelfPlayOptions
from seraphim.records.examples import GameRecord, encode
from seraphim.records.window import read_window
from seraphim.records.writer import GameWriter
from seraphim.search.evaluator import Inference, Uniform
from seraphim.selfplay.games import SelfPlay
from seraphim.settings import default_settings
from seraphim.storage.models import ModelFolder
from seraphim.training import fit
from seraphim.training.targets import valued_by_turns
from seraphim.training.trainer import Trainer, bootstrap, retrain
from tictactoe.game import GAME

SETTINGS = default_settings("tictactoe").override(
    {"depth": 1, "width": 16, "value_width": 8, "batch_size": 32, "steps": 6, "window_start": 1000}
)


def random_game(number: int) -> GameRecord:
    rng = np.random.default_rng(number)
    states, actions = [], []
    state = GAME.initial(1)
    while not GAME.outcome(state)[0][0]:
        action = rng.choice(np.flatnonzero(GAME.legal(state)[0]))
        states.append(state[0])
        actions.append(action)
        state = GAME.step(state, np.array([action]))
    legal = GAME.legal(np.array(states))
    policies = (legal / legal.sum(axis=1, keepdims=True)).astype(np.float32)
    result = float(GAME.outcome(state)[1][0])
    played = np.array(actions, np.int32)
    return GameRecord(f"game-{number}", np.array(states), played, policies, np.zeros(len(actions), np.float32), result)


def add_games(folder: ModelFolder, count: int, first: int = 0) -> None:
    with GameWriter(folder.game_data, RecordOptions(games_per_file=10)) as writer:
        for number in range(first, first + count):
            writer.add(encode(GAME, random_game(number)))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model `first` with random weights and game data once, and return its data root."""
    folder = ModelFolder(tmp_path_factory.mktemp("first"), "first")
    bootstrap(folder, GAME, SETTINGS, seed=0)
    add_games(folder, 20)
    return folder.path.parents[1]


@pytest.fixture
def folder(first: Path, tmp_path: Path) -> ModelFolder:
    """Return the folder of a copy of that model."""
    shutil.copytree(first, tmp_path, symlinks=True, dirs_exist_ok=True)
    return ModelFolder(tmp_path, "first")


def weights(path: Path) -> list[Array]:
    model = saved_model.load_model(path)
    return [variable.numpy() for variable in (*model.weights, *model.optimizer.variables)]


def test_new_model_has_settings_and_a_champion_at_step_0(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path, "first")
    snapshot = bootstrap(folder, GAME, SETTINGS, seed=0)
    assert folder.settings("tictactoe") == SETTINGS
    assert folder.champion() == snapshot
    assert snapshot.step == 0
    assert fit.current_step(saved_model.load_model(snapshot.path)) == 0


def test_network_that_does_not_fit_the_game_starts_no_model(tmp_path: Path) -> None:
    class Line:
        name, observation_shape, num_actions, max_plies = "line", (7,), 3, 7

    folder = ModelFolder(tmp_path, "first")
    with pytest.raises(SettingsError, match="choose --kind=mlp"):
        bootstrap(folder, Line(), SETTINGS.override({"kind": "resnet"}), seed=0)  # type: ignore[arg-type]
    assert not folder.path.exists()


def test_existing_model_is_not_started_again(folder: ModelFolder) -> None:
    champion = folder.champion()
    with pytest.raises(ModelError, match="model 'first' exists: go on with it .omit --init."):
        bootstrap(folder, GAME, SETTINGS, seed=1)
    assert folder.snapshots() == [champion]


def test_a_new_model_does_not_get_the_games_of_an_earlier_one(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path, "first")
    folder.game_data.mkdir(parents=True)
    (folder.game_data / ".writers.lock").touch()
    expected = f"^{re.escape(str(folder.game_data))} holds games of an earlier model .* or remove that folder$"
    for left in ("batch-0000007.tfrecord", ".killed.partial", ".removed.json"):
        (folder.game_data / left).touch()
        with pytest.raises(ModelError, match=expected):
            bootstrap(folder, GAME, SETTINGS, seed=0)
        assert not folder.path.exists()
        (folder.game_data / left).unlink()
    assert bootstrap(folder, GAME, SETTINGS, seed=0) == folder.champion()


def test_the_largest_seed_makes_a_model_and_trains_it(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path, "first")
    bootstrap(folder, GAME, SETTINGS, MOST_SEED)
    add_games(folder, 3)
    assert retrain(folder, GAME, SETTINGS, MOST_SEED, quiet=True).snapshot.step == 6


def test_retrained_model_is_published_and_promoted(folder: ModelFolder) -> None:
    before = folder.champion()
    generation = retrain(folder, GAME, SETTINGS, seed=0, quiet=True)
    assert folder.champion() == generation.snapshot
    assert generation.snapshot.step == 6
    pairs = zip(weights(before.path), weights(generation.snapshot.path), strict=True)
    assert all((left != right).any() for left, right in pairs if left.ndim == 2)
    assert generation.window.games == 20
    assert generation.window.positions == generation.generated > 100
    assert "6 steps on the newest" in str(generation)
    assert f"champion {generation.snapshot.name}" in str(generation)
    assert list((folder.path / "logs").iterdir())


def test_settings_over_those_of_the_model_count_for_one_run(folder: ModelFolder) -> None:
    generation = retrain(folder, GAME, SETTINGS.override({"steps": 2}), seed=0, quiet=True)
    assert generation.snapshot.step == 2
    assert folder.settings() == SETTINGS


def test_the_steps_follow_from_the_positions_that_are_new(folder: ModelFolder) -> None:
    settings = SETTINGS.override({"steps": 0, "samples_per_position": 2.0})
    training = Trainer(folder, GAME, settings, seed=0, quiet=True)
    first = training.retrain()
    assert first.steps == round(2 * first.generated / 32)
    add_games(folder, 3, first=20)
    another = Trainer(folder, GAME, settings, seed=0, quiet=True)  # another program knows as well what is new
    second = another.retrain()
    assert second.steps == round(2 * (second.generated - first.generated) / 32)
    assert another.retrain().steps == round(2 * second.generated / 32)  # nothing is
    shutil.rmtree(folder.game_data)
    add_games(folder, 8, first=30)
    rest = another.retrain()
    assert rest.steps == round(2 * rest.generated / 32) > 1  # all that is left counts as new


def test_the_steps_count_no_more_positions_than_the_window_has(folder: ModelFolder) -> None:
    settings = SETTINGS.override({"steps": 0, "samples_per_position": 4.0, "max_window": 25})
    generation = retrain(folder, GAME, settings, seed=0, quiet=True)
    assert generation.steps == round(4 * 25 / 32) < round(4 * generation.generated / 32)


def test_each_match_of_the_gate_has_openings_of_its_own(folder: ModelFolder) -> None:
    champion = folder.champion()
    # All networks are equal, so the results would be as well.
    settings = SETTINGS.override({"gate": "score", "gate_games": 20, "readouts": 4, "learning_rate": 1e-30})
    training = Trainer(folder, GAME, settings, seed=0, quiet=True)
    assert len({str(training.retrain().verdict.result) for _ in range(2)}) > 1
    assert folder.champion() == champion  # as no better one has passed


@pytest.mark.slow
def test_trainer_in_memory_gives_the_same_snapshots_as_programs_one_after_the_other(tmp_path: Path) -> None:
    folders = [ModelFolder(tmp_path / where, "first") for where in ("together", "apart")]
    for folder in folders:
        bootstrap(folder, GAME, SETTINGS, seed=0)
        add_games(folder, 10)
    together = Trainer(folders[0], GAME, SETTINGS, seed=5, quiet=True)
    for generation in range(3):
        together.retrain()
        retrain(folders[1], GAME, SETTINGS, seed=5, quiet=True)
        for folder in folders:
            add_games(folder, 10, first=10 + 10 * generation)
    champions = [folder.champion() for folder in folders]
    assert [champion.step for champion in champions] == [18, 18]
    for left, right in zip(*(weights(champion.path) for champion in champions), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.slow
def test_two_trainings_give_what_one_of_as_many_steps_gives(tmp_path: Path) -> None:
    resnet = {"kind": "resnet", "blocks": 1, "filters": 4, "steps": 5, "learning_rate_decay_steps": 4}
    settings = SETTINGS.override(resnet)
    folders = [ModelFolder(tmp_path / where, "first") for where in ("twice", "once")]
    for folder in folders:
        bootstrap(folder, GAME, settings, seed=0)
        add_games(folder, 10)
    for folder, steps in ((folders[0], 5), (folders[0], 5), (folders[1], 10)):
        retrain(folder, GAME, settings.override({"steps": steps}), seed=5, quiet=True)
    champions = [folder.champion() for folder in folders]
    assert [champion.step for champion in champions] == [10, 10]
    for left, right in zip(*(weights(champion.path) for champion in champions), strict=True):
        np.testing.assert_array_equal(left, right)


def test_no_other_program_trains_the_model_at_the_same_time(folder: ModelFolder) -> None:
    refusals = []

    class Rival:
        def write(self, step: int, scalars: Mapping[str, float]) -> None:
            with pytest.raises(ModelError) as refusal:
                retrain(ModelFolder(folder.path.parents[1], "first"), GAME, SETTINGS, seed=0, quiet=True)
            refusals.append(str(refusal.value))

    generation = retrain(folder, GAME, SETTINGS, seed=0, quiet=True, log=Rival())
    assert refusals[0].startswith(f"model 'first' is being trained by process {os.getpid()} on ")
    assert [snapshot.step for snapshot in folder.snapshots()] == [0, 6]
    assert folder.champion() == generation.snapshot


def test_model_that_is_loaded_in_the_background_is_the_one_that_is_used(folder: ModelFolder) -> None:
    trainer = Trainer(folder, GAME, SETTINGS, seed=0, quiet=True)
    trainer.preload()
    model = trainer.model
    assert trainer.retrain().snapshot.step == 6
    assert trainer.model is model


def test_damaged_champion_is_an_error_where_it_is_used(folder: ModelFolder) -> None:
    archive = folder.champion().path / saved_model.ARCHIVE
    archive.write_bytes(bytes(archive.stat().st_size))  # a change of size would be noticed at once
    trainer = Trainer(folder, GAME, SETTINGS, seed=0, quiet=True)
    trainer.preload()
    with pytest.raises(ModelError, match=r"model\.keras is damaged"):
        trainer.retrain()


def test_window_is_the_newest_part_of_the_game_data(folder: ModelFolder) -> None:
    settings = SETTINGS.override({"max_window": 25})
    generation = retrain(folder, GAME, settings, seed=0, quiet=True)
    assert generation.window.positions == 25
    assert generation.window.newest == 2
    assert generation.window.files == 1


@pytest.mark.slow
def test_old_snapshots_are_removed(folder: ModelFolder) -> None:
    trainer = Trainer(folder, GAME, SETTINGS.override({"max_snapshots": 2}), seed=0, quiet=True)
    for _ in range(4):
        trainer.retrain()
    assert [snapshot.step for snapshot in folder.snapshots()] == [18, 24]
    assert folder.champion().step == 24


def test_play_by_turns_is_trained_on_as_often_as_what_is_drawn(tmp_path: Path) -> None:
    game, folder = load_game("backgammon"), ModelFolder(tmp_path, "first")
    small = {"depth": 1, "width": 8, "value_width": 4, "batch_size": 8, "samples_per_position": 2.0}
    settings = default_settings("backgammon").override(small)
    bootstrap(folder, game, settings, seed=0)
    play = SelfPlay(game, Uniform(game), settings.self_play_search, SelfPlayOptions(2, random_plies=0), "seed")
    with GameWriter(folder.game_data, RecordOptions()) as writer:
        for record in play.play(iter(range(2))):
            writer.add(encode(game, record))
    positions, _ = read_window(folder.game_data, game, 10_000)
    drawn = len(valued_by_turns(game, positions).ends)
    assert drawn < len(positions.ends) / 2
    assert retrain(folder, game, settings, seed=0, quiet=True).steps == round(2 * drawn / 8)


def test_window_grows_slower_than_the_game_data(folder: ModelFolder) -> None:
    generation = retrain(folder, GAME, SETTINGS.override({"window_start": 50}), seed=0, quiet=True)
    assert 50 < generation.window.positions < generation.generated


def test_damaged_files_are_named_and_skipped(folder: ModelFolder) -> None:
    damaged = sorted(folder.game_data.glob("*.tfrecord"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-7])
    generation = retrain(folder, GAME, SETTINGS, seed=0, quiet=True)
    assert generation.window.games == 10
    assert str(generation).startswith(f"skipped {damaged}, which is truncated")


def test_missing_game_data_is_an_error_before_tensorflow_is_imported(folder: ModelFolder) -> None:
    shutil.rmtree(folder.game_data)
    with pytest.raises(RecordError, match=r"no game data in .*first: run seraphim generate first first"):
        retrain(folder, GAME, SETTINGS, seed=0, quiet=True)
    assert len(folder.snapshots()) == 1


def test_network_options_other_than_the_models_are_refused(folder: ModelFolder) -> None:
    expected = (
        "^model 'first' was made with depth 1, not 2, width 16, not 99: leave that flag out, "
        "or make another model with seraphim train --init$"
    )
    with pytest.raises(SettingsError, match=expected):
        retrain(folder, GAME, SETTINGS.override({"width": 99, "depth": 2}), seed=0)
    with pytest.raises(SettingsError, match=r"made with average_decay above 0, not 0\.0: leave that flag out"):
        retrain(folder, GAME, SETTINGS.override({"average_decay": 0}), seed=0)


def test_model_whose_shapes_are_not_the_games_is_refused(folder: ModelFolder) -> None:
    class Wide:
        name, observation_shape, num_actions = "wide", (6, 7, 2), 7

    with pytest.raises(ModelError, match="has 9 outputs but wide has 7 actions: was this model trained for another"):
        Trainer(folder, Wide(), SETTINGS, seed=0).model  # type: ignore[arg-type]  # noqa: B018


def test_training_that_diverges_publishes_nothing_and_removes_nothing(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path, "first")
    settings = SETTINGS.override({"optimizer": "sgd", "learning_rate": 1e30, "max_snapshots": 1})
    champion = bootstrap(folder, GAME, settings, seed=0)
    add_games(folder, 20)
    expected = r"^training diverged: the loss is (nan|inf); no snapshot was published: lower learning_rate from 1e\+30$"
    with pytest.raises(ModelError, match=expected):
        retrain(folder, GAME, settings, seed=0, quiet=True)
    assert folder.champion() == champion
    assert folder.folders() == [champion]


@pytest.mark.parametrize(
    ("optimizer", "average_decay"),
    [
        pytest.param("muon", 0.0, marks=pytest.mark.slow),
        ("adam", 0.9),
        pytest.param("sgd", 0.0, marks=pytest.mark.slow),
    ],
)
def test_a_last_step_that_diverges_publishes_nothing_either(
    optimizer: str, average_decay: float, tmp_path: Path
) -> None:
    # The loss of that step, from before its update, is finite.
    folder = ModelFolder(tmp_path, "first")
    settings = SETTINGS.override({"optimizer": optimizer, "average_decay": average_decay})
    champion = bootstrap(folder, GAME, settings, seed=0)
    add_games(folder, 20)
    with pytest.raises(ModelError, match=r"^training diverged: .*; no snapshot was published: lower learning_rate"):
        retrain(folder, GAME, settings.override({"learning_rate": 1e30, "steps": 1}), seed=0, quiet=True)
    assert folder.champion() == champion
    assert folder.folders() == [champion]
    assert retrain(folder, GAME, settings, seed=0, quiet=True).snapshot == folder.champion()


@pytest.mark.slow
def test_the_networks_of_the_gate_are_run_by_the_runtime_that_was_chosen(
    folder: ModelFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptions = []

    def load(self: SavedNetwork, game: Game, batch: int) -> Inference:
        inference = load_inference(self.snapshot, game, self.runtime, batch=batch)
        descriptions.append(inference.description)
        return inference

    monkeypatch.setattr(SavedNetwork, "load", load)
    settings = SETTINGS.override({"gate": "score", "gate_games": 4, "readouts": 4})
    for runtime, described in (("tensorflow", "TensorFlow "), ("litert", "LiteRT ")):
        descriptions.clear()
        Trainer(folder, GAME, settings, seed=0, quiet=True, runtime=runtime).retrain()
        assert [each.startswith(described) for each in descriptions] == [True, True], descriptions


def test_interrupted_training_leaves_the_champion(folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    champion = folder.champion()
    monkeypatch.setattr(fit.TrainingSteps, "train", interrupt)
    with pytest.raises(KeyboardInterrupt):
        retrain(folder, GAME, SETTINGS, seed=0, quiet=True)
    assert folder.champion() == champion
    assert folder.snapshots() == [champion]


def train_program(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tictactoe/train.py", *arguments]
    return programs.run(command, env={**os.environ, "SERAPHIM_DATA": str(root)})


@pytest.mark.slow
def test_program_makes_a_model_and_trains_it(tmp_path: Path) -> None:
    made = train_program(tmp_path, "first", "--init", "--width=16", "--steps=3")
    folder = ModelFolder(tmp_path, "first")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == f"champion {folder.champion().name}\n"
    assert folder.settings() == default_settings("tictactoe").override({"width": 16, "steps": 3})
    add_games(folder, 10)
    trained = train_program(tmp_path, "first", "--steps=4")
    assert (trained.returncode, trained.stderr) == (0, "")
    assert "4 steps on the newest" in trained.stdout
    assert folder.champion().step == 4
    idle = train_program(tmp_path, "first", "--games_per_file=5", "--random_plies=2")
    assert (idle.returncode, idle.stdout) == (1, "")
    assert idle.stderr == (
        "seraphim train: --random_plies changes nothing here: it needs self-play; "
        "--games_per_file changes nothing here: it needs self-play\n"
    )
    assert folder.champion().step == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-model-of-anyone"], "model 'no-model-of-anyone' does not exist in "),
        (["other"], "model 'other' plays connectfour, not tictactoe: use seraphim train other"),
        (["../x", "--init"], "'../x' is not a valid model name"),
        ([], "which model? Try: seraphim train NAME"),
    ],
)
def test_program_reports_an_error_in_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    other = ModelFolder(tmp_path, "other")
    other.path.mkdir(parents=True)
    (other.path / "settings.json").write_text('{"game": "connectfour"}')
    run = train_program(tmp_path, *arguments)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith(f"seraphim train: {message}")
    assert run.stderr.count("\n") == 1
