"""What the search needs of a model, and what the runtimes share."""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from seraphim.errors import ModelError, shown
from seraphim.game import Array, Game

Runtime = Literal["auto", "openvino", "litert", "tensorflow", "jax"]
Precision = Literal["bfloat16", "float32"]
Shapes = Mapping[str, tuple[int, ...]]
"""The shape of one position's input or output, by its name."""

LARGEST_BATCH = 1024
"""Most positions that a processor evaluates at a time."""

FIXED_SIZES = (1, 8, 64, 128, 256, 384, 512, 768, LARGEST_BATCH, 1536, 2048, 3072, 4096, 6144, 8192)
"""The batch sizes of `fixed_size`, up to the most positions that a GPU evaluates at a time."""

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
            found: Any = self._evaluate(states.copy())
        try:
            logits, values = (np.array(output, np.float32) for output in found)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{self.name} returned {shown(found)}, but logits and values are expected") from error
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


def bucket_size(count: int) -> int:
    """Return the batch size in which `count` >= 1 positions are evaluated: 1 to 32, then 34, 36, …, 64, 68, ….

    Runtimes take milliseconds to prepare for a new batch size, so there are only sixteen sizes to an octave.
    """
    step = 1 << max(0, (count - 1).bit_length() - 5)
    return -(-count // step) * step


def fixed_size(count: int) -> int:
    """Return the batch size in which a compiler that takes seconds for each evaluates `count` >= 1 positions.

    A GPU takes about as long for half of a batch.
    """
    return next(size for size in FIXED_SIZES if size >= count)


def in_buckets(
    observations: Array,
    infer_bucket: Callable[[Array], tuple[Array, Array]],
    size_for: Callable[[int], int] = bucket_size,
    largest: int = LARGEST_BATCH,
) -> tuple[Array, Array]:
    """Evaluate observations [N, *O] by a function for batches of few sizes, up to the largest; return new arrays."""
    parts = []
    for start in range(0, len(observations), largest):
        chunk = observations[start : start + largest]
        padded = np.zeros((size_for(len(chunk)), *observations.shape[1:]), np.uint8)
        padded[: len(chunk)] = chunk
        policies, values = infer_bucket(padded)
        # Copied because the runtime may reuse its output buffers.
        parts.append((policies[: len(chunk)].copy(), values[: len(chunk)].copy()))
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def check_fit(snapshot: Path, game: Game, inputs: Shapes, outputs: Shapes) -> None:
    """Raise a ModelError unless a snapshot has the inputs and outputs that a game needs."""
    if set(inputs) != {"observation"} or not {"policy", "value"} <= set(outputs):
        raise ModelError(
            f"{snapshot} maps {sorted(inputs)} to {sorted(outputs)} but observation to policy and value is expected: "
            "is this a model of Seraphim?"
        )
    if outputs["policy"] != (game.num_actions,):
        raise ModelError(
            f"policy head of {snapshot} has {'×'.join(map(str, outputs['policy']))} outputs but {game.name} has "
            f"{game.num_actions} actions: was this model trained for another game?"
        )
    if inputs["observation"] != tuple(game.observation_shape):
        raise ModelError(
            f"{snapshot} takes observations of shape {inputs['observation']} but {game.name} gives "
            f"{tuple(game.observation_shape)}: was this model trained for another game?"
        )


def damaged_snapshot(snapshot: Path, what: str = "the SavedModel") -> ModelError:
    """Return the error for a snapshot with a part that cannot be read."""
    return ModelError(f"{what} in {snapshot} is damaged: promote another snapshot, or retrain")


def check_process(number: int) -> None:
    """Raise a ModelError unless this is the process of that number, which loaded a network; a fork of it would hang."""
    if os.getpid() != number:
        raise ModelError(
            "a network of TensorFlow or JAX does not survive a fork: load it in each process, or start them by spawn"
        )
