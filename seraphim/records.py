"""A folder of finished games: files that appear whole, are numbered upwards, and are read newest first.

What a game looks like in bytes is `seraphim.examples`; this module knows the files:

    batch-0000001.tfrecord   published: whole, never changed again
    .ID.partial              the games that a writer has been given since it last published, locked while it lives
    .ID.sealed               what that writer is about to publish
    .writers.lock            held while a file is published
    .readers.lock            shared by readers; the oldest files are removed only when there is none

`kill -9` at any moment loses no finished game and stores none twice: a sealed file is whole before the partial file
is emptied, and the next writer publishes what it finds of writers that are gone.
"""

import contextlib
import errno
import fcntl
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from seraphim.errors import RecordError, SettingsError
from seraphim.examples import (
    END_OF_FILE,
    END_OF_GAME,
    SCHEMA_VERSION,
    GameRecord,
    Positions,
    decode,
    encode,
    encode_games,
    end_of,
    with_end_of_file,
)
from seraphim.game import Game
from seraphim.tfrecord import DamageError, count_frames, frame, frames

__all__ = [
    "SCHEMA_VERSION",
    "DamageError",
    "GameRecord",
    "GameWriter",
    "Positions",
    "RecordOptions",
    "WindowReport",
    "encode",
    "encode_games",
    "published_files",
    "read_examples",
    "read_window",
    "reading",
    "total_positions",
]

