"""A snapshot, loaded by the runtime that is asked for, or by the one that is the fastest here."""

from collections.abc import Callable, Mapping
from pathlib import Path

from seraphim import saving
from seraphim.errors import ModelError, SettingsError
from seraphim.game import Game
from seraphim.inference import litert, openvino, tensorflow
from seraphim.inference.choice import Choice, Situation, decide, processor_name, version
from seraphim.inference.interface import LARGEST_BATCH, Inference, Precision, Runtime

# OpenVINO first: it is chosen where the others are not much faster.
_TITLES: Mapping[Runtime, str] = {"openvino": openvino.TITLE, "litert": litert.TITLE}


def load_inference(
    snapshot: Path,
    game: Game,
    runtime: Runtime | Choice = "auto",
    precision: Precision = "bfloat16",
    threads: int = 1,
    batch: int = LARGEST_BATCH,
) -> Inference:
    """Load the model of a snapshot.

    Args:
        snapshot: the directory.
        game: what the model has to fit.
        runtime: `auto` is what `choose_runtime` chooses.
        precision: of the arithmetic inside OpenVINO, on processors that have it; the others compute in float32.
        threads: processor threads of OpenVINO and LiteRT.
        batch: how many positions will be evaluated at a time, which is what `auto` needs to know: 1 where a person
            waits for each of them, the number of concurrent games in self-play.

    Raises:
        ModelError: the model is missing or damaged, or was made for another game.
        SettingsError: the runtime's package is not installed.
    """
    loaded: dict[Runtime, Inference] = {}

    def load(name: Runtime) -> Inference:
        if name not in loaded:
            loaded[name] = _load(name, snapshot, game, precision, threads)
        return loaded[name]

    _check_snapshot(snapshot)
    choice = runtime if isinstance(runtime, Choice) else Choice(runtime, "")
    if choice.runtime == "auto":
        choice = _choose(snapshot, game, precision, threads, batch, load)
    inference = load(choice.runtime)
    if choice.reason:
        inference.description += f", {choice.reason}"
    return inference


def choose_runtime(
    snapshot: Path, game: Game, precision: Precision = "bfloat16", threads: int = 1, batch: int = LARGEST_BATCH
) -> Choice:
    """Return what `auto` is for a snapshot, for several processes that have to agree; see `load_inference`.

    That is TensorFlow where it sees a GPU. Elsewhere it is OpenVINO or LiteRT, by a measurement that is made at the
    first time; see `seraphim.inference.choice`.
    """
    _check_snapshot(snapshot)
    return _choose(
        snapshot, game, precision, threads, batch, lambda name: _load(name, snapshot, game, precision, threads)
    )


def _check_snapshot(snapshot: Path) -> None:
    if not (snapshot / "saved_model.pb").is_file():
        raise ModelError(
            f"{snapshot} holds no SavedModel: retrain the model, or start it anew with train.py NAME --init"
        )


def _choose(
    snapshot: Path, game: Game, precision: Precision, threads: int, batch: int, load: Callable[[Runtime], Inference]
) -> Choice:
    if tensorflow.gpu_is_likely() and tensorflow.sees_gpu():
        return Choice("tensorflow", "chosen because there is a GPU")
    packages: dict[Runtime, str] = {"openvino": openvino.PACKAGE}
    if (snapshot / saving.LITERT).is_file():
        packages["litert"] = litert.PACKAGE
    runtimes = {name: found for name, package in packages.items() if (found := version(package))}
    if not runtimes:
        raise SettingsError(f"nothing here runs a network: pip install {openvino.PACKAGE}")
    situation = Situation(
        processor=processor_name(),
        batch=min(batch, LARGEST_BATCH),
        threads=threads,
        precision=precision,
        runtimes=runtimes,
        observation_shape=list(game.observation_shape),
        num_actions=game.num_actions,
        network_bytes=sum(file.stat().st_size for file in (snapshot / "variables").glob("variables.data-*")),
    )
    return decide(snapshot.parent, situation, _TITLES, load)


def _load(name: Runtime, snapshot: Path, game: Game, precision: Precision, threads: int) -> Inference:
    if name == "litert":
        return litert.LiteRtModel(snapshot, game, threads, processor_name())
    if name == "tensorflow":
        return tensorflow.TensorFlowModel(snapshot, game)
    return openvino.OpenVinoModel(snapshot, game, precision, threads)
