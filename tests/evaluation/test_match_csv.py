"""Files of matches are read as they were written, and have readable columns."""

from pathlib import Path

import pytest

from seraphim.errors import FileError
from seraphim.evaluation.match import MatchResult, Tally
from seraphim.evaluation.match_csv import Conditions, read_matches, write_matches
from seraphim.evaluation.ratings import Match

FEW = Conditions(games=6, readouts=5)
MATCHES = [
    Match("a", "b, or c", MatchResult((Tally(1, 2, 3), Tally(4, 1, 1)), (1, 1, 2, 1, 1), 11, 1)),
    Match("a", "d", MatchResult((Tally(0, 0, 6), Tally(0, 0, 6)), (6, 0, 0, 0, 0), 12)),
]


def test_matches_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "matches.csv"
    write_matches(file, MATCHES[:1], FEW)
    write_matches(file, MATCHES[1:], FEW, keep=True)
    assert read_matches(file, FEW) == MATCHES
    write_matches(file, MATCHES[1:], FEW)
    assert read_matches(file, FEW) == MATCHES[1:]
    assert [path.name for path in tmp_path.iterdir()] == ["matches.csv"]


def test_a_file_of_matches_has_readable_columns(tmp_path: Path) -> None:
    file = tmp_path / "matches.csv"
    write_matches(file, MATCHES, FEW)
    header, row, _ = file.read_text().splitlines()
    assert header.startswith("first,second,conditions,score,low,high,wins_as_player_0,draws_as_player_0,")
    assert row.startswith('a,"b, or c",games=6 opening_plies=default readouts=5 seed=0,0.5417,')


@pytest.mark.parametrize("content", ["nonsense\n1\n", "first,second,conditions\na,b,{conditions}\n", "first\na,b\n"])
def test_a_file_of_another_format_is_an_error(tmp_path: Path, content: str) -> None:
    file = tmp_path / "matches.csv"
    file.write_text(content.format(conditions=FEW))
    with pytest.raises(FileError, match=r"matches\.csv is not a valid file of matches .*: delete it"):
        read_matches(file, FEW)


@pytest.mark.parametrize(
    "content", [150_000 * "1", f'first\n"{150_000 * "1"}', "\udcff\n1\n", "first\n\x00\n", "first\na,b\n"]
)
def test_a_file_that_is_no_csv_is_an_error(tmp_path: Path, content: str) -> None:
    file = tmp_path / "matches.csv"
    file.write_text(content, errors="surrogateescape")
    if content[0] == "1":
        file.write_text(f"first\n{content}\n")
    with pytest.raises(FileError, match=r"matches\.csv is not a valid file of matches .*: delete it"):
        read_matches(file, FEW)


@pytest.mark.parametrize("count", ["-1", "7", "0", "x", "", "1.5", 400 * "9"])
def test_counts_that_do_not_add_up_are_an_error(tmp_path: Path, count: str) -> None:
    file = tmp_path / "matches.csv"
    write_matches(file, MATCHES[:1], FEW)
    header, row = file.read_text().splitlines()
    cells = dict(zip(header.split(","), row.replace("b, or c", "b or c").split(","), strict=True))
    cells["wins_as_player_1"] = count
    file.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n")
    with pytest.raises(FileError, match=r"matches\.csv is not a valid file of matches"):
        read_matches(file, FEW)


def test_a_missing_file_has_no_matches(tmp_path: Path) -> None:
    assert read_matches(tmp_path / "none.csv", FEW) == []
