"""The walk that checks rules written one position at a time.

They are checked by themselves too, because their adapter hides mistakes: it keeps no more of a state than its words,
and its arrays take whatever is put into them.
"""

from typing import Any, NoReturn

import numpy as np

from seraphim.game import CHANCE, Array, PlainGame, PlainRules
from seraphim.game.conformance.walk import ContractError, Counterexample, History, Inspected, describe, raised
from seraphim.game.features import features_of, is_result, num_columns, num_players, result_kind
from seraphim.game.notation import labels_along, labels_vary


class PlainWalk:
    """A `Walk` of rules written one position at a time."""

    def __init__(self, plain: PlainGame, batch: int) -> None:
        """Begin a batch of games.

        Raises:
            ContractError: a rule raises an error.
        """
        self._plain = plain
        self._history = History()
        self._states: list[Any] = []
        self._states = [self._call("initial", None) for _ in range(batch)]

    def states(self) -> Array:
        return np.array([tuple(self._plain.to_words(state)) for state in self._states], np.int64)

    def inspect(self) -> Inspected:
        plain = self._plain
        outcomes = features_of(plain).num_chance_outcomes or 0
        legal = np.zeros((len(self._states), max(plain.num_actions, outcomes)), np.bool_)
        ended, results = np.zeros(len(legal), np.bool_), np.zeros((len(legal), num_columns(plain)), np.float32)
        for row, state in enumerate(self._states):
            self._check_words(row, state)
            outcome = self._call("outcome", row, state)
            ended[row] = outcome is not None
            if outcome is not None:
                results[row] = self._checked("outcome", row, outcome)
            if features_of(plain).banked is not None:
                self._checked("banked", row, self._call("banked", row, state))
            if outcome is None and outcomes and self._call("to_play", row, state) == CHANCE:
                legal[row, np.flatnonzero(self._chances(row, state, outcomes))] = True
                continue
            self._check_observation(row, state)
            if outcome is None:
                legal[row, self._legal(row, state)] = True
        return Inspected(legal, ended, results)

    def advance(self, rows: Array, actions: Array) -> None:
        self._history.select(rows)
        self._states = [self._states[row] for row in rows]
        states = [self._call("step", row, self._states[row], int(action)) for row, action in enumerate(actions)]
        self._history.step(actions)
        self._states = states

    def _call(self, method: str, row: int | None, *arguments: Any) -> Any:
        try:
            return getattr(self._plain, method)(*arguments)
        except Exception as error:
            raise raised(self._plain.name, method, error, None if row is None else self._example(row)) from error

    def _example(self, row: int) -> Counterexample:
        actions = self._history.to(row)
        game = PlainRules(self._plain)
        start = game.initial(1)[0] if labels_vary(game) else np.empty(0, np.int64)
        labels = tuple(labels_along(game, start, actions))
        return Counterexample(actions, labels, self._plain.render(self._states[row]))

    def _fail(self, rule: str, received: str, row: int) -> NoReturn:
        raise ContractError(f"{self._plain.name} breaks the contract", rule, received, self._example(row))

    def _check_words(self, row: int, state: Any) -> None:
        words = tuple(int(word) for word in self._call("to_words", row, state))
        if len(words) != self._plain.state_words:
            rule = f"to_words must return {self._plain.state_words} ints, as state_words says"
            self._fail(rule, f"returned {len(words)}: {words}", row)
        if not all(-(2**63) <= word < 2**63 for word in words):
            self._fail("to_words must return ints of 64 bits, from -2**63 to 2**63 - 1", f"returned {words}", row)
        again = self._call("from_words", row, words)
        if again != state:
            rule = "from_words must return the state that to_words was given"
            self._fail(rule, f"{state!r} became {words}, and that {again!r}", row)

    def _check_observation(self, row: int, state: Any) -> None:
        seen = np.asarray(self._call("observe", row, state))
        rule = f"observe must return ints from 0 to 255 of shape {list(self._plain.observation_shape)}"
        if seen.shape != tuple(self._plain.observation_shape):
            self._fail(rule, f"returned {describe(seen)}" if seen.size > 1 else f"returned {seen.tolist()}", row)
        if not np.array_equal(seen, seen.astype(np.uint8)):
            self._fail(rule, f"returned {seen.tolist()}", row)

    def _checked(self, rule: str, row: int, result: Any) -> Any:
        players = num_players(self._plain)
        if not is_result(result, players):
            self._fail(f"{rule} must return {result_kind(players)}", f"returned {result!r}", row)
        return result

    def _legal(self, row: int, state: Any) -> list[int]:
        actions = list(self._call("legal", row, state))
        if not actions or not set(actions) <= set(range(self._plain.num_actions)):
            self._fail(
                f"legal must return actions below {self._plain.num_actions} until the end", f"returned {actions}", row
            )
        return actions

    def _chances(self, row: int, state: Any, outcomes: int) -> Array:
        chances = self._call("chances", row, state)
        try:
            found = np.asarray(chances, np.float64)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.shape != (outcomes,):
            self._fail(f"chances must return {outcomes} numbers", f"returned {chances!r}", row)
        return found
