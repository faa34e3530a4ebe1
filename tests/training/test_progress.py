"""The lap: a curve counts the time and the games of programs that were killed, once each."""

import time
from pathlib import Path

import pytest

from seraphim.training.curve import LearningCurve, read_curve
from seraphim.training.progress import Lap


def lap_of(folder: Path) -> Lap:
    return Lap(LearningCurve(folder / "curve.csv"), folder / ".lap.json")


def test_a_line_tells_time_games_and_evaluations_since_the_last_one(tmp_path: Path) -> None:
    with lap_of(tmp_path) as lap:
        for step in (10, 20):
            lap.count_evaluations(50)
            lap.count_evaluations(30)
            lap.count_games(f"0-{step}", 5)
            time.sleep(0.2)
            lap.finish(step, {"error": 0.5})
    first, second = read_curve(tmp_path / "curve.csv")
    assert (first["games"], first["evaluations"], first["error"]) == (5, 80, 0.5)
    assert (second["games"], second["evaluations"]) == (10, 160)
    assert 0.2 <= first["seconds"] < 1
    assert 0.2 <= second["seconds"] - first["seconds"] < 1


def test_what_a_killed_program_did_counts_for_the_next_line_and_once(tmp_path: Path) -> None:
    killed = lap_of(tmp_path)  # never ended
    killed.count_evaluations(50)
    killed.count_games("0-0", 5)
    seconds = killed.done.seconds
    for _ in range(3):
        again = lap_of(tmp_path)
        again.count_games("0-0", 5)  # the same stream, all of whose games were there
    again.finish(10, {})
    (line,) = read_curve(tmp_path / "curve.csv")
    assert (line["games"], line["evaluations"]) == (5, 50)
    assert seconds <= line["seconds"]


def test_time_counts_only_while_programs_run(tmp_path: Path) -> None:
    with lap_of(tmp_path):
        time.sleep(0.1)
    time.sleep(0.5)
    lap = lap_of(tmp_path)
    lap.finish(10, {})
    assert 0.1 <= read_curve(tmp_path / "curve.csv")[0]["seconds"] < 0.4


def test_the_clock_is_kept_while_nothing_else_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seraphim.training.progress._SECONDS_BETWEEN_LOOKS", 0.01)
    with lap_of(tmp_path):
        deadline = time.perf_counter() + 20
        while lap_of(tmp_path).done.seconds < 0.1 and time.perf_counter() < deadline:
            time.sleep(0.01)
        assert lap_of(tmp_path).done.seconds >= 0.1


def test_a_program_killed_after_its_line_and_before_its_lap_was_over_counts_nothing_twice(tmp_path: Path) -> None:
    lap = lap_of(tmp_path)
    lap.count_games("0-0", 5)
    kept = (tmp_path / ".lap.json").read_bytes()
    lap.finish(10, {})
    (tmp_path / ".lap.json").write_bytes(kept)
    again = lap_of(tmp_path)
    assert (again.done.games, again.done.stream) == (0, "")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"lines": 0, "else": 1}'])
def test_a_damaged_file_is_a_new_lap(content: str, tmp_path: Path) -> None:
    (tmp_path / ".lap.json").write_text(content)
    assert lap_of(tmp_path).done.games == 0
