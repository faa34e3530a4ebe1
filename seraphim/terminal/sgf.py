"""Games of Go, Othello and Hex in the Smart Game Format (FF[4], Hollosi 2006), with their branches.

A move is written as its game's programs do: two letters in Go, column and row from the top left; `d3` in Othello and
Hex. Both are read in all three. A file that sets up another board than the initial one is refused.

A swap in Hex is written as the format defines it, as `swap-pieces`. Files of HexGui and MoHex are read as well, where
the players exchange colors, and those of Little Golem, which say `swap`, name no game, and call the first player W.
"""

import re
from types import ModuleType
from typing import NamedTuple

import numpy as np

from seraphim.errors import NotInstalledError, RecordError, SeraphimError, how_to_install
from seraphim.game import EMPTY, Game, board_of, cell_name
from seraphim.game.tree import GameNode, GameTree
from seraphim.players.external.move_names import SWAP, action_named, board_size, mirror, must_pass, vertex_names

_NUMBERS = {"go": 1, "othello": 2, "hex": 11}  # of the games, by the format's own list
_GO_SIZE = 19  # of a board, where a file does not say it
_GO_COLUMNS = "abcdefghjklmnopqrstuvwxyz"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SETUP = {"AB", "AW", "AE", "PL"}
_PASSES = ("", "tt", "pass")
_PAIR = re.compile("[a-z]{2}")
_SWAPS = ("swap", "swap-pieces", "swap-sides")
_GIVEN_UP = ("resign", "forfeit")


class _Sides(NamedTuple):
    """How a file of Hex names players and cells."""

    colors: str = "BW"  # of player 0, and of player 1
    mirrored: bool = False  # a swap exchanged the colors, so cells are mirrored along the long diagonal


def kind_of(game: Game) -> str:
    """Return `go`, `othello` or `hex`.

    Raises:
        RecordError: the game is none of these.
    """
    if not is_in_sgf(game):
        raise RecordError(f"the Smart Game Format has Go, Othello and Hex, not {game.name}")
    return bare_name(game)


def is_in_sgf(game: Game) -> bool:
    """Return whether the format has a game."""
    return bare_name(game) in _NUMBERS


def bare_name(game: Game) -> str:
    """Return the name of a game without its library and its size: `othello`, `hex`."""
    return re.split(r"[:(]", game.name.removeprefix("openspiel:"))[0]


def is_sgf(text: str) -> bool:
    """Return whether a text looks like an SGF file."""
    return re.match(r"\s*\(\s*;", text) is not None


def is_whole_sgf(text: str) -> bool:
    """Return whether a text looks like an SGF file from the property that it begins with to its last parenthesis."""
    return re.match(r"\s*\(\s*;\s*[A-Z]{1,2}\s*\[", text) is not None and text.rstrip().endswith(")")


def from_sgf(game: Game, text: str) -> GameTree:
    """Return the first game in the text of an SGF file, at the end of its main line.

    Raises:
        RecordError: the text is none, is of another game or board, sets up a position, or has an illegal move.
    """
    grammar, kind = _grammar(), kind_of(game)
    try:
        coarse = grammar.parse_sgf_game(text.encode())
    except ValueError as error:
        raise RecordError(f"this is not an SGF file: {error}") from error
    root = {name: values[0].decode(errors="replace").strip() for name, values in coarse.sequence[0].items()}
    is_little_golem = kind == "hex" and "GM" not in root
    if root.get("GM", "1") != str(_NUMBERS[kind]) and not is_little_golem:
        raise RecordError(f"this is game number {root.get('GM', '1')} of SGF, not {kind}, which is {_NUMBERS[kind]}")
    size = board_size(game)
    if "SZ" in root and root["SZ"] not in (str(size), f"{size}:{size}"):
        raise RecordError(f"this is a game on a board of size {root['SZ']}, not {size}")
    if "SZ" not in root and kind == "go" and size != _GO_SIZE:
        raise RecordError(f"this file has no SZ, so its board has size {_GO_SIZE}: expected SZ[{size}]")
    if root.get("HA", "0") not in ("", "0", "1"):
        raise RecordError(f"this is a game with a handicap of {root['HA']} stones, which is not supported")
    first = next((color for properties in coarse.sequence for color in "BW" if color in properties), "B")
    tree = GameTree(game)
    todo = [(coarse, tree.root, _Sides("WB" if is_little_golem and first == "W" else "BW"))]
    while todo:
        branch, node, sides = todo.pop()
        tree.go(node)
        for properties in branch.sequence:
            if _SETUP & set(properties) and not (tree.node is tree.root and _is_initial(game, kind, properties)):
                raise RecordError("this file sets up a board that is not the initial one, which is not supported")
            for color in ("B", "W"):
                if color in properties:
                    sides = _play(tree, kind, sides, color, _word(properties[color][0]))
        todo += [(child, tree.node, sides) for child in reversed(branch.children)]
    tree.go(tree.root)
    while tree.node.children:
        tree.go(tree.node.children[0])
    return tree


