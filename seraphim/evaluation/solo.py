"""Games for one player: the mean result of each player, by the same chance, and the difference of two.

Knows players; knows nothing of files or models.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.intervals import Mean
from seraphim.evaluation.match import OnPly, Openings, play_games
from seraphim.game import Array, Game
from seraphim.game.features import features_of, is_for_one
from seraphim.players.choose import Choose


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
        raise GameError(f"{game.name} is for several players: let them meet in a match")
    seats = np.zeros((len(openings.states), 1), np.int64)
    played = play_games(game, [player], seats, openings, watch)
    return SoloGames(played.results * (features_of(game).points or 1.0), played.cut_off)
