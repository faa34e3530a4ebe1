"""A rule that a game breaks, and the position where it does."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game, PlainGame

MOST_LABELS = 30  # of the actions in a sentence


class Place(NamedTuple):
    """A position of a game, and how play came there."""

    actions: tuple[int, ...]  # from the initial position
    labels: tuple[str, ...]  # of these actions
    drawing: str


class ContractError(GameError):
    """What was expected of a game and what it did instead; prints as a sentence and, if there is one, a position."""

    def __init__(
        self, subject: str, rule: str, received: str, place: Place | None = None, found_after: int = 0
    ) -> None:
        """Write the sentence.

        Args:
            subject: who does what, such as `tictactoe breaks the contract`.
            rule: what was expected, in the same words wherever it is broken.
            received: what happened.
            place: where.
            found_after: how many moves had led there when it was first found, if there are fewer now.
        """
        text = f"{subject}: {rule}, but {received}"
        if place is not None:
            found = f" (first found after {found_after} moves)" if found_after else ""
            text += f"\nposition after {' '.join(place.labels) or 'no moves'}{found}:\n{place.drawing}"
        super().__init__(text)
        self.subject = subject
        self.rule = rule
        self.received = received
        self.place = place

    def instead_of(self, other: "ContractError") -> "ContractError":
        """Return this finding, which says after how many moves the other one was found, if those were more."""
        if self.place is None or other.place is None or len(self.place.actions) >= len(other.place.actions):
            return self
        return ContractError(self.subject, self.rule, self.received, self.place, len(other.place.actions))


def name_actions(game: Game | PlainGame, actions: Sequence[int] | Array) -> str:
    """Return actions by their labels, such as `b2 c3`; `none` if there are none."""
    labels = [game.action_label(int(action)) for action in actions]
    rest = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    return " ".join(labels[:MOST_LABELS]) + rest or "none"


def kind_of(array: object) -> str:
    """Return type and shape of what a game gave, such as `int8 [20]`."""
    return f"{array.dtype} {list(array.shape)}" if isinstance(array, np.ndarray) else f"a {type(array).__name__}"