def _is_initial(game: Game, kind: str, properties: dict[str, list[bytes]]) -> bool:
    # Whether what a node sets up is the initial position.
    start = game.initial(1)
    board, words = (
        board_of(game, start[0]),
        {name: [_word(each) for each in properties.get(name, [])] for name in _SETUP},
    )
    if board is None or words["AE"] or words["PL"] not in ([], ["bw"[int(game.to_play(start)[0])]]):
        return False
    size = board_size(game) or 0
    set_up = {_vertex(each, kind, size): player for player, name in enumerate(("AB", "AW")) for each in words[name]}
    pieces = np.argwhere(board.cells != EMPTY).tolist()
    return set_up == {cell_name(board, row, column): int(board.cells[row, column]) for row, column in pieces}


def _word(value: bytes) -> str:
    return value.decode(errors="replace").strip().lower()


def _play(tree: GameTree, kind: str, sides: _Sides, color: str, value: str) -> _Sides:
    # Plays a move; returns how the file names players and cells after it.
    game, names, legal = tree.game, vertex_names(tree.game), tree.legal()
    vertex = _vertex(value, kind, board_size(game) or 0)
    if (not legal and vertex == "pass") or (kind == "hex" and vertex in _GIVEN_UP):
        return sides  # in many files players pass once the game has ended
    mover = int(game.to_play(tree.node.state[None])[0])
    try:
        if legal and sides.colors[mover] != color:
            if tree.label_of(tree.node) == SWAP:
                sides = _Sides(sides.colors[::-1], mirrored=True)
            elif must_pass(game, tree.node.state):
                tree.play(legal[0])  # which many files leave out
            else:
                raise RecordError(f"move {tree.node.ply + 1} is {color}'s, but it is the other player's turn")
        tree.play(action_named(game, names, tree.node.state, mirror(vertex) if sides.mirrored else vertex))
    except RecordError:
        raise
    except SeraphimError as error:
        raise RecordError(f"move {tree.node.ply + 1} of the SGF file: {error}") from error
    return sides


def _vertex(value: str, kind: str, size: int) -> str:
    # The name of a move for `action_named`.
    if value in _PASSES and not (value == "tt" and size > 19):
        return "pass"
    if kind == "hex" and value in _SWAPS:
        return SWAP
    if not _PAIR.fullmatch(value):
        return value
    column, row = (_LETTERS.index(letter) for letter in value)
    if column >= size:
        return value
    if kind == "go":
        return f"{_GO_COLUMNS[column]}{size - row}"
    return f"{_LETTERS[column]}{row + 1}"


def to_sgf(tree: GameTree) -> str:
    """Return a game with all its branches as the text of an SGF file.

    Raises:
        RecordError: the format does not have the game, or it did not begin at its initial position.
    """
    kind, grammar = kind_of(tree.game), _grammar()
    if not tree.starts_afresh:
        raise RecordError("only games from the initial position can be written as SGF")
    size = board_size(tree.game) or 0
    head = {"GM": [str(_NUMBERS[kind]).encode()], "SZ": [str(size).encode()], "AP": [b"Seraphim"], "FF": [b"4"]}

    def branch(node: GameNode, sequence: list[dict[str, list[bytes]]]) -> object:
        while len(node.children) == 1:
            node = node.children[0]
            sequence.append(_properties(tree.game, node, kind, size))
        coarse = grammar.Coarse_game_tree()
        coarse.sequence = sequence
        coarse.children = [branch(child, [_properties(tree.game, child, kind, size)]) for child in node.children]
        return coarse

    return str(grammar.serialise_game_tree(branch(tree.root, [head])).decode())


def _properties(game: Game, node: GameNode, kind: str, size: int) -> dict[str, list[bytes]]:
    # Of the move that led to a node, which is not the root.
    if node.parent is None or node.action is None:
        return {}
    before = node.parent.state
    name = vertex_names(game)(before, node.action).lower()
    if name == "pass":
        name = ""
    elif kind == "go":
        name = _LETTERS[_GO_COLUMNS.index(name[0])] + _LETTERS[size - int(name[1:])]
    return {"BW"[int(game.to_play(before[None])[0])]: [name.encode()]}


def _grammar() -> ModuleType:
    try:
        from sgfmill import sgf_grammar
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"the package sgfmill is not installed: {how_to_install('sgf')}") from error
    grammar: ModuleType = sgf_grammar
    return grammar
