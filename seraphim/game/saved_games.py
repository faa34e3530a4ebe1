"""Games and positions in text and in files: move lists, drawn boards, saved games, records of self-play.

A saved game is a text file with one line of moves for each line of its tree:

    game: connectfour
    start: 0 0                what the root's state is, in words; left out if it is the game's initial position
    A: 4453
    B after A2: 33            another continuation after the second move of line A
    at: B4                    where we were
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, RecordError, SeraphimError
from seraphim.game import Array, Game, load_game, load_game_module
from seraphim.game.notation import format_moves, parse_moves
from seraphim.game.tree import GameTree
from seraphim.records.examples import decode
from seraphim.records.viewer import read_payloads, record_files
from seraphim.storage.atomic import replace_file

HEADER = "# a game, saved by Seraphim; lines that begin with # do not count"
MOST_BYTES = 1 << 20  # of a saved game that is read

_PLACE = re.compile(r"([A-Z]+)([0-9]+)")
_LINE = re.compile(r"([A-Z]+)(?: after ([A-Z]+)([0-9]+))?: *(.*)")


class Position(NamedTuple):
    """A position as where a game began and what was played since."""

    start: Array | None  # int64 [W]; None for the game's initial position
    actions: list[int]
    ahead: list[int]  # what was played later in that game


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


def read_position(name: str, text: str) -> Position:
    """Read a move list, or a board drawn as `GAME.render` does if the game offers `state_from_board`.

    Args:
        name: package or module of the game.
        text: the text; of a board either with one row a line, or with `/` between the rows.

    Raises:
        GameError: it is neither, or a move is not legal.
    """
    module, game = load_game_module(name), load_game(name)
    try:
        actions = parse_moves(game, text)
    except GameError as error:
        read_board = getattr(module, "state_from_board", None)
        if len(text.strip().replace("/", "\n").splitlines()) > 1:
            if read_board is None:
                raise GameError(f"{name} reads no drawn boards: give the moves that lead to the position") from error
            return Position(read_board(text), [], [])
        raise
    check_moves(game, actions)
    return Position(None, actions, [])


def check_moves(game: Game, actions: list[int]) -> GameTree:
    """Return the game in which these moves were played from the initial position.

    Raises:
        GameError: one of them is not legal.
    """
    tree = GameTree(game)
    for place, action in enumerate(actions, start=1):
        try:
            tree.play(action)
        except GameError as error:
            raise GameError(f"move {place}: {error}") from error
    return tree


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


def is_saved_game(text: str) -> bool:
    """Return whether a text looks like a saved game."""
    return bool(re.search(r"^game: ", text, flags=re.MULTILINE))


def _is_saved_game(file: Path) -> bool:
    with file.open(errors="replace") as stream:
        return is_saved_game(stream.read(MOST_BYTES))


def to_text(tree: GameTree) -> str:
    """Return a game with all its branches as text."""
    lines = [HEADER, f"game: {tree.game.name}"]
    if not tree.starts_afresh:
        lines += [f"# {row}" for row in tree.game.render(tree.root.state).splitlines()]
        lines.append(f"start: {' '.join(map(str, tree.root.state.tolist()))}")
    for name, nodes in tree.lines().items():
        parent = nodes[0].parent
        where = "" if parent is None else f" after {tree.line_of(parent)}{parent.ply}"
        actions = [node.action for node in nodes if node.action is not None]
        before = (parent or tree.root).state
        lines.append(f"{name}{where}: {format_moves(tree.game, actions, start=before)}".rstrip())
    lines.append(f"at: {tree.line_of(tree.node)}{tree.node.ply}")
    return "\n".join(lines) + "\n"


def from_text(game: Game, text: str) -> GameTree:
    """Return the game that `to_text` wrote.

    Raises:
        RecordError: it is none, or one of another game.
    """
    rows = [
        (number, row.strip())
        for number, row in enumerate(text.splitlines(), start=1)
        if row.strip() and not row.startswith("#")
    ]
    if not rows or not rows[0][1].startswith("game: "):
        raise RecordError("this is no saved game: expected a first line such as game: tictactoe")
    name = rows.pop(0)[1].removeprefix("game: ")
    if name != game.name:
        raise RecordError(f"this is a game of {name}, not of {game.name}: load it with a model of {name}")
    start = _start(game, rows.pop(0)[1]) if rows and rows[0][1].startswith("start: ") else None
    tree = GameTree(game, start)
    for number, row in rows:
        try:
            _read_row(tree, row)
        except SeraphimError as error:
            raise RecordError(f"line {number} of the saved game: {error}") from error
    return tree


def _start(game: Game, row: str) -> Array:
    words = row.removeprefix("start: ").split()
    try:
        state = np.array([int(word) for word in words], np.int64)
    except (ValueError, OverflowError) as error:
        raise RecordError(f"a start of whole numbers is expected, not {row!r}") from error
    if len(state) != game.state_words:
        raise RecordError(f"a state of {game.name} has {game.state_words} words, but the start has {len(state)}")
    return state


def _read_row(tree: GameTree, row: str) -> None:
    # A line of moves, or the place where we were.
    if row.startswith("at: "):
        place = _PLACE.fullmatch(row.removeprefix("at: "))
        if place is None:
            raise RecordError(f"{row!r} names no place: expected one such as at: A12")
        tree.go(tree.find(place[1], int(place[2])))
        return
    line = _LINE.fullmatch(row)
    if line is None:
        raise RecordError(f"{row!r} is no line of moves: expected one such as A: and moves, or B after A2: and moves")
    tree.go(tree.find(line[2], int(line[3])) if line[2] else tree.root)
    for action in parse_moves(tree.game, line[4], tree.node.state):
        tree.play(action)
