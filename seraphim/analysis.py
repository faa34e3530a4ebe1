"""One position examined at leisure: more readouts on the same tree, stopped at any time, and what each move is worth.

For a person at a terminal or a page. Knows the search; knows nothing of terminals or pages.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from seraphim.game import Array, Game
from seraphim.inference import Inference
from seraphim.search.options import SearchOptions
from seraphim.search.search import Search
from seraphim.search.selection import exploration_weight, to_rule
from seraphim.search.tree import NO_CHILD

LEAVES = 8  # at a time: a few times faster than one, and hardly different


@dataclass(frozen=True)
class Candidate:
    """A legal action at the root, and what the search thinks of it, for the player to move."""

    action: int
    prior: float
    """Probability by the network."""
    searched_prior: float
    """What the search takes the prior for: with noise, if there is any."""
    visits: int
    share: float
    """Of all visits."""
    q: float
    """Mean value of the visits; 0 without any."""
    u: float
    """Exploration term, c·P·√N/(1+N(a)); the search goes where Q + U is highest."""
    proven: bool
    """Whether q is exact."""
    variation: tuple[int, ...]
    """This action and the most visited ones after it."""


class Analysis:
    """A tree for one position."""

    def __init__(self, game: Game, inference: Inference, options: SearchOptions, leaves: int = LEAVES) -> None:
        """Prepare; the root must be searched by PUCT, which can always go on."""
        self._search = Search(game, inference, options, num_trees=1, leaves=leaves)
        self._rule = to_rule(options, leaves)
        self._game = game
        self.state = game.initial(1)[0]

    def start(self, state: Array) -> None:
        """Begin anew with an unfinished position int64 [W]."""
        self.state = state
        self._search.reset(_TREE)

    def play(self, action: int) -> None:
        """Go on to the successor by an action, and keep what is known of it."""
        if self._search.trees.progress[0]["num_nodes"]:
            self._search.move(_TREE, np.array([action]))
        self.state = self._game.step(self.state[None], np.array([action]))[0]

    def more(self, readouts: int, stop: Callable[[], bool] | None = None, noise_key: int | None = None) -> int:
        """Add readouts to the tree.

        Args:
            readouts: how many at most; a proven position needs none.
            stop: asked after each batch whether to end early.
            noise_key: the stream of the noise at the root; None for none.

        Returns:
            How many were added.

        Raises:
            ModelError: the model gave a NaN or an infinity.
        """
        before = self._search.readouts
        keys = None if noise_key is None else np.array([noise_key], np.uint64)
        self._search.begin(_TREE, self.state[None], keys, readouts)
        while not len(self._search.advance()):
            if stop is not None and stop():
                self._search.halt()
        return self._search.readouts - before

    @property
    def value(self) -> float:
        """Return the expected result for the player to move; of a position without readouts, the network's."""
        root = self._search.trees.nodes[_ROOT]
        result = self._search.result(_TREE)
        return float(result.values[0] if result.visits.any() else root["value"])

    @property
    def best(self) -> int:
        """Return the action to play."""
        return int(self._search.result(_TREE).best[0])

    def candidates(self) -> list[Candidate]:
        """Return all legal actions, the most visited first."""
        trees = self._search.trees
        root, edges = trees.nodes[_ROOT], trees.edges
        first = int(root["first_edge"])
        exploration = exploration_weight(int(root["visits"]), self._rule)
        total = max(1, int(edges[first : first + root["num_edges"]]["visits"].sum()))
        found = []
        for k in range(int(root["num_edges"])):
            edge = edges[first + k]
            visits, child = int(edge["visits"]), int(edge["child"])
            prior = float(trees.root_scores[k])
            found.append(
                Candidate(
                    action=int(edge["action"]),
                    prior=float(edge["prior"]),
                    searched_prior=prior,
                    visits=visits,
                    share=visits / total,
                    q=float(edge["total"]) / visits if visits else 0.0,
                    u=exploration * prior / (1 + visits),
                    proven=child != NO_CHILD and bool(trees.nodes[child]["settled"]),
                    variation=(int(edge["action"]), *self._variation(child)),
                )
            )
        return sorted(found, key=lambda candidate: -candidate.visits)

    def _variation(self, node: int) -> tuple[int, ...]:
        # The most visited actions from a node on.
        trees, actions = self._search.trees, []
        while node != NO_CHILD and trees.nodes[node]["num_edges"]:
            first = int(trees.nodes[node]["first_edge"])
            edges = trees.edges[first : first + int(trees.nodes[node]["num_edges"])]
            edge = edges[int(edges["visits"].argmax())]
            if not edge["visits"]:
                break
            actions.append(int(edge["action"]))
            node = int(edge["child"])
        return tuple(actions)


_TREE = np.array([0])
_ROOT = 0
