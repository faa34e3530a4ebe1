"""The atlas of connect four: its boards, its rows, and what ends it."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import atlas
from benchmarks.atlas import TROMP, Board, boards, main, minutes_of_learning
from connectfour.game import ConnectFour
from seraphim.errors import GameError
from seraphim.game.exhaustive import solve


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["atlas.py", f"--out={folder}", *arguments])
    main()


def test_all_boards_are_there_that_the_table_and_the_rules_have() -> None:
    sizes = boards()
    assert sizes[0] == (4, 4)
    for rows, results in TROMP.items():
        for place in range(len(results)):
            try:
                ConnectFour(rows, 4 + place)
            except GameError:
                assert (rows, 4 + place) not in sizes
            else:
                assert (rows, 4 + place) in sizes
    assert minutes_of_learning(6, 7) == 45


@pytest.mark.slow
def test_the_smallest_board_is_worth_what_exhaustive_search_finds() -> None:
    found = solve(ConnectFour(4, 4))
    assert found.results[0] == 0
    assert TROMP[4][0] == "="


@pytest.mark.slow
def test_what_was_found_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, tmp_path, "--boards", "4x4", "--minutes=0")
    printed = capsys.readouterr()
    _, _, row = printed.out.splitlines()
    assert row.startswith("| 4x4 | = | = | – | ")
    assert [line.partition(": proven")[0] for line in printed.err.splitlines()] == [
        "4x4: the second player at least draws",
        "4x4: the first player at least draws",
    ]
    run(monkeypatch, tmp_path, "--boards", "4x4")
    assert capsys.readouterr().out.splitlines()[2] == row


@pytest.mark.slow
def test_a_proof_that_is_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(tmp_path, 4, 4)
    board.prove(megabytes=64, hours=0)
    assert board.result is None
    assert (tmp_path / "4x4.proof.part").exists()
    board.prove(megabytes=64, hours=1)
    assert board.result == "="
    assert [len(each) for each in json.loads((tmp_path / "4x4.json").read_text())["decisions"]] == [4, 4]


@pytest.mark.slow
def test_a_result_that_is_not_tromps_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atlas, "TROMP", {**TROMP, 4: "+" + TROMP[4][1:]})
    with pytest.raises(SystemExit, match=r"(?s)4x4\.proof is wrong: .*Tromp found \+"):
        run(monkeypatch, tmp_path, "--boards", "4x4", "--minutes=0")


@pytest.mark.slow
def test_a_network_learns_first_and_for_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, tmp_path, "--boards", "4x4", "--minutes=0.05")
    learned = float(capsys.readouterr().out.splitlines()[2].split(" | ")[3])
    assert 0.05 <= learned < 2
    (tmp_path / "4x4.proof").unlink()
    run(monkeypatch, tmp_path, "--boards", "4x4", "--minutes=0.05")  # it does not learn again
    assert float(capsys.readouterr().out.splitlines()[2].split(" | ")[3]) == learned


def test_other_boards_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path, "--boards", "4x4", "9x9")
    assert "no board of the atlas: 9x9; expected some of 4x4, 4x5, 5x4, " in capsys.readouterr().err
