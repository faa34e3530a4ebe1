"""What a player's moves are worth exactly in a game that is solved: their expected result, and what they cost.

The player is asked once for each position, so it has to be deterministic. Knows no particular game.

Shape letters: `P` positions, `C` those in which a player moves, `E` edges, and those of `seraphim.game`.
"""

from dataclasses import dataclass

import numpy as np

from seraphim.errors import GameError
from seraphim.evaluation.error_rates import COSTLY
from seraphim.evaluation.match import checked_actions
from seraphim.game import CHANCE, Array, Game
from seraphim.game.exhaustive import GameGraph, Solution, UnsolvedError, settle
from seraphim.game.features import features_of, num_columns
from seraphim.jit import kernel
from seraphim.players.choose import Choose

_TOLERANCE = 1e-7  # values that differ by less are equal; those of a solution are exact up to 1e-9


@dataclass(frozen=True)
class ExactPlay:
    """What the moves of a player are worth, and what they cost; prints as one line.

    Expected results are from -1 to 1. A score is the share of points, 0 to 1, where a draw counts half: without draws
    it is the probability of a win.
    """

    results: tuple[float, ...]
    """Expected, by the player's seat, against best play: of several best moves the one that is worst for the player."""
    best: tuple[float, ...]
    """The same of best play."""
    positions: int
    """In which a player moves, and to which best play of all players can lead, whichever of the best moves it takes."""
    costly: int
    """In how many of them the chosen move costs more than the threshold."""
    regret: float
    """What the chosen move costs in the mean of them, of a result."""
    threshold: float = COSTLY
    points: float = 1.0  # of a result of 1

    @property
    def score(self) -> float:
        """Return the expected score over all seats."""
        return _score(self.results)

    def __str__(self) -> str:
        costs = (
            f"the move costs more than {self.threshold * self.points:g} in {self.costly:,} of {self.positions:,} "
            f"positions of best play ({self.costly / max(1, self.positions):.2%}), "
            f"mean regret {self.regret * self.points:.3g}"
        )
        if len(self.results) == 1:
            result, best = self.results[0] * self.points, self.best[0] * self.points
            share = f" ({result / best:.3%})" if best > 0 else ""
            return f"expects {result:,.3f} of {best:,.3f} points{share}; {costs}"
        seats = ", ".join(
            f"{_score((result,)):.4%} of {_score((best,)):.4%} as player {seat}"
            for seat, (result, best) in enumerate(zip(self.results, self.best, strict=True))
        )
        return f"score {self.score:.4%} of {_score(self.best):.4%} against best play ({seats}); {costs}"


def _score(results: tuple[float, ...]) -> float:
    return float(1 + np.mean(results)) / 2


def positions_to_choose(solution: Solution) -> Array:
    """Return the positions in which a player moves, int64 [C]: their places in the states of a solution."""
    return np.flatnonzero((np.diff(solution.graph.firsts) > 0) & (solution.graph.to_play != CHANCE))


def measure_play(game: Game, solution: Solution, player: Choose | Array, threshold: float = COSTLY) -> ExactPlay:
    """Return what the moves of a player are worth exactly.

    Args:
        game: the rules.
        solution: the game, solved.
        player: chooses in all positions at once; or the actions int [C] that it chose in `positions_to_choose`.
        threshold: what a move may cost, of a result, before it is counted.

    Raises:
        GameError: an action is illegal, games with these moves need not end, or there are more than two players.
        PlayerError: the player needs the moves that lead to a position.
    """
    if num_columns(game) > 1:
        raise GameError(
            f"{game.name} is for more than two players: what best play is worth depends on how ties are broken"
        )
    graph, features, start = solution.graph, features_of(game), float(solution.results[0] - solution.to_come[0])
    sources = graph.sources
    movers = graph.to_play[sources]
    lost = solution.to_come[sources] - graph.gains - solution.to_come[graph.targets]  # of player 0
    costs = np.where(movers == 1, -lost, lost)
    best = (costs < _TOLERANCE) | (movers == CHANCE)
    chosen = _chosen(game, solution, player, sources)
    met = chosen & _reached(graph, best)[sources]
    found = np.where(costs[met] < _TOLERANCE, 0.0, costs[met])
    results = []
    for seat in range(features.num_players or 2):
        played = np.where(movers == seat, chosen, best)
        total = start + _to_come(solution, played & _reached(graph, played)[sources])
        results.append(-total if seat == 1 else total)
    total = float(solution.results[0])
    return ExactPlay(
        results=tuple(results),
        best=(total, -total)[: len(results)],
        positions=len(found),
        costly=int((found > threshold).sum()),
        regret=float(found.mean()) if len(found) else 0.0,
        threshold=threshold,
        points=features.points or 1.0,
    )


def _chosen(game: Game, solution: Solution, player: Choose | Array, sources: Array) -> Array:
    # Which edges are the chosen actions, bool [E].
    positions = positions_to_choose(solution)
    states = solution.states[positions]
    actions = np.full(len(solution.states), -1)
    actions[positions] = checked_actions(game, states, player(states) if callable(player) else player)
    return solution.graph.followers == actions[sources]


@kernel
def _reached(graph: GameGraph, edges: Array) -> Array:
    # Which positions some of the edges, bool [E], lead to from the first one, bool [P].
    reached, waiting, count = np.zeros(len(graph.states), np.bool_), np.zeros(len(graph.states), np.int64), 1
    reached[0] = True
    while count:
        count -= 1
        position = waiting[count]
        for edge in range(graph.firsts[position], graph.firsts[position + 1]):
            target = graph.targets[edge]
            if edges[edge] and not reached[target]:
                reached[target] = True
                waiting[count] = target
                count += 1
    return reached


def _to_come(solution: Solution, edges: Array) -> float:
    # What is still to come for player 0 at the first position, if only some edges are taken, bool [E].
    ends = np.where(np.diff(solution.graph.firsts) == 0, solution.to_come, 0.0)
    try:
        return float(settle(solution.game, solution.graph.only(edges), ends)[0][0])
    except UnsolvedError as error:
        raise GameError(f"with the chosen moves, a game of {solution.game} need not end: {error}") from error
