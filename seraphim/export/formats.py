"""A model as one file for other programs: LiteRT for phones and browsers, ONNX for everything else.

A file is made from the Keras archive of a snapshot, which is safe to run even if it is foreign, and compared with the
SavedModel, run by OpenVINO, before it is written. Its input is `observation` uint8 [N, *O]; its outputs are `policy`,
logits float32 [N, A], and `value` float32 [N]. In a LiteRT file N is 1.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from seraphim.errors import FileError, ModelError, how_to_install
from seraphim.game import CHANCE, Array, Game, random_actions
from seraphim.game.notation import followers
from seraphim.inference.litert import LiteRtModel
from seraphim.inference.openvino import OpenVinoModel
from seraphim.inference.tensorflow import load_module
from seraphim.machine import needed, no_root_handler
from seraphim.network import architectures, saved_model
from seraphim.storage import atomic

Format = Literal["tflite", "onnx"]
Infer = Callable[[Array], tuple[Array, Array]]

TOLERANCE = 1e-3
"""Largest difference of a logit or a value from the SavedModel's; rounding causes about 1e-5."""

POSITIONS = 1000
"""Number of positions that are compared: distinct ones of random play, all of them if the game has fewer."""

_OPSET = 17  # of ONNX: old enough for every runtime, new enough for the networks
_MOST_ROUNDS = 20  # of random games, for a game with few positions


class Parity(NamedTuple):
    """Differences of a file from the SavedModel that it was made from."""

    logits: float  # the largest difference
    values: float
    positions: int

    def __str__(self) -> str:
        """Return the differences in words."""
        return (
            f"largest difference from the SavedModel in {self.positions:,} positions of random play: "
            f"logits {self.logits:.1e}, values {self.values:.1e} (at most {TOLERANCE:g})"
        )


def export_file(snapshot: Path, game: Game, form: Format, file: Path, trust: bool = False) -> Parity:
    """Write the model of a snapshot to a file atomically; an older file is replaced.

    With `trust`, TensorFlow may load a SavedModel that has no Keras archive.

    Raises:
        ModelError: the snapshot is damaged or for another game, or the converted network computes something else.
        NotInstalledError: a package is not installed.
        FileError: the file is a folder.
    """
    if file.is_dir():
        raise FileError(f"{file} is a folder: name a file with --out, such as {file / f'NAME.{form}'}")
    content, parity = convert(snapshot, game, form, trust)
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace_file(file, content)
    return parity


def convert(snapshot: Path, game: Game, form: Format, trust: bool = False) -> tuple[bytes, Parity]:
    """Return the model of a snapshot as the content of a file, and its differences; see `export_file`.

    Raises:
        ModelError: see `export_file`.
        NotInstalledError: a package is not installed.
    """
    original = OpenVinoModel(snapshot, game, "float32", threads=1)
    content, infer = (_to_litert if form == "tflite" else _to_onnx)(snapshot, game, trust)
    observations = game.observe(random_positions(game, POSITIONS))
    (logits, values), (other_logits, other_values) = original.infer(observations), infer(observations)
    parity = Parity(
        float(np.abs(logits - other_logits).max()), float(np.abs(values - other_values).max()), len(observations)
    )
    if not (parity.logits <= TOLERANCE and parity.values <= TOLERANCE):  # a NaN is refused too
        raise ModelError(f"{snapshot} as {form} is not the same network, so nothing was written: {parity}")
    return content, parity


def random_positions(game: Game, count: int) -> Array:
    """Return distinct unfinished positions int64 [<= count, W] of random play; every call returns the same."""
    rng = np.random.default_rng(0)
    found: dict[bytes, Array] = {}
    for _ in range(_MOST_ROUNDS):
        states = game.initial(count)
        for _ in range(game.max_plies):
            states = states[~game.outcome(states)[0]]
            if not len(states):
                break
            # A few of each ply, so that the set includes late positions.
            moved = states[game.to_play(states) != CHANCE][: max(1, count // 20)]
            found.update((state.tobytes(), state) for state in moved)
            states = game.step(states, random_actions(followers(game, states), rng))
        if len(found) >= count:
            break
    chosen = np.stack(list(found.values()))
    return chosen[np.sort(rng.permutation(len(chosen))[:count])]


@no_root_handler()
def _to_litert(snapshot: Path, game: Game, trust: bool) -> tuple[bytes, Infer]:
    tf = architectures.tensorflow()
    module = load_module(snapshot, game, 1, trust)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.serve.get_concrete_function()], module)
    content: bytes = converter.convert()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / saved_model.LITERT
        file.parent.mkdir()
        file.write_bytes(content)
        model = LiteRtModel(Path(folder), game, threads=1)

    def infer(observations: Array) -> tuple[Array, Array]:
        logits, values = zip(*(model.infer(observation[None]) for observation in observations), strict=True)
        return np.concatenate(logits), np.concatenate(values)

    return content, infer


@no_root_handler()
def _to_onnx(snapshot: Path, game: Game, trust: bool) -> tuple[bytes, Infer]:
    architectures.tensorflow()  # quietly, before another library imports it
    with needed(f"ONNX needs {{}}: {how_to_install('onnx')}, or choose another --format"):
        import onnxruntime
        import tf2onnx.convert

    serve = load_module(snapshot, game, trust=trust).serve
    made, _ = tf2onnx.convert.from_function(serve, input_signature=serve.input_signature, opset=_OPSET)
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    content = made.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return content, lambda observations: session.run(["policy", "value"], {"observation": observations})
