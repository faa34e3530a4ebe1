"""What the search needs of a model, and what the runtimes have in common."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from seraphim.errors import ModelError
from seraphim.game import Array, Game

Runtime = Literal["auto", "openvino", "litert", "tensorflow"]
Precision = Literal["bfloat16", "float32"]
Shapes = Mapping[str, tuple[int, ...]]
"""The shape of one position's input or output, by its name."""

LARGEST_BATCH = 1024


class Inference(Protocol):
    """What the search needs of a model."""

    name: str  # which model, for messages
    description: str  # what runs it, on which device, and why
    overlaps: bool  # whether it leaves the processor free while it works, as a GPU does

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """Evaluate observations uint8 [N, *O].

        Returns:
            The policy's logits float32 [N, A], and the expected results for the player to move float32 [N] in [-1, 1];
            arrays that the caller may change.
        """


class Uniform:
    """Believes nothing: the same logit for every action, and a value of 0."""

    name = "uniform"
    description = "no network"
    overlaps = False

    def __init__(self, game: Game) -> None:
        self._num_actions = game.num_actions

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""
        return np.zeros((len(observations), self._num_actions), np.float32), np.zeros(len(observations), np.float32)


def bucket_size(count: int) -> int:
    """Return the batch size in which `count` >= 1 positions are evaluated: 1 to 32, then 34, 36, …, 64, 68, ….

    Runtimes prepare themselves anew for each new batch size, which takes them milliseconds: there are only sixteen
    sizes to an octave.
    """
    step = 1 << max(0, (count - 1).bit_length() - 5)
    return -(-count // step) * step


def in_buckets(
    observations: Array,
    infer_bucket: Callable[[Array], tuple[Array, Array]],
    size_for: Callable[[int], int] = bucket_size,
) -> tuple[Array, Array]:
    """Evaluate observations [N, *O] by a function that takes batches of few sizes; return arrays of their own."""
    parts = []
    for start in range(0, len(observations), LARGEST_BATCH):
        chunk = observations[start : start + LARGEST_BATCH]
        padded = np.zeros((size_for(len(chunk)), *observations.shape[1:]), np.uint8)
        padded[: len(chunk)] = chunk
        policies, values = infer_bucket(padded)
        # The runtime may use its output buffers again.
        parts.append((policies[: len(chunk)].copy(), values[: len(chunk)].copy()))
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def check_fit(snapshot: Path, game: Game, inputs: Shapes, outputs: Shapes) -> None:
    """Check that a snapshot has the inputs and outputs that a game needs.

    Raises:
        ModelError: it has not.
    """
    if set(inputs) != {"observation"} or not {"policy", "value"} <= set(outputs):
        raise ModelError(
            f"{snapshot} maps {sorted(inputs)} to {sorted(outputs)} but observation to policy and value is expected: "
            "is this a model of Seraphim?"
        )
    if outputs["policy"] != (game.num_actions,):
        found = "×".join(map(str, outputs["policy"]))
        raise ModelError(
            f"policy head of {snapshot} has {found} outputs but {game.name} has {game.num_actions} "
            "actions: was this model trained for another game?"
        )
    if inputs["observation"] != tuple(game.observation_shape):
        raise ModelError(
            f"{snapshot} takes observations of shape {inputs['observation']} but {game.name} gives "
            f"{tuple(game.observation_shape)}: was this model trained for another game?"
        )


def damaged(snapshot: Path, what: str = "the SavedModel") -> ModelError:
    """Return the error for a snapshot of which a part cannot be read."""
    return ModelError(f"{what} in {snapshot} is damaged: promote another snapshot, or retrain")
