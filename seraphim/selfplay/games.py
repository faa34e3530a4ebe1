"""Self-play: many games at once, each move searched, each finished game returned as a `GameRecord`.

Knows games and the search, but neither files nor processes. A game is a function of the stream's name, its number and
the model; it does not depend on which other games are under way, so that any process may play any game.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Array, Game
from seraphim.game.features import check_two_players
from seraphim.options import SearchOptions, SelfPlayOptions
from seraphim.records.examples import GameRecord
from seraphim.search.evaluator import Inference
from seraphim.search.expansion import check_offers, terminal_value
from seraphim.search.rng import draw_actions, fork, stream_key, uniform_of
from seraphim.search.search import Search, slots_of
from seraphim.search.traversal import TreePolicy
from seraphim.search.tree import check_room

# Trees that have used their readouts wait until this share of all has, so that moves are made in batches as well.
_MOVED_TOGETHER = 0.2
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
    check_two_players(game)
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
    # The G games under way, with the search of every ply so far.
    numbers: Array  # int64 [G], the games' numbers, on which their random streams depend
    first_plies: Array  # int64 [G], plies of the random openings; from here on games are recorded
    plies: Array  # int64 [G], played so far
    states: Array  # int64 [G, W], the positions to move in
    past_states: Array  # int64 [G, plies, W]
    past_actions: Array  # int32 [G, plies]
    past_policies: Array  # float32 [G, plies, A]
    past_values: Array  # float32 [G, plies]


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
        self._game = game
        self._tempering_point = search.tempering_point
        self._fast_wins = search.fast_wins
        self._options = options
        self._stream = stream
        self.search = Search(game, inference, search, options.concurrent_games, tree_policy=tree_policy)

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
        busy, done = len(taken), [np.empty(0, np.int64)]
        while busy:
            done.append(self.search.advance())
            num_done = sum(len(trees) for trees in done)
            if num_done < min(busy, max(1, _MOVED_TOGETHER * self._options.concurrent_games)):
                continue
            trees, done = np.concatenate(done), [np.empty(0, np.int64)]
            slots = self._move(slots, trees)
            ended, results = self._game.outcome(slots.states[trees])
            results = terminal_value(self._game, slots.states[trees], results, self._fast_wins)
            cut_off = ~ended & (slots.plies[trees] >= self._game.max_plies)
            ongoing = trees[~(ended | cut_off)]
            for tree, result in zip(trees[ended], results[ended], strict=True):
                yield self._record(slots, tree, float(result))
            for tree in trees[cut_off]:
                yield self._record(slots, tree, None)
            fresh = self._refill(slots, trees[ended | cut_off], numbers)
            busy += len(ongoing) + len(fresh) - len(trees)
            self._search(slots, np.concatenate([ongoing, fresh]))

    def _allocate(self, numbers: Array) -> _Slots:
        games, plies = len(numbers), min(self._game.max_plies, 64)
        states, first_plies = self._open(numbers)
        return _Slots(
            numbers=numbers,
            first_plies=first_plies,
            plies=first_plies.copy(),
            states=states,
            past_states=np.empty((games, plies, self._game.state_words), np.int64),
            past_actions=np.empty((games, plies), np.int32),
            past_policies=np.empty((games, plies, self._game.num_actions), np.float32),
            past_values=np.empty((games, plies), np.float32),
        )

    def _search(self, slots: _Slots, trees: Array) -> None:
        numbers, plies = slots.numbers[trees], slots.plies[trees]
        self.search.begin(trees, slots.states[trees], self._streams(numbers, plies, _NOISE))

    def _streams(self, numbers: Array, plies: Array, purpose: int) -> Array:
        return ply_streams(self._stream, numbers, plies, purpose)

    def _open(self, numbers: Array) -> tuple[Array, Array]:
        # Returns the positions that games begin with, and their plies: a random number of moves, short of the end.
        states, plies = self._game.initial(len(numbers)), np.zeros(len(numbers), np.int64)
        longest, share = self._options.random_plies, self._options.random_share
        drawn = uniform_of(self._streams(numbers, plies, _OPENING_LENGTH)) / share
        lengths = np.where(drawn < 1, (drawn * (longest + 1)).astype(np.int64), 0)
        for _ in range(longest):
            moving = np.flatnonzero(plies < lengths)
            streams = self._streams(numbers[moving], plies[moving], _OPENING)
            actions = draw_actions(self._game.legal(states[moving]), streams)
            successors = self._game.step(states[moving], actions)
            ended = self._game.outcome(successors)[0]
            states[moving[~ended]] = successors[~ended]
            plies[moving[~ended]] += 1
            lengths[moving[ended]] = 0
        return states, plies

    def _move(self, slots: _Slots, trees: Array) -> _Slots:
        # Plays a move in each of the games whose search is done.
        result = self.search.result(trees)
        plies = slots.plies[trees]
        sampled = plies < self._tempering_point
        actions = result.best
        if self.search.options.root == "puct":  # a Gumbel root always plays the best
            drawn = draw_actions(result.policies, self._streams(slots.numbers[trees], plies, _CHOICE))
            actions = np.where(sampled, drawn, actions)
        recorded = plies - slots.first_plies[trees]
        if recorded.max() >= slots.past_actions.shape[1]:
            slots = slots._replace(
                **{name: _twice_as_long(getattr(slots, name)) for name in slots._fields if name.startswith("past_")}
            )
        slots.past_states[trees, recorded] = slots.states[trees]
        slots.past_actions[trees, recorded] = actions
        slots.past_policies[trees, recorded] = result.policies
        slots.past_values[trees, recorded] = result.values
        slots.states[trees] = self._game.step(slots.states[trees], actions)
        slots.plies[trees] += 1
        self.search.move(trees, actions)
        return slots

    def _record(self, slots: _Slots, tree: int, result: float | None) -> GameRecord:
        plies = slots.plies[tree] - slots.first_plies[tree]
        return GameRecord(
            game_id=game_id(self._stream, slots.numbers[tree]),
            first_ply=int(slots.first_plies[tree]),
            states=slots.past_states[tree, :plies].copy(),
            actions=slots.past_actions[tree, :plies].copy(),
            policies=slots.past_policies[tree, :plies].copy(),
            root_values=slots.past_values[tree, :plies].copy(),
            result=result,
        )

    def _refill(self, slots: _Slots, trees: Array, numbers: Iterator[int]) -> Array:
        # Starts a new game in each of these slots while there are numbers; returns the slots that got one.
        taken = [number for _, number in zip(trees, numbers, strict=False)]
        fresh = trees[: len(taken)]
        slots.numbers[fresh] = taken
        slots.states[fresh], slots.first_plies[fresh] = self._open(slots.numbers[fresh])
        slots.plies[fresh] = slots.first_plies[fresh]
        self.search.reset(fresh)
        return fresh


def _twice_as_long(past: Array) -> Array:
    return np.concatenate([past, np.empty_like(past)], axis=1)
