"""Games and positions in files: saved games, texts of moves or a drawn board, records of self-play."""

from pathlib import Path

import numpy as np

from seraphim.errors import GameError, RecordError, SeraphimError
from seraphim.game import Game, load_game
from seraphim.game.saved_games import MOST_BYTES, Position, from_text, is_saved_game, read_position, to_text
from seraphim.game.tree import GameTree
from seraphim.records.examples import decode
from seraphim.records.viewer import read_payloads, record_files
from seraphim.storage.atomic import replace_file


def find(name: str, text: str) -> Position | GameTree:
    """Return what a text says: moves, a drawn board, a record of a game file (`FILE:RECORD`), or a file of these.

    Args:
        name: package or module of the game.
        text: the text, or the name of a file.

    Raises:
        GameError: it is none of these, or a move is not legal.
        RecordError: the file cannot be read, or is of another game.
    """
    head, colon, record = text.rpartition(":")
    if colon and record.isdecimal() and (head.endswith(".tfrecord") or _exists(head)):
        return read_record(load_game(name), Path(head), int(record))
    if text.endswith(".tfrecord"):
        return read_record(load_game(name), Path(text), 0)
    try:
        return read_position(name, text)
    except GameError as error:
        if not _exists(text):
            raise GameError(f"{error}; and there is no file of that name") from error
    return load(name, Path(text))


def _exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, or no such user
        return False


def read_record(game: Game, path: Path, record: int) -> Position:
    """Read a position of a file of finished games, with the game that it is of; a folder stands for its newest file.

    Args:
        game: the rules.
        path: the file.
        record: the number of the record, from 0 in its file.

    Raises:
        RecordError: there is no such file or record, it is damaged, or of another game.
    """
    file = record_files(path)[-1]
    try:
        positions = decode(game, list(read_payloads(file)))
    except RecordError as error:
        raise RecordError(f"{file}: {error}") from error
    count = len(positions.plies)
    if not count:
        raise RecordError(f"{file} holds no records: name another file")
    if not 0 <= record < count:
        raise RecordError(f"there is no record {record} in {file}: expected a number from 0 to {count - 1}")
    ends = np.flatnonzero(positions.ends)
    first = int(ends[ends < record][-1]) + 1 if (ends < record).any() else 0
    end = int(ends[ends >= record][0]) + 1 if (ends >= record).any() else count
    start = positions.states[first]
    actions = positions.actions[first:end].tolist()
    played = record - first
    fresh = bool((start == game.initial(1)[0]).all())
    return Position(None if fresh else start, actions[:played], actions[played:])


def save(tree: GameTree, file: Path) -> None:
    """Write a game with all its branches into a text file, which appears whole; an older saved game is replaced.

    Raises:
        RecordError: there is such a file, and it is no saved game, or it cannot be written.
    """
    try:
        file = file.expanduser()
        if file.exists() and not _is_saved_game(file):
            raise RecordError(f"{file} exists and is no saved game: choose another name")
        replace_file(file, to_text(tree).encode())
    except (OSError, ValueError, RuntimeError) as error:  # no such folder, no name of a file, no such user
        raise RecordError(f"cannot write {file}: {getattr(error, 'strerror', None) or error}") from error


def load(name: str, file: Path) -> Position | GameTree:
    """Read a game that `save` wrote, or a text file of moves or of a drawn board.

    Args:
        name: package or module of the game.
        file: the file.

    Raises:
        RecordError: the file cannot be read, or is of another game.
        GameError: the file holds neither.
    """
    try:
        with file.expanduser().open() as stream:
            text = stream.read(MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"cannot read {file}: {error}") from error
    try:
        return from_text(load_game(name), text) if is_saved_game(text) else read_position(name, text)
    except SeraphimError as error:
        raise type(error)(f"{file}: {error}") from error


def _is_saved_game(file: Path) -> bool:
    with file.open(errors="replace") as stream:
        return is_saved_game(stream.read(MOST_BYTES))
