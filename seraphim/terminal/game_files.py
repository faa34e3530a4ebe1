"""Games and positions in files: saved games, text files of moves or a board diagram, records of self-play."""

from pathlib import Path

import numpy as np

from seraphim.errors import GameError, RecordError, SeraphimError
from seraphim.game import Game, load_game, saved_games
from seraphim.game.features import has_chance
from seraphim.game.saved_games import Position, begin_at, from_text, is_saved_game, read_position
from seraphim.game.tree import GameTree
from seraphim.records.examples import decode
from seraphim.records.viewer import read_payloads, record_files
from seraphim.storage.atomic import check_regular, replace_file
from seraphim.terminal.sgf import from_sgf, is_sgf, is_whole_sgf, to_sgf


def find(name: str, text: str) -> Position | GameTree:
    """Return the position or game that a text describes.

    Args:
        name: package or module of the game.
        text: moves, a board diagram, a record of a game file (`FILE:RECORD`), or the name of a file of these.

    Raises:
        GameError: it is none of these, or a move is not legal.
        RecordError: the file cannot be read, or is of another game.
    """
    head, colon, record = text.rpartition(":")
    if colon and record.isdecimal() and len(record) < 10 and (head.endswith(".tfrecord") or _exists(head)):
        return _read_record(load_game(name), Path(head), int(record))
    if text.endswith(".tfrecord"):
        return _read_record(load_game(name), Path(text), 0)
    try:
        return read_position(name, text)
    except GameError as error:
        if not _exists(text):
            raise GameError(f"{error}; and there is no file of that name") from error
    return load(name, Path(text))


def find_game(name: str, text: str) -> GameTree:
    """Return the game that a text describes, as `find` takes it; of a record, the whole game.

    Raises:
        GameError, RecordError: as `find`.
    """
    found = find(name, text)
    if isinstance(found, GameTree):
        return found
    tree = GameTree(load_game(name), found.start)
    for action in (*found.actions, *found.ahead):
        tree.play(action)
    return tree


def _exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, or no such user
        return False


def _read_record(game: Game, path: Path, record: int) -> Position:
    # The position of a record, with the rest of its game, unless that has chance: records do not have its outcomes. A
    # folder stands for its newest file.
    file = record_files(path)[-1]
    try:
        positions = decode(game, list(read_payloads(file)))
    except RecordError as error:
        raise RecordError(f"{file}: {error}") from error
    count = len(positions.plies)
    if not count:
        raise RecordError(f"{file} holds no records: name another file")
    if record >= count:
        raise RecordError(f"there is no record {record} in {file}: expected a number from 0 to {count - 1}")
    ends = np.flatnonzero(positions.ends)
    first = int(max(ends[ends < record], default=-1)) + 1
    end = int(min(ends[ends >= record], default=count - 1)) + 1
    if has_chance(game):
        return begin_at(game, positions.states[record])
    start, actions = positions.states[first], positions.actions[first:end].tolist()
    return begin_at(game, start)._replace(actions=actions[: record - first], ahead=actions[record - first :])


def save(tree: GameTree, file: Path) -> None:
    """Write a game with all its branches atomically into a text file, .sgf in that format.

    Overwrites only files that are a saved game or an SGF file and nothing else: see `is_whole` and `is_whole_sgf`.

    Raises:
        RecordError: the file exists and is not a saved game, or cannot be written; or the game is too large.
    """
    try:
        file = file.expanduser()
        if file.exists():
            check_regular(file)
            before = _read_text(file)
            if not (saved_games.is_whole(before) or is_whole_sgf(before)):
                raise RecordError(f"{file} exists and is not a saved game: choose another name")
        text = to_sgf(tree) if file.suffix == ".sgf" else saved_games.to_text(tree)
        _check_length(file, text)
        replace_file(file, text.encode())
    except (OSError, ValueError, RuntimeError) as error:  # no such folder, not a file name, no such user
        raise RecordError(f"cannot write {file}: {getattr(error, 'strerror', None) or error}") from error


def load(name: str, file: Path) -> Position | GameTree:
    """Read a saved game, an SGF file, or a text file of moves or of a board diagram.

    Raises:
        RecordError: the file cannot be read, is too large, or is of another game.
        GameError: the file holds neither.
    """
    try:
        text = _read_text(file.expanduser())
    except (OSError, RuntimeError) as error:
        raise RecordError(f"cannot read {file}: {error}") from error
    try:
        if is_sgf(text):
            return from_sgf(load_game(name), text)
        return from_text(load_game(name), text) if is_saved_game(text) else read_position(name, text)
    except SeraphimError as error:
        raise type(error)(f"{file}: {error}") from error


def _read_text(file: Path) -> str:
    with file.open(errors="replace") as stream:  # SGF files may be in ISO 8859
        text = stream.read(saved_games.MOST_CHARACTERS + 1)
    _check_length(file, text)
    return text


def _check_length(file: Path, text: str) -> None:
    if len(text) > (most := saved_games.MOST_CHARACTERS):
        raise RecordError(f"{file} would be too large for a game: one may have {most:,} characters")
