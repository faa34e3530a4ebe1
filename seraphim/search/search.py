"""AlphaZero's search in many trees at once: one step selects, evaluates, expands and backs up a batch of positions.

`Search.advance` is one step, and the whole algorithm. A kernel does each stage for all readouts under way:

    select      follow the edges of highest Q + U from the root to a position outside the tree: `traversal.select`
    evaluate    by the result if the game has ended, by the cache if it knows the position, else by the network
    expand      add the position as a node with its legal actions: `expansion.expand_known`, `expansion.expand`
    back up     add its value to all edges on the path to the root: `traversal.back_up`, called by the kernels above

Knows neither a game nor a network, only their protocols. Trees do not affect each other: what a tree's search finds is
a function of its position, its options and its noise key, whatever else is in the batch.
"""

import math

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Array, Game
from seraphim.game.features import features_of, num_columns
from seraphim.options import SearchOptions
from seraphim.search import expansion, roots, traversal
from seraphim.search.cache import allocate_cache, num_slots
from seraphim.search.evaluator import Counters, Inference, LeafQueue
from seraphim.search.roots import Result
from seraphim.search.selection import halving_schedules, to_rule
from seraphim.search.tree import AT_REST, MOST_ACTIONS, MOST_LEAVES, ROOT_KEYS, NewPositions, Room, allocate, slots

_BATCH_SHARE = 0.75  # of the rows: a batch for the network

_NO_ROWS, _NO_RESULTS, _NO_CHANCES = np.empty(0, np.int64), np.empty((0, 1), np.float32), np.empty((0, 0))


def batch_size(num_trees: int, leaves: int = 1) -> int:
    """Return how many positions a search of `num_trees` trees sends to the network at a time."""
    return num_trees * leaves if leaves > 1 else math.ceil(_BATCH_SHARE * num_trees)


def slots_of(game: Game, options: SearchOptions) -> tuple[int, int]:
    """Return with how many slots for nodes and edges a tree begins."""
    nodes = options.readouts + options.readouts // 2 + 2
    outcomes = features_of(game).num_chance_outcomes or 0
    return nodes * (2 if outcomes else 1), nodes * (min(game.num_actions, 16) + min(outcomes, 16))


