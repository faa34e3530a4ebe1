"""A player against solved positions: where it gives value away, and whether it ever loses from the start.

Knows no particular game: a game offers its solved positions as `position_sets()`. Knows no search either: a player is
a function that chooses an action in each of many positions.

Shape letters: `P` positions, and those of `seraphim.game`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from seraphim.errors import GameError
from seraphim.evaluation.players import Choose
from seraphim.game import Array, Game
from seraphim.game.solved import PositionSet

Split = Literal["validation", "test"]  # positions to choose by, and others for the figures that are reported
TOLERANCE = 1e-6  # two float32 that differ by less mean the same value


class Mistakes(NamedTuple):
    """In how many positions of one set a player gives value away."""

    name: str
    positions: int
    searched: int  # by the searched move
    raw: int  # by the network's move without search


class Losses(NamedTuple):
    """Whether a player that starts from the initial position ever loses, whatever the other player does.

    None for a side that loses against best play whatever it does.
    """

    moving_first: bool | None
    moving_second: bool | None


@dataclass(frozen=True)
class Evaluation:
    """What a model is worth, by exact values; prints as one line."""

    sets: tuple[Mistakes, ...]
    """One entry for each set of positions."""
    losses: Losses | None
    """Of the searched move; None where the sets do not hold every position that it meets."""

    @property
    def perfect(self) -> bool:
        """Return whether it is known that the searched move is right everywhere and never loses from the start."""
        return self.losses is not None and not any(self.losses) and not any(one.searched for one in self.sets)

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name, for logs."""
        figures: dict[str, float] = {}
        for one in self.sets:
            figures[f"{one.name}/positions"] = one.positions
            figures[f"{one.name}/searched_mistakes"] = one.searched
            figures[f"{one.name}/raw_mistakes"] = one.raw
        if self.losses:
            sides = self.losses._asdict().items()
            figures |= {f"loses/{side}": loses for side, loses in sides if loses is not None}
        return figures

    def __str__(self) -> str:
        parts = [
            f"{one.name}: searched move wrong in {one.searched:,} of {one.positions:,}, raw network in {one.raw:,}"
            for one in self.sets
        ]
        if self.losses is not None:
            sides = {side.replace("_", " "): loses for side, loses in self.losses._asdict().items()}
            losing = [side for side, loses in sides.items() if loses]
            safe = [side for side, loses in sides.items() if loses is False]
            where = f" {safe[0]}" if len(safe) == 1 else ""  # the other side cannot help it
            parts.append(
                f"loses from the start {' and '.join(losing)}" if losing else f"never loses from the start{where}"
            )
        return "; ".join(parts)


def mistakes(positions: PositionSet, actions: Array) -> Array:
    """Return in which positions the chosen actions (any int type, [P]) give value away, bool [P].

    Raises:
        GameError: an action is illegal.
    """
    chosen = positions.action_values[np.arange(len(actions)), actions]
    if np.isnan(chosen).any():
        row = int(np.isnan(chosen).argmax())
        raise GameError(f"the player chose the illegal action {actions[row]} in position {row} of {positions.name!r}")
    wrong: Array = chosen < np.nanmax(positions.action_values, axis=1) - TOLERANCE
    return wrong


def loses_from_start(game: Game, choose: Choose) -> Losses:
    """Return whether a player ever loses from the initial position, by walking through every reply to its moves.

    Positions are visited once each, however they are reached, and a ply at a time, so that `choose` gets them in large
    batches. For games whose positions can be counted.

    Args:
        game: the rules.
        choose: the player; it must choose the same in the same position.
    """
    first = int(game.to_play(game.initial(1))[0])
    return Losses(_loses(game, choose, first), _loses(game, choose, 1 - first))


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


def evaluate(game: Game, position_sets: Sequence[PositionSet], searched: Choose, raw: Choose) -> Evaluation:
    """Count the mistakes of a model in solved positions, with and without search.

    Args:
        game: the rules.
        position_sets: the solved positions.
        searched: the player that searches.
        raw: the player that plays the network's favourite.

    Raises:
        GameError: a player chose an illegal action.
    """
    sets: list[Mistakes] = []
    choices: dict[bytes, int] = {}
    for positions in position_sets:
        actions = searched(positions.states)
        choices.update(zip((state.tobytes() for state in positions.states), actions.tolist(), strict=True))
        sets.append(
            Mistakes(
                name=positions.name,
                positions=len(positions.states),
                searched=int(mistakes(positions, actions).sum()),
                raw=int(mistakes(positions, raw(positions.states)).sum()),
            )
        )

    def remembered(states: Array) -> Array:
        return np.array([choices[state.tobytes()] for state in states], np.int64)

    try:
        losses = loses_from_start(game, remembered)
    except KeyError:  # the sets are samples of a game that is too large to be walked through
        losses = None
    return Evaluation(tuple(sets), None if losses is None else _avoidable(game, position_sets, losses))


def _avoidable(game: Game, position_sets: Sequence[PositionSet], losses: Losses) -> Losses:
    # Without the side that loses anyway, if the sets tell what the initial position is worth.
    for positions in position_sets:
        start = np.flatnonzero((positions.states == game.initial(1)).all(axis=1))
        if len(start):
            value = np.nanmax(positions.action_values[start[0]])
            return losses._replace(
                **({"moving_second": None} if value > 0 else {"moving_first": None} if value < 0 else {})
            )
    return losses
