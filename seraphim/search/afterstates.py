"""A search without a tree: values every position that the turn can end in, and plays towards the best of them.

These positions are called afterstates (Sutton and Barto, "Reinforcement learning", 2nd edition, 2018, section 6.8).
TD-Gammon chose its plays this way (Tesauro, "Temporal difference learning and TD-Gammon", 1995).
"""

from typing import NamedTuple

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import CHANCE, Array, Game
from seraphim.game.features import features_of, is_for_one
from seraphim.jit import kernel
from seraphim.options import SearchOptions
from seraphim.search.evaluator import Counters, Inference, inputs_of
from seraphim.search.expansion import check_offers, exact_values, rejection
from seraphim.search.rng import fork
from seraphim.search.roots import Result
from seraphim.search.search import Search
from seraphim.search.traversal import TreePolicy

MOST_MOVES = 4
"""Moves of one turn that are looked ahead: after them a position is valued even if the same player is to move."""

MOST_COMPARED = 8
"""Of the ends of a turn, the most that are looked into where two turns are searched: the best."""

NO_MOVE = -1
_ANSWERED = 64  # positions that are looked into at a time

_BATCH = 512  # positions that the network gets at a time: more leave the cache of a core


def make_search(
    game: Game, inference: Inference, options: SearchOptions, num_trees: int, tree_policy: TreePolicy | None = None
) -> "Search | AfterstateSearch":
    """Return the search of some positions at a time that `options.root` asks for.

    Raises:
        SettingsError: as each of them does, or a tree policy is given where there is no tree.
    """
    if options.by_turns:
        if tree_policy is not None:
            raise SettingsError(
                "a tree policy replaces PUCT, but afterstates are searched without a tree: set root to puct"
            )
        return AfterstateSearch(game, inference, options, num_trees)
    return Search(game, inference, options, num_trees, tree_policy=tree_policy)


class _Ends(NamedTuple):
    # Where the turns of some positions can end, E positions in all, each once for each row.
    rows: Array  # int64 [E], the positions
    moves: Array  # int64 [E, MOST_MOVES], the actions that lead there; NO_MOVE behind them
    states: Array  # int64 [E, W]


