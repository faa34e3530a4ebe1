"""Matches in a CSV file, each with the conditions under which it was played."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seraphim.errors import FileError
from seraphim.evaluation.match import MatchResult, Tally
from seraphim.evaluation.ratings import Match
from seraphim.storage.atomic import replace_file

RESULTS = "arena.csv"
"""The standing tournament's file in a model's folder."""

_MOST_GAMES = 1_000_000  # of a match
_SIDES = ("as_player_0", "as_player_1")
_COLUMNS = (
    *("first", "second", "conditions", "score", "low", "high"),
    *(f"{outcome}_{side}" for side in _SIDES for outcome in Tally._fields),
    *(f"openings_with_{points}" for points in ("0", "half", "1", "1_and_half", "2")),
    *("distinct_games", "cut_off"),
)


@dataclass(frozen=True)
class Conditions:
    """How the matches of a tournament are played; only matches with the same conditions are rated together."""

    games: int = 100  # games of a match, two for each opening; fewer if the game does not have enough openings
    opening_plies: int | None = None  # most random moves at the beginning of a game; None takes `default_plies`
    readouts: int | None = None  # readouts of a model's search; None takes each model's own
    seed: int = 0  # seed of the openings, and of players that draw among equal actions
    play: str = ""  # a hash of what else decides how the players play, see `Roster.fingerprint`

    def __str__(self) -> str:
        plies = "default" if self.opening_plies is None else self.opening_plies
        readouts = "own" if self.readouts is None else self.readouts
        play = f" play={self.play}" if self.play else ""
        return f"games={self.games} opening_plies={plies} readouts={readouts} seed={self.seed}{play}"


def write_matches(file: Path, matches: Sequence[Match], conditions: Conditions, keep: bool = False) -> None:
    """Write matches as CSV, replacing those in the file, or with `keep` appending to them; the write is atomic."""
    rows = read_rows(file) if keep else []
    rows += [_to_row(match, conditions) for match in matches]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    replace_file(file, stream.getvalue().encode())


def read_matches(file: Path, conditions: Conditions | None = None) -> list[Match]:
    """Return the matches in a CSV file that were played under these conditions, by default those of the newest match.

    Raises:
        FileError: the file is damaged.
    """
    try:
        rows = read_rows(file)
        wanted = rows[-1]["conditions"] if rows and conditions is None else str(conditions)
        return [_to_match(row) for row in rows if row["conditions"] == wanted]
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{file} is not a valid file of matches ({error}): delete it, and they are played again"
        ) from error


def read_rows(file: Path) -> list[dict[str, str]]:
    """Return the lines of a CSV file, each by column; none if there is no such file.

    Raises:
        ValueError: it is none, or a line has more cells than there are columns.
    """
    if not file.is_file():
        return []
    try:
        with file.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    if any(None in row for row in rows):
        raise ValueError("a line has too many cells")
    return rows


def _to_row(match: Match, conditions: Conditions) -> dict[str, str]:
    result = match.result
    shares = (f"{share:.4f}" for share in (result.score, *result.interval))
    counts = (*result.as_player[0], *result.as_player[1], *result.pairs, result.distinct_games, result.cut_off)
    cells = (match.first, match.second, str(conditions), *shares, *map(str, counts))
    return dict(zip(_COLUMNS, cells, strict=True))


def _to_match(row: dict[str, str]) -> Match:
    counts = [int(row[column]) for column in _COLUMNS[6:]]
    sides = Tally(*counts[:3]), Tally(*counts[3:6])
    if min(counts) < 0 or not 0 < sum(counts[:6]) == 2 * sum(counts[6:11]) <= _MOST_GAMES:
        raise ValueError("its counts do not add up")
    return Match(row["first"], row["second"], MatchResult(sides, tuple(counts[6:11]), counts[11], counts[12]))
