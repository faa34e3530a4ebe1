"""The files of a folder of finished games: they appear whole, are numbered upwards, and the oldest go.

    batch-0000001.tfrecord   published: whole, never changed again
    .ID.partial              the games that a writer was given since it last published; locked while the writer lives
    .ID.sealed               what that writer is about to publish
    .writers.lock            held while a file is published or left behind ones are looked after
    .readers.lock            shared by readers; the oldest files are removed only when there is none

Knows how a file comes and goes, not what a game is. `kill -9` at any moment loses no finished game and stores none
twice: a sealed file is whole on the disk before the partial file is emptied, and a later writer does the rest.
"""

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from seraphim import storage
from seraphim.examples import end_of, is_cut_off, with_end_of_file
from seraphim.tfrecord import FRAME_BYTES, DamageError, count_frames, frame, frames

_FILE_NAME = re.compile(r"batch-(\d{7,})\.tfrecord")
PARTIAL, SEALED = ".partial", ".sealed"
_FEW = 1024  # bytes
_WRITERS, _READERS = ".writers.lock", ".readers.lock"


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


def total_positions(folder: Path) -> int:
    """Return how many positions were ever published in a folder, from the lengths of records alone.

    It is exact until files are removed; those count as much as the average of the files that are there.
    """
    with reading(folder):
        files = published_files(folder)
        positions = sum(count_frames(path) for path in files)
    removed = number_of(files[0]) - 1 if files else 0
    return positions + (removed * positions // len(files) if files else 0)


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """While the block runs, no writer removes a file of the folder."""
    with contextlib.ExitStack() as stack:
        # A folder that cannot be locked, such as a read-only one, is read without a lock.
        with contextlib.suppress(OSError):
            stack.enter_context(storage.locked(folder / _READERS, fcntl.LOCK_SH))
        yield


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """While the block runs, no other writer enters the folder or publishes there."""
    with storage.locked(folder / _WRITERS):
        yield


def rescue(folder: Path) -> int:
    """Publish the finished games that killed writers left, remove their files, and return the number of games."""
    games = 0
    for partial in sorted(folder.glob(f".*{PARTIAL}")):
        file = os.open(partial, os.O_RDWR)
        try:
            storage.lock_file(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            games += publish(partial, file)
            partial.unlink()
        except BlockingIOError:
            pass  # its writer lives
        finally:
            os.close(file)
    return games


def publish(partial: Path, file: int) -> int:
    """Publish the whole games of a partial file, empty it, and return the number of games.

    Can be broken off anywhere: the next call does the rest.

    Args:
        partial: the file.
        file: the same, open: on some mounts, what is done to a file by its name is not seen by who has it open.
    """
    sealed = partial.with_suffix(SEALED)
    content = os.pread(file, os.fstat(file).st_size, 0)
    games = _finish(sealed, content)
    examples = _whole_games(content)
    if not examples:
        return games
    unchanged = sum(len(example) + FRAME_BYTES for example in examples[:-1])
    try:
        storage.write_file(sealed, content[:unchanged] + frame(with_end_of_file(examples[-1])))
    except BaseException:
        sealed.unlink(missing_ok=True)
        raise
    _empty(file)
    _put_in_place(sealed)
    return games + sum(end_of(example) > 0 for example in examples)


def remove_oldest(folder: Path, max_files: int) -> None:
    """Remove the oldest files over `max_files`, unless someone reads the folder: then it is done after a later file."""
    try:
        with storage.locked(folder / _READERS, fcntl.LOCK_EX | fcntl.LOCK_NB):
            for path in published_files(folder)[:-max_files]:
                path.unlink()
    except BlockingIOError:
        pass


def is_begun(path: Path) -> bool:
    """Return whether a damaged file is one that is being published, so that all of it is in the sealed file too."""
    return any(_is_beginning(path, sealed.read_bytes()) for sealed in path.parent.glob(f".*{SEALED}"))


def _empty(file: int) -> None:
    """Empty an open file, or fail loudly: its games would be published again."""
    os.fsync(file)  # s3fs does nothing, and says that it did, while something waits to be written
    os.ftruncate(file, 0)
    if os.fstat(file).st_size:
        raise OSError(errno.EIO, "this file system did not empty a file; write game data elsewhere")


def _finish(sealed: Path, partial: bytes) -> int:
    """Do what is left of a call of `publish` that was broken off, and return the number of games published."""
    if not sealed.exists():
        return 0
    try:
        examples = read_examples(sealed)
    except DamageError:
        examples = []  # broken off while it was written: the partial file has it all
    # The partial file is emptied when the sealed one is whole: until then, that one is a copy.
    is_copy = [example[:-1] for example in examples] == [
        example[:-1] for example in _whole_games(partial)[: len(examples)]
    ]
    if is_copy:
        sealed.unlink()
        return 0
    _put_in_place(sealed)
    return sum(end_of(example) > 0 for example in examples)


def _whole_games(partial: bytes) -> list[bytes]:
    """Return the examples of the whole games of a partial file's content, up to its torn tail, if it has one."""
    examples = []
    with contextlib.suppress(DamageError):
        for example in frames(partial):
            examples.append(example)
    while examples and not end_of(examples[-1]):
        examples.pop()
    return examples


def _put_in_place(sealed: Path) -> None:
    """Give a sealed file its name: one more than the newest number, never that of another file."""
    folder = sealed.parent
    files = published_files(folder)
    number = number_of(files[-1]) if files else 0
    while sealed.stat().st_nlink == 1:  # a second link is its name
        number += 1
        target = folder / f"batch-{number:07d}.tfrecord"
        try:
            os.link(sealed, target)
        except FileExistsError:
            continue  # written by a machine that does not see our lock
    sealed.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        storage.sync(folder)


def _is_beginning(path: Path, content: bytes) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        # The first bytes nearly always tell.
        return size <= len(content) and content.startswith(file.read(_FEW)) and content.startswith(path.read_bytes())
    return False
