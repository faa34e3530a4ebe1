"""Error rates against solved positions, their intervals, and lists of positions."""

import csv
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from reference import ArbitraryNetwork, random_states

from connectfour.game import GAME as CONNECT_FOUR
from connectfour.game import position_from_moves
from pig.game import Pig
from seraphim.errors import GameError, PlayerError
from seraphim.evaluation import error_rates, position_lists
from seraphim.evaluation.intervals import Rate
from seraphim.game import Array, Game, load_game
from seraphim.game.exhaustive import solve
from seraphim.game.loading import PositionSet
from seraphim.options import SearchOptions
from seraphim.players.choose import (
    Choose,
    HistoryPlayer,
    SearchPlayer,
    random_player,
    raw_player,
    search_positions,
)
from seraphim.players.external.load import load_engine
from seraphim.search.evaluator import Inference, Uniform
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training.loop import Run, learn
from seraphim.training.trainer import bootstrap
from tictactoe.game import GAME
from tictactoe.minimax import position_sets
from twenty48.game import Twenty48

(POSITIONS,) = position_sets()
SOME = PositionSet("some", POSITIONS.states[::9], POSITIONS.action_values[::9])


class Oracle(Uniform):
    """Predicts the exact value of every position, and a policy that prefers the best moves."""

    def infer(self, observations):
        states = np.zeros((len(observations), 2), np.int64)
        planes = observations.reshape(-1, 9, 2).astype(np.int64)
        own, other = (planes[:, :, plane] @ (1 << np.arange(9)) for plane in range(2))
        second = planes.sum(axis=(1, 2)) % 2 == 1
        states[:, 0], states[:, 1] = np.where(second, other, own), np.where(second, own, other)
        rows = [INDEX[state.tobytes()] for state in states]
        exact = POSITIONS.action_values[rows]
        logits = np.where(exact == np.nanmax(exact, axis=1, keepdims=True), 5.0, 0.0)
        return logits.astype(np.float32), np.nanmax(exact, axis=1).astype(np.float32)


INDEX = {state.tobytes(): row for row, state in enumerate(POSITIONS.states)}


def players(inference: Inference, *readouts: int) -> dict[str, Choose]:
    """The network alone, and searches of some sizes."""
    searches = {
        f"{each} readouts": SearchPlayer(GAME, [inference], SearchOptions(readouts=each, solver=False))
        for each in readouts
    }
    return {"network": raw_player(GAME, inference), **searches}


def test_an_oracle_makes_no_mistake_and_is_calibrated() -> None:
    errors = error_rates.measure_errors(GAME, players(Oracle(GAME), 50), [SOME])
    assert [each.weak.events for each in errors] == [0, 0]
    assert [each.player for each in errors] == ["network", "50 readouts"]
    assert errors[0].weak.trials == len(SOME.states)
    calibration = error_rates.calibrate(GAME, Oracle(GAME), [SOME])
    assert calibration.squared_error == 0
    assert all(predicted == exact for predicted, exact, _ in calibration.bins)
    assert sum(count for *_, count in calibration.bins) == len(SOME.states)


def test_search_makes_fewer_mistakes_than_an_untrained_network() -> None:
    network = ArbitraryNetwork(GAME, 3)
    errors = error_rates.measure_errors(GAME, players(network, 20, 400), [SOME])
    shares = [each.weak.share for each in errors]
    assert shares[0] > shares[1] > shares[2]


def test_several_threads_find_what_one_finds() -> None:
    states = random_states(GAME, 601, 2)
    networks = [ArbitraryNetwork(GAME, 3) for _ in range(3)]
    one, three = (
        search_positions(GAME, networks[:count], SearchOptions(readouts=30, solver=False), states) for count in (1, 3)
    )
    assert one.visits.tolist() == three.visits.tolist()
    assert one.best.tolist() == three.best.tolist()


def test_the_value_of_an_untrained_network_is_not_calibrated() -> None:
    calibration = error_rates.calibrate(GAME, ArbitraryNetwork(GAME, 3), [SOME])
    assert calibration.squared_error > 0.3


