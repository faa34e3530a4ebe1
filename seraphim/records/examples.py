"""A finished game as one `tf.train.Example` per position, and back, many at a time.

`seraphim.records.schema` defines what an example holds and how it is stored.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import GameError, RecordError
from seraphim.game import Array, Game
from seraphim.game.features import features_of, mover_first, num_columns
from seraphim.game.saved_games import check_position
from seraphim.records import sparse
from seraphim.records.schema import END_OF_GAME, is_sparse, read_columns, shapes_of, write_columns
from seraphim.records.sparse import SparseRows
from seraphim.records.tfrecord import DamageError

MOST_LUCK = 2
"""The difference of two values."""
POLICY_TOLERANCE = 1e-3  # by which the sum of a visit distribution in float32 may differ from 1
_VALUE_TOLERANCE = 1e-3  # by which a mean of values in float32 may exceed 1
_VALUES, _WEIGHTS = ("value", "root_value", "values", "root_values"), ("value_weight", "policy_weight")
_DENSE_AT_A_TIME = 256  # positions of a game with sparse policies, while they are read


class GameRecord(NamedTuple):
    """A finished game: `T` positions in which a player moved, `T >= 1`."""

    game_id: str  # not empty, and unique
    states: Array  # int64 [T, W], before each action
    actions: Array  # int [T], what was played
    policies: Array  # float32 [T, A], the policy targets, unaffected by the temperature of play
    # float32 [T] in [-1, 1], the search's value for the player to move; of more than two players [T, P], by player.
    root_values: Array
    # In [-1, 1], as the search values it: for player 0, or float32 [P], by player; None if the game was cut off.
    result: Array | float | None
    plies: Array | None = None  # int [T], moves and outcomes of chance before each position; None counts from 0
    luck: Array | None = None  # float32 [T], what chance brought the player to move after each action; None if unknown


class Positions(NamedTuple):
    """`P` positions, those of a game in succession; see `pick` and `concatenate`."""

    observations: Array  # uint8 [P, *O], as seen by the player to move
    policies: Array | SparseRows  # float32 [P, A], the policy targets; sparse if `schema.is_sparse`
    # float32 [P] in [-1, 1], the game's result for the player to move; of more than two players [P, V], that one first.
    values: Array
    value_weights: Array  # float32 [P], 1, or 0 for the positions of a game that was cut off
    policy_weights: Array  # float32 [P], weight of each policy in training
    root_values: Array  # the same of the search's values
    luck: Array  # float32 [P], what chance brought the player to move after the action, by the network's values
    states: Array  # int64 [P, W]
    legal: Array | SparseRows  # bool [P, A], sparse if the policies are
    actions: Array  # int64 [P], what was played
    plies: Array  # int64 [P], moves before the position
    ends: Array  # bool [P], True for the last position of a game


def encode(game: Game, record: GameRecord) -> list[bytes]:
    """Return one serialized example per position of a game, in order; see `encode_games`."""
    return encode_games(game, [record])[0]


def encode_games(game: Game, records: Sequence[GameRecord]) -> list[list[bytes]]:
    """Return the examples of each game; many games at once take a fraction of the time of one by one.

    Raises:
        RecordError: an array of a record has the wrong shape, a played action is not legal, or a policy is not a
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

    Numbers are in the ranges that `Positions` and the schema name, and the actions played are among those that are
    stored as legal; the rules are not asked: see `check_by_rules`.

    Raises:
        DamageError: an example lacks a feature, has another schema version, or a number that is out of range.
        RecordError: an example is of another game, by its name or its shapes.
    """
    if not is_sparse(game.num_actions):
        return _decode(game, examples)
    starts = range(0, max(1, len(examples)), _DENSE_AT_A_TIME)
    return concatenate([_with_sparse_moves(_decode(game, examples[i : i + _DENSE_AT_A_TIME])) for i in starts])


def check_by_rules(game: Game, positions: Positions) -> None:
    """Check positions of files by the rules, before people see them.

    Raises:
        RecordError: what is stored as legal is not; or a state is no position of the game, if that offers
            `is_position`.
    """
    try:
        if features_of(game).is_position is not None:
            for state in positions.states:
                check_position(game, state)
        for start in range(0, len(positions.plies), _DENSE_AT_A_TIME):
            rows = slice(start, start + _DENSE_AT_A_TIME)
            legal = positions.legal[rows]
            if not np.array_equal(
                legal.dense() if isinstance(legal, SparseRows) else legal, game.legal(positions.states[rows])
            ):
                raise GameError("its legal actions are not those of the rules")
    except Exception as error:  # a game's own code, with words that it may never have made
        raise RecordError(f"holds a position or a move that play does not lead to: {error}") from error


def of_mover(values: Array) -> Array:
    """Return those values of positions, [P] or [P, V], that are for the player to move, [P]."""
    return values if values.ndim == 1 else values[:, 0]


def by_player(game: Game, positions: Positions) -> Array:
    """Return the results of positions float32 [P, V] by player: for player 0, or for each of more than two."""
    to_play = game.to_play(positions.states)
    if positions.values.ndim > 1:
        return mover_first(positions.values, -to_play)
    return np.where(to_play == 0, positions.values, 0.0 - positions.values)[:, None]


def concatenate(parts: Sequence[Positions]) -> Positions:
    """Return the positions of all parts, which are of one game, in order."""
    columns: Iterable[Any] = (sparse.concatenate(columns) for columns in zip(*parts, strict=True))
    return Positions(*columns)


def num_bytes(positions: Positions) -> int:
    """Return how much memory positions take."""
    return sum(column.nbytes for column in positions)


def pick(positions: Positions, rows: slice | Array) -> Positions:
    """Return some of the positions: a slice, or indices or a mask as an array."""
    columns: Iterable[Any] = positions
    return Positions(*(column[rows] for column in columns))


def _decode(game: Game, examples: Sequence[bytes]) -> Positions:
    columns = read_columns(shapes_of(game), examples)
    _check_ranges(game, columns)
    values, root_values = ("values", "root_values") if "values" in columns else ("value", "root_value")
    return Positions(
        observations=columns["observation"].reshape(len(examples), *game.observation_shape),
        policies=columns["policy"],
        values=columns[values],
        value_weights=columns["value_weight"],
        policy_weights=columns["policy_weight"],
        root_values=columns[root_values],
        luck=columns.get("luck", np.zeros(len(examples), np.float32)),
        states=columns["state"],
        legal=columns["legal"],
        actions=columns["action"],
        plies=columns["ply"],
        ends=columns["end"] >= END_OF_GAME,
    )


def _check_ranges(game: Game, columns: Mapping[str, Array]) -> None:
    # Comparisons with NaN are false, so that NaN fails as well.
    without_policy = (columns["policy_weight"] == 0) & ~columns["policy"].any(axis=1)
    expected = {
        f"ply from 0 to {game.max_plies - 1}": (columns["ply"] >= 0) & (columns["ply"] < game.max_plies),
        "legal action": _are_legal(columns["action"], columns["legal"]),
        "policy over its legal actions": _are_policies(columns["policy"], columns["legal"]) | without_policy,
    }
    found = {name: columns[name] for name in _VALUES if name in columns}
    expected |= {f"{name} from -1 to 1": np.abs(column) <= 1 + _VALUE_TOLERANCE for name, column in found.items()}
    if "luck" in columns:
        expected[f"luck from -{MOST_LUCK} to {MOST_LUCK}"] = np.abs(columns["luck"]) <= MOST_LUCK
    expected |= {f"{name} from 0 to 1": (columns[name] >= 0) & (columns[name] <= 1) for name in _WEIGHTS}
    for what, valid in expected.items():
        if not valid.all():
            raise DamageError(f"a record has no {what}")


def _with_sparse_moves(positions: Positions) -> Positions:
    policies = sparse.from_dense(np.asarray(positions.policies), np.asarray(positions.legal))
    legal = SparseRows(policies.starts, policies.columns, np.ones(len(policies.values), np.bool_), policies.num_columns)
    return positions._replace(policies=policies, legal=legal)


def _encode_group(game: Game, records: Sequence[GameRecord]) -> Iterator[list[bytes]]:
    # Yields the examples of each game; the games' ids are of one length.
    lengths = np.array([len(record.actions) for record in records])
    stops = np.cumsum(lengths)
    plies = np.concatenate([_plies(record) for record in records])
    states = np.concatenate([record.states for record in records])
    actions = np.concatenate([record.actions for record in records])
    policies = np.concatenate([record.policies for record in records])
    legal = game.legal(states)
    _check_moves(records, stops, plies, actions, policies, legal)
    none = np.zeros(num_columns(game))
    results = np.repeat(
        [none if record.result is None else record.result + none for record in records], lengths, axis=0
    )
    root_values, to_play = np.concatenate([record.root_values for record in records]), game.to_play(states)
    game_ids = [np.frombuffer(record.game_id.encode(), np.uint8) for record in records]
    ends = np.zeros(len(states), np.int64)
    ends[stops - 1] = END_OF_GAME
    columns = {
        "game_id": np.repeat(game_ids, lengths, axis=0),
        "ply": plies,
        "action": actions,
        "value": np.where(to_play == 0, results[:, 0], 0.0 - results[:, 0]),
        "value_weight": np.repeat([float(record.result is not None) for record in records], lengths),
        "policy_weight": (legal.sum(axis=1) > 1).astype(np.float32),
        "root_value": root_values,
        "luck": np.concatenate([_luck(record) for record in records]),
        "observation": game.observe(states).reshape(len(states), -1),
        "state": states,
        "policy": policies,
        "legal": legal,
        "end": ends,
    }
    if results.shape[1] > 1:
        columns |= {"values": mover_first(results, to_play), "root_values": mover_first(root_values, to_play)}
        columns |= {"value": columns["values"][:, 0], "root_value": columns["root_values"][:, 0]}
    examples = write_columns(shapes_of(game), columns)
    for stop, length in zip(stops.tolist(), lengths.tolist(), strict=True):
        yield examples[stop - length : stop]


def _plies(record: GameRecord) -> Array:
    return np.arange(len(record.actions)) if record.plies is None else np.asarray(record.plies)


def _luck(record: GameRecord) -> Array:
    return np.zeros(len(record.actions), np.float32) if record.luck is None else record.luck


def _check_shapes(game: Game, record: GameRecord) -> None:
    moves, plies = len(record.actions), _plies(record)
    if not record.game_id or not 1 <= moves <= game.max_plies:
        raise RecordError(
            f"game {record.game_id!r} of {game.name} has {moves} plies: expected an id, and 1 to {game.max_plies} plies"
        )
    columns = num_columns(game)
    by_player = (columns,) if columns > 1 else ()
    expected: dict[str, tuple[int, ...]] = {
        "states": (moves, game.state_words),
        "policies": (moves, game.num_actions),
        "root_values": (moves, *by_player),
    }
    if record.luck is not None:
        expected["luck"] = (moves,)
    if record.result is not None:
        expected["result"] = by_player
    found = {name: np.shape(getattr(record, name)) for name in expected} | {"plies": plies.shape}
    for name, shape in (expected | {"plies": (moves,)}).items():
        if found[name] != shape:
            raise RecordError(f"game {record.game_id!r} of {game.name}: {name} have shape {found[name]}, not {shape}")
    if plies[0] < 0 or plies[-1] >= game.max_plies or (np.diff(plies) < 1).any():
        raise RecordError(f"game {record.game_id!r} of {game.name}: plies must rise, from 0 to {game.max_plies - 1}")


def _check_moves(
    records: Sequence[GameRecord], stops: Array, plies: Array, actions: Array, policies: Array, legal: Array
) -> None:
    for valid, problem in (
        (_are_legal(actions, legal), "the action is not legal"),
        (_are_policies(policies, legal), "the policy is not a distribution over legal actions"),
    ):
        if not valid.all():
            row = int(np.argmin(valid))
            record = records[int(np.searchsorted(stops, row, side="right"))]
            raise RecordError(f"game {record.game_id!r}, ply {plies[row]}, action {actions[row]}: {problem}")


def _are_legal(actions: Array, legal: Array) -> Array:
    # Whether each action [P] is legal by bool [P, A].
    known = (actions >= 0) & (actions < legal.shape[1])
    found: Array = known & legal[np.arange(len(actions)), np.where(known, actions, 0)]
    return found


def _are_policies(policies: Array, legal: Array) -> Array:
    # Whether each row [P, A] is a distribution over the legal actions; NaN is none, as comparisons with it are false.
    found: Array = np.all(policies >= 0, axis=1)
    found &= np.abs(np.where(legal, policies, 0).sum(axis=1) - 1) <= POLICY_TOLERANCE
    found &= np.abs(policies.sum(axis=1) - 1) <= POLICY_TOLERANCE
    return found
