"""The search: PUCT over many trees in lock step, with one network batch a step for all of them.

Knows neither a game nor a network, only their protocols. Trees do not affect each other: what a tree's search finds is
a function of its position, its options and its noise key, whatever else is in the batch.
"""

import math
import time
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, ModelError, SettingsError
from seraphim.game import Array, Game
from seraphim.inference import Inference
from seraphim.options import SearchOptions
from seraphim.search import expansion, roots, traversal
from seraphim.search.cache import allocate_cache, num_slots
from seraphim.search.rng import uniform_of
from seraphim.search.selection import considered_visits, to_rule
from seraphim.search.terminal_value import check_fast_wins, worth
from seraphim.search.tree import AT_REST, MOST_ACTIONS, MOST_LEAVES, Trees, allocate, resized, slots

# The network gets batches of always the same size, as a runtime prepares itself anew for each other one: this share of
# the rows. By the time it has evaluated them, the next ones are there.
_BATCH_SHARE = 0.75

_NO_ROWS, _NO_RESULTS = np.empty(0, np.int64), np.empty(0, np.float32)


class Positions(NamedTuple):
    """Positions for the network, each for the readout of a row."""

    rows: Array  # int64 [R]
    states: Array  # int64 [R, W]
    to_play: Array  # int8 [R]


class Result(NamedTuple):
    """What the search found at the roots of K trees."""

    visits: Array  # int32 [K, A]
    policies: Array  # float32 [K, A]: what is to be learnt; of PUCT the visit distribution, see `roots.root_policies`
    best: Array  # int32 [K]: the action to play in earnest
    values: Array  # float32 [K]: expected value under the policy, or the proven value, for the player to move
    proven: Array  # bool [K]: whether the value is exact
    action_values: Array  # float32 [K, A]: Q(s,a), 0 for actions without a visit
    priors: Array  # float32 [K, A]: the network's, over legal actions, without noise


def batch_size(num_trees: int, leaves: int = 1) -> int:
    """Return how many positions a search of so many trees sends to the network at a time."""
    return num_trees * leaves if leaves > 1 else math.ceil(_BATCH_SHARE * num_trees)


