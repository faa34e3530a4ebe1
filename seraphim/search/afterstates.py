"""A search without a tree: values every position that the turn can end in, and plays towards the best of them.

These positions are called afterstates (Sutton and Barto, "Reinforcement learning", 2nd edition, 2018, section 6.8).
TD-Gammon chose its plays this way (Tesauro, "Temporal difference learning and TD-Gammon", 1995).
"""

from typing import NamedTuple

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import CHANCE, Array, Game
from seraphim.game.features import features_of, is_for_one
from seraphim.options import SearchOptions
from seraphim.search.evaluator import Counters, Inference, inputs_of
from seraphim.search.expansion import check_offers, exact_values, rejection
from seraphim.search.rng import fork
from seraphim.search.roots import Result
from seraphim.search.search import Search
from seraphim.search.traversal import TreePolicy

MOST_MOVES = 4
"""Moves of one turn that are looked ahead: after them a position is valued even if the same player is to move."""

_BATCH = 1024  # positions that the network gets at a time


def make_search(
    game: Game, inference: Inference, options: SearchOptions, num_trees: int, tree_policy: TreePolicy | None = None
) -> "Search | AfterstateSearch":
    """Return the search of some positions at a time that `options.root` asks for.

    Raises:
        SettingsError: as each of them does, or a tree policy is given where there is no tree.
    """
    if options.root == "afterstates":
        if tree_policy is not None:
            raise SettingsError(
                "a tree policy replaces PUCT, but afterstates are searched without a tree: set root to puct"
            )
        return AfterstateSearch(game, inference, options, num_trees)
    return Search(game, inference, options, num_trees, tree_policy=tree_policy)


class _Ends(NamedTuple):
    # Where the turns of some positions can end, E positions in all, each once for each row.
    rows: Array  # int64 [E], the positions
    firsts: Array  # int64 [E], the actions with which the turns begin
    states: Array  # int64 [E, W]


class _Leaves(NamedTuple):
    # What the values of some positions are means of.
    rows: Array  # int64 [L], the positions
    weights: Array  # float64 [L], the probabilities
    states: Array  # int64 [L, W]
    exact: Array  # bool [L]
    values: Array  # float32 [L] for player 0, of those that are exact


