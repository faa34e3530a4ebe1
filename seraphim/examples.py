"""The schema of game data: a finished game as one `tf.train.Example` per position, and back, many at a time.

Features of an example, in the order in which they are stored:

    schema        int64         SCHEMA_VERSION
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

Ours have a fixed layout in bytes, which is filled and read a column at a time; an example of the same features in
another layout, say written by TensorFlow, is read by the message library.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import RecordError
from seraphim.game import Array, Game
from seraphim.tfrecord import (
    DamageError,
    Feature,
    Kind,
    Layout,
    from_varint,
    make_layout,
    parse_example,
    to_varint,
    varint_bytes,
)

SCHEMA_VERSION = 1
END_OF_GAME = 1
END_OF_FILE = 2  # of the last game in it, too: what tells a whole file from one cut off between two records
POLICY_TOLERANCE = 1e-3  # by which the sum of a visit distribution in float32 may miss 1


class GameRecord(NamedTuple):
    """A finished game of `T` plies, `T >= 1`."""

    game_id: str  # not empty, and of no other game
    states: Array  # int64 [T, W], before each action
    actions: Array  # int [T], what was played
    policies: Array  # float32 [T, A], what the searches teach, untouched by the temperature of play
    root_values: Array  # float32 [T] in [-1, 1], the search's value for the player to move
    result: float | None  # for player 0, in [-1, 1], see `seraphim.search.results.worth`; None if the game was cut off
    policy_weights: Array | None = None  # float32 [T], how much each policy teaches; all 1 if None
    first_ply: int = 0  # of the first position; the moves before it are not recorded


class Positions(NamedTuple):
    """`P` positions, those of a game in succession."""

    observations: Array  # uint8 [P, *O], as seen by the player to move
    policies: Array  # float32 [P, A], what the searches teach
    values: Array  # float32 [P] in [-1, 1], the game's result for the player to move
    value_weights: Array  # float32 [P], 1, or 0 for the positions of a game that was cut off
    policy_weights: Array  # float32 [P], how much each policy teaches
    root_values: Array  # float32 [P] in [-1, 1], the search's value for the player to move
    states: Array  # int64 [P, W]
    legal: Array  # bool [P, A]
    actions: Array  # int64 [P], what was played
    plies: Array  # int64 [P], how many moves the game is old
    ends: Array  # bool [P], True for the last position of a game


def encode(game: Game, record: GameRecord) -> list[bytes]:
    """Return one serialized example per position of a game, in order; see `encode_games`."""
    return encode_games(game, [record])[0]


def encode_games(game: Game, records: Sequence[GameRecord]) -> list[list[bytes]]:
    """Return the examples of each game; many games at once take a fraction of the time of one by one.

    Raises:
        RecordError: an array of a record has the wrong shape, a played action is not legal, or a policy is no
            distribution over legal actions.
    """
    groups: dict[int, list[int]] = {}  # by the length of the game's id, on which the layout depends
    for index, record in enumerate(records):
        _check_shapes(game, record)
        groups.setdefault(len(record.game_id.encode()), []).append(index)
    examples: list[list[bytes]] = [[] for _ in records]
    for group in groups.values():
        for index, encoded in zip(group, _encode_group(game, [records[i] for i in group]), strict=True):
            examples[index] = encoded
    return examples


def decode(game: Game, examples: Sequence[bytes]) -> Positions:
    """Return the positions that the examples hold, in their order.

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
        "observation": np.zeros((count, math.prod(game.observation_shape)), np.uint8),
        "state": np.zeros((count, game.state_words), np.int64),
        "policy": np.zeros((count, game.num_actions), np.float32),
        "legal": np.zeros((count, game.num_actions), np.bool_),
        "end": np.zeros(count, np.int64),
    }
    groups: dict[int, list[int]] = {}  # by length: examples of one layout have the same
    for index, example in enumerate(examples):
        groups.setdefault(len(example), []).append(index)
    for group in groups.values():
        for index in _decode_group(game, examples, np.array(group), columns):
            _decode_one(game, examples[index], index, columns)
    return Positions(
        observations=columns["observation"].reshape(count, *game.observation_shape),
        policies=columns["policy"],
        values=columns["value"],
        value_weights=columns["value_weight"],
        policy_weights=columns["policy_weight"],
        root_values=columns["root_value"],
        states=columns["state"],
        legal=columns["legal"],
        actions=columns["action"],
        plies=columns["ply"],
        ends=columns["end"] >= END_OF_GAME,
    )


