"""Seraphim as a library."""

import doctest
import functools
import importlib
import inspect
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import games
import numpy as np
import programs
import pytest
from pages import DOCS, run_page

import seraphim
import tictactoe
from pig.game import Pig
from seraphim import api
from seraphim.errors import FileError, GameError, ModelError, RecordError, SeraphimError, SettingsError, version
from seraphim.evaluation import error_rates, position_lists
from seraphim.evaluation.match import make_openings, play_match
from seraphim.game import Array, Game, PlainGame, load_game, module_name, name_of
from seraphim.game.exhaustive import Solution, solve
from seraphim.game.features import features_of
from seraphim.game.notation import banked_of
from seraphim.game.saved_games import read_state
from seraphim.inference import load_inference
from seraphim.options import SearchOptions
from seraphim.players.choose import SearchPlayer, minimax_player, random_player, raw_player
from seraphim.records.examples import Positions, pick
from seraphim.records.sparse import SparseRows
from seraphim.search.evaluator import Uniform
from seraphim.selfplay.generate import generate_games
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import Settings, dump_settings
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME
from tictactoe.plain import PlainTicTacToe
from twenty48.game import Twenty48


@pytest.fixture(scope="module")
def model() -> seraphim.Model:
    return seraphim.load("tictactoe")


def test_the_names_are_offered_and_nothing_is_imported_before_they_are_used() -> None:
    code = "import seraphim, sys; assert not {'numpy', 'numba'} & set(sys.modules); print(*sorted(dir(seraphim)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(seraphim.__all__)
    for name in seraphim.__all__:
        assert getattr(seraphim, name) is getattr(api, name)
    assert seraphim.errors.SettingsError is SettingsError
    assert seraphim.__version__ == version()
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        seraphim.lode  # noqa: B018


