"""The check of a model after each generation: errors in solved positions, and whether it ever loses from the start.

Knows no particular game: a game offers its solved positions as `position_sets`. Knows no search either, only players.

Shape letters: `P` positions, and those of `seraphim.game`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seraphim.evaluation.error_rates import Errors, measure_errors
from seraphim.game import Array, Game
from seraphim.game.features import is_combinatorial
from seraphim.game.loading import PositionSet
from seraphim.players.choose import Choose

SEARCHED, RAW = "searched", "raw"
"""The players of an evaluation: the search, and the network without search."""


class StartLosses(NamedTuple):
    """Whether a player can lose from the initial position, by side; None for a side that best play defeats."""

    moving_first: bool | None
    moving_second: bool | None


@dataclass(frozen=True)
class CheckResult:
    """The strength of a model by exact values; prints as one line."""

    errors: tuple[Errors, ...]  # errors of the players SEARCHED and RAW in each set of positions, in turn
    losses: StartLosses | None  # of the searched move; None where the sets lack positions that it meets

    @property
    def perfect(self) -> bool:
        """Return whether the searched move is known to be right everywhere and never to lose from the start."""
        return self.losses is not None and not any(self.losses) and not self.mistakes(SEARCHED)

    def mistakes(self, player: str) -> int:
        """Return how many mistakes SEARCHED or RAW makes in all sets."""
        return sum(each.weak.events for each in self.errors if each.player == player)

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name, for logs."""
        figures: dict[str, float] = {}
        for each in self.errors:
            figures[f"{each.positions}/positions"] = each.weak.trials
            figures[f"{each.positions}/{each.player}_mistakes"] = each.weak.events
            if each.regret is not None:
                figures[f"{each.positions}/{each.player}_regret"] = each.regret
        sides = self.losses._asdict() if self.losses else {}
        return figures | {f"loses/{side}": loses for side, loses in sides.items() if loses is not None}

    def __str__(self) -> str:
        parts = [
            f"{searched.positions}: searched move wrong in {searched.weak.events:,} of {searched.weak.trials:,}, "
            f"raw network in {raw.weak.events:,}"
            + ("" if searched.regret is None else f"; regret {searched.regret:.3g} and {raw.regret:.3g} points")
            for searched, raw in zip(self.errors[::2], self.errors[1::2], strict=True)
        ]
        if self.losses is not None:
            sides = {side.replace("_", " "): loses for side, loses in self.losses._asdict().items()}
            losing = [side for side, loses in sides.items() if loses]
            safe = [side for side, loses in sides.items() if loses is False]
            where = f" {safe[0]}" if len(safe) == 1 else ""  # the other side loses against best play
            parts.append(
                f"loses from the start {' and '.join(losing)}" if losing else f"never loses from the start{where}"
            )
        return "; ".join(parts)


def evaluate(game: Game, position_sets: Sequence[PositionSet], searched: Choose, raw: Choose) -> CheckResult:
    """Count the mistakes of a model in solved positions, with and without search.

    Raises:
        GameError: a player chose an illegal action.
    """
    choices: dict[bytes, int] = {}

    def search_and_remember(states: Array) -> Array:
        actions = searched(states)
        choices.update(zip((state.tobytes() for state in states), actions.tolist(), strict=True))
        return actions

    def remember(states: Array) -> Array:
        return np.array([choices[state.tobytes()] for state in states], np.int64)

    errors = tuple(measure_errors(game, {SEARCHED: search_and_remember, RAW: raw}, position_sets))
    if not is_combinatorial(game):
        return CheckResult(errors, None)
    try:
        losses = loses_from_start(game, remember)
    except KeyError:  # the sets are samples of a game that is too large to be walked through
        return CheckResult(errors, None)
    return CheckResult(errors, _avoidable(game, position_sets, losses))


def _avoidable(game: Game, position_sets: Sequence[PositionSet], losses: StartLosses) -> StartLosses:
    # None for the side that best play defeats, if a set holds the initial position.
    for positions in position_sets:
        start = np.flatnonzero((positions.states == game.initial(1)).all(axis=1))
        if len(start):
            value = np.nanmax(positions.action_values[start[0]])
            defeated = {"moving_second": None} if value > 0 else {"moving_first": None} if value < 0 else {}
            return losses._replace(**defeated)
    return losses


def loses_from_start(game: Game, choose: Choose) -> StartLosses:
    """Return whether a deterministic player ever loses from the initial position, by trying every reply to its moves.

    Each position is visited once, however it is reached, and ply by ply, so that `choose` gets large batches. For games
    whose positions can be counted.
    """
    first = int(game.to_play(game.initial(1))[0])
    return StartLosses(_loses(game, choose, first), _loses(game, choose, 1 - first))


def _loses(game: Game, choose: Choose, player: int) -> bool:
    states = game.initial(1)
    visited = {states.tobytes()}
    for _ in range(game.max_plies):
        ours = game.to_play(states) == player
        moves = game.legal(states)
        if ours.any():
            chosen = choose(states[ours])
            moves[ours] = np.arange(game.num_actions) == chosen[:, None]
        rows, actions = np.nonzero(moves)
        successors = np.unique(game.step(states[rows], actions), axis=0)
        ended, results = game.outcome(successors)
        if (ended & (results * (1 - 2 * player) < 0)).any():
            return True
        fresh = [row for row in np.flatnonzero(~ended) if successors[row].tobytes() not in visited]
        if not fresh:
            return False
        states = successors[fresh]
        visited.update(state.tobytes() for state in states)
    return False
