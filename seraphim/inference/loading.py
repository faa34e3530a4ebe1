"""Loads a snapshot by the runtime that is asked for, or by the one that suits it.

The runtimes round differently, so games depend on the choice. Hence it follows a rule, not a measurement: TensorFlow
where it sees a GPU; else JAX where it sees one; else LiteRT for an mlp in batches of at most 16 positions; else
OpenVINO.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from seraphim.errors import ModelError
from seraphim.game import Game
from seraphim.game.features import features_of
from seraphim.inference import jax, litert, openvino, tensorflow
from seraphim.inference.interface import LARGEST_BATCH, Precision, Runtime
from seraphim.network import safety, saved_model
from seraphim.options import check
from seraphim.search.evaluator import Inference

SMALL_BATCH = 16
"""The largest batch in which LiteRT evaluates an mlp faster than OpenVINO, whose calls take longer."""


def load_inference(
    snapshot: Path,
    game: Game,
    runtime: Runtime = "auto",
    precision: Precision = "bfloat16",
    threads: int = 1,
    batch: int = LARGEST_BATCH,
    trust: bool = False,
) -> Inference:
    """Load the model of a snapshot.

    Args:
        snapshot: the directory.
        game: the game that the model has to fit.
        runtime: `auto` is TensorFlow where it sees a GPU, else JAX where it sees one, else LiteRT for an mlp in small
            batches, else OpenVINO.
        precision: of the arithmetic in JAX, in TensorFlow on a GPU, and in OpenVINO on processors that have it; else it
            is float32. Games of chance are always computed in float32: their moves differ by less than bfloat16 rounds.
        threads: processor threads of OpenVINO and LiteRT.
        batch: how many positions will be evaluated at a time, for `auto`: 1 where a person waits for each of them, the
            number of concurrent games in self-play.
        trust: let TensorFlow run a SavedModel without a Keras archive as it is, whatever it does.

    Raises:
        ModelError: the model is missing or damaged, or was made for another game.
        NotInstalledError: the runtime's package is not installed.
        SettingsError: there is no such runtime, or JAX does not know one of the network's layers.
    """
    check(Runtime, runtime=runtime)
    is_enough = runtime == "jax" and (snapshot / saved_model.ARCHIVE).is_file()
    if not is_enough and not (snapshot / "saved_model.pb").is_file():
        raise ModelError(f"{snapshot} holds no SavedModel: train again, or make a new model with seraphim train --init")
    reason = ""
    if runtime == "auto":
        runtime, reason = _choose(snapshot, batch, trust)
    if features_of(game).chances is not None:
        precision = "float32"
    compiled = precision if runtime == "tensorflow" and tensorflow.sees_gpu() else None
    load: dict[Runtime, Callable[[], Inference]] = {
        "openvino": lambda: openvino.OpenVinoModel(snapshot, game, precision, threads),
        "litert": lambda: litert.LiteRtModel(snapshot, game, threads),
        "tensorflow": lambda: tensorflow.TensorFlowModel(snapshot, game, compiled, trust),
        "jax": lambda: jax.JaxModel(snapshot, game, precision),
    }
    inference = load[runtime]()
    inference.description += reason
    return inference


@dataclass(frozen=True)
class SavedNetwork:
    """A network that is not loaded yet."""

    snapshot: Path
    runtime: Runtime = "auto"
    trust: bool = False

    def load(self, game: Game, batch: int) -> Inference:
        """Return the network, for batches of this size; raise the errors of `load_inference`."""
        return load_inference(self.snapshot, game, self.runtime, batch=batch, trust=self.trust)


def uses_gpu(runtime: Runtime) -> bool:
    """Return whether a runtime computes the networks that Seraphim builds on a GPU of this machine."""
    by_tensorflow = runtime in ("auto", "tensorflow") and tensorflow.sees_gpu()
    return by_tensorflow or (runtime in ("auto", "jax") and jax.sees_gpu())


def _choose(snapshot: Path, batch: int, trust: bool) -> tuple[Runtime, str]:
    # The runtime, and why.
    if ((snapshot / saved_model.ARCHIVE).is_file() or trust) and tensorflow.sees_gpu():
        return "tensorflow", ", chosen because there is a GPU"
    try:
        layers = safety.layer_names(safety.check_archive(snapshot / saved_model.ARCHIVE))
        if layers <= jax.LAYERS and jax.sees_gpu():
            return "jax", ", chosen because there is a GPU that TensorFlow does not see"
        kind = "a convolutional network" if any("Conv2D" in layer for layer in layers) else "an mlp"
    except ModelError:  # it may be missing: OpenVINO and LiteRT do not need it
        kind = "a network of unknown kind"
    is_small = kind == "an mlp" and batch <= SMALL_BATCH and (snapshot / saved_model.LITERT).is_file()
    return "litert" if is_small else "openvino", f", chosen for {kind} in batches of {batch:,}"