class AfterstateSearch:
    """Chooses the moves of many positions at once; used as a `Search` is, but one `advance` finishes all of them."""

    def __init__(self, game: Game, inference: Inference, options: SearchOptions, num_trees: int) -> None:
        """Make room for `num_trees` positions at a time.

        Raises:
            SettingsError: the game is for more than two players, or does not offer what the options need.
        """
        check_offers(game, options)
        self.options, self.counters = options, Counters()
        self._game, self._inference, self._features = game, inference, features_of(game)
        self._states = np.zeros((num_trees, game.state_words), np.int64)
        self._waiting: list[Array] = []
        self._best = np.zeros(num_trees, np.int64)
        self._values = np.zeros(num_trees, np.float32)
        # Those of the last step, by ascending key: the rest of a turn is about some of the same positions.
        self._known = np.empty(0, np.uint64), np.empty((0, game.state_words), np.int64), np.empty(0, np.float32)

    def begin(self, trees: Array, states: Array, *_: object) -> None:
        """Take unfinished positions [K, W] into the places `trees` [K]; without noise or readouts."""
        self._states[trees] = states
        self._waiting.append(trees)

    def advance(self) -> Array:
        """Choose the moves of all positions that were begun; return their places int64 [K].

        Raises:
            ModelError: the model gave a NaN or an infinity.
        """
        self.counters.add_time(None)
        trees, self._waiting = np.concatenate([np.empty(0, np.int64), *self._waiting]), []
        states = self._states[trees]
        ends = self._turns(states)
        signs = np.where(self._game.to_play(states) == 1, -1, 1).astype(np.float32)[ends.rows]
        self.counters.add_time("rules")
        values = signs * self._values_of(ends.states)
        order = np.lexsort((-values, ends.rows))  # stable: the first of equals stays the first
        best = order[np.flatnonzero(np.diff(ends.rows[order], prepend=-1))]
        self._best[trees], self._values[trees] = ends.firsts[best], values[best]
        self.counters.readouts += len(values)
        self.counters.add_time("search")
        return trees

    @property
    def num_readouts(self) -> int:
        """Return how many positions were valued."""
        return self.counters.readouts

    def run(self) -> None:
        """Choose all moves; errors as `advance`."""
        self.advance()

    def result(self, trees: Array) -> Result:
        """Return the choice at some places int64 [K]: all visits and the whole policy go to it."""
        best, values = self._best[trees], self._values[trees]
        chosen = np.zeros((len(trees), self._game.num_actions), np.float32)
        chosen[np.arange(len(trees)), best] = 1
        return Result(
            visits=chosen.astype(np.int32),
            policies=chosen,
            best=best.astype(np.int32),
            values=values,
            proven=np.zeros(len(trees), np.bool_),
            action_values=chosen * values[:, None],
            priors=np.zeros_like(chosen),
            by_player=np.empty((len(trees), 0), np.float32),
        )

    def move(self, trees: Array, actions: Array) -> None:
        """Do nothing, as no tree is kept."""

    def reset(self, trees: Array) -> None:
        """Do nothing, as no tree is kept."""

    def abandon(self) -> None:
        """Forget the positions that were begun."""
        self._waiting = []

    def _turns(self, states: Array) -> _Ends:
        # A turn ends where the other player or chance moves, or with the game; that of a player alone, with a move.
        game, movers = self._game, self._game.to_play(states)
        rows, firsts = np.nonzero(game.legal(states))
        states, ends = game.step(states[rows], firsts), list[_Ends]()
        for moves in range(1, MOST_MOVES + 1):
            kept = distinct(np.column_stack([rows, states]))[0]
            rows, firsts, states = rows[kept], firsts[kept], states[kept]
            over = game.outcome(states)[0] | (game.to_play(states) != movers[rows])
            over |= moves == MOST_MOVES or is_for_one(game)
            ends.append(_Ends(rows[over], firsts[over], states[over]))
            rows, firsts, states = rows[~over], firsts[~over], states[~over]
            parents, actions = np.nonzero(game.legal(states))
            rows, firsts, states = rows[parents], firsts[parents], game.step(states[parents], actions)
        return _Ends(*(np.concatenate(column) for column in zip(*ends, strict=True)))

    def _values_of(self, states: Array) -> Array:
        # Of positions [N, W] for player 0, float32 [N].
        keys = state_keys(np.uint64(0), states)
        known_keys, known_states, known_values = self._known
        found = np.minimum(np.searchsorted(known_keys, keys), max(0, len(known_keys) - 1))
        is_known = (known_states[found] == states).all(axis=1) if len(known_keys) else np.zeros(len(states), np.bool_)
        values = np.empty(len(states), np.float32)
        values[is_known] = known_values[found[is_known]]
        if not is_known.all():
            values[~is_known] = self._expected(states[~is_known])
        self.counters.cache_hits += int(is_known.sum())
        order = np.argsort(keys)
        self._known = keys[order], states[order], values[order]
        return values

    def _expected(self, states: Array) -> Array:
        # Of positions for player 0: exact, by the network, or where chance moves the mean of what follows.
        leaves, rows, weights = list[_Leaves](), np.arange(len(states)), np.ones(len(states))
        while len(rows):
            exact, results = exact_values(self._game, states, self.options)
            chance = ~exact & (self._game.to_play(states) == CHANCE)
            leaves.append(_Leaves(*(each[~chance] for each in (rows, weights, states, exact, results[:, 0]))))
            rows, weights, states = rows[chance], weights[chance], states[chance]
            if self._features.chances is not None and len(rows):
                odds = self._features.chances(states)
                parents, outcomes = np.nonzero(odds)
                rows, weights = rows[parents], weights[parents] * odds[parents, outcomes]
                states = self._game.step(states[parents], outcomes)
        found = _Leaves(*(np.concatenate(column) for column in zip(*leaves, strict=True)))
        found.values[~found.exact] = self._evaluated(found.states[~found.exact])
        return np.bincount(found.rows, found.weights * found.values).astype(np.float32)

    def _evaluated(self, states: Array) -> Array:
        # What the network expects for player 0, float32 [N], with what is banked.
        values = np.empty(len(states), np.float32)
        for start in range(0, len(states), _BATCH):
            batch = slice(start, start + _BATCH)
            inputs = inputs_of(self._game, self._inference, states[batch])
            self.counters.add_time("rules")
            logits, values[batch] = self._inference.infer(inputs)
            self.counters.add_time("network")
            wrong = np.flatnonzero(~np.isfinite(values[batch]))
            if len(wrong):
                legal = self._game.legal(states[batch][wrong[:1]])[0]
                raise rejection(
                    self._game,
                    self._inference.name,
                    states[batch][wrong[0]],
                    legal,
                    logits[wrong[0]],
                    values[batch][wrong[:1]],
                )
        self.counters.evaluations += len(states)
        self.counters.batch_capacity += len(states)
        values = np.where(self._game.to_play(states) == 1, -values, values) * np.float32(
            self._features.value_scale or 1
        )
        return values if self._features.banked is None else values + self._features.banked(states)[:, 0]


def state_keys(stream: np.uint64, states: Array) -> Array:
    """Return the key of a random stream for each state int64 [B, W], uint64 [B]; with a stream of 0, a hash of it."""
    keys = np.full(len(states), stream)
    for word in range(states.shape[1]):
        keys = fork(keys, states[:, word].astype(np.uint64))
    return keys


def distinct(states: Array) -> tuple[Array, Array]:
    """Return the first place of each distinct state of int64 [N, W], and the place of each state among them.

    The order is that of the first places. Sorting hashes is far faster than sorting rows.
    """
    _, firsts, places = np.unique(state_keys(np.uint64(0), states), return_index=True, return_inverse=True)
    if not np.array_equal(states[firsts][places], states):  # two states have the same hash
        return np.arange(len(states)), np.arange(len(states))
    order = np.argsort(firsts)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return firsts[order], ranks[places]