def run_examples(name: str, thing: object) -> int:
    """Run the examples in the docstring of a thing and its members; return how many there are."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for found in doctest.DocTestFinder().find(thing, name, globs={}):
        runner.run(found)
    assert not runner.failures
    return runner.tries


WITH_FILES = ["new", "learn", "read_games"]


@pytest.mark.parametrize("name", [name for name in seraphim.__all__ if name not in WITH_FILES])
def test_the_examples_are_right(name: str) -> None:
    assert run_examples(name, getattr(seraphim, name)) >= 2


@pytest.mark.slow
def test_the_examples_that_write_files_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in WITH_FILES:
        assert run_examples(name, getattr(seraphim, name)) >= 2


def test_the_example_of_the_package_is_right() -> None:
    assert doctest.testmod(seraphim).attempted >= 2
    assert not doctest.testmod(seraphim).failed


@pytest.mark.slow
@pytest.mark.parametrize("page", ["api.md", "your-own-search.md"])
def test_the_pages_are_right(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_page_shows_all_parameters() -> None:
    page = (DOCS / "api.md").read_text()
    for name in seraphim.__all__:
        if name not in ("GameReview", "Move", "PositionAnalysis"):
            parameters = inspect.signature(getattr(seraphim, name)).parameters.values()
            shown = [f"**{each.name}" if each.kind is each.VAR_KEYWORD else each.name for each in parameters]
            (row,) = re.findall(rf"^\| `{name}\((.*?)\)` \|", page, re.M)
            assert [each.partition("=")[0] for each in re.split(r", (?![^(]*\))", row)] == shown


def exact_model(game: Game) -> tuple[seraphim.Model, Solution]:
    """A model that knows the value of each position, and no good move."""
    solution = solve(game)
    rest = solution.results - banked_of(game, solution.states)
    kept = game.state_words - (features_of(game).bank_words or 0)
    known = {state[:kept].tobytes(): value for state, value in zip(solution.states, rest, strict=True)}

    def evaluate(states: Array) -> tuple[Array, Array]:
        signs = np.where(game.to_play(states) == 1, -1, 1) / (features_of(game).value_scale or 1)
        values = signs * np.array([known[state[:kept].tobytes()] for state in states])
        return np.zeros((len(states), game.num_actions), np.float32), values.astype(np.float32)

    return seraphim.Model(game, evaluate, readouts=4000), solution


@pytest.mark.parametrize(
    ("game", "moves", "banked"),
    [(Pig(10), "roll 6 hold roll 4", 0), (Twenty48(2, 2), "a1=2 b1=2 left a2=2 right a1=2", 4)],
)
def test_games_of_chance_are_analyzed_and_played(game: Game, moves: str, banked: float) -> None:
    model, solution = exact_model(game)
    state = read_state(game, moves)
    kept = game.state_words - (features_of(game).bank_words or 0)
    (row,) = np.flatnonzero((solution.states[:, :kept] == state[:kept]).all(axis=1))[:1]
    before = banked_of(game, np.stack([solution.states[row], state]))
    player = int(game.to_play(state[None])[0])
    values = solution.action_values[row] + before[1] - before[0]
    found = model.analyze(moves)
    assert found.to_play == player
    assert found.value == pytest.approx(np.nanmax(values), abs=0.05)
    assert model.play(moves) == found.best == game.action_label(int(np.nanargmax(values)))
    assert (features_of(game).points or 1) * before[1] == pytest.approx(banked, abs=1e-5)
    rest = (np.nanmax(values) - before[1]) / (features_of(game).value_scale or 1)
    assert model.network([moves])[1][0] == pytest.approx(rest, abs=1e-6)


def test_with_three_players_each_has_a_value() -> None:
    model = seraphim.Model("threes", readouts=200)
    found = model.analyze("a1 b2 d3 b1 a3 d2")  # c1 wins
    assert (found.best, found.proven, found.value, found.values) == ("c1", True, 1.0, (1.0, -0.5, -0.5))
    assert "value +1.00 (players +1.00 -0.50 -0.50), exact" in str(found)
    found = model.analyze("a1")
    assert (found.to_play, len(found.values)) == (1, 3)
    assert found.value == pytest.approx(found.values[1])
    assert all(move.values[1] == pytest.approx(move.value) for move in found.moves)
    assert all(len(move["values"]) == 3 for move in found.to_dict()["candidates"])
    told = found.to_dict()
    assert (told["values"], told["value_first"]) == (list(found.values), found.values[0])
    assert model.network(["a1"])[1].shape == (1, 3)
    assert seraphim.play_table("mcts:10", "random", 60, game="threes").lead.interval[0] > 0
    with pytest.raises(GameError, match="threes is a game for more: seraphim.play_table plays it"):
        seraphim.match("random", "random", game="threes")
    with pytest.raises(GameError, match="threes is for several players: seraphim.play_table plays it"):
        seraphim.play_alone("random", game="threes")
    with pytest.raises(SeraphimError, match="minimax plays games for one or two players, not threes: take mcts"):
        seraphim.play_table("minimax:2", "random", 6, game="threes")


def test_where_chance_moves_a_position_is_refused_with_an_example() -> None:
    pig = seraphim.Model("pig")
    wrong = [
        (lambda: pig.analyze("roll"), "chance moves in this position: add the outcome to its moves, such as 1"),
        (lambda: pig.play("roll 3 roll"), "chance moves in this position: add the outcome to its moves, such as 1"),
        (lambda: pig.network(["roll 3", "roll"]), "chance moves in this position: add the outcome"),
        (lambda: pig.analyze("roll 7"), "move 2: '7' is not a move here: expected one like 1"),
        (lambda: seraphim.Model("cube").play(), "chance moves in this position: add the outcome to its moves, such as"),
        (lambda: pig.review("roll 3"), "pig is a game of chance, which is not played here"),
        (lambda: seraphim.prove(game="pig"), "pig is a game of chance, which is not played here"),
    ]
    for call, sentence in wrong:
        with pytest.raises(GameError, match=sentence) as caught:
            call()
        assert "\n" not in str(caught.value)


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
    expected = seraphim.match("random", "tictactoe:raw", games=4, game="tictactoe")
    assert seraphim.match("random", "tictactoe:raw", games=4) == expected


def test_a_model_is_made_and_learns(tmp_path: Path) -> None:
    small = {"depth": 1, "width": 8, "games_per_generation": 8, "concurrent_games": 8, "readouts": 8, "steps": 2}
    made = seraphim.new("mine", "tictactoe", folder=tmp_path, seed=3, self_play_readouts=8, **small)
    assert made.settings().network.width == 8
    lines: list[str] = []
    result = seraphim.learn("mine", generations=1, folder=tmp_path, callback=lines.append)
    assert result.generations == 1
    assert any(line.startswith("generation 1, ") for line in lines)
    with pytest.raises(SettingsError, match="'mine/all' is 2 players: name one"):
        seraphim.match("mine/all", "random", games=2, folder=tmp_path)
    games = seraphim.read_games("mine", folder=tmp_path)
    assert games.ends.sum() == 8
    assert games.observations.shape == (len(games.plies), 3, 3, 2)
    assert len(seraphim.read_games("mine", 10, folder=tmp_path).plies) <= 10
    assert seraphim.load("mine", folder=tmp_path).play()


@pytest.mark.slow
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
    with pytest.raises(SettingsError, match="no stopping condition: pass hours or generations"):
        seraphim.learn("mine", goal="none", folder=tmp_path)
    with pytest.raises(RecordError):
        seraphim.read_games("mine", folder=tmp_path)


# ---------------------------------------------------------------- self-play


@pytest.mark.parametrize("generations", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_self_play_is_that_of_the_workers(root: Path, generations: int) -> None:
    """The games that the pool of processes writes, of the same seed and model, whose readouts grow."""
    folder = ModelFolder(root, "fresh")
    growing = folder.settings().override({"readouts_growth_steps": 4})
    (folder.path / "settings.json").write_text(dump_settings(growing))
    if generations:
        seraphim.learn("fresh", generations=generations, goal="none", folder=root, callback=lambda line: None)
        assert folder.champion().step == 8
        shutil.rmtree(folder.game_data)
    played = list(seraphim.self_play("fresh", games=12, seed=7, folder=root))
    with WorkerPool(folder.settings(), num_workers=1) as pool:
        generate_games(pool, folder, folder.settings(), "7", 12, notify=lambda line: None)
    written = seraphim.read_games(str(folder.game_data))
    assert sorted(map(content, played)) == sorted(map(content, split(written)))
    assert len({content(game) for game in played}) > 6
    assert sorted(map(content, seraphim.self_play("fresh", 12, seed=8, folder=root))) != sorted(map(content, played))


def split(positions: Positions) -> list[Positions]:
    """A part for each game."""
    stops = (np.flatnonzero(positions.ends) + 1).tolist()
    return [pick(positions, slice(start, stop)) for start, stop in zip([0, *stops], stops, strict=False)]


def content(positions: Positions) -> bytes:
    assert not isinstance(positions.policies, SparseRows)
    return b"".join(np.ascontiguousarray(column).tobytes() for column in positions if isinstance(column, np.ndarray))


def test_self_play_stops_when_its_iterator_is_closed(model: seraphim.Model) -> None:
    played = seraphim.self_play(model, games=1_000_000)
    first = next(played)
    assert first.ends.sum() == 1
    assert first.ends[-1]
    played.close()
    assert list(played) == []
    assert list(seraphim.self_play(model, games=0)) == []


# ---------------------------------------------------------------- error rates and proofs


def test_an_evaluation_has_the_tables_of_the_program() -> None:
    found = seraphim.evaluate("tictactoe", [20, 0], max_positions=300)
    command = [sys.executable, "bin/evaluate.py", "tictactoe", "--searches=0,20", "--max_positions=300"]
    done = programs.run(command, env={**os.environ, "SERAPHIM_DATA": ""})
    assert str(found).splitlines() == done.stdout.splitlines()[1:]
    assert [each.player for each in found.errors] == ["network", "20 readouts"]


@pytest.mark.parametrize(
    ("game", "others"), [("tictactoe", []), ("pig", ["random"]), ("twenty48:2x2", ["random", "greedy"])]
)
def test_a_regret_stands_beside_that_of_random_and_of_greedy_play(game: str, others: list[str]) -> None:
    found = seraphim.evaluate(seraphim.Model(game), searches=[50], split="validation", max_positions=300)
    assert [each.player for each in found.errors][1 : 1 + len(others)] == others
    regrets = [each.regret for each in found.errors]
    if others:
        assert regrets[0] is not None
        assert all(each is not None and regrets[0] < each for each in regrets[1:])


def test_an_evaluation_follows_the_model_it_is_given() -> None:
    sets = position_lists.load_sets("tictactoe", "validation", 200)
    options = SearchOptions(readouts=5, cpuct=3.0, solver=False)
    players = {"network": raw_player(GAME, Uniform(GAME)), "5 readouts": SearchPlayer(GAME, [Uniform(GAME)], options)}
    found = seraphim.evaluate(
        seraphim.Model(GAME, settings=Settings("tictactoe", search=options)), [0, 5], max_positions=200
    )
    assert found.errors == error_rates.measure_errors(GAME, players, sets)
    assert found.errors[1].weak.events > 0


def test_a_proof_is_what_the_solver_says_and_its_file_passes_the_checker(tmp_path: Path) -> None:
    positions = "b2 a1", "b2 a2", "b2 b1 a1", "a1 b1 b3", "a1 b2 a2 a3 b1"
    values = [seraphim.prove(position, game="tictactoe").value for position in positions]
    assert values == [solved(position) for position in positions]
    assert {*values} == {-1, 0, 1}
    file = tmp_path / "my.proof"
    proof = seraphim.prove("b2 a2", model="tictactoe", out=file)
    assert proof.value == 1
    assert proof.evaluations > 0
    assert proof.file == file
    assert str(proof).startswith("the first player wins: proven in ")
    checked = programs.run([sys.executable, "bin/check_proof.py", file])
    assert "the first player wins" in checked.stdout
    again = seraphim.prove("b2 a2", model="tictactoe", out=file)
    assert (again.value, again.evaluations, str(again)) == (1, 0, f"the first player wins: proven in {file}")


def solved(position: str) -> float:
    """The exact result for the first player, by the game's own solver."""
    state = read_state("tictactoe", position)
    results = tictactoe.action_results(state, 1.0).results
    return float(np.nanmax(results)) * (1 - 2 * int(GAME.to_play(state[None])[0]))


