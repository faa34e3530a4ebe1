"""A rule that a game breaks, and where; and walks: many games in lock step that are checked after each move."""

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, Game, PlainGame, random_actions

MAX_LABELS = 30  # actions named in a message


class Counterexample(NamedTuple):
    """A position where a rule is broken."""

    actions: tuple[int, ...]  # from the initial position
    labels: tuple[str, ...]  # of these actions
    drawing: str


class ContractError(GameError):
    """A broken rule, as a sentence and, where there is one, a position."""

    def __init__(
        self, subject: str, rule: str, received: str, example: Counterexample | None = None, found_after: int = 0
    ) -> None:
        """Write the message.

        Args:
            subject: the beginning of the sentence, such as `tictactoe breaks the contract`.
            rule: what was expected, in the same words wherever it is broken.
            received: what happened instead.
            example: where.
            found_after: after how many moves it was first found, if the example has fewer.
        """
        text = f"{subject}: {rule}, but {received}"
        if example is not None:
            found = f" (first found after {found_after} moves)" if found_after else ""
            text += f"\nposition after {' '.join(example.labels) or 'no moves'}{found}:\n{example.drawing}"
        super().__init__(text)
        self.subject, self.rule, self.received, self.example = subject, rule, received, example

    def shortening(self, other: "ContractError") -> "ContractError":
        """Return this error; its message says how many moves the other one took, if those were more."""
        if self.example is None or other.example is None or len(self.example.actions) >= len(other.example.actions):
            return self
        return ContractError(self.subject, self.rule, self.received, self.example, len(other.example.actions))


def raised(name: str, method: str, error: Exception, example: Counterexample | None) -> ContractError:
    """Return the finding that a method of a game raised an error, with the line where it did."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
    return ContractError(f"{name} breaks the contract", f"{method} must not raise", f"it raised {where}", example)


def name_actions(game: Game | PlainGame, actions: Sequence[int] | Array) -> str:
    """Return actions by their labels, such as `b2 c3`; `none` if there are none."""
    labels = [game.action_label(int(action)) for action in actions]
    rest = f" and {len(labels) - MAX_LABELS} more" if len(labels) > MAX_LABELS else ""
    return " ".join(labels[:MAX_LABELS]) + rest or "none"


def describe(array: object) -> str:
    """Return dtype and shape of a returned value, such as `int8 [20]`."""
    return f"{array.dtype} {list(array.shape)}" if isinstance(array, np.ndarray) else f"a {type(array).__name__}"


def observed(game: Game, states: Array) -> Array:
    """Return the observations uint8 [B, *O] of states; where chance moves, which nobody observes, zeros."""
    seen = np.zeros((len(states), *game.observation_shape), np.uint8)
    rows = game.to_play(states) != CHANCE
    if rows.any():
        seen[rows] = game.observe(states[rows])
    return seen


# ---------------------------------------------------------------- walks


class Inspected(NamedTuple):
    """Facts about the positions of a walk."""

    followers: Array  # bool [B, max(A, K)]: the legal actions, or the outcomes that chance has
    ended: Array  # bool [B]
    results: Array  # float32 [B, V], for player 0 first


class Walk(Protocol):
    """Games in lock step: each row is at a position after the same number of moves."""

    def inspect(self) -> Inspected:
        """Check the positions.

        Raises:
            ContractError: a rule does not hold in one of them.
        """

    def advance(self, rows: Array, actions: Array) -> None:
        """Play a legal action, or an outcome of chance, int [N], in each of some rows, int [N], which may recur.

        Raises:
            ContractError: a rule does not hold of a move.
        """

    def states(self) -> Array:
        """Return the positions, int64 [B, W]; rows are equal if and only if the positions are."""


class History:
    """The moves that led to each row of a walk."""

    def __init__(self) -> None:
        self._links: list[tuple[bool, Array]] = []  # whether actions, else the rows that were selected

    def select(self, rows: Array) -> None:
        """Note that the rows are now those that were at `rows` before, int [K]."""
        self._links.append((False, rows))

    def step(self, actions: Array) -> None:
        """Note the actions that were played, int [K]."""
        self._links.append((True, actions))

    def to(self, row: int) -> tuple[int, ...]:
        """Return the actions that led from the initial position to a row."""
        actions = []
        for are_actions, link in reversed(self._links):
            if are_actions:
                actions.append(int(link[row]))
            else:
                row = int(link[row])
        return tuple(reversed(actions))


class Played(NamedTuple):
    """Random games that were played."""

    results: tuple[int, int, int, int]  # player 0 gets more than 0, 0, or less; cut off
    totals: Array  # float64 [V]: of all results, for player 0 first
    longest: int  # plies


def play_randomly(walk: Walk, generator: np.random.Generator, max_plies: int) -> Played:
    """Walk by random moves until all games have ended, or for `max_plies`.

    Raises:
        ContractError: as the walk does.
    """
    counts, totals = np.zeros(3, np.int64), np.float64(0)
    ply = 0
    while True:
        found = walk.inspect()
        counts += [(found.ended & (np.sign(found.results[:, 0]) == sign)).sum() for sign in (1, 0, -1)]
        totals = totals + found.results[found.ended].sum(axis=0, dtype=np.float64)
        rows = np.flatnonzero(~found.ended)
        if not len(rows) or ply == max_plies:
            break
        walk.advance(rows, random_actions(found.followers[rows], generator))
        ply += 1
    won, drawn, lost = counts.tolist()
    return Played((won, drawn, lost, len(rows)), totals, ply)


def replay(walk: Walk, actions: tuple[int, ...]) -> None:
    """Walk by the same moves in each row as long as they are legal, and at the end by every legal move.

    Raises:
        ContractError: as the walk does.
    """
    for action in actions:
        found = walk.inspect()
        if found.ended.any() or not found.followers[:, action].all():
            return
        walk.advance(np.arange(len(found.ended)), np.full(len(found.ended), action))
    walk.advance(*np.nonzero(walk.inspect().followers))
