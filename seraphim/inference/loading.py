"""A snapshot, loaded by the runtime that is asked for, or by the one that suits it.

The runtimes round differently, so games depend on the choice. Hence it follows a rule, not a measurement: TensorFlow
where it sees a GPU; else LiteRT for an mlp in batches of at most 16 positions; else OpenVINO.
"""

from pathlib import Path
from typing import NamedTuple

from seraphim.errors import ModelError
from seraphim.game import Game
from seraphim.inference import litert, openvino, tensorflow
from seraphim.inference.interface import LARGEST_BATCH, Inference, Precision, Runtime
from seraphim.network import safety, saved_model

SMALL_BATCH = 16
"""The most positions at a time in which LiteRT evaluates an mlp faster than OpenVINO, of which a call takes longer."""


class _Choice(NamedTuple):
    runtime: Runtime
    reason: str


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
        game: what the model has to fit.
        runtime: `auto` is TensorFlow where it sees a GPU, else LiteRT for an mlp in small batches, else OpenVINO.
        precision: of the arithmetic inside OpenVINO, on processors that have it; the others compute in float32.
        threads: processor threads of OpenVINO and LiteRT.
        batch: how many positions will be evaluated at a time, which is what `auto` needs to know: 1 where a person
            waits for each of them, the number of concurrent games in self-play.
        trust: let TensorFlow run a SavedModel without a Keras archive as it is, whatever it does.

    Raises:
        ModelError: the model is missing or damaged, or was made for another game.
        SettingsError: the runtime's package is not installed.
    """
    if not (snapshot / "saved_model.pb").is_file():
        raise ModelError(
            f"{snapshot} holds no SavedModel: retrain the model, or start it anew with train.py NAME --init"
        )
    choice = _choose(snapshot, batch, trust) if runtime == "auto" else _Choice(runtime, "")
    inference = _load(choice.runtime, snapshot, game, precision, threads, trust)
    inference.description += choice.reason
    return inference


def _choose(snapshot: Path, batch: int, trust: bool) -> _Choice:
    if ((snapshot / saved_model.ARCHIVE).is_file() or trust) and tensorflow.sees_gpu():
        return _Choice("tensorflow", ", chosen because there is a GPU")
    kind = _kind_of_network(snapshot)
    is_small = kind == "an mlp" and batch <= SMALL_BATCH and (snapshot / saved_model.LITERT).is_file()
    return _Choice("litert" if is_small else "openvino", f", chosen for {kind} in batches of {batch:,}")


def _kind_of_network(snapshot: Path) -> str:
    try:
        layers = safety.class_names(safety.check_archive(snapshot / saved_model.ARCHIVE))
    except ModelError:  # it may be missing; what plays without it needs none
        return "a network of unknown kind"
    return "a convolutional network" if any("Conv2D" in layer for layer in layers) else "an mlp"


def _load(runtime: Runtime, snapshot: Path, game: Game, precision: Precision, threads: int, trust: bool) -> Inference:
    if runtime == "litert":
        return litert.LiteRtModel(snapshot, game, threads)
    if runtime == "tensorflow":
        return tensorflow.TensorFlowModel(snapshot, game, trust)
    return openvino.OpenVinoModel(snapshot, game, precision, threads)
