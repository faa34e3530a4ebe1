"""Self-play: many games at once, each move searched, each finished game returned as a `GameRecord`.

Knows games and the search, but neither files nor processes. A game is a function of the stream's name, its number and
the model; it does not depend on which other games are under way, so that any process may play any game.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, SettingsError
from seraphim.game import CHANCE, Array, Game
from seraphim.game.features import features_of, num_columns
from seraphim.options import SearchOptions, SelfPlayOptions
from seraphim.records.examples import MOST_LUCK, GameRecord
from seraphim.search.afterstates import AfterstateSearch, make_search
from seraphim.search.evaluator import Inference
from seraphim.search.expansion import check_offers, terminal_value
from seraphim.search.rng import draw_actions, fork, stream_key, uniform_of
from seraphim.search.search import slots_of
from seraphim.search.traversal import TreePolicy
from seraphim.search.tree import check_room

# Trees that have used their readouts wait until this share of all has, so that moves are made in batches as well.
_MOVED_TOGETHER = 0.2
_BEGUN_TOGETHER = 0.05  # the same of slots that wait for a game, as long openings take many steps
FORCED_READOUTS = 8
"""The most where a game of chance leaves no choice, as before a roll: enough for the value that is recorded."""

PURPOSES = range(4)
"""What a ply draws random numbers for: the noise at the root, the choice of the move, the opening, and its length."""

_NOISE, _CHOICE, _OPENING, _OPENING_LENGTH = PURPOSES


def game_id(stream: str, number: int) -> str:
    """Return the id of a game: its stream and its number there."""
    return f"{stream}-{number}"


def number_in(identity: str) -> int:
    """Return the number in a game's id, the inverse of `game_id`."""
    return int(identity.rpartition("-")[2])


def check_options(game: Game, search: SearchOptions, options: SelfPlayOptions) -> None:
    """Raise a SettingsError if a game cannot be played with these options, or these options not with each other."""
    check_offers(game, search)
    if options.random_plies >= game.max_plies:
        raise SettingsError(
            f"random_plies must be below the {game.max_plies} plies of {game.name}, not {options.random_plies}"
        )
    check_room(options.concurrent_games, *slots_of(game, search))


def ply_streams(stream: str, numbers: Array, plies: Array, purpose: int) -> Array:
    """Return the keys of the random streams of some games int64 [K] at `plies` int64 [K], uint64 [K].

    Each game, ply and one of PURPOSES has a stream of its own.
    """
    games = fork(np.full(len(numbers), stream_key(stream)), numbers.astype(np.uint64))
    return fork(games, (len(PURPOSES) * plies + purpose).astype(np.uint64))


class _Slots(NamedTuple):
    # The G games under way, with every search of them so far: one for each of the M moves after the random openings.
    numbers: Array  # int64 [G], the games' numbers, on which their random streams depend
    plies: Array  # int64 [G], played so far, those of openings and of chance included
    states: Array  # int64 [G, W], the positions to move in
    searched: Array  # int64 [G], moves that were searched, and are recorded
    past_plies: Array  # int64 [G, M]
    past_states: Array  # int64 [G, M, W]
    past_actions: Array  # int32 [G, M]
    past_policies: Array  # float32 [G, M, A]
    past_values: Array  # float32 [G, M], or of more than two players [G, M, P]
    past_luck: Array  # float32 [G, M]


