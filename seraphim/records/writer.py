"""Writes finished games to disk without losing any; the processes that play keep journals.

Game data is a folder of TFRecord files (`seraphim.records.files`), whose records are positions
(`seraphim.records.examples`).
"""

import contextlib
import os
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from seraphim.errors import RecordError
from seraphim.machine import say
from seraphim.options import RecordOptions
from seraphim.records.files import DAMAGED, PARTIAL, publish, rescued_games, writing
from seraphim.records.index import NumberSet, id_of, next_number, played_numbers, remove_surplus, stream_and_number
from seraphim.records.schema import END_OF_GAME, end_of
from seraphim.records.tfrecord import frame
from seraphim.storage import atomic

SECONDS_TO_PUBLISH = 2.0
"""How long a game may wait for others before it is published."""

_CHECKS = 20  # for files to remove, while as many positions are written as are kept


class Journal:
    """A file to which one process writes each game when it is finished, until the game is stored elsewhere.

    If the process or its parent is killed, the next `GameWriter` publishes the games that only the journal holds.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Begin a journal in a folder of game data.

        If its name begins with that of a stream and a dot, a later writer of the stream waits until the process has
        ended.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
            BlockingIOError: a living process writes this journal.
        """
        self._folder = folder
        self.path = folder / f".{name}{PARTIAL}"
        atomic.check_regular(self.path)
        with writing(folder):
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                atomic.lock_file(self._file, wait=False)
            except BaseException:
                os.close(self._file)
                raise

    def add(self, examples: Sequence[bytes]) -> None:
        """Write one whole game; if that fails, nothing of it is left."""
        size = os.fstat(self._file).st_size
        try:
            atomic.write(self._file, b"".join(map(frame, examples)))
        except BaseException:
            os.ftruncate(self._file, size)
            raise

    def content(self) -> bytes:
        """Return what it holds."""
        return os.pread(self._file, os.fstat(self._file).st_size, 0)

    def clear(self) -> None:
        """Drop the games, which are stored elsewhere."""
        os.ftruncate(self._file, 0)

    def close(self, remove: bool) -> None:
        """Close the journal; `remove` it if its games are stored elsewhere, else leave them to a later writer."""
        with writing(self._folder) if remove else contextlib.nullcontext():
            if remove:
                self.path.unlink()
            os.close(self._file)  # which releases the lock