def end_of(example: bytes) -> int:
    """Return what ends with a position: 0 for nothing, END_OF_GAME or END_OF_FILE."""
    return example[-1] if example else 0


def with_end_of_file(example: bytes) -> bytes:
    """Return the example of a game's last position as the last one of a file."""
    return example[:-1] + bytes([END_OF_FILE])


def is_cut_off(example: bytes) -> bool:
    """Return whether a file that ends with this example, if it is of this schema, was longer once.

    Raises:
        DamageError: this is no `tf.train.Example`.
    """
    features = parse_example(example)
    return _values(features, "schema") == [SCHEMA_VERSION] and _values(features, "end") != [END_OF_FILE]


def _check_features(game: Game, example: bytes) -> dict[str, Feature]:
    """Return the features of an example, after a check that they are all there and of this game."""
    features = parse_example(example)
    schema = _values(features, "schema")
    if schema != [SCHEMA_VERSION]:
        version = f"schema version {schema[0]}" if schema else "no schema version"
        raise DamageError(f"{version}, expected {SCHEMA_VERSION}: not written by this version of Seraphim")
    name = _values(features, "game")
    if name != [game.name.encode()]:
        other = name[0].decode(errors="replace") if name and isinstance(name[0], bytes) else "unknown"
        raise RecordError(f"holds positions of {other}, but the game is {game.name}: use another folder or game")
    for feature, (kind, dtype) in _stored(_shapes(game)).items():
        values: Sequence[Any] = _values(features, feature)
        expected = dtype.itemsize // 4 if kind == "float_list" else 1
        if kind == "bytes_list" and feature != "game_id":
            # Its one value is an array.
            values, expected = values[0] if len(values) == 1 else b"", dtype.itemsize
        if not values or features[feature].kind != kind:
            raise DamageError(f"feature {feature!r} is missing or no {kind}")
        if len(values) != expected:
            raise RecordError(
                f"holds positions of {game.name} with {len(values)} numbers or bytes in {feature!r}, but here "
                f"{game.name} has {expected}: the rules have changed, use another folder"
            )
    return features


def _values(features: Mapping[str, Feature], name: str) -> list[Any]:
    return features[name].values if name in features else []


class _Shapes(NamedTuple):
    """What of a game its examples depend on."""

    game: str
    max_plies: int
    num_actions: int
    observation_bytes: int
    state_words: int


def _shapes(game: Game) -> _Shapes:
    return _Shapes(game.name, game.max_plies, game.num_actions, math.prod(game.observation_shape), game.state_words)


@lru_cache(maxsize=64)
def _stored(shapes: _Shapes, id_bytes: int = 0) -> dict[str, tuple[Kind, np.dtype[Any]]]:
    """Return how the values of each feature that varies are stored, in the order of the schema."""

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
def _layout(shapes: _Shapes, id_bytes: int) -> Layout:
    constants: tuple[tuple[str, Kind, Any], ...] = (
        ("schema", "int64_list", SCHEMA_VERSION),
        ("game", "bytes_list", shapes.game.encode()),
    )
    stored = _stored(shapes, id_bytes).items()
    return make_layout(constants, [(name, kind, dtype) for name, (kind, dtype) in stored])


