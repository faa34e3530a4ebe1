"""The history of a game as a tree: every move that was tried stays, also when it is taken back.

Knows the rules; knows nothing of search, files or people.

A tree is a set of lines, named `A`, `B`, … in the order of their creation. Line A begins at the root; each other one
begins with a move played where another was played before. A line continues with first children, so each node is on
exactly one line.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game
from seraphim.game.interface import OFF_BOARD
from seraphim.game.notation import followers, join_labels, label_in

MAX_MOVES_NAMED = 30  # legal moves in an error message


@dataclass(eq=False)
class GameNode:
    """A position of a game, and the moves that were played there."""

    state: Array
    """int64 [W]."""
    parent: "GameNode | None" = field(default=None, repr=False)
    """The position before; None for the root."""
    action: int | None = None
    """The action that led here from the parent; None for the root."""
    ply: int = 0
    """Moves from the root to here."""
    children: list["GameNode"] = field(default_factory=list, repr=False)
    """One for each action that was played here, in the order of their first play."""
    line: str = "A"
    """The name of the line that it is on."""
    latest: "GameNode | None" = field(default=None, repr=False)
    """The child that was visited last, to which redo leads."""


class GameTree:
    """A game with branches, and a current position in it."""

    def __init__(self, game: Game, start: Array | None = None) -> None:
        """Begin with a state int64 [W], by default the initial one."""
        self.game = game
        self.root = GameNode(game.initial(1)[0] if start is None else np.array(start, np.int64))
        self.node = self.root
        self._first_nodes = {self.root.line: self.root}  # of each line, by its name, in their order

    @property
    def starts_afresh(self) -> bool:
        """Return whether the root is the game's initial position."""
        return bool((self.root.state == self.game.initial(1)[0]).all())

    def legal(self) -> list[int]:
        """Return the legal actions here, or the outcomes of chance; none once the game has ended or is cut off."""
        if self.node.ply >= self.game.max_plies:
            return []
        return np.flatnonzero(followers(self.game, self.node.state[None])[0]).tolist()

    def play(self, action: int) -> GameNode:
        """Go to the position after an action, which becomes a branch if it was not played here before.

        Raises:
            GameError: the action is not legal here.
        """
        found = next((child for child in self.node.children if child.action == action), None)
        if found is None:
            self._check_legal(action)
            state = self.game.step(self.node.state[None], np.array([action]))[0]
            line = line_name(len(self._first_nodes)) if self.node.children else self.node.line
            found = GameNode(state, self.node, action, self.node.ply + 1, line=line)
            self._first_nodes.setdefault(line, found)
            self.node.children.append(found)
        return self.go(found)

    def _check_legal(self, action: int) -> None:
        legal = self.legal()
        if not legal:
            raise GameError("the game is over here, so no move follows")
        if action not in legal:
            label = self.game.action_label(action) if 0 <= action < self.game.num_actions else str(action)
            raise GameError(f"{label} is not legal here: expected one of {self.name_moves()}")

    def label(self, action: int) -> str:
        """Return the label of a legal action here."""
        return label_in(self.game, self.node.state, action)

    def label_of(self, node: GameNode) -> str:
        """Return the label of the move that led to a node; "" for the root."""
        return "" if node.parent is None or node.action is None else label_in(self.game, node.parent.state, node.action)

    def name_moves(self) -> str:
        """Return the labels of the legal moves here, those that are no cell first, and MAX_MOVES_NAMED at most."""
        labels = sorted(map(self.label, self.legal()), key=lambda label: not label.lower().endswith(OFF_BOARD))
        more = f" and {len(labels) - MAX_MOVES_NAMED} more" if len(labels) > MAX_MOVES_NAMED else ""
        return join_labels(labels[:MAX_MOVES_NAMED], labels) + more

    def undo(self) -> bool:
        """Go to the position before; return whether there is one."""
        return self._go_if(self.node.parent)

    def redo(self) -> bool:
        """Go to the position after the move that was visited last; return whether there is one."""
        return self._go_if(self.node.latest)

    def _go_if(self, node: GameNode | None) -> bool:
        if node is not None:
            self.go(node)
        return node is not None

    def go(self, node: GameNode) -> GameNode:
        """Go to any node of the tree, and return it; redo leads to it from each position before it."""
        for passed in self.path(node):
            if passed.parent is not None:
                passed.parent.latest = passed
        self.node = node
        return node

    def path(self, node: GameNode | None = None) -> list[GameNode]:
        """Return the nodes from the root to a node, by default the current one."""
        passed: GameNode | None = node or self.node
        nodes = []
        while passed is not None:
            nodes.append(passed)
            passed = passed.parent
        return nodes[::-1]

    def actions(self, node: GameNode | None = None) -> list[int]:
        """Return the actions that lead from the root to a node, by default to the current one."""
        return [passed.action for passed in self.path(node) if passed.action is not None]

    def ahead(self) -> list[GameNode]:
        """Return the nodes that redo would visit, one after the other."""
        nodes, node = [], self.node.latest
        while node is not None:
            nodes.append(node)
            node = node.latest
        return nodes

    def lines(self) -> dict[str, list[GameNode]]:
        """Return the nodes of each line by its name; those of line A begin with the root."""
        return {line: list(_first_children(node)) for line, node in self._first_nodes.items()}

    def find(self, line: str, ply: int | None = None) -> GameNode:
        """Return the node of a line after `ply` moves from the root, by default its last one.

        Raises:
            GameError: there is no such line, or it is shorter.
        """
        if line not in self._first_nodes:
            raise GameError(f"there is no line {line}: expected one of {' '.join(self._first_nodes)}")
        *_, last = _first_children(self._first_nodes[line])
        if ply is None:
            return last
        if not 0 <= ply <= last.ply:
            raise GameError(f"line {line} has {last.ply} moves: expected a number from 0 to {last.ply}, not {ply}")
        return self.path(last)[ply]


def _first_children(node: GameNode) -> Iterator[GameNode]:
    yield node
    while node.children:
        node = node.children[0]
        yield node


def line_name(index: int) -> str:
    """Return the name of the line with index 0, 1, …: A to Z, then AA, AB, …."""
    name = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        name = chr(ord("A") + letter) + name
    return name
