"""A series: one player moves first in every game, from the initial position, against another that varies its play.

What it shows is how well the first player does in the game as it is, which matches from random openings do not. Each
game has a seed of its own, which its second player draws by; the first player is always the same. Games that turn out
equal count once in the interval. Knows players, no files, no models.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from seraphim.errors import SettingsError
from seraphim.evaluation.error_rates import Rate
from seraphim.evaluation.match import Tally, chosen_actions
from seraphim.evaluation.match_csv import Conditions
from seraphim.evaluation.players import Choose
from seraphim.evaluation.tournament import Entrant, check_two
from seraphim.game import Game

_DRAWING = "random, minimax:DEPTH, solver or solver:SECONDS"


@dataclass(frozen=True)
class SeriesResult:
    """How a series ended, for its first player; prints as one line."""

    tally: Tally
    distinct: Tally
    """The same where equal games count once."""
    games: tuple[tuple[int, ...], ...]
    """The actions of each game."""

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the share of games won, from the distinct ones."""
        return Rate(self.distinct.wins, sum(self.distinct)).interval

    def __str__(self) -> str:
        """Return the result as a person reads it."""
        low, high = self.interval
        return (
            f"+{self.tally.wins} ={self.tally.draws} -{self.tally.losses}, "
            f"wins {self.tally.wins / sum(self.tally):.1%}; {sum(self.distinct)} of {sum(self.tally)} games distinct, "
            f"of these +{self.distinct.wins} ={self.distinct.draws} -{self.distinct.losses} [{low:.1%}, {high:.1%}]"
        )


def play_series(game: Game, first: Choose, second: Callable[[int], Choose], games: int, seed: int = 0) -> SeriesResult:
    """Play a series.

    Args:
        game: the rules.
        first: moves first.
        second: the other player, by the seed of its draws.
        games: how many; game n has the seed `seed + n`.
        seed: of the first game.

    Raises:
        SettingsError: there is not at least one game.
        GameError: a player chose an illegal action.
        ModelError: the model of a player gave a NaN or an infinity.
    """
    if games < 1:
        raise SettingsError(f"a series has 1 game or more, not {games}")
    others = [second(seed + number) for number in range(games)]
    states = game.initial(games)
    moves: list[list[int]] = [[] for _ in range(games)]
    results = np.zeros(games, np.int64)
    active = np.arange(games)
    while len(active):
        actions = np.empty(len(active), np.int64)
        mine = game.to_play(states[active]) == 0
        if mine.any():
            actions[mine] = chosen_actions(game, first, states[active[mine]])
        for place in np.flatnonzero(~mine):
            row = active[place]
            actions[place] = chosen_actions(game, others[row], states[row : row + 1])[0]
        states[active] = game.step(states[active], actions)
        for row, action in zip(active, actions.tolist(), strict=True):
            moves[row].append(action)
        ended, found = game.outcome(states[active])
        results[active[ended]] = np.sign(found[ended]).astype(np.int64)
        too_long = np.array([len(moves[row]) >= game.max_plies for row in active])  # which counts as a draw
        active = active[~(ended | too_long)]
    played = tuple(tuple(one) for one in moves)
    outcomes = results.tolist()
    return SeriesResult(_tally(outcomes), _tally(list(dict(zip(played, outcomes, strict=True)).values())), played)


def play_first(game: Game, entrants: Sequence[Entrant], conditions: Conditions) -> Iterator[tuple[str, SeriesResult]]:
    """Let the first of some players move first in a series of games against each other one; yield name and result.

    Raises:
        SettingsError: there is only one player, or another does not draw, so that all its games would be the same.
        ModelError: as `Tournament.play`.
        GameError: likewise.
    """
    check_two(entrants)
    first, *others = entrants
    for other in others:
        if other.reseeded is None:
            raise SettingsError(
                f"{other.name} always plays alike, so that all games would be one: the others must be {_DRAWING}"
            )
    player = first.load()
    for other in others:
        if other.reseeded:
            yield other.name, play_series(game, player, other.reseeded, conditions.games, conditions.seed)


def _tally(results: list[int]) -> Tally:
    return Tally(*(results.count(result) for result in (1, 0, -1)))
