"""Bounds of a shared search, and the memory that its trees take."""

from dataclasses import dataclass

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Array, Game
from seraphim.game.features import features_of
from seraphim.search.tree import EDGE, NODE

_SPARE_ROUNDS = 3  # for the readouts that are under way when a tree is halted


@dataclass(frozen=True)
class SearchLimits:
    """Bounds of a shared search."""

    trees: int = 64
    """Positions searched at a time."""
    tree_nodes: int = 2**17
    """Most nodes of a tree; a larger one gets no more readouts."""
    edges: int = 2**29
    """Room for edges in all trees together: 16 GiB of addresses, of which only what is used takes memory."""
    megabytes: float = 512
    """Approximate memory of all trees. When it is full, idle trees are freed, then the largest search ends."""
    max_wait: float = 1.0
    """Seconds that a session waits for a tree before the longest of the searches that took as long ends early."""
    idle_seconds: float = 300.0
    """Seconds after which an idle tree is freed."""
    update_seconds: float = 0.1
    """Least seconds between two updates of a search."""
    variation: int = 16
    """Most actions of a variation, apart from the candidate itself."""


class TreeMemory:
    """The memory of trees: the most that each has taken since the search was last compacted."""

    def __init__(self, game: Game, limits: SearchLimits, leaves: int) -> None:
        """Compute the room of each tree.

        Raises:
            SettingsError: the game has too many actions for this number of trees.
        """
        self._node = NODE.itemsize + 8 * game.state_words
        # All trees have room for as many edges as the largest, and growth may reserve twice as many.
        room = limits.edges // (2 * limits.trees)
        self.max_nodes = min(limits.tree_nodes, room)
        # That a tree gets at most.
        self._edges_of_a_round = leaves * max(game.num_actions, features_of(game).num_chance_outcomes or 0)
        self._max_rounds = room // self._edges_of_a_round
        if self._max_rounds <= _SPARE_ROUNDS:
            raise SettingsError(
                f"{limits.trees} trees have no room for the {game.num_actions} actions of {game.name}: use fewer trees"
            )
        self._limit = limits.megabytes * 2**20
        self._peak = np.zeros(limits.trees)

    def _used(self, progress: Array) -> Array:
        return progress["num_nodes"] * float(self._node) + progress["num_edges"] * float(EDGE.itemsize)

    def _rounds_left(self, progress: Array) -> Array:
        return self._max_rounds - _SPARE_ROUNDS - progress["num_edges"] // self._edges_of_a_round

    def rounds_left(self, progress: Array) -> int:
        """Return the number of rounds after which a tree might run out of room for edges."""
        return int(self._rounds_left(progress).min())

    def full_trees(self, progress: Array) -> Array:
        """Return the trees without room for another round, int64 [K]."""
        return np.flatnonzero(self._rounds_left(progress) < 1)

    def is_over(self, progress: Array, *, compacted: bool = False) -> bool:
        """Return whether the limit is exceeded; `compacted` says that the search takes no more than it uses now."""
        self._peak = self._used(progress) if compacted else np.maximum(self._peak, self._used(progress))
        return bool(self._peak.sum() > self._limit)

    def is_half_empty(self, progress: Array) -> bool:
        """Return whether less than half of the limit is in use."""
        return bool(self._used(progress).sum() < self._limit / 2)
