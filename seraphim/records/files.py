"""The files of a folder of finished games: complete whenever they are visible, numbered upward, oldest removed first.

    batch-0000001.tfrecord   published and complete; a longer file replaces the newest one until that is full
    .ID.partial              finished games of one process that are not published yet; locked while the process lives
    ID-CHECKSUM.damaged      a copy of such a file that was damaged; nothing reads it
    .new                     the next published file, while it is written
    .removed.json            what retention has removed: see `seraphim.records.index`
    .writers.lock            held while a file is published or partial files are examined
    .readers.lock            shared by readers; files are removed only while there are none

Knows how a file comes and goes, not what a game is. `kill -9` at any moment loses no game that was written to a partial
file: it is emptied after its games are published, and whichever process publishes the rest skips games that are
published already.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from seraphim.errors import SettingsError
from seraphim.records.schema import END_OF_FILE, END_OF_GAME, end_of, is_cut_off, with_end
from seraphim.records.tfrecord import CHECKSUM, HEADER_BYTES, DamageError, frame, frame_bounds, frames, parse_example
from seraphim.storage import atomic

PARTIAL, DAMAGED = ".partial", ".damaged"
_FILE_NAME = re.compile(r"batch-(\d{7,})\.tfrecord")
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
    """Return the examples of one published file, verified to be complete.

    Raises:
        DamageError: the file is truncated or corrupt, holds something else, or cannot be read.
    """
    try:
        atomic.check_regular(path)
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
    """Keep writers from removing files of the folder during the block."""
    with contextlib.ExitStack() as stack:
        # A folder that cannot be locked, such as a read-only one, is read without a lock.
        with contextlib.suppress(OSError, SettingsError):
            stack.enter_context(atomic.locked(folder / _READERS, shared=True))
        yield


def writing(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Keep other writers from opening the folder or publishing there during the block."""
    return atomic.locked(folder / _WRITERS)


def removing(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Keep readers out of the folder during the block; raises a BlockingIOError if there is one already."""
    return atomic.locked(folder / _READERS, wait=False)


def whole_games(content: bytes) -> list[list[bytes]]:
    """Return the examples of each whole game in a partial file's content, ignoring an incomplete one at its end."""
    games: list[list[bytes]] = [[]]
    with contextlib.suppress(DamageError):
        for example in frames(content):
            games[-1].append(example)
            if end_of(example):
                games.append([])
    return games[:-1]


def rescued_games(content: bytes) -> tuple[list[list[bytes]], str]:
    """Return the examples of each game in a partial file's content that is whole, and what is damaged; "" if nothing.

    An incomplete game at its end is no damage: a process was killed. What follows damage counts from the next end of a
    game on, so that no two games are taken for one.
    """
    games: list[list[bytes]] = []
    game: list[bytes] | None = []
    damage = ""
    try:
        for start, stop in frame_bounds(content, verify=True):
            try:
                (example,) = frames(content[start - HEADER_BYTES : stop + CHECKSUM.size])
            except DamageError:
                damage, game = damage or f"the checksum of the record at byte {start - HEADER_BYTES:,} is wrong", None
                continue
            if game is not None:
                game.append(example)
            if end_of(example):
                games += [game] if game is not None else []
                game = []
    except DamageError as error:
        if not error.is_cut_off:
            damage = damage or str(error)
    return games, damage


def publish(folder: Path, games: Sequence[Sequence[bytes]], games_per_file: int, first_number: int) -> None:
    """Publish games in files of at most `games_per_file`; the newest file is rewritten if they fit into it as well.

    The caller is in a block of `writing`. Each file appears atomically; after a kill, a later call continues. Files are
    numbered from `first_number`, or from the newest file on if that is larger.
    """
    for start in range(0, len(games), games_per_file):
        chunk = games[start : start + games_per_file]
        files = published_files(folder)
        before = _room_in(files[-1], chunk, games_per_file) if files else []
        number = max(number_of(files[-1]) + (not before), first_number) if files else first_number
        examples = [*before, *(example for game in chunk for example in game)]
        examples[-1] = with_end(examples[-1], END_OF_FILE)
        atomic.replace_file(folder / f"batch-{number:07d}.tfrecord", b"".join(map(frame, examples)), ".new")


def _room_in(newest: Path, games: Sequence[Sequence[bytes]], games_per_file: int) -> list[bytes]:
    # Returns the examples of the newest file if the games fit into it as well, else none.
    if len(games) >= games_per_file or newest.stat().st_size > _LARGE:
        return []
    try:
        examples = read_examples(newest)
        one, other = parse_example(examples[-1]), parse_example(games[0][-1])
    except DamageError:
        return []  # reported when it is read
    is_alike = all(one.get(name) == other.get(name) for name in ("schema", "game"))
    is_ours = list(one)[-1] == "end"  # other writers may sort the features otherwise, and `end_of` needs it as the last
    if not (is_alike and is_ours) or sum(end_of(example) > 0 for example in examples) + len(games) > games_per_file:
        return []
    return [*examples[:-1], with_end(examples[-1], END_OF_GAME)]
