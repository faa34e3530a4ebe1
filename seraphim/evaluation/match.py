"""Matches: games between players, in lock step, from random openings.

Players are deterministic, so in a match a game is decided by its opening: openings are distinct, and each is played
twice, with the sides swapped. An opening may favor a side, so its two games depend on each other: the opening is the
unit of all statistics. Where chance moves, the n-th roll of a game depends on its opening and n alone, so that both
games of an opening see the same rolls. What these brought is valued by a player's search, and can be left out of the
result. Knows players; knows nothing of files or models.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, SettingsError, shown
from seraphim.evaluation.intervals import Mean, score_interval
from seraphim.game import CHANCE, Array, Game
from seraphim.game.features import features_of, has_chance, is_for_one, num_columns
from seraphim.game.notation import followers
from seraphim.players.choose import Choose, HistoryPlayer, SearchPlayer
from seraphim.search.rng import draw_actions, fork, stream_key

MAX_OPENING_PLIES = 6
_WALKS = 256  # random openings drawn at a time

# ---------------------------------------------------------------- openings


class Openings(NamedTuple):
    """Unfinished positions that games begin with; distinct, unless chance moves."""

    states: Array  # int64 [P, W]
    moves: tuple[tuple[int, ...], ...]  # P: the actions and outcomes that lead there from the initial position
    rolls: Array  # uint64 [P]: the streams of the outcomes of chance in the games that begin there

    def part(self, start: int, stop: int) -> "Openings":
        """Return the openings from `start` to before `stop`."""
        return Openings(self.states[start:stop], self.moves[start:stop], self.rolls[start:stop])

    def repeated(self, times: int) -> "Openings":
        """Return all openings again and again."""
        return Openings(np.concatenate([self.states] * times), self.moves * times, np.tile(self.rolls, times))


def default_plies(game: Game) -> int:
    """Return the default limit on the length of openings: a quarter of the longest game, at most six plies.

    Where chance moves, it is 0, as its outcomes make games differ.
    """
    return 0 if has_chance(game) else min(MAX_OPENING_PLIES, game.max_plies // 4)


def count_openings(games: int) -> int:
    """Return how many openings a match of some games takes.

    Raises:
        SettingsError: the number is odd.
    """
    if games % 2:
        raise SettingsError(f"games must be an even number, as each opening is played twice, not {games}")
    return games // 2


def make_openings(game: Game, count: int, plies: int, seed: int = 0) -> Openings:
    """Draw distinct openings of 0 to `plies` random moves that do not end the game, all lengths equally likely.

    Fewer than `count` are returned if the game does not have or hardly ever reaches more. Where chance moves, outcomes
    are drawn by their probabilities, and openings need not be distinct.

    Raises:
        SettingsError: `count` or `plies` is out of range.
    """
    if count < 1 or plies < 0:
        raise SettingsError(f"expected at least 1 opening of at least 0 plies, not {count} of {plies}")
    rolls = fork(np.full(count, stream_key(f"match-{seed} chance")), np.arange(count, dtype=np.uint64))
    if has_chance(game):
        states, moves = _walk(game, np.arange(count), plies, seed)
        return Openings(states, tuple(moves), rolls)
    found: dict[bytes, tuple[Array, tuple[int, ...]]] = {}
    drawn, before, walks = 0, -1, max(_WALKS, 2 * count)
    while before < len(found) < count:  # also ends when a round of walks finds nothing new
        before = len(found)
        states, moves = _walk(game, np.arange(drawn, drawn + walks), plies, seed)
        for state, path in zip(states, moves, strict=True):
            found.setdefault(state.tobytes(), (state, path))
        drawn += walks
    chosen = list(found.values())[:count]
    return Openings(np.stack([state for state, _ in chosen]), tuple(path for _, path in chosen), rolls[: len(chosen)])


def _walk(game: Game, numbers: Array, plies: int, seed: int) -> tuple[Array, list[tuple[int, ...]]]:
    # The opening of each number: its last state, and its moves.
    keys, rolls = (
        fork(np.full(len(numbers), stream_key(name)), numbers.astype(np.uint64))
        for name in (f"openings-{seed}", f"openings-{seed} chance")
    )
    states, moves = game.initial(len(numbers)), np.full((len(numbers), plies), -1)
    lengths = numbers % (plies + 1)
    for ply in range(plies):
        active = np.flatnonzero(lengths > ply)
        weights, by_chance = _weights(game, states[active])
        streams = np.where(by_chance, rolls[active], keys[active])
        actions = draw_actions(weights, fork(streams, np.full(len(active), ply, np.uint64)))
        successors = game.step(states[active], actions)
        ended = game.outcome(successors)[0]
        lengths[active[ended]] = ply
        states[active[~ended]] = successors[~ended]
        moves[active[~ended], ply] = actions[~ended]
    return states, [tuple(path[:length]) for path, length in zip(moves.tolist(), lengths, strict=True)]


def _weights(game: Game, states: Array) -> tuple[Array, Array]:
    # The probabilities of outcomes where chance moves, elsewhere 1 for each legal action; and where it moves, bool [B].
    weights, chances = followers(game, states).astype(np.float64), features_of(game).chances
    by_chance: Array = game.to_play(states) == CHANCE
    if chances is not None and by_chance.any():
        odds = chances(states[by_chance])
        weights[by_chance, : odds.shape[1]] = odds
    return weights, by_chance


# ---------------------------------------------------------------- games


OnPly = Callable[[int, int], None]
"""Called before each ply with the number of unfinished games and the length of the longest one; last with 0 games."""


Luck = Callable[[Array, Array], Array]
"""Returns what chance brought player 0 from some positions to others, int64 [N, W]: float [N], 0 in the mean."""


class Games(NamedTuple):
    """Games that were played to their end."""

    # float64 [G] for player 0, or [G, P] for each of more than two; of a game that was cut off, what is banked, or 0.
    results: Array
    moves: tuple[tuple[int, ...], ...]  # G: the actions and outcomes from the initial position
    cut_off: int  # games that were stopped after `max_plies`
    states: Array  # int64 [G, W]: the last of each game
    luck: Array  # float64 [G]: what chance brought player 0; 0 if it was not asked for


def play_games(
    game: Game,
    players: Sequence[Choose],
    seats: Array,
    openings: Openings,
    watch: OnPly | None = None,
    luck: Luck | None = None,
) -> Games:
    """Play a game from each opening; `seats`, int [G, P], are the indices of player 0, player 1 … in `players`.

    What chance brings is valued by `luck`.

    Raises:
        GameError: a player chose an illegal action, or returned something else.
        ModelError: the model of a player returned a NaN or an infinity.
    """
    states, moves = openings.states.copy(), [list(opening) for opening in openings.moves]
    results, cut_off, brought = np.zeros((len(states), num_columns(game))), 0, np.zeros(len(states))
    banked = features_of(game).banked
    active, rolled = np.arange(len(states)), np.zeros(len(states), np.uint64)
    while len(active):
        if watch:
            watch(len(active), max(len(moves[row]) for row in active))
        by_chance = game.to_play(states[active]) == CHANCE
        # Others wait for chance, so that players choose in many games at a time.
        moving = active[by_chance] if by_chance.any() else active
        if by_chance.any():
            actions = draw_actions(_weights(game, states[moving])[0], fork(openings.rolls[moving], rolled[moving]))
            rolled[moving] += np.uint64(1)
        else:
            actions = _chosen(game, players, seats[moving], states[moving], [moves[row] for row in moving])
        before, states[moving] = states[moving], game.step(states[moving], actions)
        if luck and by_chance.any():
            brought[moving] += luck(before, states[moving])
        for row, action in zip(moving, actions.tolist(), strict=True):
            moves[row].append(action)
        ended, found = game.outcome(states[moving])
        too_long = ~ended & np.array([len(moves[row]) >= game.max_plies for row in moving])
        if banked is not None:
            results[moving] = banked(states[moving])[:, : results.shape[1]]
        results[moving[ended]] = found.reshape(len(ended), -1)[ended, : results.shape[1]]
        cut_off += int(too_long.sum())
        active = np.setdiff1d(active, moving[ended | too_long])
    if watch:
        watch(0, max(map(len, moves)))
    by_game = results if results.shape[1] > 1 else results[:, 0]
    return Games(by_game, tuple(map(tuple, moves)), cut_off, states, brought)


def _chosen(game: Game, players: Sequence[Choose], seats: Array, states: Array, lines: list[list[int]]) -> Array:
    # The action of the player to move in each of some games.
    to_move = seats[np.arange(len(states)), game.to_play(states)]
    actions = np.empty(len(states), np.int64)
    for player in np.unique(to_move):
        rows = np.flatnonzero(to_move == player)
        actions[rows] = legal_choices(game, players[player], states[rows], [lines[row] for row in rows])
    return actions


def legal_choices(game: Game, player: Choose, states: Array, lines: Sequence[Sequence[int]] = ()) -> Array:
    """Return the action of a player in each of some states [P, W], int [P]; `lines` are the moves that lead there.

    Raises:
        GameError: an action is illegal, or the player returned something else.
    """
    return checked_actions(game, states, player.choose(lines) if isinstance(player, HistoryPlayer) else player(states))


def checked_actions(game: Game, states: Array, chosen: object) -> Array:
    """Return what a player chose in each of some states [P, W], if it is a legal action in each, int [P].

    Raises:
        GameError: it is not.
    """
    actions = np.empty(0)
    with contextlib.suppress(ValueError):  # lists of different lengths
        actions = np.asarray(chosen)
    if actions.shape != (len(states),) or actions.dtype.kind not in "iu":
        expected = f"a player must return an action, an integer, for each of {len(states)} states"
        raise GameError(f"{expected}, not {shown(chosen)}")
    inside = (actions >= 0) & (actions < game.num_actions)
    legal = inside & game.legal(states)[np.arange(len(states)), np.where(inside, actions, 0)]
    if not legal.all():
        row = int(legal.argmin())
        raise GameError(f"a player chose the illegal action {actions[row]} here:\n{game.render(states[row])}")
    return actions


class Tally(NamedTuple):
    """Games of one player against another."""

    wins: int
    draws: int
    losses: int

    def __str__(self) -> str:
        return f"+{self.wins} ={self.draws} -{self.losses}"


def _total(first: Tally, second: Tally) -> Tally:
    return Tally(*map(sum, zip(first, second, strict=True)))


def _tally(results: Array) -> Tally:
    return Tally(*(int((np.sign(results) == result).sum()) for result in (1, 0, -1)))


# ---------------------------------------------------------------- matches


@dataclass(frozen=True)
class MatchResult:
    """The result of a match for its first player; prints as one line."""

    as_player: tuple[Tally, Tally]  # the games in which it was player 0, and those in which it was player 1
    pairs: tuple[int, ...]  # the number of openings in which it made 0, ½, 1, 1½ and 2 points in the two games
    distinct_games: int  # games that differ in their moves or in who played which side
    cut_off: int = 0  # games that were stopped after the game's `max_plies`, which count by what is banked
    points: Mean | None = field(default=None, compare=False)
    """The mean result of an opening's two games, in points; None if it was read from a file, which has no points."""
    luck_adjusted: Mean | None = field(default=None, compare=False)
    """The same without what chance brought, by the search of a player; None where chance or such a player is missing.
    """
    graded: bool = field(default=False, compare=False)
    """Whether there are other results than wins, draws and losses, so that points tell more than the score."""

    @property
    def tally(self) -> Tally:
        """Return all games together."""
        return _total(*self.as_player)

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
        """Return the result of two matches of the same players; a game that occurs in both counts as two distinct."""
        first, second = map(_total, self.as_player, other.as_player)
        pairs = tuple(map(sum, zip(self.pairs, other.pairs, strict=True)))
        distinct_games, cut_off = self.distinct_games + other.distinct_games, self.cut_off + other.cut_off
        points, luck_adjusted = (
            one + two if one and two else None
            for one, two in ((self.points, other.points), (self.luck_adjusted, other.luck_adjusted))
        )
        graded = self.graded or other.graded
        return MatchResult((first, second), pairs, distinct_games, cut_off, points, luck_adjusted, graded)

    def __str__(self) -> str:
        low, high = self.interval
        return self.line(f" [{low:.1%}, {high:.1%}]")

    def line(self, interval: str = "") -> str:
        """Return the result as one line, where an interval makes no sense without it."""
        first, second = self.as_player
        cut_off = f", {self.cut_off} cut off" if self.cut_off else ""
        points = f", {self.points} points a game" if self.graded and self.points else ""
        adjusted = ""
        if self.luck_adjusted:
            score, below, above = (
                f"{(1 + each) / 2:.1%}" for each in (self.luck_adjusted.value, *self.luck_adjusted.interval)
            )
            adjusted = f", luck-adjusted {self.luck_adjusted if self.graded else f'{score} [{below}, {above}]'}"
        return (
            f"{self.tally} ({first} and {second} by side), score {self.score:.1%}{interval}{points}{adjusted}, "
            f"{self.distinct_games} of {self.games} games distinct{cut_off}"
        )


