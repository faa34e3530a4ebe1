"""A worker of a cluster, called directly: it plays its assignment, and reports when it has nothing to play."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seraphim.errors import GameError, ModelError
from seraphim.selfplay.cluster import actor as actor_module
from seraphim.selfplay.cluster.actor import Actor, Assignment, Status, fingerprint_code
from seraphim.selfplay.cluster.bundle import pack
from seraphim.selfplay.pool import MAX_GAMES, FinishedGame
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import Settings
from seraphim.storage.atomic import seal
from seraphim.storage.models import ModelFolder

LONG = 60.0  # seconds: the answer comes earlier


def task(concurrent_games: int = 4) -> Assignment:
    return Assignment("auto", "a", concurrent_games)


def wait_until(actor: Actor, numbers: Sequence[int] = (), is_last: bool = False) -> tuple[Status, list[FinishedGame]]:
    """Return the status of an actor that is starved or has ended, and the games until then."""
    status = actor.exchange(list(numbers), is_last, LONG)
    return status, status.report.games


def test_an_actor_plays_the_games_that_a_local_worker_plays(small_settings: Settings) -> None:
    actor = Actor(small_settings, uses_gpu=False)
    actor.begin(task(), None, [0, 1, 2, 3])
    status, games = wait_until(actor)
    assert status.starved
    assert not status.ended
    status, more = wait_until(actor, [7, 4, 5, 6], is_last=True)
    assert status.ended
    assert status.error is None
    with WorkerPool(small_settings, num_workers=1) as pool:
        expected = sorted(pool.play(None, "a", end=8))
        assert status.report.work.readouts == pool.work().readouts
    assert sorted(games + more) == expected


def test_an_actor_plays_again_with_another_model(small_settings: Settings, folder) -> None:
    actor = Actor(small_settings, uses_gpu=False)
    played = []
    for bundle in (None, pack(folder.champion().path)):
        actor.begin(Assignment("openvino", "a", 4), bundle, [0, 1])
        status, games = wait_until(actor, is_last=True)
        assert status.ended
        played.append(sorted(games))
        assert status.report.work.runtime.startswith("OpenVINO" if bundle else "no network")
    assert played[0] != played[1]


def test_the_readouts_of_an_actor_grow_with_the_steps_of_the_snapshot(
    small_settings: Settings, folder: ModelFolder, tmp_path: Path
) -> None:
    trained = tmp_path / "trained"
    shutil.copytree(folder.champion().path, trained)
    seal(trained, {"step": 10})
    actor = Actor(small_settings.override({"readouts": 6, "readouts_growth_steps": 4}), uses_gpu=False)
    actor.begin(task(), pack(trained), [0, 1])
    status, games = wait_until(actor, is_last=True)
    assert status.report.work.readouts == 21 * sum(len(game.examples) for game in games)  # 6·(1 + 10 / 4)


def test_a_number_that_comes_after_the_end_is_not_played(small_settings: Settings) -> None:
    actor = Actor(small_settings, uses_gpu=False)
    actor.begin(task(), None, [0])
    wait_until(actor, is_last=True)
    status, games = wait_until(actor, [5])
    assert status.ended
    assert not games


def test_an_actor_pauses_while_its_games_are_not_taken(
    small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seraphim.selfplay.cluster.actor._MAX_GAMES", 10)
    actor = Actor(small_settings, uses_gpu=False)
    actor.begin(task(), None, list(range(1000)))
    numbers, ended = [], False
    while not ended:
        status = actor.exchange([], True, LONG)
        # One message, and what came in one report.
        assert len(status.report.games) < 10 + MAX_GAMES
        numbers += [game.number for game in status.report.games]
        ended = status.ended and not status.report.games
    assert sorted(numbers) == list(range(1000))


def test_an_error_of_an_actor_is_reported(small_settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    actor = Actor(small_settings, uses_gpu=False)
    actor.begin(Assignment("openvino", "a", 4), pack(tmp_path / "empty"), [0])
    assert isinstance(actor.exchange([], True, LONG).error, ModelError)


def test_different_code_is_refused_with_a_reason(small_settings: Settings) -> None:
    actor = Actor(small_settings, uses_gpu=False)
    code = fingerprint_code("tictactoe")
    assert actor.check_version(code) is None
    refusal = actor.check_version({**code, "the code of seraphim": "other"})
    assert str(refusal).startswith("the code of seraphim on ")
    assert str(refusal).endswith(" differs from the learner's: install the same version there")
    lacking = Actor(replace(small_settings, game="no_such_game"), uses_gpu=False)
    assert isinstance(lacking.check_version(code), GameError)


def test_the_fingerprint_changes_with_any_file_of_the_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "mine_of_two_files"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "heap.py").write_text("HEAP = 5\n")
    (package / "game.py").write_text("from games import NIM as GAME\n")
    before = fingerprint_code("mine_of_two_files.game")
    assert fingerprint_code("mine_of_two_files.game") == before
    (package / "heap.py").write_text("HEAP = 6\n")
    assert fingerprint_code("mine_of_two_files.game") != before


def test_a_game_of_a_family_has_a_fingerprint() -> None:
    pytest.importorskip("pyspiel")
    three, four = (fingerprint_code(f"openspiel:hex(board_size={size})") for size in (3, 4))
    assert list(three.values())[1] != list(four.values())[1]


def test_the_fingerprint_of_a_family_changes_with_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint_code("hex:5")
    assert fingerprint_code("hex:5") == before
    hashed = []
    monkeypatch.setattr(actor_module, "_hash_sources", lambda module: hashed.append(module.__name__) or "other")
    assert fingerprint_code("hex:5")["the game hex:5"] != before["the game hex:5"]
    assert hashed == ["seraphim", "hex"] or hashed == ["hex", "seraphim"]
