"""How a position is stored as a `tf.train.Example`: the features, in a dense and in a sparse form, and back.

Features of an example, in the order in which they are stored:

    schema        int64         DENSE or SPARSE
    game          bytes         the game's name
    game_id       bytes         the same for all positions of one game
    ply           int64         how many moves the game is old
    action        int64         what was played
    value         float         the game's result for the player to move; 0 if it was cut off
    value_weight  float         1, or 0 if the game was cut off
    policy_weight float         how much the policy teaches; 1 in self-play, 0 for nothing
    root_value    float         the search's value for the player to move
    observation   bytes         uint8 [*O], as seen by the player to move
    state         bytes         int64 [W], little endian
    policy        float [A]     what the search teaches: its visit distribution, or the policy of a Gumbel root
    legal         bytes         uint8 [A], 1 where an action is legal
    end           int64         0, END_OF_GAME or END_OF_FILE; its value is the last byte of the example

So they are DENSE. In games with more actions than MOST_DENSE_ACTIONS they are SPARSE; then differ

    observation   bytes         the same, compressed by zlib
    state         bytes         the same, compressed by zlib
    policy        float [K]     of the K legal actions alone
    legal         bytes         uint16 [K], little endian: the legal actions, ascending; uint32 where A is over 2^16

Dense examples of ours have a fixed layout in bytes, which is filled and read a column at a time; sparse ones, and
examples of the same features in another layout, say written by TensorFlow, are read by the message library.
"""

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import RecordError
from seraphim.game import Array, Game
from seraphim.records.tfrecord import (
    DamageError,
    Feature,
    Kind,
    Layout,
    from_varint,
    make_layout,
    parse_example,
    to_example,
    to_varint,
    varint_bytes,
)

DENSE, SPARSE = 1, 2  # schema versions
END_OF_GAME = 1
END_OF_FILE = 2  # of the last game in it, too: what tells a whole file from one cut off between two records
# From about here on a sparse example is a third of a dense one or less. It takes the message library, which is some ten
# times as slow as a layout: where a dense example has 10 KB or more, that is no slower.
MOST_DENSE_ACTIONS = 300


class Shapes(NamedTuple):
    """What of a game its examples depend on."""

    game: str
    max_plies: int
    num_actions: int
    observation_bytes: int
    state_words: int


def shapes_of(game: Game) -> Shapes:
    """Return what of a game its examples depend on."""
    return Shapes(game.name, game.max_plies, game.num_actions, math.prod(game.observation_shape), game.state_words)


def is_sparse(num_actions: int) -> bool:
    """Return whether the policies and legal moves of a game with so many actions are sparse, on disk and in memory."""
    return num_actions > MOST_DENSE_ACTIONS


def write_columns(shapes: Shapes, columns: Mapping[str, Array]) -> list[bytes]:
    """Return the examples of some positions, whose features are the rows of the columns, as `read_columns` gives them.

    There is one more column, `game_id` uint8 [P, I].
    """
    if is_sparse(shapes.num_actions):
        return list(_sparse_examples(shapes, columns))
    layout = _layout(shapes, columns["game_id"].shape[1])
    rows = np.empty((len(columns["ply"]), layout.row.itemsize), np.uint8)
    rows[:] = layout.template
    fields = rows.view(layout.row)[:, 0]
    for name, (kind, _) in _stored(shapes).items():
        integers = kind == "int64_list"
        fields[name] = to_varint(columns[name], layout.row[name].itemsize) if integers else columns[name]
    size, data = layout.row.itemsize, rows.tobytes()
    return [data[start : start + size] for start in range(0, len(data), size)]


def read_columns(shapes: Shapes, examples: Sequence[bytes]) -> dict[str, Array]:
    """Return what the features of each example hold, dense, by the feature's name.

    Raises:
        DamageError: an example misses a feature or is of another schema version.
        RecordError: an example is of another game, by its name or its shapes.
    """
    count = len(examples)
    columns: dict[str, Array] = {
        "ply": np.zeros(count, np.int64),
        "action": np.zeros(count, np.int64),
        "value": np.zeros(count, np.float32),
        "value_weight": np.zeros(count, np.float32),
        "policy_weight": np.zeros(count, np.float32),
        "root_value": np.zeros(count, np.float32),
        "observation": np.zeros((count, shapes.observation_bytes), np.uint8),
        "state": np.zeros((count, shapes.state_words), np.int64),
        "policy": np.zeros((count, shapes.num_actions), np.float32),
        "legal": np.zeros((count, shapes.num_actions), np.bool_),
        "end": np.zeros(count, np.int64),
    }
    groups: dict[int, list[int]] = {}  # by length: examples of one layout have the same
    for index, example in enumerate(examples):
        groups.setdefault(len(example), []).append(index)
    for group in groups.values():
        for index in _read_group(shapes, examples, np.array(group), columns):
            _read_one(shapes, check_features(shapes, examples[index]), index, columns)
    return columns


