"""The learning curve: what it adds up, and that it goes on where it stopped."""

from pathlib import Path

from seraphim.training.curve import LearningCurve, read_curve


def test_a_curve_adds_up_what_was_done_and_keeps_the_figures(tmp_path: Path) -> None:
    file = tmp_path / "curve.csv"
    curve = LearningCurve(file)
    curve.add(100, 5.5, {"games": 10}, {"error": 0.5})
    curve.add(200, 4.5, {"games": 20}, {"error": 0.25})
    assert read_curve(file) == [
        {"step": 100, "seconds": 5.5, "games": 10, "error": 0.5},
        {"step": 200, "seconds": 10.0, "games": 30, "error": 0.25},
    ]


def test_another_call_goes_on_with_other_figures_too(tmp_path: Path) -> None:
    file = tmp_path / "curve.csv"
    LearningCurve(file).add(100, 5, {"games": 10}, {"error": 0.5})
    LearningCurve(file).add(200, 5, {"games": 10}, {"other": 0.125})
    assert read_curve(file) == [
        {"step": 100, "seconds": 5, "games": 10, "error": 0.5},
        {"step": 200, "seconds": 10, "games": 20, "other": 0.125},
    ]


def test_there_is_no_curve_before_the_first_generation(tmp_path: Path) -> None:
    assert read_curve(tmp_path / "curve.csv") == []