def test_a_proof_that_ends_early_says_what_it_knows() -> None:
    proof = seraphim.prove(game="connectfour", hours=0)
    assert (proof.claims, proof.value, proof.file) == ((), None, None)
    assert str(proof).startswith("undecided after ")
    proof = seraphim.prove("b2 a1", game="tictactoe", goal="first")
    assert [str(claim) for claim in proof.claims] == ["the second player at least draws"]
    assert proof.value is None


# ---------------------------------------------------------------- games as objects, models in memory


class Misere(PlainTicTacToe):
    name = "misère"

    def outcome(self, state: Any) -> float | None:
        result = super().outcome(state)
        return -result if result else result


def test_the_name_of_a_game_is_that_of_the_module_that_offers_it() -> None:
    plain = importlib.import_module("tictactoe.plain").GAME
    for game, name in (
        (GAME, "tictactoe"),
        (plain, "tictactoe.plain"),
        (load_game("tictactoe.plain"), "tictactoe.plain"),
    ):
        assert name_of(game) == module_name(game) == name
    for name in ("connectfour:5x6", "hex:3", "tictactoe", "othello"):
        assert name_of(load_game(name)) == name_of(name) == name
    assert name_of(Misere()) == "misère"
    with pytest.raises(GameError, match="'misère' has no importable module with GAME"):
        module_name(Misere())


