"""The history of a model, for pages: its finished games, and its learning curves."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from seraphim.errors import FileError, NotInstalledError, RecordError
from seraphim.evaluation import match_csv, ratings
from seraphim.game import Game, board_of, load_game
from seraphim.game.features import features_of, has_chance, num_columns
from seraphim.game.notation import label_in, labels_in, labels_vary
from seraphim.records.examples import Positions, by_player, check_by_rules, decode, of_mover, pick
from seraphim.records.files import reading, whole_games
from seraphim.records.index import FileIndex, id_of, index_files, stream_and_number
from seraphim.records.tfrecord import DamageError
from seraphim.server.searcher.messages import Message, to_board
from seraphim.storage.models import ModelFolder
from seraphim.training.curve import CURVE, read_curve

LOSSES = ("loss", "policy_loss", "value_loss", "window_positions", "gate_score")
"""The metrics of a snapshot that come from its training."""

Series = dict[str, list[tuple[float, float]]]

_index_lock = threading.Lock()


def list_games(folder: ModelFolder, offset: int, limit: int) -> Message:
    """Return some games of a model, newest first, and how many there are.

    Raises:
        ModelError: there is no such model.
        RecordError: the games are of another game than the model.
    """
    game = load_game(folder.settings().game)
    with reading(folder.game_data):
        indexes = _newest_first(folder.game_data)
        found: list[Message] = []
        for index in indexes:
            count = len(index.numbers)
            if offset < count and len(found) < limit:
                last = count - offset
                first = max(0, last - (limit - len(found)))
                found += [_to_summary(game, *each) for each in _read(game, index, slice(first, last))]
            offset = max(0, offset - count)
        return {"total": sum(len(index.numbers) for index in indexes), "games": found, **_to_kind(game)}


def show_game(folder: ModelFolder, game_id: str) -> Message:
    """Return the positions of a game.

    Raises:
        ModelError: there is no such model.
        RecordError: there is no such game, or it is of another game than the model.
    """
    game = load_game(folder.settings().game)
    stream, number = stream_and_number(game_id)
    with reading(folder.game_data):
        for index in _newest_first(folder.game_data):
            for place in np.flatnonzero(index.numbers == number).tolist():
                if index.streams[place] == stream:
                    for found_id, positions in _read(game, index, slice(place, place + 1)):
                        if found_id == game_id:
                            return _to_game(game, game_id, positions)
    raise RecordError(f"{folder.name} has no game {game_id[:80]!r}")


def show_curves(folder: ModelFolder) -> Message:
    """Return a model's metrics over its steps, by name; the part of a name before `/` is the kind of metric.

    Raises:
        ModelError: there is no such model.
    """
    folder.settings()
    series: Series = {}
    for snapshot in folder.snapshots():
        for name, value in snapshot.metrics().items():
            if name in LOSSES:
                series.setdefault(f"training/{name}", []).append((snapshot.step, value))
    for row in read_curve(folder.path / CURVE):
        for name, value in _error_rates(row):
            series.setdefault(name, []).append((row["step"], value))
    series |= _ratings(folder)
    finite = {name: [point for point in points if np.isfinite(point[1])] for name, points in series.items()}
    return {"steps": sorted({point[0] for points in finite.values() for point in points}), "series": finite}


def _newest_first(folder: Path) -> list[FileIndex]:
    with _index_lock:
        return index_files(folder)[::-1]


def _read(game: Game, index: FileIndex, chosen: slice) -> list[tuple[str, Positions]]:
    # Some of a file's games with their ids, newest first; none if one of them is damaged.
    try:
        games = whole_games(index.path.read_bytes())[chosen]
        found = [(id_of(examples[0]), decode(game, examples)) for examples in reversed(games)]
        for _, positions in found:
            check_by_rules(game, positions)
        return found
    except DamageError:
        return []
    except RecordError as error:
        raise RecordError(f"{index.path.name} {error}") from error


def _to_result(game: Game, positions: Positions) -> Message:
    # As in messages of positions: for player 0, and with more than two players for each; None if the game was cut off.
    results = by_player(game, pick(positions, slice(-1, None)))[0].tolist()
    known = bool(positions.value_weights[-1])
    told = {"result": results[0] if known else None}
    return told | {"results": results if known else None} if num_columns(game) > 2 else told


def _to_kind(game: Game) -> Message:
    # What a page must know about the game to show results.
    features = features_of(game)
    return {"num_players": features.num_players or 2, "chance": has_chance(game), "points": features.points}


def _to_summary(game: Game, game_id: str, positions: Positions) -> Message:
    return {
        "game_id": game_id,
        **_to_result(game, positions),
        "plies": int(positions.plies[-1]) + 1,
        "first_ply": int(positions.plies[0]),  # moves before it are not recorded
        "moves": labels_in(game, positions.states, positions.actions),
    }


def _to_game(game: Game, game_id: str, positions: Positions) -> Message:
    expected = by_player(game, positions._replace(values=positions.root_values)).tolist()
    return {
        "game_id": game_id,
        **_to_result(game, positions),
        "labels_vary": labels_vary(game),
        **_to_kind(game),
        "positions": [_to_position(game, positions, row, values) for row, values in enumerate(expected)],
    }


def _to_position(game: Game, positions: Positions, row: int, expected: list[float]) -> Message:
    state, action = positions.states[row], int(positions.actions[row])
    labels = {each: label_in(game, state, each) for each in np.flatnonzero(positions.legal[row]).tolist()}
    return {
        "ply": int(positions.plies[row]),
        "board": to_board(board_of(game, state)),
        "text": game.render(state),
        "to_play": int(game.to_play(state[None])[0]),
        "action": action,
        "label": label_in(game, state, action),
        "labels": {str(each): label for each, label in labels.items()},
        "root_value": float(of_mover(positions.root_values)[row]),
        **({"root_values": expected} if num_columns(game) > 2 else {}),  # of each player
        "value": float(of_mover(positions.values)[row]) if positions.value_weights[row] else None,
        "policy": {label: float(positions.policies[row][each]) for each, label in labels.items()},
    }


def _error_rates(row: dict[str, float]) -> Iterator[tuple[str, float]]:
    # The metrics of a row of a learning curve; mistakes as shares of positions.
    for name, value in row.items():
        if name.endswith("_mistakes"):
            where, _, kind = name.rpartition("/")
            yield f"{kind}/{where}", value / max(1.0, row.get(f"{where}/positions", 0.0))
        elif name.startswith("strength/"):
            yield name, value
        elif name != "step" and not name.endswith("/positions"):
            yield f"learning/{name}", value


def _ratings(folder: ModelFolder) -> Series:
    # The ratings of the model's snapshots and their 95 % intervals, if the standing tournament has any.
    try:
        matches = match_csv.read_matches(folder.path / match_csv.RESULTS)
        rated = {rating.name.rpartition("/")[2]: rating for rating in ratings.rate(ratings.connected(matches))}
    except (FileError, NotInstalledError):  # a damaged file, or a missing package
        return {}
    found = [(float(each.step), rated[each.name]) for each in folder.snapshots() if each.name in rated]
    return {f"rating/{part}": [(x, getattr(y, part)) for x, y in found] for part in ("elo", "low", "high") if found}
