"""A finished game as one `tf.train.Example` per position, and back, many at a time.

What an example holds, and how it is stored, is `seraphim.records.schema`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import RecordError
from seraphim.game import Array, Game
from seraphim.records import sparse
from seraphim.records.schema import (
    END_OF_FILE,
    END_OF_GAME,
    is_end_of_file,
    is_of_this_schema,
    is_sparse,
    read_columns,
    shapes_of,
    write_columns,
)
from seraphim.records.sparse import SparseRows
from seraphim.records.tfrecord import parse_example

POLICY_TOLERANCE = 1e-3  # by which the sum of a visit distribution in float32 may miss 1
_DENSE_AT_A_TIME = 256  # positions of a game with sparse policies, while they are read


class GameRecord(NamedTuple):
    """A finished game of `T` plies, `T >= 1`."""

    game_id: str  # not empty, and of no other game
    states: Array  # int64 [T, W], before each action
    actions: Array  # int [T], what was played
    policies: Array  # float32 [T, A], what the searches teach, untouched by the temperature of play
    root_values: Array  # float32 [T] in [-1, 1], the search's value for the player to move
    result: (
        float | None
    )  # for player 0, in [-1, 1], see `seraphim.search.expansion.terminal_value`; None if the game was cut off
    policy_weights: Array | None = None  # float32 [T], how much each policy teaches; all 1 if None
    first_ply: int = 0  # of the first position; the moves before it are not recorded


class Positions(NamedTuple):
    """`P` positions, those of a game in succession; see `pick` and `concatenate`."""

    observations: Array  # uint8 [P, *O], as seen by the player to move
    policies: (
        Array | SparseRows
    )  # float32 [P, A], what the searches teach; sparse by `seraphim.records.schema.is_sparse`
    values: Array  # float32 [P] in [-1, 1], the game's result for the player to move
    value_weights: Array  # float32 [P], 1, or 0 for the positions of a game that was cut off
    policy_weights: Array  # float32 [P], how much each policy teaches
    root_values: Array  # float32 [P] in [-1, 1], the search's value for the player to move
    states: Array  # int64 [P, W]
    legal: Array | SparseRows  # bool [P, A], likewise
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
    if not is_sparse(game.num_actions):
        return _decode(game, examples)
    starts = range(0, max(1, len(examples)), _DENSE_AT_A_TIME)
    return concatenate([_with_sparse_moves(_decode(game, examples[i : i + _DENSE_AT_A_TIME])) for i in starts])


def concatenate(parts: Sequence[Positions]) -> Positions:
    """Return the positions of all parts of one game, in order."""
    columns: Iterable[Any] = (sparse.concatenate(columns) for columns in zip(*parts, strict=True))
    return Positions(*columns)


def pick(positions: Positions, rows: slice | Array) -> Positions:
    """Return some of the positions: a slice, or indices or a mask as an array."""
    columns: Iterable[Any] = positions
    return Positions(*(column[rows] for column in columns))


def _decode(game: Game, examples: Sequence[bytes]) -> Positions:
    columns = read_columns(shapes_of(game), examples)
    return Positions(
        observations=columns["observation"].reshape(len(examples), *game.observation_shape),
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


def _with_sparse_moves(positions: Positions) -> Positions:
    policies = sparse.from_dense(np.asarray(positions.policies), np.asarray(positions.legal))
    legal = SparseRows(policies.starts, policies.columns, np.ones(len(policies.values), np.bool_), policies.num_columns)
    return positions._replace(policies=policies, legal=legal)


def end_of(example: bytes) -> int:
    """Return what ends with a position: 0 for nothing, END_OF_GAME or END_OF_FILE."""
    return example[-1] if example else 0


def with_end_of_file(example: bytes) -> bytes:
    """Return the example of a game's last position as the last one of a file."""
    return example[:-1] + bytes([END_OF_FILE])


def is_cut_off(example: bytes) -> bool:
    """Return whether a file that ends with this example, if it is of a schema of ours, was longer once.

    Raises:
        DamageError: this is no `tf.train.Example`.
    """
    features = parse_example(example)
    return is_of_this_schema(features) and not is_end_of_file(features)


def _encode_group(game: Game, records: Sequence[GameRecord]) -> Iterator[list[bytes]]:
    """Yield the examples of each game; the games' ids are of one length."""
    lengths = np.array([len(record.actions) for record in records])
    stops = np.cumsum(lengths)
    first_plies = np.array([record.first_ply for record in records])
    states = np.concatenate([record.states for record in records])
    actions = np.concatenate([record.actions for record in records])
    policies = np.concatenate([record.policies for record in records])
    legal = game.legal(states)
    _check_moves(records, stops, actions, policies, legal)
    results = np.repeat([record.result or 0.0 for record in records], lengths)
    game_ids = [np.frombuffer(record.game_id.encode(), np.uint8) for record in records]
    ends = np.zeros(len(states), np.int64)
    ends[stops - 1] = END_OF_GAME
    columns = {
        "game_id": np.repeat(game_ids, lengths, axis=0),
        "ply": np.arange(stops[-1]) - np.repeat(stops - lengths - first_plies, lengths),
        "action": actions,
        "value": np.where(game.to_play(states) == 0, results, 0.0 - results),
        "value_weight": np.repeat([float(record.result is not None) for record in records], lengths),
        "policy_weight": np.concatenate([_policy_weights(record) for record in records]),
        "root_value": np.concatenate([record.root_values for record in records]),
        "observation": game.observe(states).reshape(len(states), -1),
        "state": states,
        "policy": policies,
        "legal": legal,
        "end": ends,
    }
    examples = write_columns(shapes_of(game), columns)
    for stop, length in zip(stops.tolist(), lengths.tolist(), strict=True):
        yield examples[stop - length : stop]


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
