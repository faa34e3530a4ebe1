"""The walk that looks at rules written one position at a time: what their adapter to batched rules hides.

The adapter keeps no more of a state than its words, and its arrays take whatever is put into them.
"""

from typing import Any, NoReturn

import numpy as np

from seraphim.game import Array, PlainGame
from seraphim.game.conformance.calls import raised
from seraphim.game.conformance.finding import ContractError, Place, kind_of
from seraphim.game.conformance.walks import Look, Trail


class PlainWalk:
    """Games of a plain game in lock step; see `seraphim.game.conformance.walks.Walk`."""

    def __init__(self, plain: PlainGame, batch: int) -> None:
        """Begin so many games.

        Raises:
            ContractError: a rule raises an error.
        """
        self._plain = plain
        self._trail = Trail()
        self._states: list[Any] = []
        self._states = [self._call("initial", None) for _ in range(batch)]

    def states(self) -> Array:
        """See `Walk.states`."""
        return np.array([tuple(self._plain.to_words(state)) for state in self._states], np.int64)

    def look(self) -> Look:
        """See `Walk.look`."""
        plain = self._plain
        legal = np.zeros((len(self._states), plain.num_actions), np.bool_)
        ended, results = np.zeros(len(legal), np.bool_), np.zeros(len(legal), np.float32)
        for row, state in enumerate(self._states):
            self._check_words(row, state)
            self._check_observation(row, state)
            outcome = self._call("outcome", row, state)
            ended[row], results[row] = outcome is not None, outcome or 0.0
            if outcome is None:
                legal[row, self._legal(row, state)] = True
        return Look(legal, ended, results)

    def advance(self, rows: Array, actions: Array) -> None:
        """See `Walk.advance`."""
        self._trail.select(rows)
        self._states = [self._states[row] for row in rows]
        states = [self._call("step", row, self._states[row], int(action)) for row, action in enumerate(actions)]
        self._trail.step(actions)
        self._states = states

    def _call(self, method: str, row: int | None, *arguments: Any) -> Any:
        try:
            return getattr(self._plain, method)(*arguments)
        except Exception as error:
            raise raised(self._plain.name, method, error, None if row is None else self._place(row)) from error

    def _place(self, row: int) -> Place:
        actions = self._trail.to(row)
        labels = tuple(self._plain.action_label(action) for action in actions)
        return Place(actions, labels, self._plain.render(self._states[row]))

    def _fail(self, rule: str, received: str, row: int) -> NoReturn:
        raise ContractError(f"{self._plain.name} breaks the contract", rule, received, self._place(row))

    def _check_words(self, row: int, state: Any) -> None:
        words = tuple(int(word) for word in self._call("to_words", row, state))
        if len(words) != self._plain.state_words:
            rule = f"to_words gives {self._plain.state_words} ints, as state_words says"
            self._fail(rule, f"gave {len(words)}: {words}", row)
        again = self._call("from_words", row, words)
        if again != state:
            rule = "from_words gives the state back that to_words was given"
            self._fail(rule, f"{state!r} became {words}, and that {again!r}", row)

    def _check_observation(self, row: int, state: Any) -> None:
        seen = np.asarray(self._call("observe", row, state))
        rule = f"observe gives ints from 0 to 255 of shape {list(self._plain.observation_shape)}"
        if seen.shape != tuple(self._plain.observation_shape):
            self._fail(rule, f"gave {kind_of(seen)}" if seen.size > 1 else f"gave {seen.tolist()}", row)
        if not np.array_equal(seen, seen.astype(np.uint8)):
            self._fail(rule, f"gave {seen.tolist()}", row)

    def _legal(self, row: int, state: Any) -> list[int]:
        actions = list(self._call("legal", row, state))
        if not actions or not set(actions) <= set(range(self._plain.num_actions)):
            self._fail(f"legal gives actions below {self._plain.num_actions} until the end", f"gave {actions}", row)
        return actions
