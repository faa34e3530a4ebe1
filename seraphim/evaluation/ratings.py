"""Ratings: the strength of several players, from the matches between them, on the Elo scale.

The model of Bradley and Terry ("Rank analysis of incomplete block designs", 1952), fitted by choix: a player that is
rated 400 points higher makes ten points for each of the other. A draw is half a win for each. Each pair that met is
given one additional draw, so that a player without a loss is not rated infinitely high; that weighs as much as one game
in a hundred, and a match of 100 to 0 is worth 921 points.

The player `random` is rated 0; without it, the mean of all ratings is 0.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import NotInstalledError, SettingsError, shown
from seraphim.evaluation.intervals import Z_95, dispersion
from seraphim.evaluation.match import MatchResult
from seraphim.game import Array
from seraphim.machine import needed

ANCHOR = "random"
ELO = 400 / math.log(10)
"""Elo points for a factor e of the odds."""

_DRAWS_ADDED = 1.0
_SUFFIXES = (".png", ".svg", ".pdf")


class Match(NamedTuple):
    """Two players, by name, and the result of the first one."""

    first: str
    second: str
    result: MatchResult


class Rating(NamedTuple):
    """The strength of a player."""

    name: str
    elo: float
    low: float  # 95 % interval, of the difference to the anchor
    high: float
    games: int
    score: float  # share of points in all games


def rate(matches: Sequence[Match]) -> list[Rating]:
    """Return the ratings of all players, strongest first.

    Intervals are those of the normal approximation at the likelihood's maximum (its Hessian), where the variance of the
    points is not the model's but that of the openings, as the two games of one depend on each other. Matches count as
    independent, though those of a tournament share their openings.

    Raises:
        SettingsError: the players fall into groups between which no match was played.
        NotInstalledError: choix is not installed.
    """
    names = list(dict.fromkeys(name for match in matches for name in (match.first, match.second)))
    if not names:
        return []
    points = np.zeros((len(names), len(names)))  # of the row's player against the column's
    spread = np.zeros_like(points)  # games, times the dispersion of their points
    for match in matches:
        first, second = names.index(match.first), names.index(match.second)
        points[first, second] += match.result.score * match.result.games
        points[second, first] += (1 - match.result.score) * match.result.games
        spread[[first, second], [second, first]] += match.result.games * dispersion(match.result.pairs)
    played = points + points.T
    _check_connected(names, played)
    strengths = _fit(points + _DRAWS_ADDED / 2 * (played > 0))
    anchor = np.arange(len(names)) == names.index(ANCHOR) if ANCHOR in names else np.ones(len(names))
    to_anchor = np.eye(len(names)) - anchor / anchor.sum()  # each row is a difference to the anchor
    values = ELO * (to_anchor @ strengths)
    covariance = to_anchor @ _covariance(strengths, played, spread) @ to_anchor.T
    margins = ELO * Z_95 * np.sqrt(np.diag(covariance))
    games, made = played.sum(axis=1), points.sum(axis=1)
    ratings = [
        Rating(name, value, value - margin, value + margin, round(count), share)
        for name, value, margin, count, share in zip(names, values, margins, games, made / games, strict=True)
    ]
    return sorted(ratings, key=lambda rating: -rating.elo)


def connected(matches: Sequence[Match]) -> list[Match]:
    """Return the matches of all players whom chains of matches connect to those of the last one.

    Snapshots that were removed before they met any of today's players are not among them.
    """
    known = {*matches[-1][:2]} if matches else set()
    while more := {name for match in matches if known & {*match[:2]} for name in match[:2]} - known:
        known |= more
    return [match for match in matches if match.first in known]


def _check_connected(names: list[str], played: Array) -> None:
    known = {0}
    while found := {int(column) for row in known for column in np.flatnonzero(played[row])} - known:
        known |= found
    if missing := [name for index, name in enumerate(names) if index not in known]:
        raise SettingsError(
            f"{missing[0]} and {names[0]} cannot be rated together: no chain of matches connects them; "
            "let a player of each group play the other"
        )


def _fit(points: Array) -> Array:
    # The logarithms of the players' strengths, [K].
    with needed("ratings need choix, which is not installed: pip install choix"):
        import choix
    return np.asarray(choix.ilsr_pairwise_dense(points, max_iter=10_000, tol=1e-9))


def _covariance(strengths: Array, played: Array, spread: Array) -> Array:
    # The covariance [K, K] of strengths up to a common constant: the inverse of the negative Hessian on both sides of
    # the covariance of the players' points (White, "Maximum likelihood estimation of misspecified models", 1982).
    expected = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    added, variance = _DRAWS_ADDED * (played > 0), expected * (1 - expected)
    inverse = np.linalg.pinv(_laplacian((played + added) * variance), hermitian=True)
    return inverse @ _laplacian((spread + added) * variance) @ inverse


def _laplacian(weights: Array) -> Array:
    return np.diag(weights.sum(axis=1)) - weights


def ratings_table(ratings: Sequence[Rating]) -> str:
    """Return the ratings as a table."""
    width = max(len("player"), *(len(rating.name) for rating in ratings))
    lines = [f"{'':>3}  {'player':{width}} {'Elo':>6}  {'95 %':^15} {'games':>7} {'score':>7}"]
    for place, rating in enumerate(ratings, start=1):
        interval = f"[{rating.low:+.0f}, {rating.high:+.0f}]"
        lines.append(
            f"{place:3}  {rating.name:{width}} {rating.elo:+6.0f}  {interval:^15} {rating.games:7,} {rating.score:7.1%}"
        )
    return "\n".join(lines)


def matches_table(matches: Sequence[Match]) -> str:
    """Return the matches as a table."""
    width = max(len("match"), *(len(f"{match.first} - {match.second}") for match in matches))
    lines = [f"{'match':{width}} {'win':>5} {'draw':>5} {'loss':>5} {'score':>7}  {'95 %':^17} {'distinct games':>15}"]
    for first, second, result in matches:
        low, high = result.interval
        tally = " ".join(f"{count:5}" for count in result.tally)
        distinct = f"{result.distinct_games} of {result.games}"
        name = f"{first} - {second}"
        lines.append(f"{name:{width}} {tally} {result.score:7.1%}  [{low:6.1%}, {high:6.1%}]  {distinct:>15}")
    return "\n".join(lines)


def check_plot(file: Path) -> None:
    """Raise a SettingsError or NotInstalledError if `plot_ratings` could not write such a file."""
    if file.suffix not in _SUFFIXES:
        raise SettingsError(f"a plot must end with {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}, not {file.name!r}")
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError as error:
        raise NotInstalledError("plots need matplotlib, which is not installed: pip install matplotlib") from error
    except Exception as error:
        raise SettingsError(
            f"matplotlib cannot be imported ({shown(error)}): check its configuration, MPLBACKEND and matplotlibrc"
        ) from error


@contextlib.contextmanager
def new_figure(file: Path, width: float, height: float) -> Iterator[Any]:
    """Yield a `Figure` of a size in inches, and save it; drawn by matplotlib's defaults, not by one's configuration.

    Raises:
        SettingsError, NotInstalledError: see `check_plot`.
    """
    check_plot(file)
    import matplotlib
    from matplotlib.figure import Figure

    defaults: dict[Any, Any] = {name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"}
    with matplotlib.rc_context(defaults | {"text.parse_math": False}):  # $ is a dollar
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(file)


def drawable(text: str) -> str:
    """Return a text of others for a figure: matplotlib draws no bytes that are not UTF-8, and no control characters."""
    return "".join(character if character.isprintable() else "?" for character in text)


def plot_ratings(ratings: Sequence[Rating], file: Path) -> None:
    """Draw the ratings with their intervals, strongest on top.

    Raises:
        SettingsError: the file's name has another ending than `.png`, `.svg` or `.pdf`.
        NotInstalledError: matplotlib is not installed.
    """
    with new_figure(file, 8, 1.2 + 0.3 * len(ratings)) as figure:
        axes = figure.add_subplot()
        values = np.array([(rating.elo, rating.elo - rating.low, rating.high - rating.elo) for rating in ratings])
        axes.errorbar(values[:, 0], np.arange(len(ratings)), xerr=values[:, 1:].T, fmt="o", capsize=3)
        axes.set_yticks(np.arange(len(ratings)), [drawable(rating.name) for rating in ratings])
        axes.invert_yaxis()
        axes.set_xlabel(
            f"Elo, 95 % intervals; {ANCHOR if any(each.name == ANCHOR for each in ratings) else 'mean'} = 0"
        )
        axes.grid(visible=True, axis="x", alpha=0.3)