def test_a_game_of_the_running_program_is_not_stored(tmp_path: Path) -> None:
    """As in a notebook: other processes cannot import what `__main__` offers."""
    script = tmp_path / "script.py"
    script.write_text(
        "import seraphim\nfrom tictactoe.plain import PlainTicTacToe\n"
        "class Mine(PlainTicTacToe):\n    name = 'mine'\n"
        "GAME = Mine()\n"
        "print(seraphim.Model(GAME, readouts=20).play('b2'))\n"
        f"seraphim.new('mine', GAME, folder={str(tmp_path)!r})\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stdout.strip()
    assert done.stderr.splitlines()[-1].startswith(
        "seraphim.errors.GameError: 'mine' has no importable module with GAME"
    )
    assert not (tmp_path / "models").exists()


def test_the_game_of_a_module_is_stored_by_its_name(tmp_path: Path) -> None:
    plain = load_game("tictactoe.plain")
    made = seraphim.new("mine", plain, folder=tmp_path, kind="mlp", depth=1, width=8)
    assert made.settings().game == "tictactoe.plain"
    assert seraphim.load("mine", folder=tmp_path).play("b2", readouts=10)


@pytest.mark.parametrize("game", [Misere(), games.Nim(9), games.MOVES_TWICE], ids=lambda game: game.name)
def test_a_game_that_no_module_offers_is_searched_played_and_proven(game: PlainGame, tmp_path: Path) -> None:
    model = seraphim.Model(game, readouts=50, concurrent_games=4)
    assert model.analyze().readouts == 50
    (record, *_) = seraphim.self_play(model, games=3)
    assert record.observations.shape[1:] == tuple(game.observation_shape)
    assert seraphim.match(model, "random", games=4).games == 4
    assert seraphim.match("minimax:3", "mcts:30", games=4, game=game).games == 4
    assert seraphim.prove(model=model).value == negamax(game, game.initial())
    with pytest.raises(GameError, match="has no importable module with GAME"):
        seraphim.prove(game=game, out=tmp_path / "my.proof")
    with pytest.raises(SettingsError, match="offers no validation sets"):
        seraphim.evaluate(model)


def negamax(game: PlainGame, state: Any) -> float:
    """The result for the first player if both play best."""

    @functools.cache
    def value(state: Any) -> float:
        result = game.outcome(state)
        if result is not None:
            return result
        values = [value(game.step(state, action)) for action in game.legal(state)]
        return max(values) if game.to_play(state) == 0 else min(values)

    return value(state)


def test_models_and_functions_are_players(model: seraphim.Model) -> None:
    def first_legal(states: Array) -> Array:
        return GAME.legal(states).argmax(axis=1)

    assert seraphim.match(model, "random", readouts=0) == seraphim.match("tictactoe", "random", readouts=0)
    assert seraphim.match(model, "random", readouts=0) == seraphim.match("tictactoe:raw", "random")
    expected = seraphim.match("tictactoe", "minimax:2", games=10, readouts=20)
    assert seraphim.match(model, "minimax:2", games=10, readouts=20) == expected
    assert seraphim.match(model, minimax_player(GAME, 2), games=10, readouts=20) == expected
    assert seraphim.match(first_legal, model, games=10, readouts=20).score < 0.5
    with pytest.raises(SettingsError, match="players must share a game"):
        seraphim.match(model, seraphim.Model("connectfour"), games=2)
    with pytest.raises(SettingsError, match="players must share a game"):
        seraphim.match("tictactoe", "random", game="connectfour", games=2)
    with pytest.raises(SettingsError, match="which game"):
        seraphim.match(first_legal, first_legal)


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda states: np.full(len(states), -1), "chose the illegal action -1"),
        (lambda states: np.full(len(states), 9), "chose the illegal action 9"),
        (lambda states: [4], "must return an action, an integer, for each of 2 states"),
        (lambda states: np.zeros(len(states)), "must return an action, an integer"),
        (lambda states: None, "must return an action, an integer"),
        (lambda states: np.zeros(len(states), "m8[s]"), "must return an action, an integer"),
        (lambda states: [[1], [1, 2]], r"must return an action, an integer, .*, not \[\[1\], \[1, 2\]\]"),
    ],
)
def test_what_is_no_action_is_refused(choose: Any, message: str) -> None:
    with pytest.raises(GameError, match=message):
        seraphim.match(choose, "random", games=4, game="tictactoe")


