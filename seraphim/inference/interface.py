"""What the runtimes share."""

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from seraphim.errors import ModelError
from seraphim.game import Array, Game
from seraphim.game.features import num_columns

Runtime = Literal["auto", "openvino", "litert", "tensorflow", "jax"]
Precision = Literal["bfloat16", "float32"]
Signature = Mapping[str, tuple[int, ...]]
"""The shape of one position's input or output, by its name."""

LARGEST_BATCH = 1024
"""Most positions that a processor evaluates at a time."""

FIXED_SIZES = (1, 8, 64, 128, 256, 384, 512, 768, LARGEST_BATCH, 1536, 2048, 3072, 4096, 6144, 8192)
"""The batch sizes of `fixed_size`, up to the most positions that a GPU evaluates at a time."""


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
        padding = size_for(len(chunk)) - len(chunk)
        if padding:
            chunk = np.concatenate([chunk, np.zeros((padding, *chunk.shape[1:]), np.uint8)])
        policies, values = (output[: len(chunk) - padding] for output in infer_bucket(chunk))
        # Copied because the runtime may reuse its output buffers.
        parts.append((policies.copy(), values.copy()))
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def split(outputs: Array, num_actions: int) -> tuple[Array, Array]:
    """Return logits [N, A] and values, [N] if there is one of a position, of outputs [N, A + V]."""
    values = outputs[:, num_actions:]
    return outputs[:, :num_actions], values if values.shape[1] > 1 else values[:, 0]


def check_fit(snapshot: Path, game: Game, inputs: Signature, outputs: Signature) -> None:
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
    values = math.prod(outputs["value"])
    if values != num_columns(game):
        raise ModelError(
            f"value head of {snapshot} has {values} outputs but {game.name} needs {num_columns(game)}: was this model "
            "trained for another game?"
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
