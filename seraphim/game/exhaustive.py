"""Small games solved: every position that play can reach, and the exact value of each action in it.

Knows the rules and no particular game. Values are for player 0 internally, so the order of the players does not matter.
Where chance moves, a value is the expectation over its outcomes. Positions that differ in nothing but what is banked
are one position, whose value is what is still to come.

More than two players each want the most for themselves (max^n: Luckhardt and Irani 1986). A player with several best
moves decides by the choice what the others get, so that there are many solutions, one for each way of breaking ties.
For each player, a position has the least and the most that they get in any of them: exactly where results come at the
end alone, without chance, and are few; elsewhere bounds, which may be wider.

A game that is small enough offers the solution as its solved positions:

    def position_sets(split):
        return solve(GAME).position_sets(split)

Shape letters: `P` positions, `E` edges (a legal action in a position, or an outcome of chance), `N` players,
and those of `seraphim.game`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, Game, PlainGame, PlainRules
from seraphim.game.features import features_of, num_columns, num_players
from seraphim.game.game_graph import SETTLED, GameGraph, back_up, back_up_bounds, back_up_sets
from seraphim.game.loading import PositionSet, Split
from seraphim.game.notation import banked_by_player, followers

__all__ = ["MAX_POSITIONS", "GameGraph", "Solution", "UnsolvedError", "settle", "solve"]

MAX_POSITIONS = 3_000_000  # reachable by play
MAX_ITERATIONS = 10_000
_SAME = 1e-6  # action values in float32 that differ by less are equal
_MOST_RESULTS = 62  # bits of a word
_MOST = 2.0  # that a result can differ from what is banked


class UnsolvedError(GameError):
    """A game cannot be solved: it is too large, or need not end."""


@dataclass(frozen=True)
class Solution:
    """All positions that play can reach, and their values; prints as one line.

    Where a player has points in the bank, a position stands for all that differ in these alone, and the values are
    those of the one in `states`.
    """

    game: str
    states: Array
    """int64 [P, W]; the first is the initial position."""
    results: Array
    """float32 [P]: exact, for player 0; with chance the expectation, up to 1e-9. NaN where ties decide."""
    action_values: Array
    """float32 [P, A]: exact, for the player to move; NaN where illegal, where the game has ended, or chance moves.

    Where ties decide, the most that the action can bring, but no more than the mover can be sure of by another one: so
    an action that is worth less than the best is a mistake however ties are broken."""
    longest: int | None
    """Plies of the longest game that can be played; None if positions recur by chance."""
    graph: GameGraph = field(repr=False)
    to_come: Array = field(repr=False)
    """float64 [P]: what is still to come of the result for player 0, beyond what is banked; NaN where ties decide."""
    words: int = field(repr=False)
    """How many words of a state tell positions apart; those after them tell what is banked."""
    low: Array = field(repr=False)
    """float32 [P, N]: the least that each player gets, however ties are broken; of one or two players what they get."""
    high: Array = field(repr=False)
    """float32 [P, N]: the most, likewise."""

    def position_sets(self, split: Split = "validation") -> list[PositionSet]:
        """Return one set, all unfinished positions, in the same random order each time: any first ones are a sample.

        Nothing is left for the split `test`.
        """
        if split == "test":
            return []
        order = np.random.default_rng(0).permutation(np.flatnonzero(~np.isnan(self.action_values).all(axis=1)))
        return [PositionSet("all positions", self.states[order], self.action_values[order], sampled=False)]

    def perfect_actions(self, states: Array, _seconds: float | None = None) -> Array:
        """Return the best actions in some unfinished positions int64 [B, W], bool [B, A].

        Raises:
            GameError: play does not lead to one of them.
        """
        try:
            rows = [self._numbers[state.tobytes()] for state in states[:, : self.words]]
        except KeyError as error:
            raise GameError(f"play does not lead to one of these positions of {self.game}") from error
        values = self.action_values[rows]
        best: Array = values > np.nanmax(values, axis=1, keepdims=True) - _SAME
        return best

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        # The place of each position.
        return {state.tobytes(): number for number, state in enumerate(self.states[:, : self.words])}

    @property
    def decided_by_ties(self) -> Array:
        """Return in which positions the result of a player depends on how ties are broken, bool [P]."""
        return np.asarray((self.high - self.low > _SAME).any(axis=1))

    def __str__(self) -> str:
        length = "games need not end" if self.longest is None else f"no game is longer than {self.longest:,} plies"
        return (
            f"{self.game} is solved: play can reach {len(self.states):,} positions, {length}, and best play from the "
            f"start ends in: {self._verdict()}"
        )

    def _verdict(self) -> str:
        if self.low.shape[1] > 2:
            pairs = zip(self.low[0].tolist(), self.high[0].tolist(), strict=True)
            results = ", ".join(
                f"{low:+.2f}" if high - low < _SAME else f"{low:+.2f} to {high:+.2f}" for low, high in pairs
            )
            return f"{results} for the players; ties decide in {self.decided_by_ties.sum():,} positions"
        result = float(self.results[0])
        of_two = {1.0: "player 0 wins", -1.0: "player 1 wins", 0.0: "a draw"} if self.graph.to_play.max() > 0 else {}
        return of_two.get(result, f"{result:+.2f} for player 0")


def solve(game: Game | PlainGame, max_positions: int = MAX_POSITIONS) -> Solution:
    """Return every position that play can reach, with its exact value.

    Where positions recur by chance, the values are those of games that are never cut off.

    Raises:
        GameError: its chances are no probabilities.
        UnsolvedError: more than `max_positions` can be reached, a position can recur without chance or with more than
            two players, games of which none recurs can be cut off, or values do not settle.
    """
    if isinstance(game, PlainGame):
        game = PlainRules(game)
    graph = _explore(game, max_positions)
    ended, results = game.outcome(graph.states)
    banked = _banked(game, graph.states)
    ends = np.where(ended[:, None], results.reshape(banked.shape) - banked, 0.0)
    low, high, longest = _settle_bounds(game.name, graph, ends)
    if longest is not None and longest > game.max_plies:
        raise UnsolvedError(
            f"{game.name} is not solved: a game can take {longest:,} plies, but is cut off after {game.max_plies:,}"
        )
    action_values = np.full((len(graph.states), game.num_actions), np.nan, np.float32)
    by_action = graph.to_play[graph.sources] != CHANCE
    found = _edge_values(graph, banked, low, high)[by_action]
    action_values[graph.sources[by_action], graph.followers[by_action]] = found
    to_come = np.where(high[:, 0] - low[:, 0] < SETTLED, low[:, 0], np.nan)
    results = (banked[:, 0] + to_come).astype(np.float32)
    bounds = (_of_all_players(game, banked + bound) for bound in (low, high))
    return Solution(
        game.name, graph.states, results, action_values, longest, graph, to_come, _telling_words(game), *bounds
    )


def _edge_values(graph: GameGraph, banked: Array, low: Array, high: Array) -> Array:
    # Of each edge for the player to move, float64 [E]; of outcomes of chance anything.
    movers, alone = graph.to_play[graph.sources], banked.shape[1] == 1
    place = np.arange(len(movers)), np.zeros_like(movers) if alone else np.maximum(movers, 0)
    before = banked[graph.sources][place] + graph.gains.reshape(len(movers), -1)[place]
    least, most = (before + bound[graph.targets][place] for bound in (low, high))
    if alone:
        return np.where(movers == 1, -least, least)
    sure = np.full(len(graph.states), -np.inf)
    np.maximum.at(sure, graph.sources, least)
    sure = sure[graph.sources]
    return np.where(most > sure - SETTLED, sure, most)


def _of_all_players(game: Game, values: Array) -> Array:
    # float32 [P, N], of values for player 0 or for all.
    both = np.concatenate([values, -values], axis=1) if num_players(game) == 2 else values
    return both.astype(np.float32)


def _telling_words(game: Game) -> int:
    # How many words of a state tell positions apart.
    features = features_of(game)
    return game.state_words - (features.bank_words or 0 if features.banked else 0)


def _explore(game: Game, max_positions: int) -> GameGraph:
    # Breadth-first, a layer at a time.
    states, kept = [game.initial(1)], _telling_words(game)
    numbers = {states[0][0, :kept].tobytes(): 0}
    counts, edges, targets, gains = [], [], [], []
    while len(states[-1]):
        either = followers(game, states[-1])
        rows, chosen = np.nonzero(either)
        fresh = []
        successors = game.step(states[-1][rows], chosen)
        for row, state in enumerate(successors):
            key = state[:kept].tobytes()
            if key not in numbers:
                numbers[key] = len(numbers)
                fresh.append(row)
            targets.append(numbers[key])
        if len(numbers) > max_positions:
            raise UnsolvedError(f"{game.name} is not solved: play can reach more than {max_positions:,} positions")
        counts.append(either.sum(axis=1))
        gains.append(_banked(game, successors) - _banked(game, states[-1])[rows])
        edges.append(np.stack([chosen, _chances(game, states[-1], rows, chosen)]))
        states.append(successors[fresh])
    firsts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    chosen, chances = np.concatenate(edges, axis=1)
    gained = np.concatenate(gains)
    if num_columns(game) == 1:
        gained = gained[:, 0].copy()
    found, to_play = np.concatenate(states), game.to_play(np.concatenate(states)).astype(np.int8)
    return GameGraph(found, to_play, firsts, chosen.astype(np.int64), np.array(targets, np.int64), gained, chances)


def _banked(game: Game, states: Array) -> Array:
    # For player 0, or of more than two players for all, float64 [B, V].
    return banked_by_player(game, states)[:, : num_columns(game)]


def _chances(game: Game, states: Array, rows: Array, chosen: Array) -> Array:
    # The probability of each edge, float64 [E]; 0 of an action.
    offered = features_of(game).chances
    if offered is None:
        return np.zeros(len(rows))
    by_chance, chances = game.to_play(states) == CHANCE, offered(states)
    by_chance &= ~game.outcome(states)[0]
    if not ((chances >= 0).all() and (abs(chances.sum(axis=1) - by_chance) < SETTLED).all()):
        raise GameError(f"{game.name} gives chances that are no probabilities: run seraphim check-game on it")
    return np.where(by_chance[rows], chances[rows, np.minimum(chosen, chances.shape[1] - 1)], 0.0)


def settle(name: str, graph: GameGraph, ends: Array) -> tuple[Array, int | None]:
    """Return what is still to come of the result for player 0 in each position, and the plies of the longest game.

    Args:
        name: the game's.
        graph: positions and edges; players take the best of those that are there.
        ends: what comes at once in the positions without edges, float64 [P].

    Returns:
        float64 [P], up to 1e-9 if positions recur by chance; then the plies are None.

    Raises:
        UnsolvedError: a position can recur without chance, or values do not settle.
    """
    values = ends.copy()
    recurring, waves = _settle_backwards(name, graph, lambda ready: back_up(graph, values, ready))
    if not len(recurring):
        return values, waves
    _iterate(name, graph, values, recurring)
    return values, None


def _settle_bounds(name: str, graph: GameGraph, ends: Array) -> tuple[Array, Array, int | None]:
    # The same for each column of `ends`, [P, V]: the least and the most however ties are broken, equal if there is one.
    if ends.shape[1] == 1:
        values, longest = settle(name, graph, ends[:, 0])
        return values[:, None], values[:, None], longest
    kinds = np.unique(ends[np.diff(graph.firsts) == 0], axis=0)
    if len(kinds) <= _MOST_RESULTS and not (graph.chances.any() or graph.gains.any()):
        return _settle_sets(name, graph, ends, kinds)
    low, high = ends.copy(), ends.copy()
    recurring, waves = _settle_backwards(name, graph, lambda ready: back_up_bounds(graph, low, high, ready))
    if len(recurring):
        raise UnsolvedError(
            f"{name} is not solved: it is for more than two players, and a position can recur by chance"
        )
    return low, high, waves


def _settle_sets(name: str, graph: GameGraph, ends: Array, kinds: Array) -> tuple[Array, Array, int]:
    # The same, by the sets of results that positions can have, of all `kinds`.
    sets = np.zeros(len(ends), np.int64)
    for number, kind in enumerate(kinds):
        sets[(np.diff(graph.firsts) == 0) & (ends == kind).all(axis=1)] = 1 << number
    _, waves = _settle_backwards(name, graph, lambda ready: back_up_sets(graph, kinds, sets, ready))
    low, high = np.full_like(ends, np.inf), np.full_like(ends, -np.inf)
    for number, kind in enumerate(kinds):
        rows = sets >> number & 1 == 1
        low[rows], high[rows] = np.minimum(low[rows], kind), np.maximum(high[rows], kind)
    return low, high, waves


def _settle_backwards(name: str, graph: GameGraph, back_up: Callable[[Array], None]) -> tuple[Array, int]:
    # From the ends backwards: a wave settles the positions whose successors are all settled. Returns those that are
    # never settled, as they recur by chance, and how many waves there are.
    counts = np.diff(graph.firsts)
    settled, unfinished, waves = counts == 0, np.flatnonzero(counts), 0
    while not settled.all():
        ready = unfinished[np.logical_and.reduceat(settled[graph.targets], graph.firsts[unfinished])]
        ready = ready[~settled[ready]]
        if not len(ready):
            if _recurs_by_choice(graph, ~settled & (graph.to_play != CHANCE)):
                raise UnsolvedError(f"{name} is not solved: a position can recur, so a game need not end")
            break
        back_up(ready)
        settled[ready] = True
        waves += 1
    return np.flatnonzero(~settled), waves


def _recurs_by_choice(graph: GameGraph, positions: Array) -> bool:
    # Whether some of these positions, bool [P], lead to each other in a circle.
    while positions.any():
        goes_on = np.zeros(len(positions), np.bool_)
        goes_on[graph.sources[positions[graph.targets]]] = True
        if (goes_on >= positions).all():
            return True
        positions = positions & goes_on
    return False


def _iterate(name: str, graph: GameGraph, values: Array, positions: Array) -> None:
    # Value iteration (Bellman 1957) where a position can recur by chance, from below and from above, until both agree.
    # The last discovered come first, since they are nearer to the ends.
    low, high, latest = values.copy(), values.copy(), positions[::-1].copy()
    low[positions], high[positions] = -_MOST, _MOST
    for _ in range(MAX_ITERATIONS):
        for bound in (low, high):
            back_up(graph, bound, latest)
        if (high - low)[positions].max() < SETTLED:
            values[positions] = (low + high)[positions] / 2
            return
    raise UnsolvedError(f"{name} is not solved: its values do not settle in {MAX_ITERATIONS:,} iterations")