def test_intervals_contain_the_true_share_95_percent_of_the_time() -> None:
    rng = np.random.default_rng(0)
    for share in (0.01, 0.1, 0.5, 0.97):
        counts = rng.binomial(300, share, 4000)
        intervals = {count: Rate(int(count), 300).interval for count in np.unique(counts)}
        held = np.mean([low <= share <= high for low, high in (intervals[count] for count in counts)])
        assert 0.93 < held < 0.985


def test_intervals_lie_around_the_share_and_shrink() -> None:
    for count, of in ((0, 10), (3, 10), (10, 10), (30, 100)):
        low, high = Rate(count, of).interval
        assert 0 <= low <= count / of <= high <= 1
    widths = [high - low for low, high in (Rate(of // 10, of).interval for of in (10, 100, 1000))]
    assert all(wide > narrow for wide, narrow in pairwise(widths))
    assert Rate(0, 0).interval == (0.0, 1.0)


def test_a_share_of_all_positions_that_there_are_has_no_interval() -> None:
    assert Rate(3, 10, sampled=False).interval == (0.3, 0.3)
    everything = PositionSet("all", POSITIONS.states, POSITIONS.action_values, sampled=False)
    for positions in (everything, position_lists.first_positions(everything, 50)):
        (errors,) = error_rates.measure_errors(GAME, {"random": random_player(GAME)}, [positions])
        cell = error_rates.errors_table([errors]).splitlines()[1].split()[-1]
        assert cell == f"{100 * errors.weak.share:.2f}"
    for weak in position_lists.load_sets("tictactoe", "validation"):
        assert not weak.sampled
    for name, split in product(("connectfour", "othello"), ("validation", "test")):
        assert all(weak.sampled for weak in position_lists.load_sets(name, split, limit=20))


def test_the_table_has_a_line_for_each_set_and_a_column_for_each_search() -> None:
    errors = error_rates.measure_errors(GAME, players(Uniform(GAME), 10), [SOME._replace(plies=0 * SOME.action_values)])
    head, line = error_rates.errors_table(errors).splitlines()
    assert head.split()[-3:] == ["network", "10", "readouts"]
    assert line.startswith(f"some ({len(SOME.states):,})")
    figures = error_rates.figures(errors)
    assert figures["some/network/weak_error"] == figures["some/network/strong_error"] == errors[0].weak.share


@pytest.mark.parametrize("name", ["connectfour", "othello"])
def test_solved_positions_come_with_the_moves_that_lead_to_them(name: str) -> None:
    game = load_game(name)
    for split in ("validation", "test"):
        for positions in position_lists.load_sets(name, split, limit=20):
            assert positions.lines is not None
            for line, state in zip(positions.lines, positions.states, strict=True):
                states = game.initial(1)
                for action in line:
                    states = game.step(states, np.array([action]))
                assert states[0].tolist() == state.tolist()


def test_another_program_is_measured_as_a_player_is(monkeypatch: pytest.MonkeyPatch) -> None:
    # Rhino plays the last 12 plies perfectly by an endgame search of its own: an oracle for our solver, too.
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], "/usr/games"]))  # where Debian puts games
    if not shutil.which("gtp-rhino"):
        pytest.skip("not installed: apt install grhino")
    othello = load_game("othello")
    sets = position_lists.load_sets("othello", "validation", limit=20)
    rhino = load_engine(othello, "gtp:gtp-rhino --level=5")
    compared = {"random": random_player(othello), "rhino": rhino}
    errors = {each.player: each.weak.events for each in error_rates.measure_errors(othello, compared, sets[:1])}
    assert errors["rhino"] == 0 < errors["random"]
    rhino.close()


def test_an_engine_needs_the_moves_that_lead_to_a_position() -> None:
    class Follower(HistoryPlayer):
        def choose(self, lines: Sequence[Sequence[int]]) -> Array:
            raise AssertionError(lines)

    with pytest.raises(PlayerError, match="needs the moves that lead to a position, which .* 'some' lack"):
        error_rates.measure_errors(GAME, {"follower": Follower()}, [SOME])


# ---------------------------------------------------------------- lists of positions


def listed(tmp_path: Path, text: str) -> position_lists.PositionList:
    file = tmp_path / "positions.txt"
    file.write_text(text)
    return position_lists.read_positions("connectfour", file)