_FILE_NAME = re.compile(r"batch-(\d{7,})\.tfrecord")
_PARTIAL, _SEALED = ".partial", ".sealed"
# What file systems without hard links answer.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True)
class RecordOptions:
    """Options of the files that hold finished games."""

    games_per_file: int = 100
    """Games in a file."""
    max_files: int = 50
    """Files that are kept; the oldest are removed."""

    def __post_init__(self) -> None:
        """Validate.

        Raises:
            SettingsError: a value is out of range.
        """
        for name in ("games_per_file", "max_files"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, not {getattr(self, name)}")


class WindowReport(NamedTuple):
    """What `read_window` read."""

    files: int
    games: int  # of which at least one position is in the window
    positions: int
    damaged: tuple[tuple[Path, str], ...]  # files that were skipped, and why
    newest: int  # number of the newest file that was read


class GameWriter:
    """Writes finished games to a folder; several writers, also of several processes, may write to one at once.

    A context manager: at its end, also by Ctrl-C, the games of the last, smaller file are published.

    Attributes:
        rescued: number of games that were found in what killed writers had left, and published.
    """

    def __init__(self, folder: Path, options: RecordOptions) -> None:
        """Open a folder, made if need be, and publish the finished games of writers that were killed.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        self._folder = folder
        self._options = options
        self._games = 0
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / ".writers.lock"):
            self.rescued = _rescue(folder)
            self._partial = folder / f".{uuid.uuid4().hex}{_PARTIAL}"
            self._file = os.open(self._partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            _remove_oldest(folder, options.max_files)

    def add(self, examples: Sequence[bytes]) -> Path | None:
        """Write one whole game, as `encode` made it, and return the file that was published, if it was the last one.

        Raises:
            OSError: the disk is full, say; games that were added before are safe, this one is not stored.
            RecordError: the examples are not those of one whole game.
        """
        ends = [end_of(example) for example in examples]
        if not ends or any(ends[:-1]) or ends[-1] != END_OF_GAME:
            raise RecordError(f"expected the {len(ends)} examples of one whole game in order, as `encode` makes them")
        size = os.fstat(self._file).st_size
        try:
            _write(self._file, b"".join(map(frame, examples)))
        except BaseException:
            os.ftruncate(self._file, size)
            raise
        self._games += 1
        return self.publish() if self._games >= self._options.games_per_file else None

    def publish(self) -> Path | None:
        """Publish the games added so far as one file now, and return it; None if there are none.

        Raises:
            OSError: the disk is full, say; the games are kept for the next attempt, also of a later writer.
        """
        with _locked(self._folder / ".writers.lock"):
            published = _publish(self._folder, self._partial)
            self._games = 0
            _remove_oldest(self._folder, self._options.max_files)
        return published

    def close(self) -> Path | None:
        """Publish the rest and leave the folder; nothing happens if that was done.

        Raises:
            OSError: the disk is full, say; the games are kept for a later writer.
        """
        if self._file < 0:
            return None
        try:
            published = self.publish()
            self._partial.unlink()
        finally:
            os.close(self._file)  # also ends the lock
            self._file = -1
        return published

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the writer; after an error of the disk, leave what is not published to a later writer."""
        if isinstance(error, OSError):
            os.close(self._file)
            self._file = -1
        else:
            self.close()


def read_window(folder: Path, game: Game, max_positions: int) -> tuple[Positions, WindowReport]:
    """Return the newest positions of a folder, at most `max_positions`, in the order in which they were stored.

    Damaged files are skipped whole, and named in the report.

    Raises:
        RecordError: there is no game data, all of it is damaged, or it is of another game.
    """
    parts: list[Positions] = []
    damaged: list[tuple[Path, str]] = []
    missing, newest = max_positions, 0
    with reading(folder):
        for path in reversed(published_files(folder)):
            if missing <= 0:
                break
            try:
                positions = decode(game, read_examples(path))
            except DamageError as error:
                damaged.append((path, str(error)))
            except RecordError as error:
                raise RecordError(f"{path} {error}") from error
            else:
                newest = newest or _number(path)
                parts.append(Positions(*(column[-missing:] for column in positions)))
                missing -= len(positions.plies)
    if not parts:
        if not damaged:
            raise RecordError(f"no game data in {folder}: run bin/generate_games.py first")
        path, reason = damaged[0]
        raise RecordError(
            f"all {len(damaged)} files in {folder} are damaged ({path.name} is {reason}): "
            "remove them and run bin/generate_games.py"
        )
    window = Positions(*(np.concatenate(columns) for columns in zip(*reversed(parts), strict=True)))
    games = int(window.ends.sum())
    return window, WindowReport(len(parts), games, len(window.plies), tuple(damaged), newest)


def read_examples(path: Path) -> list[bytes]:
    """Return the examples of one published file, all checksums verified.

    Raises:
        DamageError: the file is truncated or corrupt, or cannot be read.
    """
    try:
        examples = list(frames(path.read_bytes()))
    except OSError as error:
        raise DamageError(f"unreadable: {error.strerror}") from error
    if not examples:
        raise DamageError("truncated: the file is empty")
    if end_of(examples[-1]) != END_OF_FILE:
        raise DamageError("truncated: the last record is not marked as the end of the file")
    return examples


def total_positions(folder: Path) -> int:
    """Return how many positions were ever published in a folder, from the lengths of records alone.

    It is exact until files are removed; those count as much as the average of the files that are there.
    """
    with reading(folder):
        files = published_files(folder)
        positions = sum(count_frames(path) for path in files)
    removed = _number(files[0]) - 1 if files else 0
    return positions + (removed * positions // len(files) if files else 0)


def published_files(folder: Path) -> list[Path]:
    """Return the published files of a folder, oldest first; none if there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if _FILE_NAME.fullmatch(path.name)), key=_number)


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """While the block runs, no writer removes a file of the folder."""
    with contextlib.ExitStack() as stack:
        # A folder that cannot be locked, such as a read-only one, is read without a lock.
        with contextlib.suppress(OSError):
            stack.enter_context(_locked(folder / ".readers.lock", fcntl.LOCK_SH))
        yield


def _number(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


@contextlib.contextmanager
def _locked(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    file = os.open(path, os.O_CREAT | (os.O_RDONLY if how == fcntl.LOCK_SH else os.O_RDWR), 0o666)
    try:
        fcntl.flock(file, how)
        yield
    finally:
        os.close(file)


def _rescue(folder: Path) -> int:
    """Publish the finished games that killed writers left, remove their files, and return the number of games."""
    rescued = 0
    for partial in sorted(folder.glob(f".*{_PARTIAL}")):
        file = os.open(partial, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # its writer lives
        else:
            ...
        finally:
            os.close(file)
    return rescued
