"""The positions of a small game as a graph, and how their values follow from one another. Knows no rules.

Shape letters: those of `seraphim.game.exhaustive`.
"""

from typing import NamedTuple

import numpy as np

from seraphim.game.interface import CHANCE, Array
from seraphim.jit import kernel

SETTLED = 1e-9  # between the bounds of a value that has settled


class GameGraph(NamedTuple):
    """The positions of a game in the order of discovery, and the edges between them, ordered by their first position.

    Edges `firsts[p]` to before `firsts[p + 1]` begin at position `p`.
    """

    states: Array  # int64 [P, W]
    to_play: Array  # int8 [P]: the seat, or CHANCE
    firsts: Array  # int64 [P + 1]
    followers: Array  # int64 [E]: the action, or the outcome
    targets: Array  # int64 [E]: the position that an edge leads to
    gains: Array  # float64 [E]: what player 0 banks on the way; of more than two players all, [E, N]
    chances: Array  # float64 [E]: the probability of an outcome; 0 of an action

    @property
    def sources(self) -> Array:
        """Return the position at which each edge begins, int64 [E]."""
        return np.repeat(np.arange(len(self.states)), np.diff(self.firsts))

    def only(self, edges: Array) -> "GameGraph":
        """Return the graph without the edges that are False in bool [E]."""
        firsts = np.searchsorted(self.sources[edges], np.arange(len(self.firsts)))
        kept = (each[edges] for each in (self.followers, self.targets, self.gains, self.chances))
        return GameGraph(self.states, self.to_play, firsts, *kept)


@kernel
def back_up(graph: GameGraph, values: Array, positions: Array) -> None:
    """Give positions with edges, one after the other, their values float64 [P] by those that follow.

    They are for player 0 of one or two: the best for the mover, or the expectation.
    """
    for position in positions:
        by_chance, sign = graph.to_play[position] == CHANCE, -1.0 if graph.to_play[position] == 1 else 1.0
        best, expected = -np.inf, 0.0
        for edge in range(graph.firsts[position], graph.firsts[position + 1]):
            after = graph.gains[edge] + values[graph.targets[edge]]
            best = max(best, sign * after)  # player 1 maximizes the negative
            expected += graph.chances[edge] * after
        values[position] = expected if by_chance else sign * best


@kernel
def back_up_bounds(graph: GameGraph, low: Array, high: Array, positions: Array) -> None:
    """Give positions bounds float64 [P, N] likewise: of all moves that the mover may choose, as they may be best."""
    players = low.shape[1]
    for position in positions:
        mover, edges = graph.to_play[position], range(graph.firsts[position], graph.firsts[position + 1])
        sure = -np.inf  # what the mover gets however ties are broken
        for edge in edges:
            if mover != CHANCE:
                sure = max(sure, graph.gains[edge, mover] + low[graph.targets[edge], mover])
        for player in range(players):
            least, most, expected_least, expected_most = np.inf, -np.inf, 0.0, 0.0
            for edge in edges:
                target, gain = graph.targets[edge], graph.gains[edge, player]
                if mover == CHANCE:
                    expected_least += graph.chances[edge] * (gain + low[target, player])
                    expected_most += graph.chances[edge] * (gain + high[target, player])
                elif graph.gains[edge, mover] + high[target, mover] > sure - SETTLED:
                    least, most = min(least, gain + low[target, player]), max(most, gain + high[target, player])
            low[position, player] = expected_least if mover == CHANCE else sure if player == mover else least
            high[position, player] = expected_most if mover == CHANCE else most


@kernel
def back_up_sets(graph: GameGraph, kinds: Array, sets: Array, positions: Array) -> None:
    """Give positions sets of results int64 [P] likewise: those of any move that are no less than the mover is sure of.

    Bit `r` of a set stands for row `r` of `kinds`, float64 [results, N].
    """
    for position in positions:
        mover, sure, found = graph.to_play[position], -np.inf, np.int64(0)
        edges = range(graph.firsts[position], graph.firsts[position + 1])
        for edge in edges:
            least = np.inf
            for number in range(len(kinds)):
                if sets[graph.targets[edge]] >> number & 1:
                    least = min(least, kinds[number, mover])
            sure = max(sure, least)
        for edge in edges:
            for number in range(len(kinds)):
                if kinds[number, mover] >= sure:
                    found |= sets[graph.targets[edge]] & np.int64(1) << np.int64(number)
        sets[position] = found
