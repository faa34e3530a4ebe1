"""Small games solved: every position that play can reach, and the exact value of each action in it.

Knows the rules and no particular game. Values are for player 0 internally, so the order of the players does not matter.
A game that is small enough offers the solution as its solved positions:

    def position_sets(split):
        return solve(GAME).position_sets(split)

Shape letters: `P` positions, `E` edges (a legal action in a position), and those of `seraphim.game`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game, PlainGame, PlainRules
from seraphim.game.loading import PositionSet, Split

MAX_POSITIONS = 1_000_000  # reachable by play


class UnsolvedError(GameError):
    """A game cannot be solved: it is too large, or need not end."""


@dataclass(frozen=True)
class Solution:
    """All positions that play can reach, and their values; prints as one line."""

    game: str
    states: Array
    """int64 [P, W]; the first is the initial position."""
    results: Array
    """float32 [P]: exact, for player 0."""
    action_values: Array
    """float32 [P, A]: exact, for the player to move; NaN where illegal, and where the game has ended."""
    longest: int
    """Plies of the longest game that can be played."""

    def position_sets(self, split: Split = "validation") -> list[PositionSet]:
        """Return one set, all unfinished positions, in the same random order each time: any first ones are a sample.

        Nothing is left for the split `test`.
        """
        if split == "test":
            return []
        order = np.random.default_rng(0).permutation(np.flatnonzero(~np.isnan(self.action_values).all(axis=1)))
        return [PositionSet("all positions", self.states[order], self.action_values[order], sampled=False)]

    def __str__(self) -> str:
        result = float(self.results[0])
        verdict = {1.0: "player 0 wins", -1.0: "player 1 wins", 0.0: "a draw"}.get(
            result, f"{result:+.2f} for player 0"
        )
        return (
            f"{self.game} is solved: play can reach {len(self.states):,} positions, no game is longer than "
            f"{self.longest:,} plies, and best play from the start ends in: {verdict}"
        )


class _Graph(NamedTuple):
    # Positions in the order of discovery, and the edges between them, ordered by their first position.
    states: Array  # int64 [P, W]
    firsts: Array  # int64 [P + 1]: edges firsts[p] to firsts[p + 1] begin at position p
    actions: Array  # int64 [E]
    targets: Array  # int64 [E]: the position that an edge leads to


def solve(game: Game | PlainGame, max_positions: int = MAX_POSITIONS) -> Solution:
    """Return every position that play can reach, with its exact value.

    Raises:
        UnsolvedError: more than `max_positions` can be reached, a position can recur, or games can be cut off.
    """
    if isinstance(game, PlainGame):
        game = PlainRules(game)
    graph = _explore(game, max_positions)
    _, results = game.outcome(graph.states)
    second = game.to_play(graph.states) == 1
    longest = _value(game, graph, second, results)
    action_values = np.full((len(graph.states), game.num_actions), np.nan, np.float32)
    sources = np.repeat(np.arange(len(graph.states)), np.diff(graph.firsts))
    values = results[graph.targets]
    action_values[sources, graph.actions] = np.where(second[sources], -values, values)
    return Solution(game.name, graph.states, results, action_values, longest)


def _explore(game: Game, max_positions: int) -> _Graph:
    # Breadth-first, a layer at a time.
    states = [game.initial(1)]
    numbers = {states[0].tobytes(): 0}
    counts, actions, targets = [], [], []
    while len(states[-1]):
        legal = game.legal(states[-1])
        rows, chosen = np.nonzero(legal)
        fresh = []
        successors = game.step(states[-1][rows], chosen)
        for row, state in enumerate(successors):
            key = state.tobytes()
            if key not in numbers:
                numbers[key] = len(numbers)
                fresh.append(row)
            targets.append(numbers[key])
        if len(numbers) > max_positions:
            raise UnsolvedError(f"{game.name} is not solved: play can reach more than {max_positions:,} positions")
        counts.append(legal.sum(axis=1))
        actions.append(chosen)
        states.append(successors[fresh])
    firsts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return _Graph(np.concatenate(states), firsts, np.concatenate(actions), np.array(targets, np.int64))


def _value(game: Game, graph: _Graph, second: Array, results: Array) -> int:
    # Fills in the results float32 [P] of unfinished positions, from the ends backwards: a wave solves the positions
    # whose successors are all solved. Returns the number of waves, which is the plies of the longest game.
    counts = np.diff(graph.firsts)
    solved, unfinished, waves = counts == 0, np.flatnonzero(counts), 0
    starts = graph.firsts[unfinished]
    signs = np.where(second[unfinished], np.float32(-1), np.float32(1))  # player 1 maximizes the negative
    edge_signs = np.repeat(signs, counts[unfinished])
    while not solved.all():
        ready = np.logical_and.reduceat(solved[graph.targets], starts) & ~solved[unfinished]
        if not ready.any():
            raise UnsolvedError(f"{game.name} is not solved: a position can recur, so a game need not end")
        values = signs * np.maximum.reduceat(results[graph.targets] * edge_signs, starts)
        results[unfinished[ready]] = values[ready]
        solved[unfinished[ready]] = True
        waves += 1
    if waves > game.max_plies:
        raise UnsolvedError(
            f"{game.name} is not solved: a game can take {waves:,} plies, but is cut off after {game.max_plies:,}"
        )
    return waves
