"""Which games the files of a folder hold, the order in which training reads them, and what retention has removed.

Games are stored as they finish. Training reads those of a stream in the order of their numbers, so that what it reads
depends neither on who played them, nor when, nor on where a run was interrupted. If two streams were written at the
same time, each keeps the places of its own games, and they are in order within those.

The file `.removed.json` records what retention has removed: all files up to a number, how many positions they had, and
the numbers of each stream's games, which a resumed stream does not play again.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import RecordError
from seraphim.game import Array
from seraphim.records.files import number_of, published_files, reading, removing
from seraphim.records.schema import end_of
from seraphim.records.tfrecord import DamageError, Feature, frame_bounds, parse_example
from seraphim.settings import read_json
from seraphim.storage import atomic

_REMOVED = ".removed.json"
_MAX_STREAMS = 10_000  # whose removed games are remembered: the latest
_MAX_DIGITS = 18  # of a game's number


class NumberSet(Set[int]):
    """A set of numbers from 0 on that takes little memory if few are missing below its largest."""

    def __init__(self, ranges: Iterable[Sequence[int]] = ()) -> None:
        """Begin with some ranges, sorted, each as its first number and the one after its last."""
        self.first_missing = 0
        self.above: set[int] = set()
        """The members that are larger than the first missing number."""
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
    numbers: Array  # int64 [G], in the game's stream
    positions: Array  # int64 [G], recorded of each game

    def numbers_of(self, stream: str) -> list[int]:
        """Return the numbers of a stream's games."""
        return [int(number) for each, number in zip(self.streams, self.numbers, strict=True) if each == stream]


class Selection(NamedTuple):
    """The newest games of some files, in the order in which training reads them."""

    files: Array  # int64 [G], index of the file that each game is in
    places: Array  # int64 [G], index of the game in its file
    cut: int  # positions of the first game that exceed the window
    oldest: int  # index of the oldest file that the window needs


# The index of each file and the state of the file that it describes; read again only when that changes.
_cache: dict[Path, tuple[tuple[int, int, int], FileIndex]] = {}


def stream_and_number(game_id: str) -> tuple[str, int]:
    """Return the stream and the number in a game's id; any other id is a stream of its own."""
    stream, _, number = game_id.rpartition("-")
    if number.isascii() and number.isdecimal() and len(number) <= _MAX_DIGITS:
        return stream, int(number)
    return game_id, 0


def id_of(example: bytes) -> str:
    """Return the id of the game that an example is of.

    Raises:
        DamageError: this is not an example of a game.
    """
    return _read_id(parse_example(example))


def kept_files(folder: Path) -> list[Path]:
    """Return the published files that are not removed, oldest first, without those that a killed program left over."""
    through = _Removed.read(folder).through
    return [path for path in published_files(folder) if number_of(path) > through]


def next_number(folder: Path) -> int:
    """Return the number of the next file if none is published."""
    return _Removed.read(folder).through + 1


def index_files(folder: Path) -> list[FileIndex]:
    """Return the index of each kept file, by the lengths of its records, unverified; damaged files are left out."""
    files = kept_files(folder)
    for gone in {path for path in list(_cache) if path.parent == folder}.difference(files):
        _cache.pop(gone, None)
    return [index for path in files if (index := _index_file(path)) is not None]


def _index_file(path: Path) -> FileIndex | None:
    try:
        atomic.check_regular(path)
        status = path.stat()
        state = status.st_ino, status.st_mtime_ns, status.st_size
        if path not in _cache or _cache[path][0] != state:
            _cache[path] = state, _read_index(path)
        return _cache[path][1]
    except (OSError, DamageError, KeyError):
        return None


def _read_index(path: Path) -> FileIndex:
    content = path.read_bytes()
    bounds = list(frame_bounds(content))
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
    ids = [stream_and_number(_read_id(each)) for each in parsed]
    numbers = np.array([number for _, number in ids], np.int64)
    return FileIndex(path, tuple(sys.intern(stream) for stream, _ in ids), numbers, np.diff([-1, *ends]))