class Turns(NamedTuple):
    """The best turns of a position that begin with each of its `K` legal actions, in their order."""

    moves: list[list[int]]
    values: Array  # float32 [K], for the player to move
    ends: Array  # int64 [K], positions that turns from there can end in
    best: int  # the action that is played


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
        # The rest of the turn that was chosen, where it goes on, where it ends, and what that is worth to player 0.
        self._rest = np.full((num_trees, MOST_MOVES), NO_MOVE)
        self._next, self._ends = np.zeros_like(self._states), np.zeros_like(self._states)
        self._end_values = np.full(num_trees, np.nan, np.float32)

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
        goes_on = (self._rest[trees, 0] != NO_MOVE) & (self._next[trees] == states).all(axis=1)
        if not goes_on.all():
            self._choose(trees[~goes_on], states[~goes_on])
        self._best[trees] = self._rest[trees, 0]
        self._rest[trees] = np.column_stack([self._rest[trees, 1:], np.full(len(trees), NO_MOVE)])
        self._next[trees] = self._game.step(states, self._best[trees])
        self.counters.add_time("rules")
        return trees

    def _choose(self, trees: Array, states: Array) -> None:
        ends = self._turns(states)
        self.counters.add_time("rules")
        signs = self._for_movers(states)[ends.rows]
        values = signs * self._values_of(trees[ends.rows], ends.states)
        if self.options.turns > 1:
            looked_into = compared(ends.rows, values)
            values[looked_into] = signs[looked_into] * self._answered(ends.states[looked_into])
            values[~looked_into & (np.bincount(ends.rows, looked_into) > 0)[ends.rows]] = -np.inf
        best = _best(ends.rows, values)
        self._rest[trees], self._values[trees] = ends.moves[best], values[best]
        self._ends[trees], self._end_values[trees] = ends.states[best], (signs * values)[best]
        self.counters.readouts += len(values)
        self.counters.add_time("search")

    def turns_from(self, state: Array) -> Turns:
        """Value all turns from an unfinished position int64 [W] in which a player moves; errors as `advance`."""
        ends, (sign,) = self._turns(state[None], by_action=True), self._for_movers(state[None])
        firsts, places = distinct(ends.states)
        values = sign * self._expected(ends.states[firsts])
        looked_into = np.zeros(len(firsts), np.bool_)
        if self.options.turns > 1:
            looked_into = compared(np.zeros(len(firsts), np.int64), values)
            values[looked_into] = sign * self._answered(ends.states[firsts][looked_into])
        looked_into, values = looked_into[places], values[places]
        _, actions = np.unique(ends.moves[:, 0], return_inverse=True)
        # What was not looked into looked worse, and counts only where nothing else begins with its action.
        values[~looked_into] = np.minimum(values[~looked_into], values[looked_into].min(initial=np.inf))
        passed_over = ~looked_into & (np.bincount(actions, looked_into) > 0)[actions]
        best = _best(actions, np.where(passed_over, -np.inf, values))
        return Turns(
            moves=[[int(move) for move in turn if move != NO_MOVE] for turn in ends.moves[best]],
            values=values[best],
            ends=np.bincount(actions),
            best=int(ends.moves[np.where(looked_into | ~looked_into.any(), values, -np.inf).argmax(), 0]),
        )

    def _for_movers(self, states: Array) -> Array:
        # What a value for player 0 is to be multiplied by.
        return np.where(self._game.to_play(states) == 1, -1, 1).astype(np.float32)

    def luck(self, before: Array, after: Array) -> Array:
        """Return what chance brought player 0, float32 [N], by the values of the network.

        Args:
            before: positions int64 [N, W].
            after: those after the moves of chance; the same where it does not move.

        That is the value after them minus the mean of all that could have been, so that its expectation is 0 whatever
        the network is worth (Zinkevich et al., "Optimal unbiased estimators for evaluating agent performance", 2006).
        Where two turns are searched, the values are those after the best turn, and leave less of the luck.
        """
        self.counters.add_time(None)
        found = np.zeros(len(before), np.float32)
        moved = np.flatnonzero((before != after).any(axis=1))
        if len(moved):
            value = self._expected if self.options.turns == 1 else self._turned
            found[moved] = value(after[moved]) - value(before[moved])
        self.counters.add_time("search")
        return found

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
        """Forget the positions that were begun, and the turns that were chosen."""
        self._waiting, self._rest[:], self._end_values[:] = [], NO_MOVE, np.nan

    def _turns(self, states: Array, by_action: bool = False) -> _Ends:
        # A turn ends where the other player or chance moves, or with the game; that of a player alone, with a move.
        # By action, an end comes once for each first action that leads to it.
        game, movers = self._game, self._game.to_play(states)
        # Where chance follows the only move, as before a roll, the position itself is valued.
        rows, firsts = np.nonzero(game.legal(states))
        before, states = states[rows], game.step(states[rows], firsts)
        moves = np.column_stack([firsts, np.full((len(rows), MOST_MOVES - 1), NO_MOVE)])
        waits = (np.bincount(rows)[rows] == 1) & (game.to_play(states) == CHANCE)
        ends = [_Ends(rows[waits], moves[waits], before[waits])]
        rows, moves, states = rows[~waits], moves[~waits], states[~waits]
        for number in range(1, MOST_MOVES + 1):
            kept = distinct(np.column_stack([rows, moves[:, 0] if by_action else rows, states]))[0]
            rows, moves, states = rows[kept], moves[kept], states[kept]
            over = game.outcome(states)[0] | (game.to_play(states) != movers[rows])
            over |= number == MOST_MOVES or is_for_one(game)
            ends.append(_Ends(rows[over], moves[over], states[over]))
            if over.all():
                break
            rows, moves, states = rows[~over], moves[~over], states[~over]
            parents, actions = np.nonzero(game.legal(states))
            rows, moves, states = rows[parents], moves[parents], game.step(states[parents], actions)
            moves[:, number] = actions
        return _Ends(*(np.concatenate(column) for column in zip(*ends, strict=True)))

    def _values_of(self, trees: Array, states: Array) -> Array:
        # Of positions [N, W] of some trees [N] for player 0, float32 [N].
        values = self._end_values[trees]
        is_known = ~np.isnan(values) & (self._ends[trees] == states).all(axis=1)
        values[~is_known] = self._expected(states[~is_known])
        self.counters.cache_hits += int(is_known.sum())
        return values

    def _answered(self, states: Array) -> Array:
        # As `_turned`, but where chance follows the only move, as before a roll, after the turn behind it.
        states, legal = states.copy(), self._game.legal(states)
        forced = np.flatnonzero(legal.sum(axis=1) == 1)
        after = self._game.step(states[forced], legal[forced].argmax(axis=1))
        waits = self._game.to_play(after) == CHANCE
        states[forced[waits]] = after[waits]
        return self._turned(states)

    def _turned(self, states: Array) -> Array:
        # Of positions [N, W] for player 0, after the best turn of the player to move, float32 [N].
        values = np.empty(len(states), np.float32)
        for start in range(0, len(states), _ANSWERED):
            found = self._leaves(states[start : start + _ANSWERED])
            movers = found.states[~found.exact]
            ends, signs = self._turns(movers), self._for_movers(movers)
            own = signs[ends.rows] * self._expected(ends.states)
            found.values[~found.exact] = signs * own[_best(ends.rows, own)]
            values[start : start + _ANSWERED] = np.bincount(found.rows, found.weights * found.values)
        return values

    def _expected(self, states: Array) -> Array:
        # Of positions for player 0: exact, by the network, or where chance moves the mean of what follows.
        if not len(states):
            return np.empty(0, np.float32)
        found = self._leaves(states)
        found.values[~found.exact] = self._evaluated(found.states[~found.exact])
        return np.bincount(found.rows, found.weights * found.values).astype(np.float32)

    def _leaves(self, states: Array) -> _Leaves:
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
        return _Leaves(*(np.concatenate(column) for column in zip(*leaves, strict=True)))

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
                state, value = states[batch][wrong[:1]], values[batch][wrong[:1]]
                legal = self._game.legal(state)[0]
                raise rejection(self._game, self._inference.name, state[0], legal, logits[wrong[0]], value)
        self.counters.evaluations += len(states)
        self.counters.batch_capacity += len(states)
        values = np.where(self._game.to_play(states) == 1, -values, values) * np.float32(
            self._features.value_scale or 1
        )
        return values if self._features.banked is None else values + self._features.banked(states)[:, 0]


