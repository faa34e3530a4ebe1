"""One position analyzed: readouts added to the same tree, stopped at any time, and the value of each action.

For a person at a terminal or a page. Knows the search; knows nothing of terminals or pages.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from seraphim.game import Array, Game
from seraphim.options import SearchOptions
from seraphim.search.evaluator import Inference
from seraphim.search.search import Search
from seraphim.search.selection import Rule, exploration_weight, to_rule
from seraphim.search.traversal import TreePolicy
from seraphim.search.tree import MOST_ACTIONS, NO_CHILD, Trees, slots

LEAVES = 8  # at a time: a few times faster than one, and hardly different
_TREE = np.array([0])


@dataclass(frozen=True)
class Candidate:
    """A legal action at the root as the search sees it, for the player to move."""

    action: int
    prior: float  # probability by the network
    searched_prior: float  # the prior with the noise of the root, if there is any
    visits: int
    share: float  # of all visits
    q: float  # mean value of the visits; 0 without any
    u: float  # exploration term, c·P·√N/(1+N(a)); the search goes where Q + U is highest
    proven: bool  # whether q is exact
    variation: tuple[int, ...]  # this action and the most visited ones after it


@dataclass(frozen=True)
class Finding:
    """What a search found in a position, for the player to move."""

    readouts: int  # visits of all candidates
    value: float  # expected result; without readouts, the network's value
    best: int  # the action to play
    proven: bool  # whether the value is exact
    candidates: list[Candidate]  # all legal actions: the best one, then by visits


class Analysis:
    """A tree for one position, searched by PUCT: a Gumbel root has a fixed number of readouts."""

    def __init__(
        self,
        game: Game,
        inference: Inference,
        options: SearchOptions,
        leaves: int = LEAVES,
        tree_policy: TreePolicy | None = None,
    ) -> None:
        """Start with the initial position; the arguments are those of `Search`."""
        self._search = Search(game, inference, options, num_trees=1, leaves=leaves, tree_policy=tree_policy)
        self._rule = to_rule(options, leaves, game.max_plies)
        self._game = game
        self.state = game.initial(1)[0]

    def start(self, state: Array) -> None:
        """Start over with an unfinished position int64 [W]."""
        self.state = state
        self._search.reset(_TREE)

    def play(self, action: int) -> None:
        """Move on to the successor by an action, keeping the tree below it."""
        if self._search.trees.progress[0]["num_nodes"]:
            self._search.move(_TREE, np.array([action]))
        self.state = self._game.step(self.state[None], np.array([action]))[0]

    def more(self, readouts: int, stop: Callable[[], bool] | None = None, noise_key: int | None = None) -> int:
        """Add at most `readouts` to the tree, until `stop` returns True after a batch, and return how many were added.

        A proven position needs none. There is noise at the root if there is a key for its stream.

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
        """The expected result for the player to move; without readouts, the network's value."""
        return float(self._search.result(_TREE).values[0])

    @property
    def best(self) -> int:
        """The action to play."""
        return int(self._search.result(_TREE).best[0])

    @property
    def proven(self) -> bool:
        """Whether the value is exact."""
        return bool(self._search.result(_TREE).proven[0])

    @property
    def policy(self) -> Array:
        """The policy that the search found, float32 [A]; drawn moves follow it."""
        return self._search.result(_TREE).policies[0]

    def candidates(self) -> list[Candidate]:
        """Return all legal actions: the best one, then the most visited first."""
        return find(self._search, 0, self._rule).candidates


def find(search: Search, tree: int, rule: Rule, longest: int = MOST_ACTIONS) -> Finding:
    """Return what a search by PUCT with these options found at the root of one of its trees.

    Variations have at most `longest` actions after the candidate itself.
    """
    trees = search.trees
    num_nodes = slots(trees)[0]
    root, edges = trees.nodes[tree * num_nodes], trees.edges
    first, count = int(root["first_edge"]), int(root["num_edges"])
    own = edges[first : first + count]
    priors = trees.root_scores[tree * search.game.num_actions :][:count].tolist()
    exploration = exploration_weight(int(root["visits"]), rule)
    spent = int(own["visits"].sum())
    candidates = []
    for edge, prior in zip(own.tolist(), priors, strict=True):
        total, raw, visits, child, action, *_ = edge
        candidates.append(
            Candidate(
                action=action,
                prior=raw,
                searched_prior=prior,
                visits=visits,
                share=visits / max(1, spent),
                q=total / visits if visits else 0.0,
                u=exploration * prior / (1 + visits),
                proven=child != NO_CHILD and bool(trees.nodes[child]["settled"]),
                variation=(action, *_variation(trees, child, longest)),
            )
        )
    result = search.result(np.array([tree]))
    best = int(result.best[0])
    return Finding(
        readouts=spent,
        value=float(result.values[0]),
        best=best,
        proven=bool(result.proven[0]),
        candidates=sorted(candidates, key=lambda each: (each.action != best, -each.visits)),
    )


def _variation(trees: Trees, node: int, longest: int) -> list[int]:
    # The most visited actions from a node onward.
    actions: list[int] = []
    while node != NO_CHILD and len(actions) < longest:
        first, count = int(trees.nodes[node]["first_edge"]), int(trees.nodes[node]["num_edges"])
        if not trees.edges["visits"][first : first + count].any():
            break
        edge = trees.edges[first + int(trees.edges["visits"][first : first + count].argmax())]
        actions.append(int(edge["action"]))
        node = int(edge["child"])
    return actions
