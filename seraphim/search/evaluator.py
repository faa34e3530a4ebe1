"""What evaluates the leaves of a search: a network, or a function of states; and the leaves that wait for it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from seraphim.errors import ModelError, shown
from seraphim.game import Array, Game
from seraphim.game.features import features_of, num_columns
from seraphim.search.tree import NewPositions

_LARGEST_VALUE = 1 + 1e-5  # with room for rounding


class Inference(Protocol):
    """What the search needs of a model."""

    name: str  # which model, for messages
    description: str  # what runs it, on which device, and why
    overlaps: bool  # whether it leaves the processor free while it works, as a GPU does

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """Evaluate observations uint8 [N, *O]; several threads may call this at the same time.

        Returns:
            The policy's logits float32 [N, A], and the expected results for the player to move float32 [N] in [-1, 1],
            or with more than two players those of each, the player to move first, [N, P]; arrays that the caller may
            change.
        """


class Uniform:
    """Uniform policy, zero value."""

    name = "uniform"
    description = "no network"
    overlaps = False

    def __init__(self, game: Game) -> None:
        self._num_actions, self._columns = game.num_actions, num_columns(game)

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""
        shape = (len(observations), self._columns) if self._columns > 1 else len(observations)
        return np.zeros((len(observations), self._num_actions), np.float32), np.zeros(shape, np.float32)


Evaluate = Callable[[Array], tuple[Array, Array]]
"""Evaluates unfinished states int64 [N, W]: returns logits [N, A], of which those of illegal actions do not matter, and
expected results for the player to move [N] in [-1, 1], or with more than two players those of each, from the player to
move, [N, P]."""


class StateFunction:
    """A function of states in place of a network: `infer` takes states int64 [N, W] instead of observations."""

    description = "a function of states"
    overlaps = False

    def __init__(self, game: Game, evaluate: Evaluate) -> None:
        self.name = getattr(evaluate, "__name__", type(evaluate).__name__)
        self._game = game
        self._evaluate = evaluate
        self._lock = threading.RLock()  # a function of one's own need not be ready for several threads

    def infer(self, states: Array) -> tuple[Array, Array]:
        """See `Inference.infer`.

        Raises:
            ModelError: the function returned something else, arrays of other shapes, a NaN, or a value out of range.
        """
        with self._lock:
            outputs = self._evaluate(states.copy())
        try:
            logits, values = (np.array(output, np.float32) for output in outputs)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{self.name} must return logits and values, two arrays, not {shown(outputs)}") from error
        columns = num_columns(self._game)
        expected = (len(states), self._game.num_actions), (len(states), columns)[: 1 + (columns > 1)]
        if (logits.shape, values.shape) != expected:
            raise ModelError(
                f"{self.name} returned logits of shape {logits.shape} and values of shape {values.shape}, but "
                f"{expected[0]} and {expected[1]} are expected"
            )
        if np.isnan(logits[self._game.legal(states)]).any() or not (np.abs(values) <= _LARGEST_VALUE).all():
            raise ModelError(f"{self.name} returned NaN among the logits, or a value that is not from -1 to 1")
        return logits, values


def inputs_of(game: Game, inference: Inference, states: Array) -> Array:
    """Return what an inference takes: the observations uint8 [N, *O] of states [N, W], or the states themselves."""
    return states if isinstance(inference, StateFunction) else game.observe(states)


@dataclass
class Counters:
    """What a search has done."""

    readouts: int = 0
    evaluations: int = 0
    """Positions evaluated by the network."""
    batch_capacity: int = 0
    """Positions that the network's batches had room for."""
    cache_hits: int = 0
    """Positions whose evaluation was in the cache."""
    seconds: dict[str, float] = field(default_factory=lambda: {"network": 0.0, "rules": 0.0, "search": 0.0})
    _timed_until: float = 0.0

    def add_time(self, stage: str | None) -> None:
        """Add the time since the last call to a stage, or to none."""
        now = time.perf_counter()
        if stage is not None:
            self.seconds[stage] += now - self._timed_until
        self._timed_until = now


class LeafQueue:
    """Positions that wait for the network, which gets batches of always the same size.

    Runtimes prepare themselves for each new size. While the network evaluates a batch, other rows collect the next one.
    """

    def __init__(self, game: Game, inference: Inference, num_rows: int, batch_size: int, counters: Counters) -> None:
        """Make room for a position of each row; `counters` count the evaluations."""
        states = np.empty((num_rows, game.state_words), np.int64)
        columns = num_columns(game)
        banked = np.empty((num_rows if features_of(game).banked is not None else 0, columns), np.float32)
        self._positions = NewPositions(np.empty(num_rows, np.int64), states, np.empty(num_rows, np.int8), banked)
        self._game, self._inference, self._counters = game, inference, counters
        self._batch_size = batch_size
        self.size = 0

    @property
    def is_full(self) -> bool:
        """Whether there is a batch."""
        return self.size >= self._batch_size

    @property
    def free(self) -> NewPositions:
        """The room that is left: where to write positions before they are added to `size`."""
        return NewPositions(*(column[self.size :] for column in self._positions))

    def evaluate(self) -> tuple[NewPositions, Array, Array, Array]:
        """Evaluate the next batch; return it with the legal actions [R, A], the logits [R, A] and values [R, V]."""
        batch, counters = self._take(), self._counters
        counters.add_time("search")
        inputs, legal = inputs_of(self._game, self._inference, batch.states), self._game.legal(batch.states)
        counters.add_time("rules")
        logits, values = self._inference.infer(inputs)
        counters.add_time("network")
        counters.evaluations += len(batch.rows)
        counters.batch_capacity += self._batch_size
        return batch, legal, logits, values.reshape(len(values), -1)

    def _take(self) -> NewPositions:
        count = min(self.size, self._batch_size)
        batch = NewPositions(*(column[:count].copy() for column in self._positions))
        self.size -= count
        for column in self._positions:
            column[: self.size] = column[count : count + self.size]
        return batch