def test_a_list_is_read_up_to_the_first_space_and_without_empty_lines(tmp_path: Path) -> None:
    found = listed(tmp_path, "4453 -1 2 3\n\n12\n7\n")
    assert found.names == ["4453", "12", "7"]
    assert found.states.tolist() == [position_from_moves(name).tolist() for name in found.names]


def test_lines_of_a_list_may_be_indented_and_have_tabs(tmp_path: Path) -> None:
    assert listed(tmp_path, "  4453 -1 2 3\n\t12\ta corner\n \n7\t\n").names == ["4453", "12", "7"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no positions"),
        ("44\n48\n", "line 2: move 2: '8' is not a move of connectfour: expected one such as 1 or 7"),
        ("4444444\n", "line 1: move 7: 4 is not legal here: expected one of 1 2 3 5 6 7"),
        ("1\n1212121\n", "line 2: the game is over"),
        ("12121212\n", "line 1: move 8: the game is over here"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GameError, match=message):
        listed(tmp_path, text)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GameError, match="cannot read positions"):
        position_lists.read_positions("connectfour", tmp_path / "none.txt")


def test_lists_of_any_game_are_read(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("a1,b2 a corner and the center\n")
    assert position_lists.read_positions("tictactoe", tmp_path / "some.txt").states.tolist() == [[1 << 0, 1 << 4]]


def test_the_moves_are_written_as_the_search_found_them(tmp_path: Path) -> None:
    some = listed(tmp_path, "4453\n121212\n")
    network = ArbitraryNetwork(CONNECT_FOUR, 1)
    found = search_positions(CONNECT_FOUR, [network], SearchOptions(readouts=60, solver=False), some.states)
    moves = raw_player(CONNECT_FOUR, network)(some.states)
    position_lists.write_moves(tmp_path / "moves.csv", CONNECT_FOUR, some, moves, found)
    with (tmp_path / "moves.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == list(position_lists.COLUMNS)
    assert [row["position"] for row in rows] == some.names
    assert rows[1]["search_move"] == "1"  # wins
    for row, best, visits in zip(rows, found.best, found.visits, strict=True):
        assert row["search_move"] == str(best + 1)
        assert [int(count) for count in row["visits"].split()] == visits.tolist()
        assert -1 <= float(row["root_value"]) <= 1


# ---------------------------------------------------------------- validation and test sets


def sets_module(folder: Path, monkeypatch: pytest.MonkeyPatch, test_sets: str) -> str:
    """The module of a tic-tac-toe with a few validation positions, and with test sets."""
    (folder / "splitted.py").write_text(
        "import tictactoe\nfrom seraphim.game.solved import PositionSet\n"
        "from tictactoe import GAME, SETTINGS\n\n\n"
        "(ALL,) = tictactoe.position_sets()\n\n\n"
        "def position_sets(split):\n"
        f"    if split == 'test':\n        {test_sets}\n"
        "    return [PositionSet('few', ALL.states[:50], ALL.action_values[:50])]\n"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "splitted", raising=False)
    return "splitted"


def test_reported_figures_are_measured_on_the_test_sets_if_there_are_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = "return [PositionSet('test/others', ALL.states[50:90], ALL.action_values[50:90])]"
    name = sets_module(tmp_path, monkeypatch, others)
    assert position_lists.default_split(name) == "test"
    assert position_lists.default_split("tictactoe") == "validation"  # all its positions are solved
    (positions,) = position_lists.load_sets(name, "test", limit=30)
    assert (positions.name, len(positions.states), positions.plies) == ("test/others", 30, None)
    (positions,) = position_lists.load_sets(name, "validation")
    assert (positions.name, len(positions.states)) == ("few", 50)
    assert position_lists.load_sets("tictactoe", "test") == []


def test_test_sets_are_checked_as_others_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = sets_module(tmp_path, monkeypatch, "return [PositionSet('mine', ALL.states[:4], ALL.action_values[:3])]")
    with pytest.raises(GameError, match="'mine' of splitted has states"):
        position_lists.load_sets(name, "test")


def test_learning_never_reads_the_test_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_settings: Settings
) -> None:
    name = sets_module(tmp_path, monkeypatch, "raise AssertionError('learning read the test sets')")
    settings = replace(small_settings, game=name)
    folder = ModelFolder(tmp_path, "model")
    bootstrap(folder, GAME, settings, seed=1)
    said: list[str] = []
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")  # of the worker
    learn(folder, settings, Run("none", 1, num_workers=1, quiet=True), said.append)
    assert "few: searched move wrong in" in "\n".join(said)
    with pytest.raises(AssertionError, match="learning read"):
        position_lists.load_sets(name, "test")


@pytest.mark.parametrize("name", ["test_position_sets", "strong_position_sets", "strong_test_position_sets", ""])
def test_a_game_that_offers_positions_as_before_is_told_what_to_offer(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argument = "split" if name else ""
    code = f"from tictactoe import GAME\n\n\ndef position_sets({argument}):\n    return []\n"
    (tmp_path / "former.py").write_text(code + (f"\n\ndef {name}():\n    return []\n" if name else ""))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "former", raising=False)
    wanted = (
        rf"^former offers {name or 'position_sets'}\(\): offer position_sets\(split\) alone, which returns the sets of"
    )
    with pytest.raises(GameError, match=wanted):
        position_lists.load_sets("former", "validation")


def test_plies_that_do_not_belong_to_the_legal_moves_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = "return [PositionSet('mine', ALL.states[:4], ALL.action_values[:4], plies=ALL.action_values[4:8])]"
    name = sets_module(tmp_path, monkeypatch, positions)
    with pytest.raises(GameError, match="a value for each legal action and NaN for all others"):
        position_lists.load_sets(name, "test")


def test_only_one_module_asks_for_the_test_sets() -> None:
    root = Path(__file__).parents[2]
    files = [*(root / "seraphim").rglob("*.py"), *(root / "bin").glob("*.py"), *(root / "benchmarks").glob("*.py")]
    asks = re.compile(r"position_sets\((.*, )?(split|\"test\")")
    named = sorted(path.name for path in files if asks.search(path.read_text()))
    # Besides what reads them: what declares the function, offers it, refuses others, and passes the split on.
    assert named == "exhaustive.py loading.py position_lists.py solved.py solved_files.py".split()
    readers = [path.name for path in files if "load_sets" in path.read_text() and path.name != "position_lists.py"]
    assert readers == ["api.py"]


# ---------------------------------------------------------------- regret


@pytest.mark.parametrize("game", [Pig(10), Twenty48(2, 2)], ids=lambda game: game.name)
def test_the_regret_is_what_the_chosen_moves_lose_on_average_in_points(game: Game) -> None:
    (positions,) = solve(game).position_sets()
    last = game.num_actions - 1 - game.legal(positions.states)[:, ::-1].argmax(axis=1)  # the last legal move
    best = np.nanargmax(positions.action_values, axis=1)
    chosen = {"last": lambda _: last, "best": lambda _: best}
    worst, perfect = error_rates.measure_errors(game, chosen, [positions])
    lost = [max(values[~np.isnan(values)]) - values[a] for values, a in zip(positions.action_values, last, strict=True)]
    assert worst.regret == pytest.approx(np.mean(lost) * getattr(game, "points", 1), rel=1e-5)
    assert worst.weak.events == sum(each > 0.001 for each in lost) > 0
    assert (perfect.regret, perfect.weak.events) == (0, 0)
    lines = error_rates.errors_table([worst, perfect]).splitlines()
    assert lines[2].split() == ["regret,", "points", f"{worst.regret:.4g}", "0"]
    assert error_rates.figures([worst])["all positions/last/regret"] == worst.regret


def test_two_players_without_chance_have_no_regret() -> None:
    (errors,) = error_rates.measure_errors(GAME, {"random": random_player(GAME)}, [SOME])
    assert errors.regret is None
    assert "regret" not in error_rates.errors_table([errors])


def test_values_are_calibrated_against_what_is_not_banked_yet() -> None:
    game = Twenty48(2, 2)
    (positions,) = solve(game).position_sets()
    later = positions.states.copy()
    later[:, 2] += 8  # points that are banked already
    exact = positions._replace(states=later, action_values=positions.action_values + np.float32(8 / game.points))
    for each in (positions, exact):
        rest = (np.nanmax(each.action_values, axis=1) - game.banked(each.states)[:, 0]) / game.value_scale
        calibration = error_rates.calibrate(game, Uniform(game), [each])
        assert calibration.squared_error == pytest.approx(np.mean(rest**2), rel=1e-5)