def play_match(
    game: Game, first: Choose, second: Choose, openings: Openings, watch: OnPly | None = None
) -> MatchResult:
    """Play each opening twice, so that each player is player 0 once; return the result of the first player.

    Where chance moves, the first player that searches values what it brings.

    Raises:
        GameError: it is not a game for two players; and as `play_games`.
        ModelError: as `play_games`.
    """
    check_for_two(game, "matches are")
    count, points = len(openings.states), features_of(game).points or 1.0
    seats = np.repeat([[0, 1], [1, 0]], count, axis=0)
    judge = next((each for each in (first, second) if isinstance(each, SearchPlayer)), None)
    luck = judge.luck if judge and has_chance(game) else None
    played = play_games(game, (first, second), seats, openings.repeated(2), watch, luck)
    as_0, as_1 = played.results[:count], -played.results[count:]
    made = (np.sign(as_0) + np.sign(as_1) + 2).astype(np.int64)
    return MatchResult(
        as_player=(_tally(as_0), _tally(as_1)),
        pairs=tuple(np.bincount(made, minlength=5).tolist()),
        distinct_games=len(set(zip(seats[:, 0].tolist(), played.moves, strict=True))),
        cut_off=played.cut_off,
        points=Mean.of(points * (as_0 + as_1) / 2),
        luck_adjusted=Mean.of(points * (as_0 + as_1 - played.luck[:count] + played.luck[count:]) / 2) if luck else None,
        graded=features_of(game).points is not None or not np.isin(played.results, (-1, 0, 1)).all(),
    )


def check_for_two(game: Game, what: str) -> None:
    """Raise a GameError that says `what` is for two players, unless a game is."""
    if is_for_one(game):
        raise GameError(f"{what} for two players, and {game.name} is a game for one: seraphim.play_alone plays it")
    if num_columns(game) > 1:
        raise GameError(f"{what} for two players, and {game.name} is a game for more: seraphim.play_table plays it")
