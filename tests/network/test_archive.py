"""A Keras archive is read by h5py as Keras reads it; weights that are not what they should be are errors."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from archives import parts_of, with_config, write_parts

from connectfour.game import GAME as CONNECT_FOUR
from seraphim.errors import ModelError
from seraphim.inference import load_inference
from seraphim.network import safety, saved_model
from seraphim.network.archive import open_weights, read_archive
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME

ROOT = Path(__file__).parents[2]
PART = "model.weights.h5"


@pytest.fixture
def snapshot(folder: ModelFolder) -> Path:
    return folder.champion().path


def test_the_weights_are_those_that_keras_reads(snapshot: Path) -> None:
    model = saved_model.load_model(snapshot)
    _, found = read_archive(snapshot / saved_model.ARCHIVE)
    assert list(found) and set(found) == {layer.name for layer in model.layers}
    for layer in model.layers:
        assert len(found[layer.name]) == len(layer.weights)
        for ours, theirs in zip(found[layer.name], layer.weights, strict=True):
            assert np.array_equal(ours, theirs.numpy())


def with_weights(snapshot: Path, change: Callable[[Any], object]) -> None:
    file = snapshot / saved_model.ARCHIVE
    parts = parts_of(file)
    content = io.BytesIO(parts[PART])
    with h5py.File(content, "r+") as weights:
        change(weights)
    write_parts(file, {**parts, PART: content.getvalue()})


def replaced(value: Callable[[Any, str], object]) -> Callable[[Any], object]:
    def change(weights: Any) -> None:
        variables = weights["layers/dense/vars"]
        del variables["0"]
        value(variables, "0")

    return change


def external(variables: Any, name: str) -> None:
    variables.create_dataset(name, (4, 4), np.float32, external=[("/etc/passwd", 0, 64)])


def virtual(variables: Any, name: str) -> None:
    layout = h5py.VirtualLayout((4, 4), np.float32)
    layout[:] = h5py.VirtualSource("/etc/passwd", "secret", shape=(4, 4))
    variables.create_virtual_dataset(name, layout)


CHANGES: dict[str, Callable[[Any], object]] = {
    "a link to another file": replaced(lambda group, name: group.__setitem__(name, h5py.ExternalLink("x.h5", "/a"))),
    "a soft link": replaced(lambda group, name: group.__setitem__(name, h5py.SoftLink("/layers/dense/vars/1"))),
    "data in another file": replaced(external),
    "a virtual dataset": replaced(virtual),
    "terabytes that are not stored": replaced(
        lambda group, name: group.create_dataset(name, (1 << 20, 1 << 20), np.float32, chunks=(1024, 1024))
    ),
    "a chunk of a gigabyte for four numbers": replaced(
        lambda group, name: group.create_dataset(
            name, (4,), np.float32, chunks=(1 << 28,), maxshape=(None,), compression="gzip"
        )
    ),
    "texts": replaced(lambda group, name: group.create_dataset(name, (4, 4), h5py.string_dtype())),
    "integers": replaced(lambda group, name: group.create_dataset(name, (4, 4), np.int32)),
    "a group": replaced(lambda group, name: group.create_group(name)),
    "nothing": replaced(lambda *_: None),
    "another shape": replaced(lambda group, name: group.create_dataset(name, (4, 4), np.float32)),
    "no layers": lambda weights: weights.__delitem__("layers"),
    "no name": lambda weights: weights["layers/dense/vars"].attrs.__delitem__("name"),
    "another name": lambda weights: weights["layers/dense/vars"].attrs.__setitem__("name", "other"),
    "a weight too many": lambda weights: weights["layers/dense/vars"].create_dataset("2", (1,), np.float32),
}


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_are_not_what_they_should_be_are_damaged(snapshot: Path, change: str) -> None:
    with_weights(snapshot, CHANGES[change])
    with pytest.raises(ModelError, match=r"model.keras is damaged \(.+\): point the champion at another") as error:
        load_inference(snapshot, GAME, "jax")
    assert "\n" not in str(error.value)


FORGED = [
    name for name in CHANGES if any(word in name for word in ("link", "file", "virtual", "tera", "chunk", "text"))
]


@pytest.mark.parametrize("change", FORGED)
def test_weights_that_hdf5_would_enlarge_or_seek_elsewhere_are_not_read(snapshot: Path, change: str) -> None:
    with_weights(snapshot, CHANGES[change])
    for load, given in ((saved_model.load_model, snapshot), (read_archive, snapshot / saved_model.ARCHIVE)):
        with pytest.raises(ModelError, match=r"is damaged \(.* is no array that lies in the file as it is\)"):
            load(given)  # type: ignore[operator]


@pytest.mark.parametrize("file", sorted(ROOT.glob("models/*/0*/assets.extra/model.keras")), ids=str)
def test_the_weights_of_the_models_that_come_with_seraphim_lie_as_they_are(file: Path) -> None:
    assert len(open_weights(file).getbuffer()) == safety.bytes_of_weights(file)


CONFIGS: dict[str, Callable[[Any], object]] = {
    "no layers": lambda network: network.pop("layers"),
    "an unknown input": lambda network: network["layers"][2]["inbound_nodes"][0]["args"][0]["config"].update(
        keras_history=["nowhere", 0, 0]
    ),
    "layers out of order": lambda network: network["layers"].reverse(),
    "no outputs": lambda network: network.update(output_layers=[]),
    "no kernel": lambda network: network["layers"][3]["config"].update(use_bias=False),
}


@pytest.mark.parametrize("change", CONFIGS)
def test_a_configuration_that_makes_no_sense_is_damaged(snapshot: Path, change: str) -> None:
    with_config(snapshot, lambda config: CONFIGS[change](config["config"]))
    with pytest.raises(ModelError, match=r"model.keras is damaged \(.+\): point the champion at another"):
        load_inference(snapshot, GAME, "jax")


def test_a_network_of_another_game_is_refused(snapshot: Path) -> None:
    with_config(snapshot, lambda config: config["config"]["output_layers"].update(value=["policy", 0, 0]))
    with pytest.raises(ModelError, match="value head of .* has 9 outputs but tictactoe needs 1: was this"):
        load_inference(snapshot, GAME, "jax")
    with pytest.raises(ModelError, match="was this model trained for another game"):
        load_inference(snapshot, CONNECT_FOUR, "jax")


def test_damage_of_the_weights_is_an_error_or_changes_numbers(snapshot: Path) -> None:
    file = snapshot / saved_model.ARCHIVE
    parts = parts_of(file)
    random = np.random.default_rng(0)
    failed = 0
    for place in random.integers(0, len(parts[PART]), 150):
        content = bytearray(parts[PART])
        content[place] ^= int(random.integers(1, 256))
        write_parts(file, {**parts, PART: bytes(content)})
        try:
            read_archive(file)
        except ModelError:
            failed += 1
    assert 0 < failed < 150