class Search:
    """Trees, and the readouts under way in them.

    Usage: `begin` some trees, `advance` until they are done, look at their `result`, `move` to a successor to keep the
    part of the tree below it, and `begin` again.
    """

    def __init__(
        self, game: Game, inference: Inference, options: SearchOptions, num_trees: int, leaves: int = 1
    ) -> None:
        """Create trees without roots.

        Args:
            game: the rules.
            inference: the model.
            options: the options.
            num_trees: `T`.
            leaves: how many leaves of one tree may be with the network at a time. More than one makes a search of few
                trees faster and a little different: a leaf under way counts as lost until its value is known.
        """
        if game.num_actions > MOST_ACTIONS or leaves > MOST_LEAVES:
            raise SettingsError(
                f"the search has room for {MOST_ACTIONS} actions and {MOST_LEAVES} leaves, not for the "
                f"{game.num_actions} of {game.name} and {leaves}"
            )
        check_fast_wins(game, options.fast_wins)
        self.game = game
        self.options = options
        self.seconds = {"network": 0.0, "rules": 0.0, "search": 0.0}
        self.readouts = self.evaluations = self.batches = self.cache_hits = 0
        self._last_lap = 0.0
        self._inference = inference
        self._leaves = leaves
        self._rule = to_rule(options, leaves, game.max_plies)
        self._schedules = _schedules(options, game.num_actions)
        nodes = options.readouts + options.readouts // 2 + 2
        self._trees = allocate(
            num_trees, leaves, nodes, nodes * min(game.num_actions, 16), game.num_actions, game.state_words
        )
        cache_slots = num_slots(options.cache_megabytes, game.num_actions, game.state_words)
        self._cache = allocate_cache(cache_slots, game.num_actions, game.state_words)
        self._nodes_left = self._edges_left = 0  # at least so many slots are free in every tree
        self._rows_out = np.zeros(num_trees, np.int64)  # rows of each tree that are not at rest
        self._active = _NO_ROWS
        self._new_roots = _NO_ROWS  # rows whose trees wait for a root
        self._root_states = np.zeros((num_trees, game.state_words), np.int64)
        self._noise_keys = np.zeros(num_trees, np.uint64)
        self._noisy = np.zeros(num_trees, np.bool_)
        num_rows = num_trees * leaves
        states = np.empty((2, num_rows, game.state_words), np.int64)
        self._unknown = Positions(np.empty(num_rows, np.int64), states[0], np.empty(num_rows, np.int8))
        self._num_unknown = 0
        self._num_new_roots = 0  # of the unknown positions
        self._batch = batch_size(num_trees, leaves)
        self._parents, self._actions = states[1], np.empty(num_rows, np.int32)

    @property
    def trees(self) -> Trees:
        """The trees, to be read."""
        return self._trees

    def begin(
        self,
        trees: Array,
        states: Array,
        noise_keys: Array | None = None,
        readouts: int | None = None,
    ) -> None:
        """Give each of some trees a number of readouts; a tree without a root first gets one.

        Args:
            trees: int64 [K], none of them at work.
            states: int64 [K, W], unfinished; of a tree that has a root, the root's.
            noise_keys: uint64 [K], the streams of the noise on the roots' priors; None searches without noise.
            readouts: how many; by default the options'.
        """
        readouts = self.options.readouts if readouts is None else readouts
        self._trees.progress["remaining"][trees] = readouts
        self.readouts += readouts * len(trees)
        self._root_states[trees] = states
        self._noisy[trees] = noise_keys is not None
        if noise_keys is not None:
            self._noise_keys[trees] = noise_keys
        self._rows_out[trees] = self._leaves
        rooted = self._trees.progress["num_nodes"][trees] > 0
        self._new_roots = np.concatenate([self._new_roots, trees[~rooted] * self._leaves])
        self._active = np.concatenate([self._active, self._prepare(trees[rooted])])

    def _prepare(self, trees: Array) -> Array:
        # Roots are there: draws their noise, and returns the rows of their trees, to move.
        options = self.options
        for noisy in (False, True):
            chosen = trees[self._noisy[trees] == noisy]
            if not len(chosen):
                continue
            gumbel = options.root == "gumbel"
            coefficient = (1.0 if gumbel else options.noise_coefficient) if noisy else 0.0
            temperature = options.root_temperature if noisy else 1.0
            keys, alpha = self._noise_keys[chosen], options.dirichlet_alpha
            roots.prepare_roots(self._trees, chosen, keys, alpha, coefficient, temperature, gumbel)
        return (trees[:, None] * self._leaves + np.arange(self._leaves)).ravel()

    def advance(self, rounds: float = math.inf) -> Array:
        """Run all trees until they need the network, evaluate their leaves as one batch, and put them into the trees.

        Args:
            rounds: how many new positions a readout, and those that follow it, may come to before that; trees that need
                the network rarely, since the cache knows their positions, otherwise run until they are done.

        Returns:
            int64 [K] the trees that have spent their readouts during this step.

        Raises:
            ModelError: the model gave a NaN or an infinity.
            GameError: the game offers no legal action in an unfinished position.
        """
        self._last_lap = time.perf_counter()
        done = self._collect(rounds)
        if self._num_unknown:
            self._evaluate(min(self._num_unknown, self._batch))
        self._lap("search")
        return done

    def _lap(self, stage: str) -> None:
        # Books the time since the last lap on a stage.
        now = time.perf_counter()
        self.seconds[stage] += now - self._last_lap
        self._last_lap = now

    def _collect(self, rounds: float) -> Array:
        # Moves rows until there is a batch of positions for the network, or no row that moves, or so many rounds are
        # over; returns the trees that are done.
        self._plant()
        active, self._active = self._active, _NO_ROWS
        waiting: list[Array] = []
        resting: list[Array] = []
        while len(active) and self._num_unknown < self._batch and rounds > 0:
            rounds -= 1
            num_new, num_waiting = traversal.select(
                self._trees, active, self._rule, self._schedules, self._parents, self._actions
            )
            if num_waiting:
                waiting.append(active[num_new : num_new + num_waiting])
            if num_new + num_waiting < len(active):
                resting.append(active[num_new + num_waiting :])
            active = self._follow(active[:num_new]) if num_new else _NO_ROWS
        self._active = _joined([self._active, active, *waiting])
        return self._retire(_joined(resting))

    def _plant(self) -> None:
        # Gives trees that wait for a root one, as far as the cache knows their positions.
        rows, self._new_roots = self._new_roots, _NO_ROWS
        if not len(rows):
            return
        states = self._root_states[rows // self._leaves]
        unfinished = np.zeros(len(rows), np.bool_)
        planted = self._admit(rows, states, self.game.to_play(states), unfinished, _NO_RESULTS)
        self._num_new_roots += len(rows) - len(planted)
        self._active = _joined([self._active, self._prepare(planted // self._leaves)])

    def _follow(self, rows: Array) -> Array:
        # Leads rows to new positions; returns those whose readouts are over or go on.
        self._lap("search")
        states = self.game.step(self._parents[: len(rows)], self._actions[: len(rows)])
        ended, results = self.game.outcome(states)
        results = worth(self.game, states, results, self.options.fast_wins)
        to_play = self.game.to_play(states)
        self._lap("rules")
        return self._admit(rows, states, to_play, ended, results)

    def _admit(self, rows: Array, states: Array, to_play: Array, ended: Array, results: Array) -> Array:
        # Puts new positions into their trees, or to the unknown ones; returns the rows of the former.
        trees = self._with_room()
        unknown = (column[self._num_unknown :] for column in self._unknown)
        count, known = expansion.admit(trees, self._cache, rows, states, to_play, ended, results, self._rule, *unknown)
        self._num_unknown += int(count)
        self.cache_hits += known
        return rows[: len(rows) - count]

    def _retire(self, rows: Array) -> Array:
        # Notes that rows are at rest; returns the trees of which all are.
        if not len(rows):
            return rows
        if self._leaves == 1:
            done = rows
            self._rows_out[done] = 0
        else:
            trees = rows // self._leaves
            np.subtract.at(self._rows_out, trees, 1)
            done = np.unique(trees)
            done = done[self._rows_out[done] == 0]
        self.readouts -= int(self._trees.progress["remaining"][done].sum())  # proven roots stop early
        return done

    def _with_room(self) -> Trees:
        # The trees, with room for as many new nodes as one call of a kernel may add to one of them. How full the
        # fullest tree is, is counted only when it might be full.
        most_nodes, most_edges = self._leaves, self._leaves * self.game.num_actions
        self._nodes_left -= most_nodes
        self._edges_left -= most_edges
        if self._nodes_left < 0 or self._edges_left < 0:
            progress = self._trees.progress
            nodes = int(progress["num_nodes"].max()) + most_nodes
            edges = int(progress["num_edges"].max()) + most_edges
            have_nodes, have_edges = slots(self._trees)
            if nodes > have_nodes or edges > have_edges:
                nodes = have_nodes if nodes <= have_nodes else max(nodes, have_nodes + have_nodes // 2)
                edges = have_edges if edges <= have_edges else max(edges, have_edges + have_edges // 2)
                self._trees = resized(self._trees, nodes, edges)
                have_nodes, have_edges = slots(self._trees)
            self._nodes_left = have_nodes - int(progress["num_nodes"].max()) - most_nodes
            self._edges_left = have_edges - int(progress["num_edges"].max()) - most_edges
        return self._trees

    def _evaluate(self, count: int) -> None:
        # Asks the network about the first of the unknown positions, and puts what it says into the trees and the cache.
        rows, states, to_play = (column[:count] for column in self._unknown)
        self._lap("search")
        observations = self.game.observe(states)
        legal = self.game.legal(states)
        self._lap("rules")
        logits, values = self._inference.infer(observations)
        self._lap("network")
        self.evaluations += count
        self.batches += 1
        without_root = _NO_ROWS
        if self._num_new_roots:
            without_root = rows[self._trees.progress["num_nodes"][rows // self._leaves] == 0]
        sound = expansion.expand(
            self._with_room(), self._cache, rows, states, to_play, legal, logits, values, self._rule
        )
        if sound < count:
            self._refuse(states[sound], legal[sound], logits[sound], values[sound])
        if len(without_root):
            self._num_new_roots -= len(without_root)
            planted = self._prepare(without_root // self._leaves)
            rows = np.concatenate([np.setdiff1d(rows, without_root, assume_unique=True), planted])
        self._active = _joined([self._active, rows])
        self._num_unknown -= count
        for column in self._unknown:
            column[: self._num_unknown] = column[count : count + self._num_unknown]

    def _refuse(self, state: Array, legal: Array, logits: Array, value: Array) -> None:
        if not legal.any():
            raise GameError(
                f"{self.game.name} has not ended here but offers no legal action; run bin/check_game.py on it:\n"
                f"{self.game.render(state)}"
            )
        raise ModelError(
            f"{self._inference.name} gave logits {logits[legal].tolist()} and value {value}, but finite numbers are "
            "expected: its training has diverged; promote an older snapshot and lower the learning rate"
        )

    def halt(self, trees: Array | None = None) -> None:
        """Start no more readouts in some trees int64 [K], or in all; those under way are finished by `advance`."""
        trees = np.arange(len(self._rows_out)) if trees is None else trees
        at_work = trees[self._rows_out[trees] > 0]
        self.readouts -= int(self._trees.progress["remaining"][at_work].sum())
        self._trees.progress["remaining"][at_work] = 0

    def run(self) -> None:
        """Advance until every tree has spent its readouts.

        Raises:
            ModelError: the model gave a NaN or an infinity.
            GameError: the game offers no legal action in an unfinished position.
        """
        while self._rows_out.any():
            self.advance()

    def result(self, trees: Array) -> Result:
        """Return what was found at the roots of some trees int64 [K]."""
        shape = (len(trees), self.game.num_actions)
        visits, totals, priors = np.empty(shape, np.int32), np.empty(shape), np.empty(shape, np.float32)
        proven, values = np.empty(len(trees), np.bool_), np.empty(len(trees))
        policies, best = np.empty(shape, np.float32), np.empty(len(trees), np.int32)
        roots.root_edges(self._trees, trees, visits, totals, priors, proven)
        roots.root_policies(self._trees, trees, self._rule, policies, values, best)
        return Result(
            visits=visits,
            policies=policies,
            best=best,
            values=values.astype(np.float32),
            proven=proven,
            action_values=(totals / np.maximum(visits, 1)).astype(np.float32),
            priors=priors,
        )

    def move(self, trees: Array, actions: Array) -> None:
        """Make the successors of the roots of some trees int64 [K] by `actions` [K] their roots."""
        if self.options.root == "gumbel":  # whose schedule begins with a root without visits
            self.reset(trees)
        else:
            roots.move_roots(self._trees, trees, actions)

    def reset(self, trees: Array) -> None:
        """Take the roots of some trees int64 [K] away."""
        self._trees.progress["num_nodes"][trees] = 0
        self._trees.progress["num_edges"][trees] = 0

    def compact(self) -> None:
        """Give memory that no tree uses any more back to the system."""
        progress = self._trees.progress
        nodes = max(int(progress["num_nodes"].max()), 1) + self._leaves
        edges = max(int(progress["num_edges"].max()), 1) + self._leaves * self.game.num_actions
        self._trees = resized(self._trees, nodes, edges)
        self._nodes_left = self._edges_left = 0

    def abandon(self) -> None:
        """Take all roots away, and forget the readouts under way."""
        self.reset(np.arange(len(self._rows_out)))
        self._trees.rows["node"] = AT_REST
        self._trees.progress["remaining"] = 0
        self._rows_out[:] = 0
        self._active = self._new_roots = _NO_ROWS
        self._num_unknown = self._num_new_roots = 0

    def choose(self, result: Result, hot: Array, keys: Array) -> Array:
        """Choose an action for each of K roots whose `result` this is, int32 [K].

        Args:
            result: of the search.
            hot: bool [K]: drawn from the policy (temperature 1), or else best; of a Gumbel root, always best.
            keys: uint64 [K]: streams of which one number is used.
        """
        if self.options.root == "gumbel":
            return result.best
        return np.where(hot, draw_actions(result.policies, keys), result.best).astype(np.int32)


def draw_actions(weights: Array, keys: Array) -> Array:
    """Draw one action for each row, in proportion to weights [K, A]; uint64 [K] keys; int32 [K]."""
    cumulated = np.cumsum(weights, axis=1, dtype=np.float64)
    # A number in (0, total) falls into the interval of exactly one action with a weight.
    return (cumulated <= (uniform_of(keys) * cumulated[:, -1])[:, None]).sum(axis=1).astype(np.int32)


def _joined(parts: list[Array]) -> Array:
    # One array int64 of its own.
    parts = [part for part in parts if len(part)]
    return np.concatenate(parts) if parts else _NO_ROWS


def _schedules(options: SearchOptions, num_actions: int) -> Array:
    # int32 [<= A + 1, readouts]: a row for each number of actions that a root may have, as far as it considers them.
    if options.root != "gumbel":
        return np.zeros((1, 1), np.int32)
    most = min(options.gumbel_actions, num_actions)
    return np.stack([considered_visits(count, options.readouts) for count in range(most + 1)])