def is_of_this_schema(features: Mapping[str, Feature]) -> bool:
    """Return whether an example has a schema version that is read here."""
    return _values(features, "schema") in ([DENSE], [SPARSE])


def is_end_of_file(features: Mapping[str, Feature]) -> bool:
    """Return whether a file ends with this example."""
    return _values(features, "end") == [END_OF_FILE]


def check_features(shapes: Shapes, example: bytes) -> dict[str, Feature]:
    """Return the features of an example, after a check that they are all there and of this game.

    Raises:
        DamageError: a feature is missing, or the example is of another schema version.
        RecordError: the example is of another game, by its name or its shapes.
    """
    features = parse_example(example)
    if not is_of_this_schema(features):
        schema = _values(features, "schema")
        version = f"schema version {schema[0]}" if schema else "no schema version"
        raise DamageError(f"{version}, expected {DENSE} or {SPARSE}: not written by this version of Seraphim")
    name = _values(features, "game")
    if name != [shapes.game.encode()]:
        other = name[0].decode(errors="replace") if name and isinstance(name[0], bytes) else "unknown"
        raise RecordError(f"holds positions of {other}, but the game is {shapes.game}: use another folder or game")
    sparse = _values(features, "schema") == [SPARSE]
    for feature, (kind, dtype) in _stored(shapes).items():
        values: Sequence[Any] = _values(features, feature)
        expected = dtype.itemsize // 4 if kind == "float_list" else 1
        if kind == "bytes_list" and feature != "game_id":
            # Its one value is an array.
            values, expected = values[0] if len(values) == 1 else b"", dtype.itemsize
        if not values or features[feature].kind != kind:
            raise DamageError(f"feature {feature!r} is missing or no {kind}")
        if not (sparse and feature in _DIFFERENT):
            _check_size(shapes, feature, len(values), expected)
    return features


_DIFFERENT = ("observation", "state", "policy", "legal")  # in sparse examples


def _check_size(shapes: Shapes, feature: str, found: int, expected: int) -> None:
    if found != expected:
        raise RecordError(
            f"holds positions of {shapes.game} with {found} numbers or bytes in {feature!r}, but here "
            f"{shapes.game} has {expected}: the rules have changed, use another folder"
        )


def _values(features: Mapping[str, Feature], name: str) -> list[Any]:
    return features[name].values if name in features else []


@lru_cache(maxsize=64)
def _stored(shapes: Shapes, id_bytes: int = 0) -> dict[str, tuple[Kind, np.dtype[Any]]]:
    """Return how the values of each feature that varies are stored if dense, in the order of the schema."""

    def integer(largest: int) -> tuple[Kind, np.dtype[Any]]:
        return "int64_list", np.dtype((np.uint8, (varint_bytes(largest),)))

    def floats(*shape: int) -> tuple[Kind, np.dtype[Any]]:
        return "float_list", np.dtype(("<f4", shape))

    def data(kind: Any, size: int) -> tuple[Kind, np.dtype[Any]]:
        return "bytes_list", np.dtype((kind, (size,)))

    return {
        "game_id": data(np.uint8, id_bytes),
        "ply": integer(shapes.max_plies),
        "action": integer(shapes.num_actions),
        "value": floats(),
        "value_weight": floats(),
        "policy_weight": floats(),
        "root_value": floats(),
        "observation": data(np.uint8, shapes.observation_bytes),
        "state": data("<i8", shapes.state_words),
        "policy": floats(shapes.num_actions),
        "legal": data(np.uint8, shapes.num_actions),
        "end": integer(END_OF_FILE),
    }


@lru_cache(maxsize=64)
def _layout(shapes: Shapes, id_bytes: int) -> Layout:
    constants: tuple[tuple[str, Kind, Any], ...] = (
        ("schema", "int64_list", DENSE),
        ("game", "bytes_list", shapes.game.encode()),
    )
    stored = _stored(shapes, id_bytes).items()
    return make_layout(constants, [(name, kind, dtype) for name, (kind, dtype) in stored])


