"""A worker of a cluster, called directly: it plays what it is told, and says when it has nothing to play."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from seraphim.errors import GameError, ModelError
from seraphim.selfplay.cluster.actor import Actor, Assignment, News, code_of
from seraphim.selfplay.cluster.bundle import pack
from seraphim.selfplay.pool import MOST_GAMES, FinishedGame
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import Settings

LONG = 60.0  # seconds: the answer comes earlier


def task(concurrent_games: int = 4) -> Assignment:
    return Assignment("auto", "a", concurrent_games)


def wait_until(actor: Actor, numbers: Sequence[int] = (), is_last: bool = False) -> tuple[News, list[FinishedGame]]:
    """What an actor tells when it is hungry or has ended, and the games until then."""
    news = actor.exchange(list(numbers), is_last, LONG)
    return news, news.report.games


def test_an_actor_plays_the_games_that_a_local_worker_plays(small_settings: Settings) -> None:
    actor = Actor(small_settings, uses_gpu=False)
    actor.begin(task(), None, [0, 1, 2, 3])
    news, games = wait_until(actor)
    assert news.hungry
    assert not news.ended
    news, more = wait_until(actor, [7, 4, 5, 6], is_last=True)
    assert news.ended
    assert news.error is None
    with WorkerPool(small_settings, num_workers=1) as pool:
        expected = sorted(pool.play(None, "a", end=8))
        assert news.report.work.readouts == pool.work().readouts
    assert sorted(games + more) == expected


def test_an_actor_plays_again_with_another_model(small_settings: Settings, folder) -> None:
    actor = Actor(small_settings, uses_gpu=False)
    played = []
    for parcel in (None, pack(folder.champion().path)):
        actor.begin(Assignment("openvino", "a", 4), parcel, [0, 1])
        news, games = wait_until(actor, is_last=True)
        assert news.ended
        played.append(sorted(games))
        assert news.report.work.runtime.startswith("OpenVINO" if parcel else "no network")
    assert played[0] != played[1]


def test_a_number_that_comes_after_the_end_is_not_played(small_settings: Settings) -> None:
    actor = Actor(small_settings, uses_gpu=False)
    actor.begin(task(), None, [0])
    wait_until(actor, is_last=True)
    news, games = wait_until(actor, [5])
    assert news.ended
    assert not games


def test_an_actor_pauses_while_nobody_takes_its_games(
    small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seraphim.selfplay.cluster.actor._MOST_GAMES", 10)
    actor = Actor(small_settings, uses_gpu=False)
    actor.begin(task(), None, list(range(1000)))
    numbers, ended = [], False
    while not ended:
        news = actor.exchange([], True, LONG)
        # One message, and what came in one report.
        assert len(news.report.games) < 10 + MOST_GAMES
        numbers += [game.number for game in news.report.games]
        ended = news.ended and not news.report.games
    assert sorted(numbers) == list(range(1000))


def test_what_an_actor_runs_into_is_told(small_settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    actor = Actor(small_settings, uses_gpu=False)
    actor.begin(Assignment("openvino", "a", 4), pack(tmp_path / "empty"), [0])
    assert isinstance(actor.exchange([], True, LONG).error, ModelError)


def test_other_code_is_refused_with_a_sentence(small_settings: Settings) -> None:
    actor = Actor(small_settings, uses_gpu=False)
    code = code_of("tictactoe")
    assert actor.greet(code) is None
    refusal = actor.greet({**code, "the code of seraphim": "other"})
    assert str(refusal).startswith("the code of seraphim on ")
    assert str(refusal).endswith(" is not what the learner has: install the same there")
    lacking = Actor(replace(small_settings, game="no_such_game"), uses_gpu=False)
    assert isinstance(lacking.greet(code), GameError)


def test_the_fingerprint_changes_with_any_file_of_the_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "mine_of_two_files"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "heap.py").write_text("HEAP = 5\n")
    (package / "game.py").write_text("from games import NIM as GAME\n")
    before = code_of("mine_of_two_files.game")
    assert code_of("mine_of_two_files.game") == before
    (package / "heap.py").write_text("HEAP = 6\n")
    assert code_of("mine_of_two_files.game") != before


def test_a_game_of_a_family_has_a_fingerprint() -> None:
    pytest.importorskip("pyspiel")
    three, four = (code_of(f"openspiel:hex(board_size={size})") for size in (3, 4))
    assert list(three.values())[1] != list(four.values())[1]
