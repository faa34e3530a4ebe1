"""Series: games from the initial position, in which one player always moves first.

Where the probabilities of all games are known, the result is exact, and none is played. Knows players; knows nothing of
files or models.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.match import OnPly, Openings, check_for_two, legal_choices, play_games
from seraphim.game import Array, Game
from seraphim.game.features import has_chance
from seraphim.players.choose import Choose, DrawingPlayer, HistoryPlayer

MAX_COUNTED_OUT = 20_000
"""Most positions at one ply of a series that is counted out; where there are more, its games are played."""


class Shares(NamedTuple):
    """Shares of the games of one player against another, 0 to 1."""

    wins: float
    draws: float
    losses: float

    def __str__(self) -> str:
        return ", ".join(f"{name} {100 * share:.4g}%" for name, share in self._asdict().items())


@dataclass(frozen=True)
class SeriesResult:
    """The result of a series for its first player; prints as one line, without an interval.

    It is exact where the series was counted out, else what happened in the games that were played.
    """

    shares: Shares
    positions: int = 0  # that were counted out; 0 if games were played
    games: tuple[tuple[int, ...], ...] = ()  # the actions of each game that was played

    def __str__(self) -> str:
        if self.positions:
            return f"{self.shares}: exact, by all {self.positions:,} positions that the opponent's choices lead to"
        return f"{self.shares} of {len(self.games)} games, {len(set(self.games))} distinct"


def play_series(
    game: Game, first: Choose, second: Callable[[int], Choose], games: int, seed: int = 0, watch: OnPly | None = None
) -> SeriesResult:
    """Return the result of a series: its games begin at the initial position, and the first player moves first.

    Unlike a match from random openings, it measures the first player in the game as it is. `second` returns the other
    player, given its seed, which in game n is `seed + n`. If it is a `DrawingPlayer`, the probabilities of all its
    games are known, and none needs to be played, see `count_out`; else, or if that takes too many positions, `games`
    are played.

    Raises:
        SettingsError: there is not at least one game.
        GameError: it is a game of chance, or for one player; and as `play_games`.
        ModelError: as `play_games`.
    """
    _check(game)
    if games < 1:
        raise SettingsError(f"a series needs at least 1 game, not {games}")
    other = second(seed)
    if isinstance(other, DrawingPlayer) and not isinstance(first, HistoryPlayer):
        exact = count_out(game, first, other, watch)
        if exact:
            return exact
    players = [first, other, *(second(seed + number) for number in range(1, games))]
    seats = np.stack([np.zeros(games, np.int64), 1 + np.arange(games)], axis=1)
    starts = Openings(game.initial(games), ((),) * games, np.zeros(games, np.uint64))
    results, moves, *_ = play_games(game, players, seats, starts, watch)
    return SeriesResult(Shares(*(float((np.sign(results) == result).mean()) for result in (1, 0, -1))), games=moves)


def count_out(game: Game, first: Choose, second: Choose, watch: OnPly | None = None) -> SeriesResult | None:
    """Return the exact result of a series, or None if a ply of it has more positions than MAX_COUNTED_OUT.

    It goes through all positions that the draws of a `DrawingPlayer` lead to, each with its probability; positions that
    are equal are one. A player of another kind is asked once for each position, and has to be deterministic.

    Raises:
        GameError: it is a game of chance, or for one player; and as `play_games`.
        ModelError: as `play_games`.
    """
    _check(game)
    states, totals, positions = game.initial(1), np.zeros(3), 0
    chances: Array = np.ones(1)  # of the states
    for ply in range(game.max_plies):
        if watch:
            watch(len(states), ply)
        if len(states) > MAX_COUNTED_OUT:
            return None
        positions += len(states)
        choices = np.zeros((len(states), game.num_actions), np.bool_)
        for seat, player in enumerate((first, second)):
            seated = game.to_play(states) == seat
            if seated.any():
                choices[seated] = _choices(game, player, states[seated])
        rows, actions = np.nonzero(choices)
        successors, places = np.unique(game.step(states[rows], actions), axis=0, return_inverse=True)
        chances = np.bincount(places.ravel(), (chances / choices.sum(axis=1))[rows])
        ended, results = game.outcome(successors)
        totals += [chances[ended & (np.sign(results) == result)].sum() for result in (1, 0, -1)]
        states, chances = successors[~ended], chances[~ended]
        if not len(states):
            break
    totals[1] += chances.sum()  # games that are cut off are draws
    if watch:
        watch(0, ply)
    return SeriesResult(Shares(*totals.tolist()), positions)


def _check(game: Game) -> None:
    check_for_two(game, "a series from the initial position is")
    if has_chance(game):
        raise GameError(f"a series is for games without chance, and {game.name} has chance: play a match")


def _choices(game: Game, player: Choose, states: Array) -> Array:
    # The actions among which a player draws, bool [P, A].
    if not isinstance(player, DrawingPlayer):
        return np.arange(game.num_actions) == legal_choices(game, player, states)[:, None]
    choices = player.choices(states)
    if not choices.any(axis=1).all():
        row = int(choices.any(axis=1).argmin())
        raise GameError(f"a player has no action to draw here:\n{game.render(states[row])}")
    return choices