@kernel
def _best(rows: Array, values: Array) -> Array:
    # The place of the highest value of each row, the first of equals; rows [E] are 0, 1, … in any order, or none.
    best = np.full(rows.max() + 1 if len(rows) else 0, -1)
    for place in range(len(rows)):
        so_far = best[rows[place]]
        if so_far < 0 or values[place] > values[so_far]:
            best[rows[place]] = place
    return best


def compared(rows: Array, values: Array) -> Array:
    """Return which values [E] are among the MOST_COMPARED highest of their row, bool [E], none where that is alone.

    The rows int64 [E] are 0, 1, … in any order, each at least once.
    """
    order = np.lexsort((-values, rows))
    begins = np.flatnonzero(np.diff(rows[order], prepend=-1))
    ranks = np.arange(len(order)) - begins[rows[order]]
    best = np.empty(len(order), np.bool_)
    best[order] = ranks < MOST_COMPARED
    found: Array = best & (np.bincount(rows) > 1)[rows]
    return found


def state_keys(stream: np.uint64, states: Array) -> Array:
    """Return the key of a random stream for each state int64 [B, W], uint64 [B]; with a stream of 0, a hash of it."""
    keys = np.full(len(states), stream)
    for word in range(states.shape[1]):
        keys = fork(keys, states[:, word].astype(np.uint64))
    return keys


def distinct(states: Array) -> tuple[Array, Array]:
    """Return the first place of each distinct state of int64 [N, W], in order, and the place of each among them."""
    firsts, places = np.empty(len(states), np.int64), np.empty(len(states), np.int64)
    number = _find_distinct(states, state_keys(np.uint64(0), states).astype(np.int64), firsts, places)
    return firsts[:number], places


@kernel
def _find_distinct(states: Array, hashes: Array, firsts: Array, places: Array) -> int:
    # Fills in the results of `distinct` by a table with open addressing; returns how many are distinct.
    mask = 1
    while mask < 2 * len(states):
        mask = 2 * mask + 1
    table, number = np.full(mask + 1, -1), 0
    for row in range(len(states)):
        slot = hashes[row] & mask
        while table[slot] >= 0 and not np.array_equal(states[firsts[table[slot]]], states[row]):
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot], firsts[number] = number, row
            number += 1
        places[row] = table[slot]
    return number
