"""Matches: two players play each opening twice, with the sides swapped, all games in lock step.

Players are deterministic, so a game is decided by its opening: openings are drawn at random, and none is played twice.
The two games of an opening depend on each other, as an opening may favour a side: the opening is the unit of all
statistics. Knows players, no files, no models.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.players import Choose
from seraphim.game import Array, Game
from seraphim.search.rng import draw_actions, fork, stream_key

MOST_OPENING_PLIES = 6
PAIR_POINTS = np.arange(5) / 2
"""Points of a player in the two games of an opening: 0 to 2, where a draw counts half."""
Z_95 = 1.959964  # standard deviations of a 95 % interval

_EXTREMES = np.array([1, 0, 0, 0, 1])  # two openings more, for statistics that should not be too sure
_WALKS = 256  # random openings drawn at a time


class Openings(NamedTuple):
    """Distinct unfinished positions that games begin with."""

    states: Array  # int64 [P, W]
    moves: tuple[tuple[int, ...], ...]  # P: the actions that lead there from the initial position


class Tally(NamedTuple):
    """Games of one player against another."""

    wins: int
    draws: int
    losses: int


@dataclass(frozen=True)
class MatchResult:
    """How a match ended, for its first player; prints as one line."""

    as_player: tuple[Tally, Tally]
    """The games in which it was player 0, and those in which it was player 1."""
    pairs: tuple[int, ...]
    """In how many openings it made 0, ½, 1, 1½ and 2 points in the two games."""
    distinct_games: int
    """Games of which no two have the same moves from the initial position and the same sides."""
    cut_off: int = 0
    """Games that were ended after the game's `max_plies`, which count as draws."""

    @property
    def tally(self) -> Tally:
        """Return all games together."""
        return Tally(*(sum(counts) for counts in zip(*self.as_player, strict=True)))

    @property
    def games(self) -> int:
        """Return how many games were played."""
        return sum(self.tally)

    @property
    def score(self) -> float:
        """Return the share of points, 0 to 1, where a draw counts half."""
        tally = self.tally
        return (tally.wins + tally.draws / 2) / max(1, self.games)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the score; see `score_interval`."""
        return score_interval(self.pairs)

    def __add__(self, other: "MatchResult") -> "MatchResult":
        """Return the result of two matches of the same players; games that are in both count as distinct."""
        first, second = (
            Tally(*map(sum, zip(*sides, strict=True))) for sides in zip(self.as_player, other.as_player, strict=True)
        )
        pairs = tuple(map(sum, zip(self.pairs, other.pairs, strict=True)))
        distinct_games, cut_off = self.distinct_games + other.distinct_games, self.cut_off + other.cut_off
        return MatchResult((first, second), pairs, distinct_games, cut_off)

    def __str__(self) -> str:
        low, high = self.interval
        sides = " and ".join(f"+{one.wins} ={one.draws} -{one.losses}" for one in self.as_player)
        distinct = f"{self.distinct_games} of {self.games} games distinct"
        cut_off = f", {self.cut_off} cut off" if self.cut_off else ""
        return (
            f"+{self.tally.wins} ={self.tally.draws} -{self.tally.losses} ({sides} by side), "
            f"score {self.score:.1%} [{low:.1%}, {high:.1%}], {distinct}{cut_off}"
        )


def default_plies(game: Game) -> int:
    """Return how many plies openings have at most, by default: a quarter of the longest game, and six at most."""
    return min(MOST_OPENING_PLIES, game.max_plies // 4)


def make_openings(game: Game, count: int, plies: int, seed: int = 0) -> Openings:
    """Draw distinct openings of 0 to `plies` random moves, short of the end of the game.

    Args:
        game: the rules.
        count: how many at most; the game may not have so many, or hardly: look at the result's length.
        plies: their greatest length; each length is as likely as the others.
        seed: the same seed gives the same openings.

    Raises:
        SettingsError: `count` or `plies` is out of range.
    """
    if count < 1 or plies < 0:
        raise SettingsError(f"expected 1 opening or more, of 0 plies or more, not {count} of {plies}")
    found: dict[bytes, tuple[Array, tuple[int, ...]]] = {}
    drawn, before, walks = 0, -1, max(_WALKS, 2 * count)
    while before < len(found) < count:  # ends as well when so many walks find nothing new
        before = len(found)
        states, moves = _walk(game, np.arange(drawn, drawn + walks), plies, seed)
        for state, path in zip(states, moves, strict=True):
            found.setdefault(state.tobytes(), (state, path))
        drawn += walks
    chosen = list(found.values())[:count]
    return Openings(np.stack([state for state, _ in chosen]), tuple(path for _, path in chosen))


def _walk(game: Game, numbers: Array, plies: int, seed: int) -> tuple[Array, list[tuple[int, ...]]]:
    # The opening of each number: where it ends, and its moves.
    keys = fork(np.full(len(numbers), stream_key(f"openings-{seed}")), numbers.astype(np.uint64))
    states, moves = game.initial(len(numbers)), np.full((len(numbers), plies), -1)
    lengths = numbers % (plies + 1)
    for ply in range(plies):
        going_on = np.flatnonzero(lengths > ply)
        streams = fork(keys[going_on], np.full(len(going_on), ply, np.uint64))
        actions = draw_actions(game.legal(states[going_on]), streams)
        successors = game.step(states[going_on], actions)
        ended = game.outcome(successors)[0]
        lengths[going_on[ended]] = ply
        states[going_on[~ended]] = successors[~ended]
        moves[going_on[~ended], ply] = actions[~ended]
    return states, [tuple(path[:length]) for path, length in zip(moves.tolist(), lengths, strict=True)]


def play_match(game: Game, first: Choose, second: Choose, openings: Openings) -> MatchResult:
    """Let two players play each opening twice, each of them once as player 0.

    Args:
        game: the rules.
        first: the player whose result is returned.
        second: the other player.
        openings: where the games begin.

    Raises:
        GameError: a player chose an illegal action.
        ModelError: the model of a player gave a NaN or an infinity.
    """
    num_openings = len(openings.states)
    states = np.concatenate([openings.states, openings.states])
    swapped = np.arange(2 * num_openings) >= num_openings  # the first player is player 1
    games = [list(moves) for moves in (*openings.moves, *openings.moves)]
    results, cut_off = np.zeros(2 * num_openings), 0
    active = np.arange(2 * num_openings)
    while len(active):
        of_first = (game.to_play(states[active]) == 1) == swapped[active]
        actions = np.empty(len(active), np.int64)
        for player, rows in ((first, of_first), (second, ~of_first)):
            if rows.any():
                actions[rows] = chosen_actions(game, player, states[active[rows]])
        states[active] = game.step(states[active], actions)
        for row, action in zip(active, actions.tolist(), strict=True):
            games[row].append(action)
        ended, found = game.outcome(states[active])
        results[active[ended]] = np.sign(found[ended])
        too_long = ~ended & np.array([len(games[row]) >= game.max_plies for row in active])
        cut_off += int(too_long.sum())
        active = active[~(ended | too_long)]
    results[swapped] *= -1
    sides = results.reshape(2, num_openings)
    points = np.rint(sides.sum(axis=0) + 2).astype(np.int64)  # in half points
    return MatchResult(
        as_player=(_tally(sides[0]), _tally(sides[1])),
        pairs=tuple(np.bincount(points, minlength=5).tolist()),
        distinct_games=len({(side, *moves) for side, moves in zip(swapped.tolist(), games, strict=True)}),
        cut_off=cut_off,
    )


def chosen_actions(game: Game, player: Choose, states: Array) -> Array:
    """Return the actions [P] that a player chooses in unfinished states int64 [P, W].

    Raises:
        GameError: one of them is illegal.
    """
    actions = np.asarray(player(states))
    legal = game.legal(states)[np.arange(len(states)), actions]
    if not legal.all():
        row = int(legal.argmin())
        raise GameError(f"a player chose the illegal action {actions[row]} here:\n{game.render(states[row])}")
    return actions


def _tally(results: Array) -> Tally:
    return Tally(*(int((results == result).sum()) for result in (1, 0, -1)))


def pair_moments(pairs: tuple[int, ...]) -> tuple[float, float]:
    """Return the mean and the variance of an opening's score in [0, 1], with one opening of each extreme added.

    With these two, openings that all ended alike do not make the outcome of the next one a certainty, as in the
    interval of Agresti and Coull ("Approximate is better than 'exact'", 1998).
    """
    counts = np.array(pairs) + _EXTREMES
    mean = float(counts @ PAIR_POINTS) / 2 / counts.sum()
    return mean, float(counts @ (PAIR_POINTS / 2 - mean) ** 2) / counts.sum()


def score_interval(pairs: tuple[int, ...]) -> tuple[float, float]:
    """Return the 95 % interval of a score in [0, 1], where the openings are independent and the games are not.

    That is the interval of Wilson ("Probable inference, the law of succession, and statistical inference", 1927) for as
    many wins and losses as tell as much as these openings do: a score of variance s² is known from n openings as well
    as a share p from n·p(1-p)/s² games (effective sample size: Korn and Graubard, "Confidence intervals for proportions
    with small expected number of positive counts estimated from survey data", 1998).

    Args:
        pairs: openings by points, as in `MatchResult`.
    """
    openings = sum(pairs)
    if not openings:
        return 0.0, 1.0
    score = float(np.array(pairs) @ PAIR_POINTS) / 2 / openings
    mean, variance = pair_moments(pairs)
    size = openings * mean * (1 - mean) / variance
    centre = score + Z_95**2 / (2 * size)
    spread = Z_95 * math.sqrt(score * (1 - score) / size + Z_95**2 / (4 * size**2))
    low, high = (centre - spread) / (1 + Z_95**2 / size), (centre + spread) / (1 + Z_95**2 / size)
    return (max(0.0, low) if score > 0 else 0.0), (min(1.0, high) if score < 1 else 1.0)
