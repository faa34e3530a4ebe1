"""The optimizer Muon, for convolutions too."""

import functools
import math
from typing import Any

from seraphim.network import architectures


@functools.cache
def muon() -> Any:
    """Return a class: Keras's Muon, which also takes the kernels of convolutions as matrices, from patches to filters.

    Muon replaces the momentum of a weight matrix by the nearest orthogonal matrix, so that a step changes all
    directions alike (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"), scaled as a step
    of Adam would be (Liu et al. 2025, "Muon is scalable for LLM training"). Biases and the last layers of both heads
    learn by Adam. Call this before loading an archive: it registers the class, which Keras finds by its name.
    """
    architectures.tensorflow()
    import keras

    @keras.saving.register_keras_serializable("seraphim")
    class ConvolutionalMuon(keras.optimizers.Muon):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            defaults = {"weight_decay": None, "adam_weight_decay": None, "exclude_layers": ["^policy/", "^value/"]}
            super().__init__(*arguments, **{**defaults, **options})

        def _should_use_adamw(self, variable: Any) -> bool:
            return len(variable.shape) != 4 and super()._should_use_adamw(variable)

        def zeropower_via_newtonschulz5(self, x: Any, steps: int) -> Any:
            matrix = super().zeropower_via_newtonschulz5(keras.ops.reshape(x, (-1, x.shape[-1])), steps)
            return keras.ops.reshape(matrix, x.shape)

        def lr_adjust(self, x: Any) -> Any:
            return x * self.rms_rate * math.sqrt(max(math.prod(x.shape[:-1]), x.shape[-1]))

    return ConvolutionalMuon