class GameWriter(contextlib.AbstractContextManager["GameWriter"]):
    """Writes finished games to a folder; several writers, in several processes, may write to one folder.

    A game is on disk when `add` returns, and published within seconds. Use it as a context manager: when that exits,
    by Ctrl-C as well, everything is published.

    Attributes:
        rescued: the number of positions of each game that was found in the journals of dead processes and published;
            after the writer is closed, only of those that this stream's own workers left.
    """

    def __init__(
        self,
        folder: Path,
        options: RecordOptions,
        stream: str = "",
        max_positions: int | None = None,
        notify: Callable[[str], None] = say,
    ) -> None:
        """Open a folder, created if necessary, and publish the finished games of processes that were killed.

        If a stream is named, no other writer may write its games at the same time. Files are removed once no window of
        `max_positions` reads them. `notify` receives a sentence on each journal that is damaged or none.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
            RecordError: another writer writes the games of the stream.
        """
        self._folder = folder
        self._options = options
        self._stream = stream
        self._max_positions = max_positions
        self._notify = notify
        self._games = 0  # not published yet
        self._oldest = 0.0  # when the first of these was added
        self._positions = 0  # written since the last check for files to remove
        self._failed = False  # while publishing
        self._lock = threading.Lock()
        self._closed = threading.Event()
        folder.mkdir(parents=True, exist_ok=True)
        with writing(folder):
            atomic.check_links(folder)
        try:
            self._journal = Journal(folder, stream or uuid.uuid4().hex)
        except BlockingIOError:
            raise RecordError(
                f"another program writes the games of stream {stream!r} (in {folder}): wait for it to finish, or use "
                "another --seed"
            ) from None
        try:
            with writing(folder):
                self.rescued = self._publish_new(self._games_in(self._journal.path, self._journal.content()))
                self._journal.clear()
                self.rescued += self._rescue("")
        except BaseException:
            self._journal.close(remove=False)  # which unlocks it
            raise
        self._thread = threading.Thread(target=self._publish_in_time, daemon=True)
        self._thread.start()

    def add(self, examples: Sequence[bytes]) -> None:
        """Write one whole game, as returned by `encode`, and publish a file when it is full.

        Raises:
            OSError: the disk is full, for example; games added before are safe, and published by a later call or
                writer.
            RecordError: the examples are not those of one whole game.
        """
        ends = [end_of(example) for example in examples]
        if not ends or any(ends[:-1]) or ends[-1] != END_OF_GAME:
            raise RecordError(f"expected the examples of one whole game, as encode() makes them, not these {len(ends)}")
        with self._lock:
            self._journal.add(examples)
            self._oldest = self._oldest if self._games else time.monotonic()
            self._games += 1
            self._positions += len(examples)
            if self._games >= self._options.games_per_file:
                self._publish()

    def close(self) -> None:
        """Publish the rest, including games of workers that have ended, and close the journal.

        Raises:
            OSError: the disk is full, for example; the games are kept for a later writer.
        """
        self._closed.set()
        self._thread.join()
        published = False
        try:
            with self._lock:
                self._publish()
                with writing(self._folder):
                    self.rescued = self._rescue(self._stream) if self._stream else []
                    self._remove_surplus()
            published = True
        finally:
            self._journal.close(remove=published)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the writer; if the disk is full, a later writer publishes the rest."""
        try:
            self.close()
        except OSError:
            if not isinstance(error, OSError):  # else the first error is the one to report
                raise

    def _publish(self) -> None:
        games = self._games_in(self._journal.path, self._journal.content())
        if not games:
            return
        with writing(self._folder):
            if self._failed:  # some of these games may be published already
                self._publish_new(games)
            else:
                self._failed = True
                self._publish_all(games)
            self._journal.clear()
            self._games, self._failed = 0, False
            if self._max_positions and self._positions * _CHECKS > self._max_positions:
                self._remove_surplus()

    def _games_in(self, path: Path, content: bytes) -> list[list[bytes]]:
        # The whole games of a journal; of a damaged one a copy stays, named by its content, so that it is one copy.
        games, damage = rescued_games(content)
        if damage:
            name = path.name.removeprefix(".").removesuffix(PARTIAL)
            aside = path.with_name(f"{name}-{zlib.crc32(content):08x}{DAMAGED}")
            atomic.replace_file(aside, content)
            self._notify(f"{path} is damaged ({damage}): its {len(games)} whole games are published, {aside} keeps it")
        return games

    def _publish_all(self, games: Sequence[Sequence[bytes]]) -> None:
        publish(self._folder, games, self._options.games_per_file, next_number(self._folder))

    def _publish_new(self, games: Sequence[Sequence[bytes]]) -> list[int]:
        # Publishes games, except those that are published already; returns the number of positions of each.
        known: dict[str, NumberSet] = {}
        new: list[Sequence[bytes]] = []
        for game in games:
            stream, number = stream_and_number(id_of(game[-1]))
            if stream not in known:
                known[stream] = played_numbers(self._folder, stream)
            if number not in known[stream]:
                known[stream].add(number)
                new.append(game)
        self._publish_all(new)
        return list(map(len, new))

    def _rescue(self, stream: str) -> list[int]:
        # Publishes the journals of dead processes, of one stream or of all; returns the number of positions of each
        # game. Workers of a killed program outlive it for a moment: a writer that continues their stream waits.
        rescued: list[int] = []
        for partial in sorted(self._folder.glob(f".{stream}*{PARTIAL}")):
            is_ours = bool(self._stream) and partial.name.startswith(f".{self._stream}.w")
            if partial == self._journal.path or (stream and not is_ours):
                continue
            if partial.is_symlink() or not partial.is_file():
                self._notify(f"skipped {partial}, which is not a regular file: remove it")
                continue
            file = os.open(partial, os.O_RDWR)
            try:
                atomic.lock_file(file, wait=is_ours and not stream)
                rescued += self._publish_new(self._games_in(partial, partial.read_bytes()))
                partial.unlink()
            except BlockingIOError:
                pass  # its process lives
            finally:
                os.close(file)
        return rescued

    def _remove_surplus(self) -> None:
        if self._max_positions:
            self._positions = 0
            remove_surplus(self._folder, self._max_positions)

    def _publish_in_time(self) -> None:
        # The main function of a thread, so that games do not wait until the next one is added.
        while not self._closed.wait(SECONDS_TO_PUBLISH / 4):
            with self._lock, contextlib.suppress(OSError):  # if the problem persists, the next call reports it
                if self._games and time.monotonic() - self._oldest > SECONDS_TO_PUBLISH:
                    self._publish()
