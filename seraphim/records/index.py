"""Which games the files of a folder hold, in which order training reads them, and which ones were removed.

Games are stored as they come. Training reads those of a stream in the order of their numbers, so that what it reads
depends neither on who played them, nor when, nor on where a run was interrupted. Where two streams were written at the
same time, each has the places that its own games take, and there they are in order.

The file `.removed.json` says what retention has taken away: all files up to a number, and of them the positions, and
the numbers of each stream's games, which no resumed stream plays again.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import RecordError
from seraphim.game import Array
from seraphim.records.examples import end_of
from seraphim.records.files import number_of, published_files, reading, removing
from seraphim.records.tfrecord import CHECKSUM, HEADER_BYTES, LENGTH, DamageError, Feature, parse_example
from seraphim.storage import atomic

_REMOVED = ".removed.json"
_MOST_STREAMS = 10_000  # whose removed games are remembered: the latest
_LONGEST_NUMBER = 18  # digits


class NumberSet(Set[int]):
    """A set of numbers from 0 on; one that lacks few of those below its largest takes little memory."""

    def __init__(self, ranges: Iterable[Sequence[int]] = ()) -> None:
        """Begin with some ranges, sorted: of each the first number, and the one after the last."""
        self.first_missing = 0
        self.above: set[int] = set()
        """Those that are in the set and larger than the first that is missing."""
        for first, end in ranges:
            if first == self.first_missing:
                self.first_missing = end
            else:
                self.above.update(range(first, end))

    def add(self, number: int) -> None:
        """Add a number."""
        if number > self.first_missing:
            self.above.add(number)
        elif number == self.first_missing:
            self.first_missing += 1
            while self.first_missing in self.above:
                self.above.remove(self.first_missing)
                self.first_missing += 1

    def __contains__(self, number: object) -> bool:
        return number in self.above or (isinstance(number, int) and 0 <= number < self.first_missing)

    def __iter__(self) -> Iterator[int]:
        yield from range(self.first_missing)
        yield from sorted(self.above)

    def __len__(self) -> int:
        return self.first_missing + len(self.above)


class FileIndex(NamedTuple):
    """The `G` games of one file, in the order in which they are stored."""

    path: Path
    streams: tuple[str, ...]
    numbers: Array  # int64 [G]: in its stream
    positions: Array  # int64 [G]: how many are recorded of each


# What was found in each file, and in which state of the file: read again only where that has changed.
_known: dict[Path, tuple[tuple[int, int, int], FileIndex]] = {}


class Selection(NamedTuple):
    """The newest games of some files, in the order in which training reads them."""

    files: Array  # int64 [G]: which of the files each is in
    places: Array  # int64 [G]: which of its games
    cut: int  # so many of the first game's positions are too many
    oldest: int  # the first of the files that holds one of them, or the place of one


def stream_and_number(game_id: str) -> tuple[str, int]:
    """Return the stream and the number in a game's id; another id is a stream of its own."""
    stream, _, number = game_id.rpartition("-")
    if number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER:
        return stream, int(number)
    return game_id, 0


def id_of(example: bytes) -> str:
    """Return the id of the game that an example is of.

    Raises:
        DamageError: this is no example of a game.
    """
    return _id_in(parse_example(example))


def kept_files(folder: Path) -> list[Path]:
    """Return the published files that are not removed, oldest first; what a killed program left to remove is not."""
    through = _Removed.read(folder).through
    return [path for path in published_files(folder) if number_of(path) > through]


def next_number(folder: Path) -> int:
    """Return the number of the next file where none is published."""
    return _Removed.read(folder).through + 1


def index_file(path: Path) -> FileIndex | None:
    """Return what a file holds by the lengths of its records, unverified; None if it is damaged."""
    try:
        about = path.stat()
        state = about.st_ino, about.st_mtime_ns, about.st_size
        if path not in _known or _known[path][0] != state:
            _known[path] = state, _index(path)
        return _known[path][1]
    except (OSError, DamageError, KeyError):
        return None


def index_files(folder: Path) -> list[FileIndex]:
    """Return what the files of a folder hold that are not removed, but for those that are damaged."""
    files = kept_files(folder)
    for gone in {path for path in list(_known) if path.parent == folder}.difference(files):
        _known.pop(gone, None)
    return [index for path in files if (index := index_file(path)) is not None]


def select_newest(files: Sequence[FileIndex], max_positions: int) -> Selection:
    """Return the newest games that hold so many positions together, or all of them if there are fewer."""
    if not files:
        return Selection(np.empty(0, np.int64), np.empty(0, np.int64), 0, 0)
    codes: dict[str, int] = {}
    streams = np.array([codes.setdefault(stream, len(codes)) for file in files for stream in file.streams])
    numbers = np.concatenate([file.numbers for file in files])
    positions = np.concatenate([file.positions for file in files])
    counts = [len(file.streams) for file in files]
    file_of = np.repeat(np.arange(len(files)), counts)
    place_of = np.concatenate([np.arange(count) for count in counts])
    order = np.empty(len(streams), np.int64)
    order[np.argsort(streams, kind="stable")] = np.lexsort((numbers, streams))
    totals = np.cumsum(positions[order][::-1])
    count = min(len(order), int(np.searchsorted(totals, max_positions)) + 1)
    newest = order[-count:]
    oldest = min(int(file_of[newest].min()), int(file_of[-count]))
    return Selection(file_of[newest], place_of[newest], max(0, int(totals[count - 1]) - max_positions), oldest)


