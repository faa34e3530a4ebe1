"""A model as one file for other programs: LiteRT for phones and browsers, ONNX for everything else.

Each file is made from the Keras archive of a snapshot, which TensorFlow may run whoever made it, and compared with the
SavedModel, as OpenVINO runs it, before anybody gets to see it. Both take
`observation` uint8 [N, *O], and give `policy`, logits float32 [N, A], and `value` float32 [N]; in a LiteRT file N is 1.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from seraphim.errors import ModelError, SettingsError
from seraphim.game import Array, Game
from seraphim.inference import Inference
from seraphim.inference.litert import LiteRtModel
from seraphim.inference.openvino import OpenVinoModel
from seraphim.inference.tensorflow import load_module
from seraphim.network import architectures, saved_model

Format = Literal["tflite", "onnx"]

TOLERANCE = 1e-3
"""The most by which a logit or a value may differ from the SavedModel's; rounding makes some 1e-5 of it."""

POSITIONS = 1000
"""How many are compared: distinct ones of random play, all where the game has fewer."""

_OPSET = 17  # of ONNX: old enough for every runtime, new enough for what the networks use
_MOST_ROUNDS = 20  # of random games, for a game with few positions


class Parity(NamedTuple):
    """How far a file is from the SavedModel that it was made from."""

    logits: float  # the greatest difference
    values: float
    positions: int

    def __str__(self) -> str:
        """Return the figures in words."""
        return (
            f"greatest difference to the SavedModel in {self.positions:,} positions of random play: "
            f"logits {self.logits:.1e}, values {self.values:.1e} (at most {TOLERANCE:g})"
        )


def export_file(snapshot: Path, game: Game, form: Format, file: Path, trust: bool = False) -> Parity:
    """Write the model of a snapshot into a file, which appears whole; one of that name is replaced.

    Args:
        snapshot: the directory.
        game: what the model has to fit.
        form: of the file.
        file: where to write it.
        trust: whether a SavedModel without a Keras archive is loaded by TensorFlow as it is.

    Raises:
        ModelError: the snapshot is damaged or for another game, or what was made of it computes something else.
        SettingsError: a package is not installed, or a folder has the file's name.
    """
    if file.is_dir():
        raise SettingsError(f"{file} is a folder: name a file with --out, such as {file / f'NAME.{form}'}")
    content, parity = convert(snapshot, game, form, trust)
    with _whole(file) as unfinished:
        unfinished.write_bytes(content)
    return parity


def convert(snapshot: Path, game: Game, form: Format, trust: bool = False) -> tuple[bytes, Parity]:
    """Return the model of a snapshot as a file's content, and how far that is from the SavedModel; see `export_file`.

    Raises:
        ModelError: see `export_file`.
        SettingsError: a package is not installed.
    """
    original = OpenVinoModel(snapshot, game, "float32", threads=1)
    content, converted = (_to_litert if form == "tflite" else _to_onnx)(snapshot, game, trust)
    parity = compare(original, converted, game.observe(random_positions(game, POSITIONS)))
    if not (parity.logits <= TOLERANCE and parity.values <= TOLERANCE):  # a NaN is refused too
        raise ModelError(f"{snapshot} as {form} is not the same network, so nothing was written: {parity}")
    return content, parity


def compare(original: Inference, converted: Inference, observations: Array) -> Parity:
    """Return how far a model is from another one on observations uint8 [N, *O]."""
    (logits, values), (other_logits, other_values) = (model.infer(observations) for model in (original, converted))
    return Parity(
        float(np.abs(logits - other_logits).max()), float(np.abs(values - other_values).max()), len(observations)
    )


def random_positions(game: Game, count: int) -> Array:
    """Return distinct unfinished positions int64 [<= count, W] of random play, always the same ones."""
    rng = np.random.default_rng(0)
    found: dict[bytes, Array] = {}
    for _ in range(_MOST_ROUNDS):
        states = game.initial(count)
        for _ in range(game.max_plies):
            states = states[~game.outcome(states)[0]]
            if not len(states):
                break
            # A few of each ply, so that the beginning of the game does not crowd out its end.
            found.update((state.tobytes(), state) for state in states[: max(1, count // 20)])
            weights = game.legal(states) * rng.random((len(states), game.num_actions))
            states = game.step(states, weights.argmax(axis=1))
        if len(found) >= count:
            break
    chosen = np.stack(list(found.values()))
    return chosen[np.sort(rng.permutation(len(chosen))[:count])]


# ---------------------------------------------------------------- LiteRT


class _OneByOne:
    # A model that takes one position at a time.

    overlaps = False

    def __init__(self, inference: Inference) -> None:
        self.name, self.description = inference.name, inference.description
        self._inference = inference

    def infer(self, observations: Array) -> tuple[Array, Array]:
        parts = [self._inference.infer(observation[None]) for observation in observations]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _to_litert(snapshot: Path, game: Game, trust: bool) -> tuple[bytes, Inference]:
    tf = architectures.tensorflow()
    module = load_module(snapshot, game, 1, trust)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.serve.get_concrete_function()], module)
    content: bytes = converter.convert()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / saved_model.LITERT  # where a snapshot has it
        file.parent.mkdir()
        file.write_bytes(content)
        return content, _OneByOne(LiteRtModel(Path(folder), game, threads=1))


# ---------------------------------------------------------------- ONNX


class _OnnxModel:
    # Runs an ONNX file, to compare it.

    overlaps = False

    def __init__(self, content: bytes, name: str) -> None:
        import onnxruntime

        self.name, self.description = name, f"ONNX Runtime {onnxruntime.__version__}"
        self._session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def infer(self, observations: Array) -> tuple[Array, Array]:
        policy, value = self._session.run(["policy", "value"], {"observation": observations})
        return policy, value


def _to_onnx(snapshot: Path, game: Game, trust: bool) -> tuple[bytes, Inference]:
    architectures.tensorflow()  # quietly, before another library imports it
    try:
        import onnxruntime  # noqa: F401  # asked for before the work is done
        import tf2onnx.convert
    except ModuleNotFoundError as error:
        raise SettingsError(f"ONNX needs {error.name}: pip install -e '.[onnx]', or choose another --format") from error

    serve = load_module(snapshot, game, trust=trust).serve
    made, _ = tf2onnx.convert.from_function(serve, input_signature=serve.input_signature, opset=_OPSET)
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    content = made.SerializeToString()
    return content, _OnnxModel(content, str(snapshot))


# ---------------------------------------------------------------- files


@contextlib.contextmanager
def _whole(file: Path) -> Iterator[Path]:
    # A file to be written, which gets its name when it is whole, or is removed.
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    os.close(descriptor)
    unfinished = Path(name)
    try:
        yield unfinished
        unfinished.chmod(0o644)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
