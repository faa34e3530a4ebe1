"""Strength: champions meet stronger and stronger players, within their share of the time."""

import shutil
from pathlib import Path

import pytest

from seraphim.evaluation.match import MatchResult, Tally
from seraphim.evaluation.match_csv import read_matches
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training import strength
from seraphim.training.strength import ANCHORS, MATCHES, SHARE, Strength

WON, LOST = (
    MatchResult((Tally(*sides), Tally(*sides)), pairs, 40)
    for sides, pairs in (((20, 0, 0), (0, 0, 0, 0, 20)), ((0, 0, 20), (20, 0, 0, 0, 0)))
)


def names(folder: ModelFolder) -> list[tuple[str, str]]:
    return [(match.first, match.second) for match in read_matches(folder.path / MATCHES)]


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


def test_matches_take_no_more_than_their_share(
    folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 30))  # a measurement takes 30 s
    monkeypatch.setattr(strength.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(strength, "play_match", lambda *_: LOST)
    matches = Strength(folder, small_settings, "auto")
    champion, spent = folder.champion(), 0
    assert matches.measure(champion, elapsed=10) is None
    for minute in range(1, 200):
        matches._rated = ""  # as if the champion were new
        if matches.measure(champion, elapsed=60 * minute):
            spent += 30
            # The first measurement was expected to take less.
            assert spent <= max(30, SHARE * 60 * minute) + 1e-6
    assert spent == 330  # of 11,940 s


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

    def copy(path: Path) -> None:
        shutil.copytree(first.path, path, dirs_exist_ok=True)

    second = folder.publish(1, copy)
    matches.measure(second, elapsed=1e9)
    assert names(folder) == [
        (f"fresh/{first.name}", "random"),
        (f"fresh/{second.name}", "random"),
        (f"fresh/{second.name}", f"fresh/{first.name}"),
    ]
