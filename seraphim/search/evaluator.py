"""What evaluates the leaves of a search: a network, or a function of states."""

import threading
from collections.abc import Callable
from typing import Protocol

import numpy as np

from seraphim.errors import ModelError, shown
from seraphim.game import Array, Game

_LARGEST_VALUE = 1 + 1e-5  # with room for rounding


class Inference(Protocol):
    """What the search needs of a model."""

    name: str  # which model, for messages
    description: str  # what runs it, on which device, and why
    overlaps: bool  # whether it leaves the processor free while it works, as a GPU does

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """Evaluate observations uint8 [N, *O]; several threads may call this at the same time.

        Returns:
            The policy's logits float32 [N, A], and the expected results for the player to move float32 [N] in [-1, 1];
            arrays that the caller may change.
        """


class Uniform:
    """Uniform policy, zero value."""

    name = "uniform"
    description = "no network"
    overlaps = False

    def __init__(self, game: Game) -> None:
        self._num_actions = game.num_actions

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""
        return np.zeros((len(observations), self._num_actions), np.float32), np.zeros(len(observations), np.float32)


Evaluate = Callable[[Array], tuple[Array, Array]]
"""Evaluates unfinished states int64 [N, W]: returns logits [N, A], of which those of illegal actions do not matter, and
expected results for the player to move [N] in [-1, 1]."""


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
        expected = (len(states), self._game.num_actions), (len(states),)
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
