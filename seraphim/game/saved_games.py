"""Games and positions in text and in files: move lists, drawn boards, saved games, records of self-play.

A saved game is a text file with one line of moves for each line of its tree:

    game: connectfour
    start: 0 0                the words of the root's state; left out if it is the game's initial position
    A: 4453
    B after A2: 33            another continuation after the second move of line A
    at: B4                    the current position
"""

import re
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, RecordError, SeraphimError, shown
from seraphim.game import AnyGame, Array, Game, load_features, load_game, name_of
from seraphim.game.features import features_of
from seraphim.game.notation import format_moves, parse_moves
from seraphim.game.tree import GameTree

HEADER = "# a game, saved by Seraphim; lines that begin with # do not count"
MOST_CHARACTERS = 8 << 20  # of a saved game, some 60,000 lines of Hex

_POSITION = re.compile(r"([A-Z]+)([0-9]{1,9})")
_WHOLE = re.compile(r"game: .*\n(start: .*\n)?A:.*\n([A-Z]+ after [A-Z]+[0-9]+:.*\n)*(at: [A-Z]+[0-9]+\n)?")
_LINE = re.compile(r"([A-Z]+)(?: after ([A-Z]+)([0-9]{1,9}))?: *(.*)")


class Position(NamedTuple):
    """A position as the beginning of a game and the moves played since."""

    start: Array | None  # int64 [W]; None for the game's initial position
    actions: list[int]
    ahead: list[int]  # the moves played later in that game


def read_position(name: AnyGame, position: str | Array) -> Position:
    """Read a move list; or a board drawn as `GAME.render` does or a state, which `check_position` checks.

    Args:
        name: the game.
        position: the moves; the board with one row a line or with `/` between the rows, if the game offers
            `state_from_board`; or a state int64 [W].

    Raises:
        GameError: it is none of these, or a move is not legal.
    """
    game = load_game(name)
    if not isinstance(position, str):
        return begin_at(game, _to_array(game, position))
    text = position
    try:
        actions = parse_moves(game, text)
    except GameError as error:
        if len(text.strip().replace("/", "\n").splitlines()) > 1:
            read_board = load_features(name).state_from_board
            if read_board is None:
                raise GameError(
                    f"{name_of(name)} reads no drawn boards: give the moves that lead to the position"
                ) from error
            return begin_at(game, read_board(text))
        raise
    check_moves(game, actions)
    return Position(None, actions, [])


def _to_array(game: Game, position: object) -> Array:
    try:
        if np.ma.is_masked(position):
            raise ValueError("numbers that are masked would count")
        return np.asarray(position)
    except Exception as error:  # lists of different lengths, or the code of an object
        raise GameError(f"{_describe_position(game)}, not {shown(position)}") from error


def _describe_position(game: Game) -> str:
    return f"a position of {game.name} is its moves, a drawn board or a state of {game.state_words} whole numbers"


def begin_at(game: Game, state: Array) -> Position:
    """Return the position of words int64 [W] that did not come from the rules; see `check_position`."""
    check_position(game, state)
    is_initial = np.array_equal(state, game.initial(1)[0])
    return Position(None if is_initial else state.astype(np.int64), [], [])


def read_state(game: AnyGame, position: str | Array) -> Array:
    """Return the state int64 [W] of a position, as `read_position` takes it."""
    found = read_position(game, position)
    return check_moves(load_game(game), found.actions).node.state if found.start is None else found.start


def check_position(game: Game, state: Array) -> None:
    """Check words int64 [W] that did not come from the rules: these hold for positions of the game alone.

    Raises:
        GameError: it is no position of the game, or the game cannot tell, because it offers no `is_position`.
    """
    if state.shape != (game.state_words,) or state.dtype.kind not in "iu":
        raise GameError(f"{_describe_position(game)}, not {state.dtype} of shape {state.shape}")
    is_position = features_of(game).is_position
    if np.array_equal(state, game.initial(1)[0]):
        return
    if is_position is None:
        raise GameError(
            f"{game.name} cannot check a position that is given as a board or as words: give the moves that lead to it "
            "(or offer is_position)"
        )
    wrong = f"these words are not a position of {game.name}: play does not lead there"
    try:
        if not is_position(state.astype(np.int64)):
            raise GameError(wrong)
    except Exception as error:  # a game's own code, with words that it never made
        raise GameError(wrong) from error


def check_moves(game: Game, actions: list[int]) -> GameTree:
    """Return a tree with these moves, played from the initial position.

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


def is_saved_game(text: str) -> bool:
    """Return whether a text looks like a saved game."""
    return bool(re.search(r"^game: ", text, flags=re.MULTILINE))


def is_whole(text: str) -> bool:
    """Return whether a text is a saved game and nothing else: every line is one that `to_text` writes, in its order."""
    rows = [row.strip() for row in text.splitlines() if row.strip() and not row.startswith("#")]
    return _WHOLE.fullmatch("".join(f"{row}\n" for row in rows)) is not None


def to_text(tree: GameTree) -> str:
    """Return a game with all its branches as the text of a saved game."""
    lines = [HEADER, f"game: {tree.game.name}"]
    if not tree.starts_afresh:
        lines += [f"# {row}" for row in tree.game.render(tree.root.state).splitlines()]
        lines.append(f"start: {' '.join(map(str, tree.root.state.tolist()))}")
    for name, nodes in tree.lines().items():
        parent = nodes[0].parent
        where = "" if parent is None else f" after {parent.line}{parent.ply}"
        actions = [node.action for node in nodes if node.action is not None]
        before = (parent or tree.root).state
        lines.append(f"{name}{where}: {format_moves(tree.game, actions, start=before)}".rstrip())
    lines.append(f"at: {tree.node.line}{tree.node.ply}")
    return "\n".join(lines) + "\n"


def from_text(game: Game, text: str) -> GameTree:
    """Return the game in the text of a saved game.

    Raises:
        RecordError: the text is not a saved game, or is one of another game.
    """
    rows = [
        (number, row.strip())
        for number, row in enumerate(text.splitlines(), start=1)
        if row.strip() and not row.startswith("#")
    ]
    if not rows or not rows[0][1].startswith("game: "):
        raise RecordError("this is not a saved game: expected a first line such as game: tictactoe")
    name = rows.pop(0)[1].removeprefix("game: ")
    if name != game.name:
        raise RecordError(f"this is a game of {name!r}, not {game.name!r}: load it with a model of that game")
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
        raise RecordError(f"expected a start of whole numbers, not {row!r}") from error
    try:
        check_position(game, state)
    except GameError as error:
        raise RecordError(f"start: {error}") from error
    return state


def _read_row(tree: GameTree, row: str) -> None:
    # A line of moves, or the current position.
    if row.startswith("at: "):
        place = _POSITION.fullmatch(row.removeprefix("at: "))
        if place is None:
            raise RecordError(f"{row!r} names no position: expected one such as at: A12")
        tree.go(tree.find(place[1], int(place[2])))
        return
    line = _LINE.fullmatch(row)
    if line is None:
        raise RecordError(f"{row!r} is not a line of moves: expected A: and moves, or B after A2: and moves")
    tree.go(tree.find(line[2], int(line[3])) if line[2] else tree.root)
    for action in parse_moves(tree.game, line[4], tree.node.state):
        tree.play(action)
