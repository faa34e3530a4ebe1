"""What a model learnt from, for pages: its finished games, and its curves of learning. Reads only what is asked for.

Of each file of games it remembers where in it which game begins, as long as the file is there; all else is read anew.
"""

import mmap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seraphim.errors import RecordError, SettingsError
from seraphim.evaluation import match_csv, ratings
from seraphim.game import Array, Game, load_game
from seraphim.game.notation import label_in, labels_in, labels_vary
from seraphim.records.examples import Positions, decode
from seraphim.records.files import published_files, reading
from seraphim.records.schema import end_of
from seraphim.records.tfrecord import FRAME_BYTES, HEADER_BYTES, LENGTH, VARINT_BITS, DamageError, frames, parse_example
from seraphim.server.engine.messages import Message, to_board
from seraphim.storage.models import ModelFolder
from seraphim.training.curve import CURVE, read_curve

LOSSES = ("loss", "policy_loss", "value_loss", "window_positions", "gate_score")
"""The figures of a snapshot that come from its training."""

_ID = b"\x0a\x07game_id"  # as protobuf has the name of that feature

Series = dict[str, list[tuple[float, float]]]


class _Indexed(NamedTuple):
    """Where games begin in a file."""

    state: tuple[int, int]  # of the file: when it was changed, and its size
    bounds: Array  # int64 [G + 1]: byte at which each game begins, and the end of the file; [0] if it is damaged
    places: dict[bytes, int]  # by a game's id, which of them it is