class Swapped(PlainTicTacToe):
    def outcome(self, state: Any) -> float | None:
        found = super().outcome(state)
        return None if found is None else -found


class Same(PlainTicTacToe):
    pass


def test_games_of_one_name_with_other_rules_do_not_meet() -> None:
    for games_ in ((Swapped(), Same()), (Swapped(), "tictactoe")):
        with pytest.raises(SettingsError, match="players must share a game"):
            seraphim.match(*map(seraphim.Model, games_), games=2)
    with pytest.raises(SettingsError, match="players must share a game"):
        seraphim.match(seraphim.Model(Swapped()), "random", games=2, game=Same())


class Network(Uniform):
    def __call__(self, states: Array) -> tuple[Array, Array]:
        raise AssertionError("this is a network, and no function of states")


@pytest.mark.parametrize("outputs", [None, 5, [[1], [1, 2]], ([[1], [1, 2]], [0.0]), ("x", "y"), ([1],)])
def test_a_function_that_returns_no_arrays_is_refused(outputs: Any) -> None:
    with pytest.raises(ModelError, match=r"<lambda> (must return logits and values, two arrays, not|returned logits)"):
        seraphim.Model("tictactoe", lambda states: outputs).network(["b2"])


def test_a_network_may_be_callable() -> None:
    assert seraphim.Model("tictactoe", Network(GAME)).play("a1 b1 a2 b2", readouts=100)


