"""Seraphim as a library."""

import doctest
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import seraphim
from seraphim import api
from seraphim.errors import GameError, ModelError, RecordError, SettingsError
from seraphim.evaluation.match import make_openings, play_match
from seraphim.evaluation.players import minimax_player, random_player
from seraphim.inference import load_inference
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME


@pytest.fixture(scope="module")
def model() -> seraphim.Model:
    return seraphim.load("tictactoe")


def test_the_names_are_offered_and_nothing_is_imported_before_they_are_used() -> None:
    code = "import seraphim, sys; assert not {'numpy', 'numba'} & set(sys.modules); print(*sorted(dir(seraphim)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(seraphim.__all__)
    for name in seraphim.__all__:
        assert getattr(seraphim, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        seraphim.lode  # noqa: B018


@pytest.mark.parametrize("module", [seraphim, api])
def test_the_examples_are_right(module: object) -> None:
    assert doctest.testmod(module).attempted >= 2  # type: ignore[arg-type]
    assert not doctest.testmod(module).failed  # type: ignore[arg-type]


def test_an_analysis_has_all_moves_and_prints(model: seraphim.Model) -> None:
    analysis = model.analyze("b2 a2", readouts=60)
    assert {move.label for move in analysis.moves} == {"a1", "a3", "b1", "b3", "c1", "c2", "c3"}
    assert sum(move.visits for move in analysis.moves) == analysis.readouts
    assert analysis.best == model.play("b2 a2", readouts=60)
    assert all(move.variation[0] == move.label for move in analysis.moves)
    text, page = str(analysis), analysis._repr_html_()
    for move in analysis.moves:
        assert f" {move.label} " in text
        assert f"<b>{move.label}</b>" in page
    assert f"best {analysis.best}, value" in text
    assert analysis.board in page


def test_positions_are_moves_drawings_and_states(model: seraphim.Model) -> None:
    state = GAME.step(GAME.initial(1), np.array([4]))[0]
    values = [model.analyze(each, readouts=30).value for each in ("b2", GAME.render(state), state)]
    assert values[0] == values[1] == values[2]


def test_the_network_is_that_of_the_snapshot(model: seraphim.Model) -> None:
    probabilities, values = model.network(["", "b2", "b2 a1"])
    assert probabilities.shape == (3, 9)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert probabilities[1, 4] == probabilities[2, 0] == 0
    path = ModelFolder(Path(), "tictactoe").champion().path
    _, expected = load_inference(path, GAME, "litert").infer(GAME.observe(GAME.initial(1)))
    assert values[0] == pytest.approx(float(expected[0]), abs=0.02)


def test_what_is_wrong_is_said(model: seraphim.Model, tmp_path: Path) -> None:
    with pytest.raises(GameError, match="move 2"):
        model.analyze("b2 b2")
    for call in (model.analyze, lambda position: model.network([position])):
        with pytest.raises(GameError, match="the game is over in"):
            call("a1 b1 a2 b2 a3")
    with pytest.raises(ModelError, match="no-such-model"):
        seraphim.load("no-such-model", folder=tmp_path)
    with pytest.raises(ModelError, match="'nobody' is not a player"):
        seraphim.match("nobody", "random", game="tictactoe")
    with pytest.raises(SettingsError, match="which game"):
        seraphim.match("mcts:3", "random")


def test_models_that_come_with_it_are_found_from_anywhere(tmp_path: Path) -> None:
    assert seraphim.load("tictactoe", folder=tmp_path).play("b2 a2")
    assert "tictactoe/" in repr(seraphim.load("tictactoe", folder=tmp_path))


def test_a_match_is_that_of_the_arena() -> None:
    openings = make_openings(GAME, 10, 2, seed=3)
    expected = play_match(GAME, minimax_player(GAME, 2, 3), random_player(GAME, 3), openings)
    assert seraphim.match("minimax:2", "random", games=20, game="tictactoe", seed=3) == expected


def test_the_game_of_a_match_is_that_of_the_model() -> None:
    assert seraphim.match("random", "tictactoe:raw", games=4).tally != (0, 0, 0)


def test_a_model_is_made_and_learns(tmp_path: Path) -> None:
    small = {"depth": 1, "width": 8, "games_per_generation": 8, "concurrent_games": 8, "readouts": 8, "steps": 2}
    made = seraphim.new("mine", "tictactoe", folder=tmp_path, seed=3, self_play_readouts=8, **small)
    assert made.settings().network.width == 8
    lines: list[str] = []
    result = seraphim.learn("mine", generations=1, folder=tmp_path, callback=lines.append)
    assert result.generations == 1
    assert any(line.startswith("generation 1, ") for line in lines)
    games = seraphim.read_games("mine", folder=tmp_path)
    assert games.ends.sum() == 8
    assert games.observations.shape == (len(games.plies), 3, 3, 2)
    assert len(seraphim.read_games("mine", 10, folder=tmp_path).plies) <= 10
    assert seraphim.load("mine", folder=tmp_path).play()


def test_a_script_needs_no_guard_for_worker_processes(tmp_path: Path) -> None:
    seraphim.new("mine", "tictactoe", folder=tmp_path, width=8, games_per_generation=8, concurrent_games=8)
    script = tmp_path / "script.py"
    learning = f"seraphim.learn('mine', generations=1, folder={str(tmp_path)!r})"
    script.write_text(f"import seraphim\nprint('begins')\n{learning}\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("begins") == 1
    assert "generation 1, " in done.stdout


def test_what_cannot_be_made_or_learn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="wdith"):
        seraphim.new("mine", "tictactoe", folder=tmp_path, wdith=8)
    seraphim.new("mine", "tictactoe", folder=tmp_path)
    with pytest.raises(ModelError, match="exists"):
        seraphim.new("mine", "tictactoe", folder=tmp_path)
    with pytest.raises(SettingsError, match="this would never end"):
        seraphim.learn("mine", goal="none", folder=tmp_path)
    with pytest.raises(RecordError):
        seraphim.read_games("mine", folder=tmp_path)
