"""The cycle with three players: self-play, records, targets, training, snapshots and their runtimes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from three_players import Banked, Dice, Guesses, Pile

from seraphim.errors import ModelError, RecordError
from seraphim.game import Array, load_game
from seraphim.game.features import mover_first
from seraphim.inference import load_inference
from seraphim.network import architectures, saved_model
from seraphim.options import NetworkOptions, RecordOptions, SearchOptions, SelfPlayOptions, TrainingOptions
from seraphim.records.display import summarize
from seraphim.records.examples import GameRecord, Positions, concatenate, decode, encode
from seraphim.records.tfrecord import DamageError
from seraphim.records.writer import GameWriter
from seraphim.selfplay.games import SelfPlay
from seraphim.server import history
from seraphim.settings import default_settings
from seraphim.storage.models import ModelFolder
from seraphim.training import fit
from seraphim.training.averaging import averaged
from seraphim.training.targets import to_targets
from tictactoe.game import GAME as TICTACTOE

GAMES: list[Any] = [Pile(), Dice(), Banked()]
OF_EACH = pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
NETWORK = NetworkOptions("mlp", depth=1, width=32, value_width=16)
SEARCH = SearchOptions(readouts=8, root="puct")


def played(game: Any, count: int = 30) -> list[GameRecord]:
    options = SelfPlayOptions(concurrent_games=8)
    return list(SelfPlay(game, Guesses(2, 3), SEARCH, options, "seed").play(iter(range(count))))


@OF_EACH
def test_a_record_tells_every_player_what_they_got(game: Any) -> None:
    for record in played(game):
        positions = decode(game, encode(game, record))
        assert record.result is not None
        after = game.step(record.states[-1:], record.actions[-1:])
        while not game.outcome(after)[0][0]:  # chance decides
            outcome = next(k for k in range(2) if game.outcome(game.step(after, np.array([k])))[0][0])
            after = game.step(after, np.array([outcome]))
            if game.name == "banked":
                break
        if game.name != "banked":  # where it depends on the outcome
            assert np.array_equal(record.result, game.outcome(after)[1][0])
        for row, mover in enumerate(game.to_play(record.states)):
            for turns in range(3):  # columns begin with the player to move
                player = (mover + turns) % 3
                assert positions.values[row, turns] == np.float32(record.result)[player]
                assert positions.root_values[row, turns] == record.root_values[row, player]


def test_the_history_tells_what_each_player_got_and_expected(tmp_path: Path) -> None:
    game, folder = load_game("threes"), ModelFolder(tmp_path, "t")
    folder.create(default_settings("threes"))
    options = SelfPlayOptions(concurrent_games=8, random_plies=0)
    records = list(SelfPlay(game, Guesses(12, 3), SEARCH, options, "seed").play(iter(range(6))))
    with GameWriter(folder.game_data, RecordOptions()) as writer:
        for record in records:
            writer.add(encode(game, record))
    listed = {each["game_id"]: each for each in history.list_games(folder, 0, 10)["games"]}
    for record in records:
        results = np.float32(record.result).tolist()  # type: ignore[arg-type]
        shown = history.show_game(folder, record.game_id)
        for told in (listed[record.game_id], shown):
            assert (told["results"], told["result"]) == (results, results[0])
        for ply, position in enumerate(shown["positions"]):
            assert position["root_values"] == pytest.approx(record.root_values[ply].tolist())
            assert position["root_value"] == position["root_values"][position["to_play"]]
    assert len({each["result"] for each in listed.values()}) > 1


def test_a_record_of_another_number_of_players_is_refused() -> None:
    (record, *_) = played(GAMES[0])
    for wrong in (record._replace(result=1.0), record._replace(root_values=record.root_values[:, 0])):
        with pytest.raises(RecordError, match=r"result have shape \(\), not \(3,\)|root_values have shape"):
            encode(GAMES[0], wrong)
    beyond = record._replace(result=np.array([0.0, 2.0, 0.0], np.float32))
    with pytest.raises(DamageError, match="no value"):
        decode(GAMES[0], encode(GAMES[0], beyond))


@OF_EACH
def test_targets_are_what_is_still_to_come_for_each_player(game: Any) -> None:
    positions = concatenate([decode(game, encode(game, record)) for record in played(game)])
    targets = to_targets(game, positions).positions
    if game.name != "banked":
        assert targets is positions
        return
    gained = mover_first(game.banked(positions.states), game.to_play(positions.states))
    assert targets.values == pytest.approx(np.clip((positions.values - gained) / 0.5, -1, 1), abs=1e-6)
    assert not targets.states[:, 3:].any()
    assert len(averaged(targets).values) < len(averaged(positions).values)


def test_equal_positions_get_the_means_of_each_column() -> None:
    positions = concatenate([decode(GAMES[0], encode(GAMES[0], record)) for record in played(GAMES[0])])
    merged = averaged(positions)
    for row, state in enumerate(merged.states):
        same = (positions.states == state).all(axis=1)
        assert merged.values[row] == pytest.approx(positions.values[same].mean(axis=0), abs=1e-6)
        assert merged.root_values[row] == pytest.approx(positions.root_values[same].mean(axis=0), abs=1e-6)


def taught(game: Any, positions: Positions, steps: int) -> Any:
    """A network that learned to tell what each player gets."""
    options = TrainingOptions(precision="float32", learning_rate=0.01, batch_size=64, root_value_share=0.0)
    model = architectures.build(game, NETWORK, seed=0)
    fit.prepare(model, options)
    batches = fit.Batches(game.observation_shape, game.symmetries(), options, seed=0)
    fit.TrainingSteps(model, batches).train(positions, steps, quiet=True)
    return model


def test_the_network_learns_the_value_of_each_player_and_every_runtime_gives_it(tmp_path: Path) -> None:
    game: Any = Pile()
    piles = np.arange(1, 19)
    # What happens is that everybody takes one: the last one wins, and the next is even.
    last = (piles - 1) % 3
    values = np.zeros((18, 3), np.float32) - 1
    values[np.arange(18), last], values[np.arange(18), (last + 1) % 3] = 1, 0
    states = np.stack([piles, np.zeros_like(piles)], axis=1)
    ones = np.ones(18, np.float32)
    policies = np.stack([ones, 0 * ones], axis=1)
    rows = {"observations": game.observe(states), "policies": policies, "values": values, "root_values": values}
    positions = Positions(*(rows.get(name, ones) for name in Positions._fields))
    model = taught(game, positions, 400)
    found = model(positions.observations, training=False)["value"].numpy()
    assert found == pytest.approx(values, abs=0.1)
    saved_model.save_snapshot(model, tmp_path / "1")
    for runtime in ("openvino", "litert", "tensorflow", "jax"):
        inference = load_inference(tmp_path / "1", game, runtime, precision="float32")  # type: ignore[arg-type]
        assert inference.infer(positions.observations)[1] == pytest.approx(found, abs=1e-5)
    with pytest.raises(ModelError, match="value head of .* has 3 outputs but pile needs 1"):
        load_inference(tmp_path / "1", OfTwo(), "openvino")


class OfTwo(Pile):
    """The same for two players, as far as a network can tell."""

    num_players = 2


def test_a_network_of_one_value_is_refused_for_three_players(tmp_path: Path) -> None:
    saved_model.save_snapshot(architectures.build(TICTACTOE, replace(NETWORK, width=4), seed=0), tmp_path / "1")

    class Three(type(TICTACTOE)):  # type: ignore[misc]
        num_players = 3

    with pytest.raises(ModelError, match="value head of .* has 1 outputs but tictactoe needs 3"):
        load_inference(tmp_path / "1", Three(), "openvino")


def by_player(values: Array, mover: int) -> Array:
    return mover_first(values[None], np.array([-mover % 3]))[0]


@pytest.mark.parametrize("mover", [0, 1, 2])
def test_columns_turn_back_into_players(mover: int) -> None:
    values = np.array([[0.1, 0.2, 0.3]])
    assert by_player(mover_first(values, np.array([mover]))[0], mover).tolist() == values[0].tolist()


def test_a_summary_of_games_tells_what_every_player_got() -> None:
    game = GAMES[0]
    records = played(game)
    found = summarize(game, concatenate([decode(game, encode(game, record)) for record in records]))
    results = np.array([record.result for record in records])
    assert found.mean_results == pytest.approx(results.mean(axis=0).tolist())
    assert found.draws == 0
    assert len({*results.mean(axis=0).tolist()}) == 3
