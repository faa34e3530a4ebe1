"""Finished games on disk: a writer that loses none, and the window of the newest positions that training reads.

Game data is a folder of TFRecord files (`seraphim.gamefiles`), whose records are positions (`seraphim.examples`).
"""

import contextlib
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from seraphim import storage
from seraphim.errors import RecordError, SettingsError
from seraphim.examples import END_OF_GAME, SCHEMA_VERSION, GameRecord, Positions, decode, encode, encode_games, end_of
from seraphim.game import Game
from seraphim.gamefiles import (
    PARTIAL,
    is_begun,
    number_of,
    publish,
    published_files,
    read_examples,
    reading,
    remove_oldest,
    rescue,
    total_positions,
    writing,
)
from seraphim.tfrecord import DamageError, frame

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
    "read_window",
    "total_positions",
]


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

    def __init__(self, folder: Path, options: RecordOptions, stream: str = "") -> None:
        """Open a folder, made if need be, and publish the finished games of writers that were killed.

        Args:
            folder: of the game data.
            options: of the files.
            stream: of which no other writer may write games at the same time; if empty, they are anybody's.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
            RecordError: another writer writes the games of the stream.
        """
        self._folder = folder
        self._options = options
        self._games = 0
        self._partial = folder / f".{stream or uuid.uuid4().hex}{PARTIAL}"
        folder.mkdir(parents=True, exist_ok=True)
        with writing(folder):
            storage.check_links(folder)
            self.rescued = rescue(folder)
            try:
                self._file = os.open(self._partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
            except FileExistsError:  # of a writer that lives: it was not rescued
                raise RecordError(
                    f"another program writes the games of the stream {stream!r} ({self._partial}): wait for its end, "
                    "or use another --seed"
                ) from None
            storage.lock_file(self._file)

    def add(self, examples: Sequence[bytes]) -> None:
        """Write one whole game, as `encode` made it, and publish a file if that is its last one.

        Raises:
            OSError: the disk is full, say; the games added before are safe, and published by a later call or writer.
            RecordError: the examples are not those of one whole game.
        """
        ends = [end_of(example) for example in examples]
        if not ends or any(ends[:-1]) or ends[-1] != END_OF_GAME:
            raise RecordError(f"expected the examples of one whole game, as encode() makes them, not these {len(ends)}")
        size = os.fstat(self._file).st_size
        try:
            storage.write(self._file, b"".join(map(frame, examples)))
        except BaseException:
            os.ftruncate(self._file, size)
            raise
        self._games += 1
        if self._games >= self._options.games_per_file:
            self.publish()

    def publish(self) -> None:
        """Publish the games added so far, if there are any, as one file now.

        Raises:
            OSError: the disk is full, say; the games are kept, for a later call or writer.
        """
        with writing(self._folder):
            publish(self._partial, self._file)
            self._games = 0
            remove_oldest(self._folder, self._options.max_files)

    def close(self) -> None:
        """Publish the rest and leave the folder.

        Raises:
            OSError: the disk is full, say; the games are kept for a later writer.
        """
        published = False
        try:
            self.publish()
            published = True
        finally:
            with writing(self._folder) if published else contextlib.nullcontext():
                os.close(self._file)  # and with it the lock; before the file is removed, as some mounts make it now
                if published:
                    self._partial.unlink()

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the writer; if the disk is full, what is not published is left to a later writer."""
        try:
            self.close()
        except OSError:
            if not isinstance(error, OSError):  # which says it already
                raise


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
                if not is_begun(path):
                    damaged.append((path, str(error)))
            except RecordError as error:
                raise RecordError(f"{path} {error}") from error
            else:
                newest = newest or number_of(path)
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
