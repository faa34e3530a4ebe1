"""Strength: champions meet stronger and stronger players, within their share of the time."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import slow_rules

from seraphim.evaluation.match import MatchResult, Tally
from seraphim.evaluation.match_csv import read_matches
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.training import strength
from seraphim.training.loop import Run, learn
from seraphim.training.strength import ANCHORS, MATCHES, SHARE, Strength
from seraphim.training.trainer import bootstrap

WON, LOST = (
    MatchResult((Tally(*sides), Tally(*sides)), pairs, 40)
    for sides, pairs in (((20, 0, 0), (0, 0, 0, 0, 20)), ((0, 0, 20), (20, 0, 0, 0, 0)))
)


def names(folder: ModelFolder) -> list[tuple[str, str]]:
    return [(match.first, match.second) for match in read_matches(folder.path / MATCHES)]


def republish(folder: ModelFolder, step: int) -> Snapshot:
    """Publish and promote the champion once more, as if it had been trained."""
    champion = folder.champion().path

    def copy(path: Path) -> None:
        shutil.copytree(champion, path, dirs_exist_ok=True)

    return folder.publish(step, copy, promote=lambda: True)


def test_a_champion_is_rated_once_against_random_play(folder: ModelFolder, small_settings: Settings) -> None:
    champion = folder.champion()
    matches = Strength(folder, small_settings, "auto")
    rating = matches.measure(champion, elapsed=1e6)
    assert rating is not None
    assert rating.name == f"fresh/{champion.name}"
    assert rating.low < rating.elo < rating.high
    assert 100 < rating.elo < 1000  # its weights are random, but its searches see wins and losses
    assert names(folder)[0] == (rating.name, "random")
    assert matches.measure(champion, elapsed=1e6) is None
    assert Strength(folder, small_settings, "auto").measure(champion, elapsed=1e6) is None  # nor in another run


def test_the_champion_of_a_trusted_folder_elsewhere_is_rated(
    root: Path, tmp_path: Path, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "models/fresh").rename(tmp_path / "given")
    (root / "models/fresh").symlink_to(tmp_path / "given")
    monkeypatch.setattr(strength, "play_match", lambda *_: LOST)
    folder = ModelFolder(root, "fresh", trust=True)
    assert Strength(folder, small_settings, "auto").measure(folder.champion(), elapsed=1e6)
    assert names(folder) == [(f"fresh/{folder.champion().name}", "random")]


class Clock:
    """Advances by 30 s in each match; `result` is that of all matches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, result: MatchResult) -> None:
        self.now, self._result = 0, result
        monkeypatch.setattr(strength.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(strength, "play_match", self._play)

    def _play(self, *_: object) -> MatchResult:
        self.now += 30
        return self._result


def test_matches_take_no_more_than_their_share(
    folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, LOST)
    matches = Strength(folder, small_settings, "auto")
    champion = folder.champion()
    assert matches.measure(champion, elapsed=10) is None
    for minute in range(1, 200):
        matches._rated = ""  # as if the champion were new
        matches.measure(champion, elapsed=60 * minute)
        # The first measurement was expected to take less.
        assert clock.now <= max(30, SHARE * 60 * minute) + 1e-6
    assert clock.now == 330  # of 11,940 s


@pytest.fixture
def slow(tmp_path: Path, small_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> ModelFolder:
    """Return the folder of a model for slow rules, with their clock in place of the machine's."""
    folder = ModelFolder(tmp_path, "slow")
    bootstrap(folder, slow_rules.GAME, replace(small_settings, game="slow_rules"), seed=1)
    monkeypatch.setattr(strength.time, "perf_counter", lambda: slow_rules.GAME.clock)
    slow_rules.GAME.clock = 0.0
    return folder


ONE_SEARCH = 100 * slow_rules.SECONDS_OF_A_MOVE


def test_not_even_the_first_matches_of_a_slow_game_take_more_than_their_share(slow: ModelFolder) -> None:
    matches = Strength(slow, slow.settings(), "auto")
    began = slow_rules.GAME.clock
    ratings, spent = [], []
    for minutes in (2**doublings for doublings in range(11)):
        ratings.append(matches.measure(slow.champion(), elapsed=60 * minutes))
        spent.append(slow_rules.GAME.clock - began)
        assert spent[-1] <= SHARE * 60 * minutes + ONE_SEARCH
    assert [rating is not None for rating in ratings].count(True) == 1
    assert len(set(spent)) > 4  # tries
    assert names(slow)[0] == (f"slow/{slow.champion().name}", "random")
    assert spent[-1] > 60


@pytest.mark.slow
def test_no_later_match_takes_more_than_its_share_either(slow: ModelFolder) -> None:
    matches = Strength(slow, slow.settings(), "auto")
    began = slow_rules.GAME.clock
    elapsed, rated = 60.0, []
    while len(rated) < 3:
        rating = matches.measure(slow.champion(), elapsed)
        assert slow_rules.GAME.clock - began <= SHARE * elapsed + ONE_SEARCH
        if rating:
            rated.append(rating.name)
            republish(slow, len(rated))
        elapsed *= 1.2
    met = set(names(slow))
    assert met >= {("mcts:10", "random"), *zip(rated, ["random"], strict=False)}
    assert met & set(zip(rated[1:], rated, strict=False))


def test_a_stronger_player_is_introduced_when_there_is_time_for_it(
    folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, WON)
    matches = Strength(folder, small_settings, "auto")
    introduced = []
    for minute in range(1, 1000, 2):
        matches._rated = ""
        before = clock.now
        if matches.measure(folder.champion(), elapsed=60 * minute) and clock.now - before > 30:
            introduced.append(minute)
            expected = 2 if len(introduced) == 1 else 300  # seconds; each pair is expected to take ten times the last
            assert before + 30 + expected <= SHARE * 60 * minute + 1e-6
    assert len(introduced) == len(ANCHORS) - 1
    assert clock.now <= SHARE * 60_000


def test_a_champion_that_beats_a_player_meets_the_next_one(
    folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    champion = folder.champion()
    name = f"fresh/{champion.name}"
    monkeypatch.setattr(strength, "play_match", lambda *_: WON)
    for _ in ANCHORS:
        matches = Strength(folder, small_settings, "auto")  # continues from the file
        matches._rated = ""
        assert matches.measure(champion, elapsed=1e9)
    ladder = list(zip(ANCHORS[1:], ANCHORS, strict=False))
    expected = [pair for place, anchor in enumerate(ANCHORS) for pair in ((name, anchor), *ladder[place : place + 1])]
    assert names(folder) == expected


def test_a_champion_meets_the_one_rated_before_it_while_that_is_stored(
    folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strength, "play_match", lambda *_: LOST)
    first = folder.champion()
    matches = Strength(folder, small_settings, "auto")
    matches.measure(first, elapsed=1e9)
    second = republish(folder, 1)
    matches.measure(second, elapsed=1e9)
    assert names(folder) == [
        (f"fresh/{first.name}", "random"),
        (f"fresh/{second.name}", "random"),
        (f"fresh/{second.name}", f"fresh/{first.name}"),
    ]


def test_half_of_the_time_is_saved_for_the_next_player(
    folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, WON)
    matches = Strength(folder, small_settings, "auto")
    matches._introduction = 400  # seconds
    rated = []
    for minute in range(1, 500):
        matches._rated = ""
        before = clock.now
        if matches.measure(folder.champion(), elapsed=60 * minute):
            rated.append(minute)
            if clock.now - before > 30:
                break
            assert clock.now <= max(30, SHARE / 2 * 60 * minute) + 1e-6
    assert len(rated) > 10  # champions are rated while the next player has to wait
    assert before + 30 + 400 <= SHARE * 60 * rated[-1] + 1e-6


@pytest.mark.parametrize("generations", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_champion_rated_last_is_kept_for_the_next(
    folder: ModelFolder, small_settings: Settings, generations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strength, "play_match", lambda *_: WON)
    monkeypatch.setattr(strength, "SHARE", 1e9)
    settings = small_settings.override({"max_snapshots": 1})
    learn(folder, settings, Run("none", generations, num_workers=1, quiet=True), lambda _: None)
    between = [pair for pair in names(folder) if set(pair).isdisjoint(ANCHORS)]
    steps = [[int(name.split("/")[1].split("-")[0]) for name in pair] for pair in between]
    step = small_settings.training.steps
    assert steps == [[number * step, (number - 1) * step] for number in range(2, generations + 1)]