class Search:
    """Trees, and the readouts under way in them.

    Usage: `begin` some trees, `advance` until they have finished, look at their `result`, `move` to a successor to keep
    the part of the tree below it, and `begin` again. Others may read `trees`, but not change them.
    """

    def __init__(
        self,
        game: Game,
        inference: Inference,
        options: SearchOptions,
        num_trees: int,
        leaves: int = 1,
        tree_policy: traversal.TreePolicy | None = None,
    ) -> None:
        """Create `num_trees` trees without roots.

        Up to `leaves` leaves of one tree are with the network at a time. More than one makes a search of few trees
        faster and slightly different: a leaf under way counts as lost until its value is known. A `tree_policy` selects
        edges in place of PUCT; it sees leaves under way as `pending`.

        Raises:
            SettingsError: there are too many actions or leaves, the game does not offer what `fast_wins` or
                `known_results` needs, or a tree policy meets a Gumbel root.
        """
        _check(game, options, leaves, tree_policy)
        self.game, self.options = game, options
        self.counters = Counters()
        self._model_name = inference.name
        self._select = traversal.select if tree_policy is None else traversal.select_by(tree_policy)
        self._leaves = leaves
        self.rule = to_rule(game, options, leaves, other_policy=tree_policy is not None)
        self._columns = num_columns(game)
        self.trees = allocate(
            num_trees, leaves, *slots_of(game, options), game.num_actions, game.state_words, self._columns
        )
        self._features = features_of(game)
        self._room = Room(leaves, leaves * max(game.num_actions, self._features.num_chance_outcomes or 0))
        self._schedules = halving_schedules(options, game.num_actions)
        words = game.state_words - (self._features.bank_words or 0)
        outputs = game.num_actions + self._columns
        self.cache = allocate_cache(num_slots(options.cache_megabytes, outputs, words), outputs, words)
        self._busy_rows = np.zeros(num_trees, np.int64)  # rows of each tree that are not at rest
        self._moving = _NO_ROWS  # rows that `select` moves next
        self._rootless = _NO_ROWS  # rows whose trees wait for a root
        self._root_states = np.zeros((num_trees, game.state_words), np.int64)
        self._noise_keys = np.zeros(num_trees, np.uint64)
        self._noisy = np.zeros(num_trees, np.bool_)
        self._noise = roots.Noise(options.dirichlet_alpha, options.noise_coefficient)
        num_rows = num_trees * leaves
        self._steps = np.empty((num_rows, game.state_words), np.int64), np.empty(num_rows, np.int32)  # out of the trees
        self._queue = LeafQueue(game, inference, num_rows, batch_size(num_trees, leaves), self.counters)

    def begin(self, trees: Array, states: Array, noise_keys: Array | None = None, readouts: int | None = None) -> None:
        """Give each of some trees a number of readouts; a tree without a root first gets one.

        Args:
            trees: int64 [K], none of them under way.
            states: int64 [K, W], unfinished; of a tree that has a root, the root's.
            noise_keys: uint64 [K], the streams of the noise on the roots' priors, and of the draws below new roots;
                None searches without noise.
            readouts: how many; by default the options'.
        """
        readouts = self.options.readouts if readouts is None else readouts
        self.trees.progress["remaining"][trees] = readouts
        self.counters.readouts += readouts * len(trees)
        self._root_states[trees] = states
        self._noisy[trees] = noise_keys is not None
        self._noise_keys[trees] = 0 if noise_keys is None else noise_keys
        self._busy_rows[trees] = self._leaves
        rooted = self.trees.progress["num_nodes"][trees] > 0
        self._rootless = np.concatenate([self._rootless, trees[~rooted] * self._leaves])
        self._moving = np.concatenate([self._moving, self._prepare_roots(trees[rooted])])

    def advance(self, rounds: float = math.inf) -> Array:
        """Run all trees until there is a batch for the network, or no tree can go on without it; evaluate the batch.

        Args:
            rounds: how many positions a row may select before that. By default trees that need no network, because the
                cache knows their positions, run until they have finished.

        Returns:
            int64 [K] the trees that have spent their readouts during this step.

        Raises:
            ModelError: the model gave a NaN or an infinity.
            GameError: the game offers no legal action in an unfinished position.
        """
        self.counters.add_time(None)  # that between two steps
        self._add_known_roots()
        rows, self._moving = self._moving, _NO_ROWS
        waiting, resting = [], []
        while len(rows) and not self._queue.is_full and rounds > 0:
            rounds -= 1
            num_new, num_waiting = self._select(self.trees, rows, self.rule, self._schedules, *self._steps)  # select
            if num_new < len(rows):
                waiting.append(rows[num_new : num_new + num_waiting])
                resting.append(rows[num_new + num_waiting :])
            rows = rows[:num_new]
            if num_new:
                rows = self._expand_known(*self._apply_rules(rows))  # expand and back up, without the network
        self._moving = _joined([self._moving, rows, *waiting])
        finished = self._finish(_joined(resting))
        if self._queue.size:
            rows = self._expand(*self._queue.evaluate())  # evaluate; expand and back up
            self._moving = _joined([self._moving, rows])
        self.counters.add_time("search")
        return finished

    def _apply_rules(self, rows: Array) -> tuple[NewPositions, Array, Array, Array]:
        # The new positions that rows have reached, whether their values are exact, those values for player 0, and the
        # probabilities of the outcomes of chance.
        self.counters.add_time("search")
        states = self.game.step(*(column[: len(rows)] for column in self._steps))
        exact, values = expansion.exact_values(self.game, states, self.options)
        positions = self._positions(rows, states)
        if self.rule.chance:
            positions.to_play[exact] = np.maximum(positions.to_play[exact], 0)
        chances = _NO_CHANCES if self._features.chances is None else self._features.chances(states)
        self.counters.add_time("rules")
        return positions, exact, values, chances

    def _positions(self, rows: Array, states: Array) -> NewPositions:
        to_play = self.game.to_play(states)
        banked = _NO_RESULTS
        if self._features.banked is not None:
            banked = self._features.banked(states)
            if self._columns == 1:
                banked = banked[np.arange(len(states)), np.maximum(to_play, 0), None]
        return NewPositions(rows, states, to_play, banked)

    def _expand_known(
        self, positions: NewPositions, ended: Array, results: Array, chances: Array = _NO_CHANCES
    ) -> Array:
        # Adds positions to their trees, or to the queue for the network; returns the rows of the former.
        self.trees = self._room.reserve(self.trees)
        num_unknown, num_known = expansion.expand_known(
            self.trees, self.cache, *positions, ended, results, chances, self.rule, *self._queue.free
        )
        self._queue.size += int(num_unknown)
        self.counters.cache_hits += num_known
        return positions.rows[: len(positions.rows) - num_unknown]

    def _expand(self, positions: NewPositions, legal: Array, logits: Array, values: Array) -> Array:
        # Adds evaluated positions to their trees; returns the rows that move on.
        rows = positions.rows
        new_roots = rows[self.trees.progress["num_nodes"][rows // self._leaves] == 0]
        self.trees = self._room.reserve(self.trees)
        num_valid = expansion.expand(self.trees, self.cache, *positions, legal, logits, values, self.rule)
        if num_valid < len(rows):
            row = (column[num_valid] for column in (positions.states, legal, logits, values))
            raise expansion.rejection(self.game, self._model_name, *row)
        if len(new_roots):
            rooted = self._prepare_new_roots(new_roots // self._leaves)
            rows = np.concatenate([np.setdiff1d(rows, new_roots, assume_unique=True), rooted])
        return rows

    def _add_known_roots(self) -> None:
        # Gives trees without a root one, if the cache knows their positions; queues the others.
        rows, self._rootless = self._rootless, _NO_ROWS
        if not len(rows):
            return
        states = self._root_states[rows // self._leaves]
        positions = self._positions(rows, states)
        rooted = self._expand_known(positions, np.zeros(len(rows), np.bool_), _NO_RESULTS)
        self._moving = _joined([self._moving, self._prepare_new_roots(rooted // self._leaves)])

    def _prepare_new_roots(self, trees: Array) -> Array:
        # Gives new roots the key by which chance draws below them: that of the noise, or else a whole number by the
        # first prior. With one key for all, their errors would not cancel out.
        first_priors = self.trees.edges["prior"][trees * slots(self.trees)[1]]
        numbers = np.rint(ROOT_KEYS * first_priors).astype(np.uint64)
        self.trees.progress["key"][trees] = np.where(self._noisy[trees], self._noise_keys[trees], numbers)
        return self._prepare_roots(trees)

    def _prepare_roots(self, trees: Array) -> Array:
        # Draws the noise of roots that are there; returns all rows of their trees.
        keys, noisy = self._noise_keys[trees], self._noisy[trees]
        roots.prepare_roots(self.trees, trees, keys, noisy, self._noise, self.rule.gumbel)
        return (trees[:, None] * self._leaves + np.arange(self._leaves)).ravel()

    def _finish(self, rows: Array) -> Array:
        # Notes that rows are at rest; returns the trees with no other rows.
        if not len(rows):
            return rows
        finished = rows // self._leaves
        if self._leaves == 1:
            self._busy_rows[finished] = 0
        else:
            np.subtract.at(self._busy_rows, finished, 1)
            finished = np.unique(finished)
            finished = finished[self._busy_rows[finished] == 0]
        self._withdraw(finished)  # proven roots stop early
        return finished

    @property
    def num_readouts(self) -> int:
        """Return how many readouts were played."""
        return self.counters.readouts - int(self.trees.progress["remaining"].sum())

    def halt(self, trees: Array) -> None:
        """Start no more readouts in some trees int64 [K]; `advance` finishes those under way."""
        self._withdraw(trees[self._busy_rows[trees] > 0])

    def _withdraw(self, trees: Array) -> None:
        # Takes readouts back that were not started.
        self.counters.readouts -= int(self.trees.progress["remaining"][trees].sum())
        self.trees.progress["remaining"][trees] = 0

    def run(self) -> None:
        """Advance until every tree has spent its readouts; raise the errors of `advance`."""
        while self._busy_rows.any():
            self.advance()

    def result(self, trees: Array) -> Result:
        """Return what was found at the roots of some trees int64 [K]."""
        return roots.read_roots(self.trees, trees, self.rule)

    def move(self, trees: Array, actions: Array) -> None:
        """Make the successors of the roots of some trees int64 [K] by `actions` [K] their roots.

        Where chance moves after that, its outcomes follow by another call, before a search begins.
        """
        if self.options.root == "gumbel":  # its schedule begins with a root without visits
            self.reset(trees)
        else:
            roots.move_roots(self.trees, trees, actions)

    def reset(self, trees: Array) -> None:
        """Remove the roots of some trees int64 [K]."""
        for field in ("num_nodes", "num_edges", "key"):
            self.trees.progress[field][trees] = 0

    def compact(self) -> None:
        """Return memory that no tree uses any more to the system."""
        self.trees = self._room.compact(self.trees)

    def abandon(self) -> None:
        """Remove all roots, and forget the readouts under way."""
        self.reset(np.arange(len(self._busy_rows)))
        self.trees.rows["node"] = AT_REST
        self.trees.progress["remaining"] = 0
        self._busy_rows[:] = 0
        self._moving = self._rootless = _NO_ROWS
        self._queue.size = 0


def _check(game: Game, options: SearchOptions, leaves: int, tree_policy: traversal.TreePolicy | None) -> None:
    if game.num_actions > MOST_ACTIONS or leaves > MOST_LEAVES:
        raise SettingsError(
            f"too many actions or leaves: {game.name} has {game.num_actions:,} actions (at most {MOST_ACTIONS:,}), "
            f"with {leaves} leaves (at most {MOST_LEAVES})"
        )
    outcomes = features_of(game).num_chance_outcomes or 0
    if outcomes > MOST_ACTIONS:
        raise SettingsError(f"{game.name} has {outcomes:,} outcomes of chance; a search has room for {MOST_ACTIONS:,}")
    expansion.check_offers(game, options)
    if tree_policy is not None and options.root == "gumbel":
        raise SettingsError("a tree policy replaces PUCT, but the root is searched by gumbel: set root to puct")


def _joined(parts: list[Array]) -> Array:
    # A new array int64.
    parts = [part for part in parts if len(part)]
    return np.concatenate(parts) if parts else _NO_ROWS