def _encode_group(game: Game, records: Sequence[GameRecord]) -> Iterator[list[bytes]]:
    """Yield the examples of each game; the games' ids are of one length."""
    lengths = np.array([len(record.actions) for record in records])
    stops = np.cumsum(lengths)
    first_plies = np.array([record.first_ply for record in records])
    plies = np.arange(stops[-1]) - np.repeat(stops - lengths - first_plies, lengths)
    states = np.concatenate([record.states for record in records])
    actions = np.concatenate([record.actions for record in records])
    policies = np.concatenate([record.policies for record in records])
    legal = game.legal(states)
    _check_moves(records, stops, actions, policies, legal)
    whole = np.repeat([record.result is not None for record in records], lengths)
    results = np.repeat([record.result or 0.0 for record in records], lengths)
    game_ids = [np.frombuffer(record.game_id.encode(), np.uint8) for record in records]
    layout = _layout(_shapes(game), len(game_ids[0]))
    rows = np.empty((len(states), layout.row.itemsize), np.uint8)
    rows[:] = layout.template
    fields = rows.view(layout.row)[:, 0]
    fields["game_id"] = np.repeat(game_ids, lengths, axis=0)
    fields["ply"] = to_varint(plies, layout.row["ply"].itemsize)
    fields["action"] = to_varint(actions, layout.row["action"].itemsize)
    fields["value"] = np.where(game.to_play(states) == 0, results, 0.0 - results)
    fields["value_weight"] = whole
    fields["policy_weight"] = np.concatenate([_policy_weights(record) for record in records])
    fields["root_value"] = np.concatenate([record.root_values for record in records])
    fields["observation"] = game.observe(states).reshape(len(states), -1)
    fields["state"] = states
    fields["policy"] = policies
    fields["legal"] = legal
    fields["end"] = 0
    fields["end"][stops - 1] = END_OF_GAME
    size, data = layout.row.itemsize, rows.tobytes()
    for stop, length in zip(stops.tolist(), lengths.tolist(), strict=True):
        yield [data[row * size : (row + 1) * size] for row in range(stop - length, stop)]


def _policy_weights(record: GameRecord) -> Array:
    return np.ones(len(record.actions), np.float32) if record.policy_weights is None else record.policy_weights


def _check_shapes(game: Game, record: GameRecord) -> None:
    plies = len(record.actions)
    if not record.game_id or not 1 <= plies <= game.max_plies - record.first_ply:
        raise RecordError(
            f"game {record.game_id!r} of {game.name} has {plies} plies: expected an id, and 1 to {game.max_plies} plies"
        )
    for name, expected in (
        ("states", (plies, game.state_words)),
        ("policies", (plies, game.num_actions)),
        ("root_values", (plies,)),
    ):
        shape = np.shape(getattr(record, name))
        if shape != expected:
            raise RecordError(f"game {record.game_id!r} of {game.name}: {name} have the shape {shape}, not {expected}")


def _check_moves(records: Sequence[GameRecord], stops: Array, actions: Array, policies: Array, legal: Array) -> None:
    played = (actions >= 0) & (actions < legal.shape[1])
    played &= legal[np.arange(len(actions)), np.where(played, actions, 0)]
    # A comparison with NaN is false, so that NaN fails too.
    searched = (policies >= 0).all(axis=1)
    searched &= np.abs(np.where(legal, policies, 0).sum(axis=1) - 1) <= POLICY_TOLERANCE
    searched &= np.abs(policies.sum(axis=1) - 1) <= POLICY_TOLERANCE
    for good, fault in (
        (played, "that is no legal action"),
        (searched, "the policy is no distribution over legal actions"),
    ):
        if not good.all():
            row = int(np.argmin(good))
            index = int(np.searchsorted(stops, row, side="right"))
            record = records[index]
            ply = record.first_ply + row - int(stops[index]) + len(record.actions)
            raise RecordError(f"game {record.game_id!r}, ply {ply}, action {actions[row]}: {fault}")


def _decode_group(game: Game, examples: Sequence[bytes], indices: Array, columns: Mapping[str, Array]) -> list[int]:
    """Write the examples at `indices`, of one length, to the columns; return the indices of those of another layout."""
    first = examples[indices[0]]
    layout = _layout(_shapes(game), len(_check_features(game, first)["game_id"].values[0]))
    if layout.row.itemsize != len(first):
        return indices.tolist()
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


def _decode_one(game: Game, example: bytes, index: int, columns: Mapping[str, Array]) -> None:
    features = _check_features(game, example)
    stored = _stored(_shapes(game))
    for name, column in columns.items():
        kind, dtype = stored[name]
        values = features[name].values
        if kind == "bytes_list":
            column[index] = np.frombuffer(values[0], dtype.base)
        else:
            column[index] = values if column.ndim > 1 else values[0]