def test_a_model_outlives_its_snapshot_and_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path("models/tictactoe").absolute()
    monkeypatch.chdir(tmp_path)
    shutil.copytree(source, "models/copied", symlinks=True)
    copied = seraphim.load("copied")
    expected = seraphim.match(copied, "random", games=4, readouts=8)
    monkeypatch.chdir("models")
    assert seraphim.match(copied, "random", games=4, readouts=8) == expected
    shutil.rmtree("copied")
    assert seraphim.match(copied, "random", games=4, readouts=8).games == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: seraphim.load("/tictactoe"), "is not the path of a model: expected models/NAME"),
        (lambda: seraphim.load("nowhere/tictactoe"), "is not the path of a model: expected models/NAME"),
        (lambda: seraphim.read_games("nowhere/tictactoe"), "is not the path of a model: expected models/NAME"),
        (lambda: seraphim.load("models/tictactoe/champion", snapshot="x"), "leave snapshot='x' out"),
        (lambda: seraphim.load("tictactoe", runtime="onnx"), "runtime must be one of auto, openvino"),  # type: ignore[arg-type]
        (lambda: seraphim.evaluate("tictactoe", [0], split="Test"), "split must be one of"),  # type: ignore[arg-type]
        (lambda: seraphim.evaluate("tictactoe", [-1]), "readouts must be at least 0"),
        (lambda: seraphim.evaluate("tictactoe", [0], max_positions=0), "max_positions must be at least 1"),
        (lambda: seraphim.prove(game=GAME, goal="win"), "goal must be one of result, first"),  # type: ignore[arg-type]
        (lambda: seraphim.prove(game=GAME, megabytes=0), "megabytes must be at least 1"),
        (lambda: seraphim.prove(game="tictactoe", out=""), "'.' is not the name of a file: expected one of 1 to 200"),
        (lambda: seraphim.prove(game="tictactoe", out="/"), "'/' is not the name of a file"),
        (lambda: seraphim.prove(game="tictactoe", out=240 * "x"), "x… is not the name of a file"),
        (lambda: seraphim.prove(game="tictactoe", out=5000 * "x"), "out must be the name of a file or folder, not 'xx"),
        (
            lambda: seraphim.prove(game="tictactoe", out="\ud800"),
            r"out must be the name of a file or folder, not '.ud8",
        ),
        (lambda: seraphim.load("mine", folder=5000 * "x"), "folder must be the name of a file or folder, not 'xxx"),
        (lambda: seraphim.match("proof:a\nb", "random", game=GAME), "proof must be the name of a file or folder, not"),
        (lambda: seraphim.match("proof:\0", "random", game=GAME), "proof must be the name of a file or folder, not"),
        (lambda: seraphim.load("mine", folder="a\nb"), r"folder must be the name of a file or folder, not 'a.nb'"),
        (lambda: seraphim.load("tictactoe", snapshot="./a\nb"), r"snapshot must be the name .*, not PosixPath\('a.nb'"),
        (lambda: seraphim.evaluate("tictactoe", [np.timedelta64(5)]), "readouts must be int, not "),  # type: ignore[list-item]
        (lambda: seraphim.load("tictactoe", cpuct=np.timedelta64(5)), "cpuct must be float, not "),
        (lambda: seraphim.load("tictactoe", cpuct=np.datetime64(5, "ns")), "cpuct must be float, not "),
        (lambda: seraphim.load("tictactoe").network(np.array(3)), "expected a list of positions"),
        (lambda: seraphim.learn("x", goal="netwrok", hours=0), "goal must be one of"),  # type: ignore[arg-type]
        (lambda: seraphim.learn("x", generations=0), "generations must be at least 1"),
        (lambda: seraphim.learn("x", hours=math.nan), "hours must be at least 0, not nan"),
        (lambda: seraphim.new("x", GAME, seed=-1), "seed must be from 0 to 9,223,372,036,854,775,807, not -1"),
        (lambda: seraphim.new("x", GAME, seed=2**63), "seed must be from 0 to 9,223,372,036,854,775,807, not"),
        (lambda: seraphim.learn("x", seed=2**63, hours=0), "seed must be from 0 to 9,223,372,036,854,775,807, not"),
        (lambda: seraphim.self_play("tictactoe", games=-1), "games must be at least 0"),
        (lambda: seraphim.match("random", "random", games=7, game=GAME), "games must be an even number"),
        (lambda: seraphim.match("random", "random", games=0, game=GAME), "games must be from 2 to 1,000,000, not 0"),
        (lambda: seraphim.load("tictactoe").analyze(readouts=0), "readouts must be at least 1"),
        (lambda: seraphim.load("tictactoe").network("b2"), "expected a list of positions"),
        (lambda: seraphim.load("tictactoe").network([]), "expected a list of positions"),
        (lambda: seraphim.Model(GAME, 5), "evaluation must be an Inference or a function"),  # type: ignore[arg-type]
        (lambda: seraphim.load("tictactoe", games_per_generation=5), "games_per_generation changes nothing here"),
        (lambda: seraphim.load("tictactoe", tree_policy=len, cpuct=2.0), "cpuct changes nothing here: it needs PUCT"),
    ],
)
def test_arguments_out_of_range_or_without_effect_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        call()


