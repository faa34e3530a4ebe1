"""The learning curve: totals, and figures that change between lines."""

import os
import sys
from pathlib import Path

import programs
import pytest

from seraphim.errors import FileError
from seraphim.training.curve import add_to_curve, plot_curve, read_curve


def test_a_curve_adds_up_totals_and_keeps_figures(tmp_path: Path) -> None:
    file = tmp_path / "curve.csv"
    add_to_curve(file, 100, {"seconds": 5.5, "games": 10}, {"error": 0.5})
    add_to_curve(file, 200, {"seconds": 4.5, "games": 20}, {"error": 0.25})
    assert file.read_text().splitlines() == ["step,seconds,games,error", "100,5.5,10,0.5", "200,10,30,0.25"]
    assert read_curve(file) == [
        {"step": 100, "seconds": 5.5, "games": 10, "error": 0.5},
        {"step": 200, "seconds": 10.0, "games": 30, "error": 0.25},
    ]


def test_a_damaged_curve_is_an_error(tmp_path: Path) -> None:
    for content in (
        *("step,games\n1,0x\n", "step\n1,2\n", "games\n1\n", "step,games\n,1\n", "step\nnan\n", "step\ninf\n"),
        *(f'step\n"{150_000 * "1"}"\n', f'step\n"{150_000 * "1"}', "step,a\n1,\x00\n", "\udcff\n1\n"),
    ):
        (tmp_path / "curve.csv").write_text(content, errors="surrogateescape")
        with pytest.raises(FileError, match=r"curve\.csv is not a valid learning curve"):
            read_curve(tmp_path / "curve.csv")


@pytest.mark.parametrize("missing", ["seconds", "set/positions", "set/raw_mistakes", "strength/low"])
def test_a_curve_is_drawn_without_the_lines_that_lack_a_figure(tmp_path: Path, missing: str) -> None:
    whole = dict.fromkeys(["step", "seconds", "set/positions", "set/raw_mistakes", "set/searched_mistakes"], 1.0)
    whole |= {"strength/elo": 5.0, "strength/low": 1.0, "strength/high": 9.0}
    lacking = {name: value for name, value in whole.items() if name != missing}
    plot_curve([whole, lacking, whole | {"set/positions": 0.0}], tmp_path / "curve.svg", "model")
    assert (tmp_path / "curve.svg").exists()


def test_lines_may_have_different_figures(tmp_path: Path) -> None:
    file = tmp_path / "curve.csv"
    add_to_curve(file, 100, {"seconds": 5, "games": 10}, {"error": 0.5})
    add_to_curve(file, 200, {"seconds": 5, "games": 10}, {"other": 0.125})
    assert read_curve(file) == [
        {"step": 100, "seconds": 5, "games": 10, "error": 0.5},
        {"step": 200, "seconds": 10, "games": 20, "other": 0.125},
    ]


def test_there_is_no_curve_before_the_first_generation(tmp_path: Path) -> None:
    assert read_curve(tmp_path / "curve.csv") == []


def test_the_curve_of_a_model_elsewhere_is_drawn_with_trust(root: Path, tmp_path: Path) -> None:
    add_to_curve(root / "models/fresh/curve.csv", 100, {"seconds": 5.0}, {"all/searched": 0.5})
    (root / "models/fresh").rename(tmp_path / "given")
    (root / "models/fresh").symlink_to(tmp_path / "given")
    picture = tmp_path / "curve.svg"
    command = [sys.executable, "bin/curve.py", "fresh", f"--out={picture}"]
    environment = os.environ | {"SERAPHIM_DATA": str(root)}
    refused = programs.run(command, env=environment)
    assert (refused.returncode, picture.exists()) == (1, False)
    assert "if you trust the source, add --trust" in refused.stderr
    drawn = programs.run([*command, "--trust"], env=environment)
    assert (drawn.returncode, drawn.stdout) == (0, f"{picture}\n"), drawn.stderr
    assert picture.exists()


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    name, file = os.fsdecode(b"$5\\frac{$ \xff"), tmp_path / "curve.svg"
    figures = {"positions": 10.0, "searched_mistakes": 1.0, "raw_mistakes": 2.0}
    plot_curve([{"step": 1, "seconds": 60} | {f"{name}/{key}": value for key, value in figures.items()}], file, name)
    assert file.read_text().count("<!-- $5\\frac{$ ? -->") == 2