def total_positions(folder: Path) -> int:
    """Return how many positions were ever published in a folder."""
    with reading(folder):
        kept = sum(int(index.positions.sum()) for index in index_files(folder))
        return kept + _Removed.read(folder).positions


def played_numbers(folder: Path, stream: str) -> NumberSet:
    """Return the numbers of a stream's games that are published, or were and are removed."""
    with reading(folder):
        numbers = NumberSet(_Removed.read(folder).streams.get(stream, []))
        for index in index_files(folder):
            if stream in index.streams:
                for number in index.numbers[[each == stream for each in index.streams]].tolist():
                    numbers.add(number)
        return numbers


def remove_surplus(folder: Path, max_positions: int) -> None:
    """Remove the oldest files of which no window of so many positions reads a game.

    The caller is the one who is `writing`. While somebody reads the folder, nothing is removed: a later call does it.
    """
    files = index_files(folder)
    if sum(int(file.positions.sum()) for file in files) <= max_positions:
        return
    surplus = files[: select_newest(files, max_positions).oldest]
    with removing(folder) as alone:
        if alone:
            removed = _Removed.read(folder)
            if surplus:
                removed = removed.with_files(surplus)
                removed.write(folder)
            for path in published_files(folder):
                if number_of(path) <= removed.through:
                    path.unlink()


class _Removed(NamedTuple):
    """What retention has taken away."""

    through: int  # number of the last file of it
    positions: int
    streams: dict[str, list[list[int]]]  # of each, ranges of numbers: the first, and the one after the last

    @classmethod
    def read(cls, folder: Path) -> "_Removed":
        try:
            content = json.loads((folder / _REMOVED).read_bytes())
            return cls(content["through"], content["positions"], content["streams"])
        except (FileNotFoundError, NotADirectoryError):
            return cls(0, 0, {})
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(
                f"{folder / _REMOVED} is damaged: remove it (games that are gone may be played again)"
            ) from error

    def with_files(self, files: Sequence[FileIndex]) -> "_Removed":
        streams = dict(self.streams)
        for stream in dict.fromkeys(stream for file in files for stream in file.streams):
            numbers = [file.numbers[[each == stream for each in file.streams]] for file in files]
            ranges = [[number, number + 1] for number in np.concatenate(numbers).tolist()]
            streams[stream] = _merged([*streams.pop(stream, []), *ranges])
        latest = dict(list(streams.items())[-_MOST_STREAMS:])
        positions = self.positions + sum(int(file.positions.sum()) for file in files)
        return _Removed(number_of(files[-1].path), positions, latest)

    def write(self, folder: Path) -> None:
        changed = folder / f"{_REMOVED}.new"
        atomic.write_file(changed, json.dumps(self._asdict()).encode())
        changed.replace(folder / _REMOVED)
        atomic.sync(folder)


def _merged(ranges: list[list[int]]) -> list[list[int]]:
    merged: list[list[int]] = []
    for first, end in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([first, end])
    return merged


def _index(path: Path) -> FileIndex:
    content = path.read_bytes()
    bounds = _bounds(content)
    features: dict[int, dict[str, Feature]] = {}
    if bounds:
        features[len(bounds) - 1] = parse_example(content[slice(*bounds[-1])])
    if bounds and list(features[len(bounds) - 1])[-1] == "end":  # its value is the last byte, then
        ends = [index for index, (_, stop) in enumerate(bounds) if end_of(content[stop - 1 : stop])]
    else:
        features = {index: parse_example(content[start:stop]) for index, (start, stop) in enumerate(bounds)}
        ends = [index for index, found in features.items() if "end" in found and found["end"].values != [0]]
    if not ends or ends[-1] != len(bounds) - 1:
        raise DamageError("truncated: the last game has no end")
    parsed = [features.get(index) or parse_example(content[slice(*bounds[index])]) for index in ends]
    ids = [stream_and_number(_id_in(each)) for each in parsed]
    numbers = np.array([number for _, number in ids], np.int64)
    return FileIndex(path, tuple(sys.intern(stream) for stream, _ in ids), numbers, np.diff([-1, *ends]))


def _bounds(content: bytes) -> list[tuple[int, int]]:
    # Where each record's payload begins and ends.
    bounds, position = [], 0
    while position < len(content):
        if position + HEADER_BYTES > len(content):
            raise DamageError("truncated: a header is cut short")
        start = position + HEADER_BYTES
        stop = start + LENGTH.unpack_from(content, position)[0]
        position = stop + CHECKSUM.size
        if position > len(content):
            raise DamageError("truncated: a record is cut short")
        bounds.append((start, stop))
    return bounds


def _id_in(features: dict[str, Any]) -> str:
    values = features["game_id"].values if "game_id" in features else []
    if len(values) != 1 or not isinstance(values[0], bytes):
        raise DamageError("a record has no game_id")
    return values[0].decode(errors="replace")
