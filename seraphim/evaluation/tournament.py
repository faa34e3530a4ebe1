"""Tournaments: all players against all; and the standing one, which ranks snapshots as they appear."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from seraphim.errors import ModelError, SettingsError
from seraphim.evaluation.match import (
    OnPly,
    Openings,
    check_for_two,
    count_openings,
    default_plies,
    make_openings,
    play_match,
)
from seraphim.evaluation.match_csv import RESULTS, Conditions, read_matches, write_matches
from seraphim.evaluation.ratings import Match
from seraphim.evaluation.seats import SoloGames, TableResult, play_solo, play_table, seatings_of
from seraphim.evaluation.series import SeriesResult, play_series
from seraphim.game import Game
from seraphim.players.roster import Entrant
from seraphim.storage.models import ModelFolder

_SEEDED = "random, minimax:DEPTH, solver or solver:SECONDS"


class Tournament:
    """Matches between all players; those of a standing tournament are kept in a file."""

    def __init__(
        self, game: Game, conditions: Conditions, folder: ModelFolder | None = None, watch: OnPly | None = None
    ) -> None:
        """Begin, or continue with the matches in a folder's RESULTS that were played under the same conditions.

        Raises:
            FileError: the file is damaged.
            GameError: it is a game for one player.
            SettingsError: the conditions make no sense.
        """
        check_for_two(game, "ratings are")
        self._game = game
        self._conditions = conditions
        self._folder = folder
        self._watch = watch
        self.openings = _openings(game, conditions, count_openings(conditions.games))
        self.matches = read_matches(folder.path / RESULTS, conditions) if folder else []

    def next_pair(self, entrants: Sequence[Entrant]) -> tuple[Entrant, Entrant] | None:
        """Return two players that have not met yet, None if all have.

        The first has the fewest matches, so that new players are rated soon; the second is as near to it as possible in
        the order of `entrants`, since neighbors are close in strength and their matches the most informative.
        """
        met = {frozenset((match.first, match.second)) for match in self.matches}
        counts = Counter(name for match in self.matches for name in (match.first, match.second))
        open_pairs = [
            (min(counts[one.name], counts[other.name]), second - first, first, second)
            for (first, one), (second, other) in combinations(enumerate(entrants), 2)
            if frozenset((one.name, other.name)) not in met
        ]
        if not open_pairs:
            return None
        *_, first, second = min(open_pairs)
        return entrants[first], entrants[second]

    def play_all(self, entrants: Sequence[Entrant]) -> Iterator[Match]:
        """Play until all have met, and yield each match; see `play`.

        Raises:
            SettingsError: there is only one player.
        """
        _check_two(entrants)
        while pair := self.next_pair(entrants):
            yield self.play(*pair)

    def play_on(self, entrants: Callable[[], Sequence[Entrant]]) -> Iterator[Match | None]:
        """Play forever between the current entrants; yield each match, and None while all have met.

        See `play`; a snapshot that is deleted before it is loaded is skipped.
        """
        while True:
            pair = self.next_pair(entrants())
            try:
                yield self.play(*pair) if pair else None
            except ModelError:
                if pair == self.next_pair(entrants()):
                    raise

    def play(self, first: Entrant, second: Entrant) -> Match:
        """Play a match, and keep it.

        Raises:
            ModelError: a model is damaged or gone, or returned a NaN or an infinity.
            GameError: a player chose an illegal action.
        """
        result = play_match(self._game, first.load(), second.load(), self.openings, self._watch)
        match = Match(first.name, second.name, result)
        self.matches.append(match)
        if self._folder:
            with self._folder.lock():
                write_matches(self._folder.path / RESULTS, [match], self._conditions, keep=True)
        return match


def play_from_start(
    game: Game, entrants: Sequence[Entrant], conditions: Conditions, watch: OnPly | None = None
) -> Iterator[tuple[str, SeriesResult]]:
    """Play a series from the initial position between the first player, which moves first, and each of the others.

    Yields:
        The name of each of the others, and the result of the first player.

    Raises:
        SettingsError: there is only one player, or one of the others has no seed, so that all its games would be equal.
        ModelError, GameError: as `Tournament.play`.
    """
    _check_two(entrants)
    first, *others = entrants
    for other in others:
        if other.with_seed is None:
            raise SettingsError(f"{other.name} has no seed: every game could be identical; expected {_SEEDED}")
    player = first.load()
    for other in others:
        if other.with_seed:
            yield other.name, play_series(game, player, other.with_seed, conditions.games, conditions.seed, watch)


def play_alone(
    game: Game, entrants: Sequence[Entrant], conditions: Conditions, watch: OnPly | None = None
) -> Iterator[tuple[str, SoloGames]]:
    """Play a game for one player, each player from the same openings by the same chance.

    Yields:
        The name of each player, and its games.

    Raises:
        ModelError, GameError: as `Tournament.play`.
    """
    openings = _openings(game, conditions, conditions.games)
    for entrant in entrants:
        yield entrant.name, play_solo(game, entrant.load(), openings, watch)


def play_tables(
    game: Game, entrants: Sequence[Entrant], conditions: Conditions, watch: OnPly | None = None
) -> Iterator[tuple[str, str, TableResult]]:
    """Play a game for more than two, each pair of players at one table, by all seatings of the same openings.

    Yields:
        The names of both, and the result of the first.

    Raises:
        SettingsError: there is only one player.
        ModelError, GameError: as `Tournament.play`.
    """
    _check_two(entrants)
    openings = _openings(game, conditions, -(-conditions.games // len(seatings_of(game))))
    for first, second in combinations(entrants, 2):
        yield first.name, second.name, play_table(game, first.load(), second.load(), openings, watch)


def _openings(game: Game, conditions: Conditions, count: int) -> Openings:
    plies = default_plies(game) if conditions.opening_plies is None else conditions.opening_plies
    if plies >= game.max_plies:
        raise SettingsError(f"opening_plies must be below the {game.max_plies} plies of {game.name}, not {plies}")
    return make_openings(game, count, plies, conditions.seed)


def _check_two(entrants: Sequence[Entrant]) -> None:
    if len(entrants) < 2:
        raise SettingsError(f"a match needs two players, but there is only {entrants[0].name}")
