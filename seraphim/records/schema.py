"""How a position is stored as a `tf.train.Example`: the features, in a dense and in a sparse form, and back.

Features of an example, in the order in which they are stored:

    schema        int64         DENSE or SPARSE
    game          bytes         the game's name
    game_id       bytes         the same for all positions of one game
    ply           int64         number of moves before the position
    action        int64         the action that was played
    value         float         the game's result for the player to move; 0 if the game was cut off
    value_weight  float         1, or 0 if the game was cut off
    policy_weight float         weight of the policy in training: 1, or 0 where there is no choice, or no policy
    root_value    float         the search's value for the player to move
    values        float [V]     only with more than two players: `value` for each, the one to move first
    root_values   float [V]     the same of `root_value`
    luck          float         only where chance moves, and 0 if missing: what it brought the player to move after the
                                action, by the network: the value of the outcome minus the mean of those of all
    observation   bytes         uint8 [*O], as seen by the player to move
    state         bytes         int64 [W], little endian
    policy        float [A]     the policy target: the search's visit distribution, or the policy of a Gumbel root
    legal         bytes         uint8 [A], 1 where an action is legal
    end           int64         0, END_OF_GAME or END_OF_FILE; its value is the last byte of the example

This is the DENSE form. Games with more than MAX_DENSE_ACTIONS actions use the SPARSE form, in which

    observation   bytes         is compressed by zlib
    state         bytes         is compressed by zlib
    policy        float [K]     covers only the K legal actions
    legal         bytes         is uint16 [K], little endian, the legal actions, ascending; uint32 if A exceeds 2^16

Dense examples of ours have a fixed layout in bytes, which is written and read a column at a time. Sparse ones, and
examples of the same features in another layout, such as TensorFlow's, are read by the message library.
"""

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import RecordError
from seraphim.game import Array, Game
from seraphim.game.features import has_chance, num_columns
from seraphim.records.tfrecord import (
    DamageError,
    Feature,
    FeatureKind,
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
END_OF_FILE = 2  # also ends a game; distinguishes a complete file from one that is truncated between two records
# From about here on a sparse example is at most a third of a dense one. It takes the message library, which is about
# ten times as slow as a layout; for dense examples of 10 KB or more that is no loss.
MAX_DENSE_ACTIONS = 300

_DIFFERENT_IF_SPARSE = ("observation", "state", "policy", "legal")


class Shapes(NamedTuple):
    """What the examples of a game depend on."""

    game: str
    max_plies: int
    num_actions: int
    observation_bytes: int
    state_words: int
    columns: int = 1
    """Values of a position, `V`."""
    chance: bool = False
    """Whether chance moves."""


def shapes_of(game: Game) -> Shapes:
    """Return what the examples of a game depend on."""
    sizes = game.max_plies, game.num_actions, math.prod(game.observation_shape), game.state_words
    return Shapes(game.name, *sizes, num_columns(game), has_chance(game))


def is_sparse(num_actions: int) -> bool:
    """Return whether policies and legal moves over that many actions are sparse, on disk and in memory."""
    return num_actions > MAX_DENSE_ACTIONS


def end_of(example: bytes) -> int:
    """Return what ends with a position: 0 for nothing, END_OF_GAME or END_OF_FILE."""
    return example[-1] if example else 0


def with_end(example: bytes, end: int) -> bytes:
    """Return the example of a game's last position with another end."""
    return example[:-1] + bytes([end])


def is_cut_off(example: bytes) -> bool:
    """Return whether this example of ours, the last of its file, is not marked as the end of the file.

    Raises:
        DamageError: this is not a `tf.train.Example`.
    """
    features = parse_example(example)
    return _has_known_schema(features) and _values(features, "end") != [END_OF_FILE]


def write_columns(shapes: Shapes, columns: Mapping[str, Array]) -> list[bytes]:
    """Return the examples of some positions, whose features are the rows of the columns, as `read_columns` gives them.

    There is one more column, `game_id` uint8 [P, I].
    """
    if is_sparse(shapes.num_actions):
        return list(_to_sparse_examples(shapes, columns))
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
    """Return the features of the examples as dense columns, by name.

    Raises:
        DamageError: an example lacks a feature or has another schema version.
        RecordError: an example is of another game, by its name or its shapes.
    """
    columns: dict[str, Array] = {
        name: np.zeros(len(examples), np.int64 if kind == "int64_list" else dtype)
        for name, (kind, dtype) in _stored(shapes).items()
        if name != "game_id"
    }
    columns["legal"] = columns["legal"].astype(np.bool_)
    groups: dict[int, list[int]] = {}  # by length: examples of one layout have the same
    for index, example in enumerate(examples):
        groups.setdefault(len(example), []).append(index)
    for group in groups.values():
        for index in _read_group(shapes, examples, np.array(group), columns):
            _read_one(shapes, _parse_checked(shapes, examples[index]), index, columns)
    return columns


def _read_group(shapes: Shapes, examples: Sequence[bytes], indices: Array, columns: Mapping[str, Array]) -> list[int]:
    # Reads the examples at `indices`, of one length, into the columns; returns the indices of those of another layout.
    first = examples[indices[0]]
    features = _parse_checked(shapes, first)
    layout = _layout(shapes, len(features["game_id"].values[0]))
    if layout.row.itemsize != len(first):
        return list(indices.tolist())
    data = b"".join([examples[index] for index in indices.tolist()])
    rows = np.frombuffer(data, np.uint8).reshape(len(indices), len(first))
    fields = rows.view(layout.row)[:, 0]
    ours = (rows[:, layout.constant] == layout.template[layout.constant]).all(axis=1)
    integers = {}
    for name in ("ply", "action", "end"):
        integers[name], complete = from_varint(fields[name])
        ours &= complete
    for name, column in columns.items():
        column[indices[ours]] = (integers[name] if name in integers else fields[name])[ours]
    return list(indices[~ours].tolist())


def _read_one(shapes: Shapes, features: Mapping[str, Feature], index: int, columns: Mapping[str, Array]) -> None:
    sparse = features["schema"].values == [SPARSE]
    stored = _stored(shapes)
    for name, column in columns.items():
        kind, dtype = stored[name]
        if (sparse and name in _DIFFERENT_IF_SPARSE) or name not in features:
            continue
        values = features[name].values
        if kind == "bytes_list":
            column[index] = np.frombuffer(values[0], dtype.base)
        else:
            column[index] = values if column.ndim > 1 else values[0]
    if sparse:
        for name in ("observation", "state"):
            data = _decompress(shapes, name, features[name].values[0], stored[name][1].itemsize)
            columns[name][index] = np.frombuffer(data, stored[name][1].base)
        actions = _read_legal_actions(shapes, features["legal"].values[0])
        policy = features["policy"].values
        _check_size(shapes, "policy", len(policy), len(actions))
        columns["legal"][index, actions] = True
        columns["policy"][index, actions] = policy


def _decompress(shapes: Shapes, feature: str, data: bytes, size: int) -> bytes:
    try:
        found = zlib.decompressobj().decompress(data, size + 1)  # bounded memory, whatever the data claims
    except zlib.error as error:
        raise DamageError(f"feature {feature!r} is not compressed by zlib") from error
    _check_size(shapes, feature, len(found), size)
    return found


def _read_legal_actions(shapes: Shapes, data: bytes) -> Array:
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


def _to_sparse_examples(shapes: Shapes, columns: Mapping[str, Array]) -> Iterator[bytes]:
    constants = {"schema": Feature("int64_list", [SPARSE]), "game": Feature("bytes_list", [shapes.game.encode()])}
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
        lists = {
            name: [each] if isinstance(each, bytes) else np.atleast_1d(each).tolist() for name, each in values.items()
        }
        yield to_example(constants | {name: Feature(kind, lists[name]) for name, kind in kinds.items()})


def _has_known_schema(features: Mapping[str, Feature]) -> bool:
    return _values(features, "schema") in ([DENSE], [SPARSE])


def _values(features: Mapping[str, Feature], name: str) -> list[Any]:
    return features[name].values if name in features else []


def _parse_checked(shapes: Shapes, example: bytes) -> dict[str, Feature]:
    # Returns the features of an example, after a check that they are complete and of this game.
    features = parse_example(example)
    if not _has_known_schema(features):
        schema = _values(features, "schema")
        version = f"schema version {schema[0]}" if schema else "no schema version"
        raise DamageError(f"{version}, expected {DENSE} or {SPARSE}: not written by this version of Seraphim")
    name = _values(features, "game")
    if name != [shapes.game.encode()]:
        other = name[0].decode(errors="replace") if name and isinstance(name[0], bytes) else "unknown"
        raise RecordError(f"holds positions of {other}, but the game is {shapes.game}: use another folder or game")
    sparse = _values(features, "schema") == [SPARSE]
    for feature, (kind, dtype) in _stored(shapes).items():
        if feature == "luck" and feature not in features:
            continue
        values: Sequence[Any] = _values(features, feature)
        expected = dtype.itemsize // 4 if kind == "float_list" else 1
        if kind == "bytes_list" and feature != "game_id":
            # Its one value is an array.
            values, expected = values[0] if len(values) == 1 else b"", dtype.itemsize
        if not values or features[feature].kind != kind:
            raise DamageError(f"feature {feature!r} is missing or not a {kind}")
        if not (sparse and feature in _DIFFERENT_IF_SPARSE):
            _check_size(shapes, feature, len(values), expected)
    return features


def _check_size(shapes: Shapes, feature: str, found: int, expected: int) -> None:
    if found != expected:
        raise RecordError(
            f"holds positions of {shapes.game} with {found} numbers or bytes in {feature!r}, but here "
            f"{shapes.game} has {expected}: the rules have changed, use another folder"
        )


@lru_cache(maxsize=64)
def _stored(shapes: Shapes, id_bytes: int = 0) -> dict[str, tuple[FeatureKind, np.dtype[Any]]]:
    # How the values of each feature that varies are stored in the dense form, in the order of the schema.
    def integer(largest: int) -> tuple[FeatureKind, np.dtype[Any]]:
        return "int64_list", np.dtype((np.uint8, (varint_bytes(largest),)))

    def floats(*shape: int) -> tuple[FeatureKind, np.dtype[Any]]:
        return "float_list", np.dtype(("<f4", shape))

    def data(kind: Any, size: int) -> tuple[FeatureKind, np.dtype[Any]]:
        return "bytes_list", np.dtype((kind, (size,)))

    return {
        "game_id": data(np.uint8, id_bytes),
        "ply": integer(shapes.max_plies),
        "action": integer(shapes.num_actions),
        "value": floats(),
        "value_weight": floats(),
        "policy_weight": floats(),
        "root_value": floats(),
        **({"values": floats(shapes.columns), "root_values": floats(shapes.columns)} if shapes.columns > 1 else {}),
        **({"luck": floats()} if shapes.chance else {}),
        "observation": data(np.uint8, shapes.observation_bytes),
        "state": data("<i8", shapes.state_words),
        "policy": floats(shapes.num_actions),
        "legal": data(np.uint8, shapes.num_actions),
        "end": integer(END_OF_FILE),
    }


@lru_cache(maxsize=64)
def _layout(shapes: Shapes, id_bytes: int) -> Layout:
    constants: dict[str, tuple[FeatureKind, Any]] = {
        "schema": ("int64_list", DENSE),
        "game": ("bytes_list", shapes.game.encode()),
    }
    return make_layout(constants, _stored(shapes, id_bytes))
