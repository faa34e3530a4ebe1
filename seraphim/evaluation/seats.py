"""Games for another number of players than two: one alone, and two entrants who share the seats of more in every way.

As in other matches, the opening is the unit of all statistics: its games depend on each other. Knows players; knows
nothing of files or models.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.intervals import Mean
from seraphim.evaluation.match import OnPly, Openings, play_games
from seraphim.game import Array, Game
from seraphim.game.features import features_of, is_for_one, num_columns
from seraphim.players.choose import Choose

_ALL_SEATINGS = 4  # players, up to which each seating is played; beyond that, rotations of two


@dataclass(frozen=True)
class SoloGames:
    """The games of a player; prints as one line."""

    points: Array  # float64 [G]: of each opening
    cut_off: int = 0  # games that were stopped after the game's `max_plies`, which count by what is banked

    @property
    def mean(self) -> Mean:
        """Return the mean of all games."""
        return Mean.of(self.points)

    def __sub__(self, other: "SoloGames") -> Mean:
        """Return by how many points this player does better than another from the same openings, in the mean.

        Raises:
            SettingsError: they are not as many games.
        """
        if len(self.points) != len(other.points):
            raise SettingsError(
                f"expected as many games of both players, not {len(self.points)} and {len(other.points)}"
            )
        return Mean.of(self.points - other.points)

    def __str__(self) -> str:
        cut_off = f", {self.cut_off} cut off" if self.cut_off else ""
        return f"{self.mean} points a game, {len(self.points)} games{cut_off}"


def differences(played: Mapping[str, SoloGames]) -> list[str]:
    """Return a line for each pair of players by name: by how many points the first does better, in the mean."""
    return [f"{one} - {other}: {played[one] - played[other]} points a game" for one, other in combinations(played, 2)]


def play_solo(game: Game, player: Choose, openings: Openings, watch: OnPly | None = None) -> SoloGames:
    """Play a game from each opening.

    Raises:
        GameError: it is a game for more than one player; and as `play_games`.
        ModelError: as `play_games`.
    """
    if not is_for_one(game):
        plays = "match" if num_columns(game) == 1 else "play_table"
        raise GameError(f"{game.name} is for several players: seraphim.{plays} plays it")
    seats = np.zeros((len(openings.states), 1), np.int64)
    played = play_games(game, [player], seats, openings, watch)
    return SoloGames(played.results * (features_of(game).points or 1.0), played.cut_off)


@dataclass(frozen=True)
class TableResult:
    """The result of a match for its first entrant; prints as one line. Results are in points."""

    lead: Mean
    """By how much a seat of the first entrant does better than one of the second, in the mean of an opening's games."""
    first: Mean
    """The mean result of a seat of the first entrant."""
    second: Mean
    seatings: int
    distinct_games: int
    cut_off: int = 0  # games that were stopped after the game's `max_plies`, which count by what is banked

    @property
    def games(self) -> int:
        """Return how many games were played."""
        return self.lead.count * self.seatings

    def __str__(self) -> str:
        cut_off = f", {self.cut_off} cut off" if self.cut_off else ""
        return (
            f"{self.lead} points a seat ahead, {self.first.value:+.3g} against {self.second.value:+.3g}, "
            f"{self.distinct_games} of {self.games} games distinct: {self.seatings} seatings of each opening{cut_off}"
        )


def seatings_of(game: Game) -> Array:
    """Return how two entrants may share the seats, the index of one for each seat, int [S, P].

    Up to four players, all ways in which both have a seat; beyond that every rotation of every other seat, and the same
    with the entrants exchanged.

    Raises:
        GameError: it is not a game for more than two players.
    """
    seats = num_columns(game)
    if seats == 1:
        plays = "play_alone" if is_for_one(game) else "match"
        raise GameError(f"{game.name} is not for more than two players: seraphim.{plays} plays it")
    if seats <= _ALL_SEATINGS:
        ways = [way for way in product((0, 1), repeat=seats) if 0 < sum(way) < seats]
    else:
        rotations = {tuple(np.roll(np.arange(seats) % 2, turn).tolist()) for turn in range(seats)}
        ways = sorted(rotations | {tuple(1 - seat for seat in way) for way in rotations})
    return np.array(ways)


def play_table(
    game: Game, first: Choose, second: Choose, openings: Openings, watch: OnPly | None = None
) -> TableResult:
    """Play each opening by every seating.

    Raises:
        GameError: as `seatings_of` and `play_games`.
        ModelError: as `play_games`.
    """
    ways, count = seatings_of(game), len(openings.states)
    seats = np.repeat(ways, count, axis=0)
    played = play_games(game, (first, second), seats, openings.repeated(len(ways)), watch)
    results = played.results * (features_of(game).points or 1.0)
    means = [
        np.where(seats == entrant, results, 0.0).sum(axis=1) / (seats == entrant).sum(axis=1) for entrant in (0, 1)
    ]
    of_first, of_second = (mean.reshape(len(ways), count).mean(axis=0) for mean in means)
    return TableResult(
        lead=Mean.of(of_first - of_second),
        first=Mean.of(of_first),
        second=Mean.of(of_second),
        seatings=len(ways),
        distinct_games=len({(tuple(seat), moves) for seat, moves in zip(seats.tolist(), played.moves, strict=True)}),
        cut_off=played.cut_off,
    )
