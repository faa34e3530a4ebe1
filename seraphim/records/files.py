"""The files of a folder of finished games: whole whenever they are there, numbered upwards, the oldest removed first.

    batch-0000001.tfrecord   published: whole; a longer file replaces the newest one until that is full
    .ID.partial              finished games of one process that are not published yet; locked while the process lives
    .new                     what is about to become a published file
    .removed.json            what was removed: see `gameindex`
    .writers.lock            held while a file is published or partial files are looked after
    .readers.lock            shared by readers; files are removed only when there is none

Knows how a file comes and goes, not what a game is. `kill -9` at any moment loses no game that was written to a partial
file: it is emptied after its games are published, and whoever publishes what is left of it leaves out the games that
are published already.
"""

import contextlib
import fcntl
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from seraphim.records.examples import end_of, is_cut_off, with_end_of_file
from seraphim.records.schema import END_OF_GAME
from seraphim.records.tfrecord import DamageError, frame, frames, parse_example
from seraphim.storage import atomic

PARTIAL = ".partial"
_FILE_NAME = re.compile(r"batch-(\d{7,})\.tfrecord")
_NEW = ".new"
_WRITERS, _READERS = ".writers.lock", ".readers.lock"
_LARGE = 16 << 20  # bytes: a file of this size is not written again to hold more games


def published_files(folder: Path) -> list[Path]:
    """Return the published files of a folder, oldest first; none if there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if _FILE_NAME.fullmatch(path.name)), key=number_of)


def number_of(path: Path) -> int:
    """Return the number of a published file."""
    return int(path.stem.rpartition("-")[2])


def read_examples(path: Path) -> list[bytes]:
    """Return the examples of one published file, verified to be whole.

    Raises:
        DamageError: the file is truncated or corrupt, holds something else, or cannot be read.
    """
    try:
        examples = list(frames(path.read_bytes()))
    except OSError as error:
        raise DamageError(f"unreadable: {error.strerror}") from error
    if not examples:
        raise DamageError("truncated: the file is empty")
    if is_cut_off(examples[-1]):
        raise DamageError("truncated: the last record is not marked as the end of the file")
    return examples


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """While the block runs, no writer removes a file of the folder."""
    with contextlib.ExitStack() as stack:
        # A folder that cannot be locked, such as a read-only one, is read without a lock.
        with contextlib.suppress(OSError):
            stack.enter_context(atomic.locked(folder / _READERS, fcntl.LOCK_SH))
        yield


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """While the block runs, no other writer enters the folder or publishes there."""
    with atomic.locked(folder / _WRITERS):
        yield


@contextlib.contextmanager
def removing(folder: Path) -> Iterator[bool]:
    """While the block runs, nobody begins to read the folder; gives whether that is so: not while somebody reads."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(atomic.locked(folder / _READERS, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def whole_games(content: bytes) -> list[list[bytes]]:
    """Return the examples of each whole game of a partial file's content, up to its torn tail, if it has one."""
    games: list[list[bytes]] = [[]]
    with contextlib.suppress(DamageError):
        for example in frames(content):
            games[-1].append(example)
            if end_of(example):
                games.append([])
    return games[:-1]


def publish(folder: Path, games: Sequence[Sequence[bytes]], games_per_file: int, first_number: int) -> None:
    """Publish games, in files of at most so many: the newest file is written again, and longer, if they fit into it.

    The caller is the one who is `writing`. Each file appears at once; a later call goes on where one was killed.

    Args:
        folder: of the game data.
        games: the examples of each.
        games_per_file: the most games of a file.
        first_number: of the first file, where there is none; a later one has the next number.
    """
    for start in range(0, len(games), games_per_file):
        chunk = games[start : start + games_per_file]
        files = published_files(folder)
        before = _unfilled(files[-1], chunk, games_per_file) if files else []
        number = max(number_of(files[-1]) + (not before), first_number) if files else first_number
        target = folder / f"batch-{number:07d}.tfrecord"
        examples = [*before, *(example for game in chunk for example in game)]
        examples[-1] = with_end_of_file(examples[-1])
        try:
            atomic.write_file(folder / _NEW, b"".join(map(frame, examples)))
            (folder / _NEW).replace(target)
        except BaseException:
            (folder / _NEW).unlink(missing_ok=True)
            raise
        atomic.sync(folder)


def _unfilled(newest: Path, games: Sequence[Sequence[bytes]], games_per_file: int) -> list[bytes]:
    """Return the examples of the newest file if the games fit into it too; none if they do not."""
    if len(games) >= games_per_file or newest.stat().st_size > _LARGE:
        return []
    try:
        examples = read_examples(newest)
        kinds = [parse_example(example) for example in (examples[-1], games[0][-1])]
    except DamageError:
        return []  # it is named when it is read
    is_alike = all(kinds[0].get(name) == kinds[1].get(name) for name in ("schema", "game"))
    if not is_alike or sum(end_of(example) > 0 for example in examples) + len(games) > games_per_file:
        return []
    return [*examples[:-1], _with_end_of_game(examples[-1])]


def _with_end_of_game(example: bytes) -> bytes:
    """Return the last example of a file as one after which more come."""
    return example[:-1] + bytes([END_OF_GAME])