def _read_group(shapes: Shapes, examples: Sequence[bytes], indices: Array, columns: Mapping[str, Array]) -> list[int]:
    """Write the examples at `indices`, of one length, to the columns; return the indices of those of another layout."""
    first = examples[indices[0]]
    features = check_features(shapes, first)
    layout = _layout(shapes, len(features["game_id"].values[0]))
    if layout.row.itemsize != len(first):
        _read_one(shapes, features, indices[0], columns)
        return indices[1:].tolist()
    data = b"".join([examples[index] for index in indices.tolist()])
    rows = np.frombuffer(data, np.uint8).reshape(len(indices), len(first))
    fields = rows.view(layout.row)[:, 0]
    ours = (rows[:, layout.constant] == layout.template[layout.constant]).all(axis=1)
    integers = {}
    for name in ("ply", "action", "end"):
        integers[name], whole = from_varint(fields[name])
        ours &= whole
    for name, column in columns.items():
        column[indices[ours]] = (integers[name] if name in integers else fields[name])[ours]
    return indices[~ours].tolist()


def _read_one(shapes: Shapes, features: Mapping[str, Feature], index: int, columns: Mapping[str, Array]) -> None:
    sparse = features["schema"].values == [SPARSE]
    stored = _stored(shapes)
    for name, column in columns.items():
        kind, dtype = stored[name]
        values = features[name].values
        if sparse and name in _DIFFERENT:
            continue
        if kind == "bytes_list":
            column[index] = np.frombuffer(values[0], dtype.base)
        else:
            column[index] = values if column.ndim > 1 else values[0]
    if sparse:
        for name in ("observation", "state"):
            data = _decompressed(shapes, name, features[name].values[0], stored[name][1].itemsize)
            columns[name][index] = np.frombuffer(data, stored[name][1].base)
        actions = _legal_actions(shapes, features["legal"].values[0])
        policy = features["policy"].values
        _check_size(shapes, "policy", len(policy), len(actions))
        columns["legal"][index, actions] = True
        columns["policy"][index, actions] = policy


def _decompressed(shapes: Shapes, feature: str, data: bytes, size: int) -> bytes:
    try:
        found = zlib.decompressobj().decompress(data, size + 1)  # no more memory than that, whatever the data says
    except zlib.error as error:
        raise DamageError(f"feature {feature!r} is not compressed by zlib") from error
    _check_size(shapes, feature, len(found), size)
    return found


def _legal_actions(shapes: Shapes, data: bytes) -> Array:
    dtype = _action_type(shapes)
    if len(data) % dtype.itemsize:
        raise DamageError(f"feature 'legal' has {len(data)} bytes, expected {dtype.itemsize} for each action")
    actions = np.frombuffer(data, dtype)
    if actions.max() >= shapes.num_actions:
        raise RecordError(
            f"holds positions of {shapes.game} with action {actions.max()}, but here {shapes.game} has "
            f"{shapes.num_actions}: the rules have changed, use another folder"
        )
    return actions


def _action_type(shapes: Shapes) -> np.dtype[Any]:
    return np.dtype("<u2") if shapes.num_actions <= 1 << 16 else np.dtype("<u4")


def _sparse_examples(shapes: Shapes, columns: Mapping[str, Array]) -> Iterator[bytes]:
    constants = {
        "schema": Feature("int64_list", [SPARSE]),
        "game": Feature("bytes_list", [shapes.game.encode()]),
    }
    kinds = {name: kind for name, (kind, _) in _stored(shapes).items()}
    for row in range(len(columns["ply"])):
        actions = np.flatnonzero(columns["legal"][row])
        values: dict[str, Any] = {name: columns[name][row] for name in kinds}
        values |= {
            "game_id": values["game_id"].tobytes(),
            "observation": zlib.compress(values["observation"].tobytes()),
            "state": zlib.compress(values["state"].astype("<i8").tobytes()),
            "policy": values["policy"][actions],
            "legal": actions.astype(_action_type(shapes)).tobytes(),
        }
        features = {name: Feature(kind, _listed(values[name])) for name, kind in kinds.items()}
        yield to_example(constants | features)


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, bytes) else np.atleast_1d(value).tolist()