class SelfPlay:
    """Plays games against itself with one model."""

    def __init__(
        self,
        game: Game,
        inference: Inference,
        search: SearchOptions,
        options: SelfPlayOptions,
        stream: str,
        tree_policy: TreePolicy | None = None,
    ) -> None:
        """Prepare to play.

        Args:
            game: the rules.
            inference: the model.
            search: options of the search of each move, and of the choice of the move.
            options: how many games at a time, and how they open.
            stream: seed string of the games' random streams, which also depend on each game's number.
            tree_policy: of the search, in place of PUCT.

        Raises:
            SettingsError: the options contradict each other.
        """
        check_options(game, search, options)
        self._game, self._features = game, features_of(game)
        self._tempering_point = search.tempering_point
        self._fast_wins = search.fast_wins
        self._options = options
        self._stream = stream
        self.search = make_search(game, inference, search, options.concurrent_games, tree_policy)

    def play(self, numbers: Iterator[int]) -> Iterator[GameRecord]:
        """Play the games with these numbers, and yield each when it is finished.

        Raises:
            ModelError: the model returned a NaN or an infinity.
            GameError: the game violates its contract.
        """
        taken = [number for _, number in zip(range(self._options.concurrent_games), numbers, strict=False)]
        slots = self._allocate(np.array(taken, np.int64))
        self.search.abandon()
        self._search(slots, np.arange(len(taken)))
        busy, done, free = len(taken), [np.empty(0, np.int64)], np.empty(0, np.int64)
        while busy:
            done.append(self.search.advance())
            num_done = sum(len(trees) for trees in done)
            if num_done < min(busy, max(1, _MOVED_TOGETHER * self._options.concurrent_games)):
                continue
            trees, done = np.concatenate(done), [np.empty(0, np.int64)]
            slots = self._move(slots, trees)
            ended, outcomes = self._game.outcome(slots.states[trees])
            results = outcomes.reshape(len(trees), -1)[:, : num_columns(self._game)]
            results = terminal_value(self._game, slots.states[trees], results, self._fast_wins)
            cut_off = ~ended & (slots.plies[trees] >= self._game.max_plies)
            ongoing = trees[~(ended | cut_off)]
            for tree, result in zip(trees[ended], results[ended], strict=True):
                yield self._record(slots, tree, result if len(result) > 1 else float(result[0]))
            for tree in trees[cut_off]:
                yield self._record(slots, tree, self._estimate(slots, tree))
            free, fresh = np.concatenate([free, trees[ended | cut_off]]), free[:0]
            busy += len(ongoing) - len(trees)
            if len(free) >= min(busy, _BEGUN_TOGETHER * self._options.concurrent_games):
                fresh, free = self._refill(slots, free, numbers), free[:0]
            busy += len(fresh)
            self._search(slots, np.concatenate([ongoing, fresh]))

    def _allocate(self, numbers: Array) -> _Slots:
        games, moves = len(numbers), min(self._game.max_plies, 64)
        states, plies = self._open(numbers)
        columns = num_columns(self._game)
        return _Slots(
            numbers=numbers,
            plies=plies,
            states=states,
            searched=np.zeros(games, np.int64),
            past_plies=np.empty((games, moves), np.int64),
            past_states=np.empty((games, moves, self._game.state_words), np.int64),
            past_actions=np.empty((games, moves), np.int32),
            past_policies=np.empty((games, moves, self._game.num_actions), np.float32),
            past_values=np.empty((games, moves, *(() if columns == 1 else (columns,))), np.float32),
            past_luck=np.zeros((games, moves), np.float32),
        )

    def _search(self, slots: _Slots, trees: Array) -> None:
        states = slots.states[trees]
        keys = self._streams(slots.numbers[trees], slots.plies[trees], _NOISE)
        forced = np.zeros(len(trees), np.bool_)
        if self._features.chances is not None:
            forced = self._game.legal(states).sum(axis=1) == 1
        for chosen, most in ((~forced, self.search.options.readouts), (forced, FORCED_READOUTS)):
            if chosen.any():
                readouts = min(self.search.options.readouts, most)
                self.search.begin(trees[chosen], states[chosen], keys[chosen], readouts)

    def _streams(self, numbers: Array, plies: Array, purpose: int) -> Array:
        return ply_streams(self._stream, numbers, plies, purpose)

    def _open(self, numbers: Array) -> tuple[Array, Array]:
        # Returns the positions that games begin with, and their plies: a random number of moves, short of the end.
        states, plies = self._after_chance(numbers, self._game.initial(len(numbers)), np.zeros(len(numbers), np.int64))
        if self._features.chances is not None:
            if self._game.outcome(states)[0].any():
                raise GameError(
                    f"{self._game.name} can end before a player has moved: self-play cannot record such games"
                )
            if (plies >= self._game.max_plies).any():
                raise GameError(
                    f"{self._game.name} can be cut off before a player has moved: raise its max_plies of "
                    f"{self._game.max_plies:,}, in which moves of chance count"
                )
        longest, share = self._options.random_plies, self._options.random_share
        drawn = uniform_of(self._streams(numbers, np.zeros_like(plies), _OPENING_LENGTH)) / share
        lengths = np.where(drawn < 1, (drawn * (longest + 1)).astype(np.int64), 0)
        for move in range(longest):
            moving = np.flatnonzero(move < lengths)
            streams = self._streams(numbers[moving], plies[moving], _OPENING)
            actions = draw_actions(self._game.legal(states[moving]), streams)
            successors = self._game.step(states[moving], actions)
            successors, after = self._after_chance(numbers[moving], successors, plies[moving] + 1)
            over = self._game.outcome(successors)[0] | (after >= self._game.max_plies)
            states[moving[~over]], plies[moving[~over]] = successors[~over], after[~over]
            lengths[moving[over]] = 0
        return states, plies

    def _after_chance(
        self, numbers: Array, states: Array, plies: Array, trees: Array | None = None
    ) -> tuple[Array, Array]:
        # The states and plies of games in which a player is to move again, or that are over; `trees` follow them.
        chances = self._features.chances
        if chances is None:
            return states, plies
        states, plies = states.copy(), plies.copy()
        while True:
            drawn = (self._game.to_play(states) == CHANCE) & ~self._game.outcome(states)[0]
            rows = np.flatnonzero(drawn & (plies < self._game.max_plies))
            if not len(rows):
                return states, plies
            streams = ply_streams(f"{self._stream} chance", numbers[rows], plies[rows], 0)
            outcomes = draw_actions(chances(states[rows]), streams)
            states[rows] = self._game.step(states[rows], outcomes)
            plies[rows] += 1
            if trees is not None:
                self.search.move(trees[rows], outcomes)

    def _move(self, slots: _Slots, trees: Array) -> _Slots:
        # Plays a move in each of the games whose search is done.
        result = self.search.result(trees)
        plies = slots.plies[trees]
        sampled = plies < self._tempering_point
        actions = result.best
        if self.search.options.root == "puct":  # a Gumbel root always plays the best
            drawn = draw_actions(result.policies, self._streams(slots.numbers[trees], plies, _CHOICE))
            actions = np.where(sampled, drawn, actions)
        recorded = slots.searched[trees]
        if recorded.max() >= slots.past_actions.shape[1]:
            slots = slots._replace(
                **{name: _twice_as_long(getattr(slots, name)) for name in slots._fields if name.startswith("past_")}
            )
        slots.past_plies[trees, recorded] = plies
        slots.past_states[trees, recorded] = slots.states[trees]
        slots.past_actions[trees, recorded] = actions
        slots.past_policies[trees, recorded] = result.policies
        # What is banked and what the network expects may add up to more than there is.
        is_sum = self._features.banked is not None
        values = result.by_player if result.by_player.shape[1] else result.values
        slots.past_values[trees, recorded] = np.clip(values, -1, 1) if is_sum else values
        slots.searched[trees] += 1
        self.search.move(trees, actions)
        first_moves = self._game.to_play(slots.states[trees]) == 0
        successors = self._game.step(slots.states[trees], actions)
        slots.states[trees], slots.plies[trees] = self._after_chance(slots.numbers[trees], successors, plies + 1, trees)
        if isinstance(self.search, AfterstateSearch):
            luck = np.clip(self.search.luck(successors, slots.states[trees]), -MOST_LUCK, MOST_LUCK)
            slots.past_luck[trees, recorded] = np.where(first_moves, luck, -luck)
        return slots

    def _estimate(self, slots: _Slots, tree: int) -> float | None:
        # The result of a game that is cut off: unknown, but a player alone gets what the last search expected.
        return float(slots.past_values[tree, slots.searched[tree] - 1]) if self._features.num_players == 1 else None

    def _record(self, slots: _Slots, tree: int, result: Array | float | None) -> GameRecord:
        moves = slots.searched[tree]
        return GameRecord(
            game_id=game_id(self._stream, slots.numbers[tree]),
            plies=slots.past_plies[tree, :moves].copy(),
            states=slots.past_states[tree, :moves].copy(),
            actions=slots.past_actions[tree, :moves].copy(),
            policies=slots.past_policies[tree, :moves].copy(),
            root_values=slots.past_values[tree, :moves].copy(),
            result=result,
            luck=slots.past_luck[tree, :moves].copy(),
        )

    def _refill(self, slots: _Slots, trees: Array, numbers: Iterator[int]) -> Array:
        # Starts a new game in each of these slots while there are numbers; returns the slots that got one.
        taken = [number for _, number in zip(trees, numbers, strict=False)]
        fresh = trees[: len(taken)]
        slots.numbers[fresh] = taken
        slots.states[fresh], slots.plies[fresh] = self._open(slots.numbers[fresh])
        slots.searched[fresh] = 0
        self.search.reset(fresh)
        return fresh


def _twice_as_long(past: Array) -> Array:
    return np.concatenate([past, np.empty_like(past)], axis=1)