class Learnt:
    """The games and curves of all models below a folder; for several threads."""

    def __init__(self) -> None:
        """Prepare; nothing is read yet."""
        self._files: dict[Path, _Indexed] = {}
        self._lock = threading.Lock()

    def games(self, folder: ModelFolder, offset: int, limit: int) -> Message:
        """Return some games of a model, newest first, and how many there are.

        Raises:
            ModelError: there is no such model.
            RecordError: they are of another game.
        """
        game = load_game(folder.settings().game)
        with reading(folder.game_data):
            files = {file: indexed.bounds for file, indexed in self._indexed(folder.game_data).items()}
            found = []
            for file, first, last in _chosen(files, offset, limit):
                found += [_to_summary(game, *each) for each in _read(game, file, files[file][first : last + 1])]
            return {"total": sum(len(bounds) - 1 for bounds in files.values()), "games": found}

    def game(self, folder: ModelFolder, game_id: str) -> Message:
        """Return the positions of a game.

        Raises:
            ModelError: there is no such model.
            RecordError: there is no such game, or it is of another game than the model.
        """
        game = load_game(folder.settings().game)
        with reading(folder.game_data):
            for file, indexed in self._indexed(folder.game_data).items():
                place = indexed.places.get(game_id.encode())
                if place is not None:
                    for found_id, positions in _read(game, file, indexed.bounds[place : place + 2]):
                        if found_id == game_id:
                            return _to_game(game, game_id, positions)
        raise RecordError(f"there is no game {game_id[:80]!r} of {folder.name}")

    def curves(self, folder: ModelFolder) -> Message:
        """Return the figures of a model's learning over its steps, by name; the part of a name before `/` is its kind.

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
            for name, value in _shares(row):
                series.setdefault(name, []).append((row["step"], value))
        series |= _ratings(folder)
        finite = {name: [point for point in points if np.isfinite(point[1])] for name, points in series.items()}
        return {"steps": sorted({point[0] for points in finite.values() for point in points}), "series": finite}

    def _indexed(self, folder: Path) -> dict[Path, _Indexed]:
        # The games in each file of a folder, the newest file first.
        files = published_files(folder)[::-1]
        with self._lock:
            for gone in [path for path in self._files if path.parent == folder and path not in files]:
                del self._files[gone]
            for path in files:
                about = path.stat()
                state = about.st_mtime_ns, about.st_size
                if path not in self._files or self._files[path].state != state:
                    self._files[path] = _Indexed(state, *_index(path))
            return {path: self._files[path] for path in files}


def _index(path: Path) -> tuple[Array, dict[bytes, int]]:
    # The bounds of the games in a file, and their places by id.
    bounds, places = [0], dict[bytes, int]()
    nothing: tuple[Array, dict[bytes, int]] = np.zeros(1, np.int64), {}
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            position, size = 0, len(content)
            while position + FRAME_BYTES < size:
                payload = position + HEADER_BYTES
                payload_end = payload + LENGTH.unpack_from(content, position)[0]
                position = payload_end + FRAME_BYTES - HEADER_BYTES
                if position > size:
                    return nothing
                if end_of(content[payload_end - 1 : payload_end]):
                    places[_id_of(content, payload, payload_end)] = len(bounds) - 1
                    bounds.append(position)
    except (OSError, ValueError):  # it is gone, or empty
        return nothing
    return np.array(bounds), places


def _id_of(content: mmap.mmap, start: int, end: int) -> bytes:
    # The id of the game of the position stored here. It is found by its name, as to parse the whole position would take
    # a hundred times as long; what a damaged position gives is noticed when the game is read.
    found = content.find(_ID, start, end)
    if found < 0:
        return b""
    position, size = found + len(_ID), 0
    for _ in range(3):  # a Feature, in it a BytesList, in it the value: each is a tag, a size and what has that size
        position, size = _varint(content, position + 1, end)
    return content[position : min(end, position + size)]


def _varint(content: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    # Where a varint ends, and its value.
    value = shift = 0
    while position < end:
        byte = content[position]
        position, value, shift = position + 1, value | (byte & 0x7F) << shift, shift + VARINT_BITS
        if byte < 0x80:
            break
    return position, value


def _chosen(files: dict[Path, Array], offset: int, limit: int) -> Iterator[tuple[Path, int, int]]:
    # The files of some of the games, newest first, and which games of each: from the first to before the last.
    for file, bounds in files.items():
        last = len(bounds) - 1 - offset
        offset = max(0, -last)
        first = max(0, last - limit)
        if last > 0 and limit > 0:
            limit -= last - first
            yield file, first, last


def _read(game: Game, file: Path, bounds: Array) -> list[tuple[str, Positions]]:
    # The games between these bounds, newest first; none of a damaged file.
    with file.open("rb") as opened:
        opened.seek(int(bounds[0]))
        content = opened.read(int(bounds[-1] - bounds[0]))
    games = []
    try:
        for start, end in zip(bounds[:-1] - bounds[0], bounds[1:] - bounds[0], strict=True):
            payloads = list(frames(content[start:end]))
            identity = parse_example(payloads[0])["game_id"].values[0].decode(errors="replace")
            games.append((identity, decode(game, payloads)))
    except (DamageError, KeyError, IndexError, AttributeError):
        return []
    except RecordError as error:
        raise RecordError(f"{file.name} {error}") from error
    return games[::-1]


def _result(game: Game, positions: Positions) -> float | None:
    if not positions.value_weights[-1]:
        return None
    value = float(positions.values[-1])
    return value if game.to_play(positions.states[-1:])[0] == 0 else 0.0 - value


def _to_summary(game: Game, game_id: str, positions: Positions) -> Message:
    return {
        "game_id": game_id,
        "result": _result(game, positions),
        "plies": int(positions.plies[-1]) + 1,
        "first_ply": int(positions.plies[0]),  # moves before it are not recorded
        "moves": labels_in(game, positions.states, positions.actions),
    }


def _to_game(game: Game, game_id: str, positions: Positions) -> Message:
    to_play = game.to_play(positions.states)
    return {
        "game_id": game_id,
        "result": _result(game, positions),
        "labels_vary": labels_vary(game),
        "positions": [
            {
                "ply": int(positions.plies[row]),
                "board": to_board(game, positions.states[row]),
                "text": game.render(positions.states[row]),
                "to_play": int(to_play[row]),
                "action": int(positions.actions[row]),
                "label": label_in(game, positions.states[row], int(positions.actions[row])),
                "labels": {
                    str(action): label_in(game, positions.states[row], action)
                    for action in np.flatnonzero(positions.legal[row]).tolist()
                },
                "root_value": float(positions.root_values[row]),
                "value": float(positions.values[row]) if positions.value_weights[row] else None,
                "policy": {
                    label_in(game, positions.states[row], action): float(positions.policies[row][action])
                    for action in np.flatnonzero(positions.legal[row]).tolist()
                },
            }
            for row in range(len(to_play))
        ],
    }


def _shares(row: dict[str, float]) -> Iterator[tuple[str, float]]:
    # The figures of a line of a learning curve; mistakes as shares of positions.
    for name, value in row.items():
        if name.endswith("_mistakes"):
            where, _, kind = name.rpartition("/")
            yield f"{kind}/{where}", value / max(1.0, row.get(f"{where}/positions", 0.0))
        elif name != "step" and not name.endswith("/positions"):
            yield f"learning/{name}", value


def _ratings(folder: ModelFolder) -> Series:
    # Of the model's snapshots, if the standing tournament has some.
    try:
        matches = match_csv.read_matches(folder.path / match_csv.RESULTS)
        rated = {rating.name.rpartition("/")[2]: rating.elo for rating in ratings.rate(matches)}
    except SettingsError:  # a damaged file, groups that never met, or a package that is not there
        return {}
    points = [(float(each.step), rated[each.name]) for each in folder.snapshots() if each.name in rated]
    return {"rating/elo": points} if points else {}
