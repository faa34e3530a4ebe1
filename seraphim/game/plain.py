"""Games whose rules are plain Python, one position at a time."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from seraphim.errors import GameError
from seraphim.game.features import features_of, is_result, num_players, result_kind
from seraphim.game.interface import CHANCE, Array, Symmetries, identity_symmetry


class PlainGame:
    """Base class for rules written one position at a time in plain Python; `PlainRules` makes a `Game` of them.

    A state is any hashable object. If it is a tuple of `state_words` ints, nothing else is needed; otherwise
    override `to_words` and `from_words`, because states are also stored in files and sent between processes.
    """

    name: str
    num_actions: int
    observation_shape: tuple[int, ...]
    state_words: int
    max_plies: int

    def initial(self) -> Hashable:
        """Return the initial state."""
        raise NotImplementedError

    def step(self, state: Any, action: int) -> Hashable:
        """Return the state after a legal action."""
        raise NotImplementedError

    def legal(self, state: Any) -> Sequence[int]:
        """Return the legal actions of an unfinished state."""
        raise NotImplementedError

    def to_play(self, state: Any) -> int:
        """Return the player to move, 0 to P - 1, or CHANCE."""
        raise NotImplementedError

    def outcome(self, state: Any) -> float | Sequence[float] | None:
        """Return the result for player 0 in [-1, 1], or None if the game goes on.

        Where there are more than two players, return the results of all.
        """
        raise NotImplementedError

    def observe(self, state: Any) -> Array:
        """Return the network's input, small non-negative ints of shape `observation_shape`, for the player to move."""
        raise NotImplementedError

    def symmetries(self) -> Symmetries:
        """Return the symmetries of the board; by default the identity alone."""
        return identity_symmetry(self.observation_shape, self.num_actions)

    def render(self, state: Any) -> str:
        """Return a drawing of a state in plain text."""
        return str(state)

    def action_label(self, action: int) -> str:
        """Return the usual name of an action; by default its number."""
        return str(action)

    def parse_action(self, text: str) -> int:
        """Return the action that `text` names.

        Raises:
            GameError: `text` names no action of this game.
        """
        for action in range(self.num_actions):
            if self.action_label(action) == text.strip():
                return action
        raise GameError(f"{text!r} is not an action of {self.name}: expected one like {self.action_label(0)!r}")

    def to_words(self, state: Any) -> Sequence[int]:
        """Return the state as `state_words` ints of 64 bits, exactly."""
        return tuple(state)

    def from_words(self, words: tuple[int, ...]) -> Hashable:
        """Return the state that `to_words` gave these ints for."""
        return words


class PlainRules:
    """A `Game` made of a `PlainGame`: loops over the rows of each batch in Python, about ten microseconds a readout."""

    def __init__(self, plain: PlainGame) -> None:
        self.plain = plain
        self.name = plain.name
        self.num_actions = plain.num_actions
        self.observation_shape = tuple(plain.observation_shape)
        self.state_words = plain.state_words
        self.max_plies = plain.max_plies
        self.symmetries = plain.symmetries
        self.action_label = plain.action_label
        self.parse_action = plain.parse_action
        for name, member in vars(features_of(plain)).items():
            if member is not None:
                setattr(self, name, self._feature(name, member))

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as the plain game."""
        return PlainRules, (self.plain,)

    def _feature(self, name: str, member: Any) -> Any:
        # An optional member of the plain game, in terms of words and batches.
        if isinstance(member, str | int | float):
            return member
        if name == "progress":
            return lambda states: np.array([member(state) for state in self._objects(states)], np.float64)
        if name == "known_results":

            def known_results(states: Array) -> tuple[Array, Array]:
                results = np.array([member(state) for state in self._objects(states)], np.float32)  # None becomes NaN
                return ~np.isnan(results), np.nan_to_num(results)

            return known_results
        if name == "chances":
            return self._chances
        if name == "banked":
            return lambda states: self._banked([member(state) for state in self._objects(states)])
        return lambda state, *action: member(self._objects(state[None])[0], *action)

    def _chances(self, states: Array) -> Array:
        chances = np.zeros((len(states), self.num_chance_outcomes))  # type: ignore[attr-defined]
        for row, state in enumerate(self._objects(states)):
            if self.plain.outcome(state) is None and self.plain.to_play(state) == CHANCE:
                chances[row] = self.plain.chances(state)  # type: ignore[attr-defined]
        return chances

    def _banked(self, found: Sequence[Any]) -> Array:
        # By player, float32 [B, P].
        banked = self._results("banked", found)
        return np.stack([banked, -banked], axis=1) if num_players(self.plain) == 2 else banked

    def _results(self, rule: str, found: Sequence[Any]) -> Array:
        # What a rule returned, 0 for None: float32 [B, V], of two players [B].
        players = num_players(self.plain)
        nothing = (0.0,) * players if players > 2 else 0.0
        rows = [nothing if each is None else each for each in found]
        for each in rows:
            if not is_result(each, players):
                raise GameError(f"{self.name}: {rule} must return {result_kind(players)}, not {each!r}")
        results = np.array(rows, np.float32)
        return results[:, None] if players == 1 else results

    def _objects(self, states: Array) -> list[Any]:
        return [self.plain.from_words(tuple(row)) for row in states.tolist()]

    def _words(self, objects: Sequence[Any]) -> Array:
        rows = [self.plain.to_words(state) for state in objects]
        if any(len(row) != self.state_words for row in rows):
            raise GameError(
                f"{self.name}: a state has {len(rows[0])} words but state_words is {self.state_words}: "
                "make states tuples of that many ints, or override to_words and from_words"
            )
        try:
            return np.array(rows, np.int64).reshape(len(rows), self.state_words)
        except (OverflowError, TypeError, ValueError) as error:
            raise GameError(
                f"{self.name}: the words of a state must be ints of 64 bits, from -2**63 to 2**63 - 1 ({error}): "
                "put the bits of a longer one into several words"
            ) from error

    def initial(self, batch: int) -> Array:
        return np.repeat(self._words([self.plain.initial()]), batch, axis=0)

    def step(self, states: Array, actions: Array) -> Array:
        pairs = zip(self._objects(states), actions.tolist(), strict=True)
        return self._words([self.plain.step(state, action) for state, action in pairs])

    def legal(self, states: Array) -> Array:
        legal = np.zeros((len(states), self.num_actions), np.bool_)
        for row, state in enumerate(self._objects(states)):
            if self.plain.outcome(state) is None and self.plain.to_play(state) != CHANCE:
                legal[row, list(self.plain.legal(state))] = True
        return legal

    def to_play(self, states: Array) -> Array:
        return np.array([self.plain.to_play(state) for state in self._objects(states)], np.int8)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        results = [self.plain.outcome(state) for state in self._objects(states)]
        ended = np.array([result is not None for result in results], np.bool_)
        found = self._results("outcome", results)
        if not np.isfinite(found).all():
            raise GameError(f"{self.name}: outcome must be None or from -1 to 1, not one of {found.tolist()}")
        return ended, found

    def observe(self, states: Array) -> Array:
        observations = np.empty((len(states), *self.observation_shape), np.uint8)
        for row, state in enumerate(self._objects(states)):
            observations[row] = self.plain.observe(state)
        return observations

    def render(self, state: Array) -> str:
        return self.plain.render(self._objects(state[None])[0])