def test_a_proof_needs_a_folder() -> None:
    with pytest.raises(FileError, match="there is no folder nowhere"):
        seraphim.prove(game="tictactoe", out="nowhere/proof")


def test_numbers_of_numpy_are_numbers(model: seraphim.Model) -> None:
    assert model.analyze("b2", readouts=np.int64(17)).readouts == 17  # type: ignore[arg-type]


def test_models_that_come_with_it_play_matches_anywhere(tmp_path: Path) -> None:
    assert seraphim.match("tictactoe", "random", games=2, readouts=5, folder=tmp_path).games == 2


def test_a_model_is_found_by_its_path(model: seraphim.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ["models/tictactoe", "models/tictactoe/champion", f"models/tictactoe/{model.snapshot}"]
    for path in [*paths, *map(Path, paths), *(str(Path(path).absolute()) for path in paths)]:
        assert repr(seraphim.load(path)) == repr(model)
        assert repr(seraphim.load(path, folder=Path.cwd())) == repr(model)
    with pytest.raises(ModelError, match="'nobody' does not exist in "):
        seraphim.load("models/nobody")
    monkeypatch.chdir("models")
    assert repr(seraphim.load("./tictactoe")) == repr(model)


def test_options_of_a_model_take_effect_or_are_refused(model: seraphim.Model) -> None:
    assert seraphim.load("tictactoe", readouts=17).analyze("b2").readouts == 17
    assert seraphim.load("tictactoe", cpuct=9.0).analyze("b2") != seraphim.load("tictactoe", cpuct=0.5).analyze("b2")
    with pytest.raises(SettingsError, match="width changes nothing here"):
        seraphim.load("tictactoe", width=9)
    with pytest.raises(SettingsError, match="unknown setting 'raedouts'"):
        seraphim.Model(GAME, raedouts=9)


def test_what_is_no_position_or_no_question_is_refused(model: seraphim.Model) -> None:
    masked, times = np.ma.array([0, 0], mask=[1, 0]), np.zeros(2, "m8[s]")
    for position in (np.zeros(3, np.int64), np.zeros((1, 2), np.int64), np.zeros(2), [[1], [1, 2]], masked, times):
        with pytest.raises(GameError, match="a position of tictactoe is its moves"):
            model.analyze(position)
    for arguments in ({}, {"game": GAME, "model": model}):
        with pytest.raises(SettingsError, match="either game or model"):
            seraphim.prove("b2", **arguments)
    with pytest.raises(GameError, match="the game is over"):
        seraphim.prove("a1 b1 a2 b2 a3", game=GAME)


class Nameless:
    def __repr__(self) -> str:
        raise RuntimeError("this has no text")


class Unreadable:
    def __array__(self, *arguments: object, **options: object) -> Array:
        raise RuntimeError("this is no array")


ODD = [
    *(None, True, -1, 2.5, 10**12, 2**64, 10**5000, math.nan, math.inf, 1e-310, "", "x", "a\nb", "x\0y", b"x", 1j),
    *([], [1], (), {}, {1}, object(), Nameless(), len, type, range(3), iter([5]), Path("x\0y"), 200 * "x"),
    *(np.int64(-2), np.float32(2), np.bool_(1), np.array([]), np.arange(-1, 10000), np.zeros((3, 3))),
    *(np.array(3), np.timedelta64(5), np.datetime64(5, "ns"), np.array([1, 2], "m8[s]"), np.array(["NaT"], "M8[s]")),
    *([[1], [1, 2]], np.ma.array([1, 2], mask=[1, 0]), Unreadable(), "/", "..", "./a\nb", "\ud800", 5000 * "x"),
    *(250 * "x", "./" + 5000 * "x", 19 * (200 * "x" + "/"), Path("\ud800")),
]
CALLS: dict[str, tuple[Callable[..., object], str]] = {
    "load": (functools.partial(seraphim.load, "tictactoe"), "snapshot folder runtime trust readouts cpuct solver"),
    "load_name": (seraphim.load, "name"),
    "Model": (seraphim.Model, "game"),
    "model": (functools.partial(seraphim.Model, "tictactoe"), "evaluation settings tree_policy readouts"),
    "new": (functools.partial(seraphim.new, "odd", "no_game_of_this_name"), "preset seed folder width"),
    "new_game": (functools.partial(seraphim.new, "odd"), "game"),
    "learn": (functools.partial(seraphim.learn, "nobody", goal="none"), "hours generations seed folder callback"),
    "self_play": (functools.partial(seraphim.self_play, "tictactoe"), "games seed folder"),
    "read_games": (functools.partial(seraphim.read_games, "tictactoe"), "max_positions folder"),
    "match": (functools.partial(seraphim.match, "random", "random"), "games readouts seed folder"),
    "match_player": (functools.partial(seraphim.match, second="random", games=2, game="tictactoe"), "first"),
    "play_alone": (functools.partial(seraphim.play_alone, "random", game="twenty48:2x2"), "games readouts seed folder"),
    "evaluate": (functools.partial(seraphim.evaluate, "tictactoe", max_positions=1), "searches split max_positions"),
    "prove": (functools.partial(seraphim.prove, "a1 b1 a2 b2", game="tictactoe"), "goal hours out"),
    "prove_position": (functools.partial(seraphim.prove, game="tictactoe"), "position"),
    "analyze": (lambda **given: seraphim.Model("tictactoe").analyze("b2", **given), "readouts"),
    "position": (lambda **given: seraphim.Model("tictactoe").analyze(**given), "position"),
    "network": (lambda **given: seraphim.Model("tictactoe").network(**given), "positions"),
    "player": (lambda **given: seraphim.Model("tictactoe").player(**given), "readouts inferences"),
    "inferences": (lambda **given: seraphim.load("tictactoe").inferences(**{"batch": 2} | given), "batch threads"),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument_is_taken_or_refused_in_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, parameters = CALLS[name]
    monkeypatch.chdir(tmp_path)
    refused: list[str] = []
    for parameter in parameters.split():
        for value in ODD:
            try:
                call(**{parameter: value})
            except SeraphimError as error:
                refused.append(str(error))
    assert not [message for message in refused if "\n" in message]
    assert len(refused) >= 10 * len(parameters.split())


def test_scalars_of_numpy_are_numbers_everywhere() -> None:
    model = seraphim.load("tictactoe", cpuct=np.float32(2), readouts=np.int16(9), solver=np.bool_(1))  # type: ignore[arg-type]
    assert (model.settings.search.cpuct, model.settings.search.readouts) == (2.0, 9)
    assert model.settings.search.solver is True
    found = seraphim.evaluate(model, np.array([0, 5]), max_positions=np.uint8(3))  # type: ignore[arg-type]
    assert [each.player for each in found.errors] == ["network", "5 readouts"]
    assert len(list(seraphim.self_play(model, np.int32(2), seed=np.uint64(1)))) == 2  # type: ignore[arg-type]
    assert seraphim.prove("a1 b1 a2 b2", game="tictactoe", hours=np.float64(1)).value == 1


def test_memory_that_no_machine_has_is_refused_in_a_sentence() -> None:
    with pytest.raises(SettingsError, match="no memory for .* bytes: lower readouts, concurrent_games or cache_meg"):
        seraphim.load("tictactoe", cache_megabytes=10**9).analyze()
    with pytest.raises(SettingsError, match="the search trees together would be too large: lower readouts"):
        seraphim.load("tictactoe").analyze(readouts=10**9)
    with pytest.raises(SettingsError, match="megabytes must be at most 1,000,000,000"):
        seraphim.prove(game="tictactoe", megabytes=10**12)