def _read_id(features: dict[str, Any]) -> str:
    values = features["game_id"].values if "game_id" in features else []
    if len(values) != 1 or not isinstance(values[0], bytes):
        raise DamageError("a record has no game_id")
    return values[0].decode(errors="replace")


def select_newest(files: Sequence[FileIndex], max_positions: int) -> Selection:
    """Return the newest games that together hold that many positions, or all of them if there are fewer."""
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
    # A file is needed for its games, or for the place of one, which decides what comes before it.
    oldest = min(int(file_of[newest].min()), int(file_of[-count]))
    return Selection(file_of[newest], place_of[newest], max(0, int(totals[count - 1]) - max_positions), oldest)


def total_positions(folder: Path) -> int:
    """Return how many positions were ever published in a folder."""
    with reading(folder):
        return _count_positions(index_files(folder)) + _Removed.read(folder).positions


def played_numbers(folder: Path, stream: str) -> NumberSet:
    """Return the numbers of a stream's games that are published, or were published and then removed."""
    with reading(folder):
        numbers = NumberSet(_Removed.read(folder).streams.get(stream, []))
        for index in index_files(folder):
            for number in index.numbers_of(stream):
                numbers.add(number)
        return numbers


def remove_surplus(folder: Path, max_positions: int) -> None:
    """Remove the oldest files if no window of `max_positions` reads a game of them.

    The caller is in a block of `writing`. While another program reads the folder, nothing is removed.
    """
    files = index_files(folder)
    if _count_positions(files) <= max_positions:
        return
    surplus = files[: select_newest(files, max_positions).oldest]
    try:
        with removing(folder):
            removed = _Removed.read(folder)
            if surplus:
                removed = removed.with_files(surplus)
                atomic.replace_file(folder / _REMOVED, json.dumps(removed._asdict()).encode(), f"{_REMOVED}.new")
            for path in published_files(folder):
                if number_of(path) <= removed.through:
                    path.unlink()
    except BlockingIOError:
        pass  # a later call removes them


def _count_positions(files: Sequence[FileIndex]) -> int:
    return sum(int(file.positions.sum()) for file in files)


class _Removed(NamedTuple):
    """What retention has removed."""

    through: int  # number of the last file
    positions: int
    streams: dict[str, list[list[int]]]  # ranges of numbers of each: the first, and the one after the last

    @classmethod
    def read(cls, folder: Path) -> "_Removed":
        try:
            content = read_json(folder / _REMOVED)
            removed = cls(content["through"], content["positions"], content["streams"])
            removed._check()
            return removed
        except (FileNotFoundError, NotADirectoryError):
            return cls(0, 0, {})
        except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
            raise RecordError(
                f"{folder / _REMOVED} is damaged: remove it (games that were removed may be played again)"
            ) from error

    def _check(self) -> None:
        # Raises one of the usual errors if the values are not those that `with_files` returns.
        ends = [0, self.through, 0, self.positions]
        games = 0
        for ranges in self.streams.values():
            numbers = [number for first, end in ranges for number in (first, end)]
            if numbers != sorted(set(numbers)):
                raise ValueError("the ranges of a stream overlap")
            ends += numbers
            games += sum(numbers[1::2]) - sum(numbers[::2])
        if {type(number) for number in ends} != {int} or min(ends) < 0 or games > self.positions:
            raise ValueError("it holds no numbers, or more games than positions")

    def with_files(self, files: Sequence[FileIndex]) -> "_Removed":
        streams = dict(self.streams)
        for stream in dict.fromkeys(stream for file in files for stream in file.streams):
            ranges = [[number, number + 1] for file in files for number in file.numbers_of(stream)]
            streams[stream] = _merge([*streams.pop(stream, []), *ranges])
        latest = dict(list(streams.items())[-_MAX_STREAMS:])
        return _Removed(number_of(files[-1].path), self.positions + _count_positions(files), latest)


def _merge(ranges: list[list[int]]) -> list[list[int]]:
    merged: list[list[int]] = []
    for first, end in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([first, end])
    return merged
