"""Players: functions that choose an action in each of many positions, deterministically and without noise.

Where a player draws, for instance among equally good actions, the draw is a function of its seed and of the position:
the same seed plays the same games. Knows the search; knows nothing of matches, files or people.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from seraphim.errors import PlayerError, SettingsError
from seraphim.game import CHANCE, Array, Game, random_actions
from seraphim.game.features import features_of, has_chance, is_combinatorial, is_for_one, num_columns
from seraphim.game.loading import PerfectActions
from seraphim.game.notation import banked_of, followers
from seraphim.options import SearchOptions
from seraphim.search.afterstates import AfterstateSearch, distinct, make_search, state_keys
from seraphim.search.evaluator import Inference, Uniform, inputs_of
from seraphim.search.expansion import rejection
from seraphim.search.rng import draw_actions, stream_key
from seraphim.search.roots import Result
from seraphim.search.search import Search
from seraphim.search.traversal import TreePolicy

Choose = Callable[[Array], Array]
"""Chooses an action in each of some unfinished positions: int64 [P, W] -> int [P]."""


class HistoryPlayer(ABC):
    """A player that needs the moves of a game, not only its position."""

    @abstractmethod
    def choose(self, lines: Sequence[Sequence[int]]) -> Array:
        """Return an action for each of some games, given as the moves from the initial position, int [P].

        Raises:
            GameError: the player broke the rules.
        """

    def __call__(self, states: Array) -> Array:  # noqa: ARG002  # every player takes them
        """Refuse to play in a position without its game."""
        raise PlayerError("this player needs the moves that led to a position, which are not known here")


@dataclass(frozen=True)
class DrawingPlayer:
    """A player that draws among the actions that it takes for equally good, each with the same probability."""

    choices: Callable[[Array], Array]  # unfinished positions int64 [P, W] -> bool [P, A], at least one in each
    stream: np.uint64  # of its draws

    def __call__(self, states: Array) -> Array:
        """Draw an action in each position."""
        return draw_actions(self.choices(states), state_keys(self.stream, states))


MAX_TREES = 256  # searched at a time
MAX_NODES = 1 << 20  # in all trees of a pure MCTS at a time, about
MAX_POSITIONS = 1 << 18  # that a minimax player expands at a time

_RANDOM_GAMES = 32  # that tell how long playouts are

# A result is worth a little less with every ply until it comes, so that wins are fast and losses slow.
_DISCOUNT = np.float32(1 - 2**-10)

_PURE_CPUCT = 2.0  # of pure MCTS; from 2 to 8 it makes little difference in connect four


@dataclass(frozen=True, eq=False)
class SearchPlayer:
    """Plays the best action of `search_positions`; a move without a choice needs no search."""

    game: Game
    inferences: Sequence[Inference]
    options: SearchOptions
    tree_policy: TreePolicy | None = None

    def __call__(self, states: Array) -> Array:
        """Choose an action in each position."""
        legal = self.game.legal(states)
        actions: Array = legal.argmax(axis=1)
        free = legal.sum(axis=1) != 1
        if free.any():
            found = search_positions(self.game, self.inferences, self.options, states[free], self.tree_policy)
            actions[free] = found.best
        return actions

    def luck(self, before: Array, after: Array) -> Array:
        """Return what chance brought player 0 between some positions; see `AfterstateSearch.luck`."""
        return AfterstateSearch(self.game, self.inferences[0], self.options, 0).luck(before, after)


def search_positions(
    game: Game,
    inferences: Sequence[Inference],
    options: SearchOptions,
    states: Array,
    tree_policy: TreePolicy | None = None,
) -> Result:
    """Search unfinished positions int64 [P, W] in parallel, one thread for each inference; return a row for each."""

    def search(inference: Inference, part: Array) -> Result:
        return _search(make_search(game, inference, options, min(len(part), MAX_TREES), tree_policy), part)

    if len(inferences) == 1:
        return search(inferences[0], states)
    parts = [part for part in np.array_split(states, len(inferences)) if len(part)]
    with ThreadPoolExecutor(len(parts)) as pool:
        return _concatenate(list(pool.map(search, inferences, parts)))


def _search(search: Search | AfterstateSearch, states: Array) -> Result:
    found = []
    for start in range(0, len(states), MAX_TREES):
        chunk = states[start : start + MAX_TREES]
        trees = np.arange(len(chunk))
        search.reset(trees)
        search.begin(trees, chunk)
        search.run()
        found.append(search.result(trees))
    return _concatenate(found)


def _concatenate(results: Sequence[Result]) -> Result:
    return Result(*(np.concatenate(columns) for columns in zip(*results, strict=True)))


def raw_player(game: Game, inference: Inference) -> Choose:
    """Return the player that does not search, and plays the action of the highest prior (the first of equals).

    It raises a ModelError if the model gives a NaN or an infinity.
    """

    def choose(states: Array) -> Array:
        logits, values = inference.infer(inputs_of(game, inference, states))
        legal = game.legal(states)
        wrong = ~(np.isfinite(logits) | ~legal).all(axis=1)
        if wrong.any():
            raise rejection(game, inference.name, *(rows[wrong][0] for rows in (states, legal, logits, values)))
        return np.where(legal, logits, -np.inf).argmax(axis=1)

    return choose


def random_player(game: Game, seed: int = 0) -> DrawingPlayer:
    """Return the player that draws among all legal actions."""
    return DrawingPlayer(game.legal, stream_key(f"random-player-{seed}"))


def minimax_player(game: Game, depth: int, seed: int = 0) -> DrawingPlayer:
    """Return the player that looks `depth` plies ahead, and values unfinished positions at that depth as draws.

    It wins as fast and loses as slowly as it can see, and draws among equal actions. All positions are searched
    together, ply by ply, and each distinct one once, which saves the time and memory that pruning would. Where chance
    moves, which is a ply as well, it takes the expectation (expectimax: Michie, "Game-playing and game-learning
    automata", 1966); where a game banks points, an unfinished position is worth these, and time costs nothing.

    Raises:
        SettingsError: the depth is not positive.
        PlayerError: the game is for more than two players.
    """
    if num_columns(game) > 1:
        raise PlayerError(f"minimax plays games for one or two players, not {game.name}: take mcts:READOUTS")
    if depth < 1:
        raise SettingsError(f"minimax must look at least 1 ply ahead, not {depth}")

    def choices(states: Array) -> Array:
        rows, actions, values = _minimax(game, states, depth)
        action_values = np.full((len(states), game.num_actions), -np.inf, np.float32)
        action_values[rows, actions] = _signs(game.to_play(states))[rows] * values
        best: Array = action_values == action_values.max(axis=1, keepdims=True)
        return best

    return DrawingPlayer(choices, stream_key(f"minimax-player-{seed}"))


def greedy_player(game: Game, seed: int = 0) -> DrawingPlayer:
    """Return the player that makes the move after which most is banked at once, and draws among equal ones.

    Raises:
        PlayerError: the game is not for one player.
    """
    if not is_for_one(game):
        raise PlayerError(f"greedy plays games for one player, not {game.name}: take minimax:1")
    return DrawingPlayer(minimax_player(game, 1).choices, stream_key(f"greedy-player-{seed}"))


def yardsticks(game: Game) -> dict[str, Choose]:
    """Return players to compare a regret with: random, and greedy for one player; none where no regret is measured."""
    players: dict[str, Choose] = {} if is_combinatorial(game) else {"random": random_player(game)}
    return {**players, "greedy": greedy_player(game)} if is_for_one(game) else players


def mcts_player(game: Game, readouts: int) -> Choose:
    """Return the player that searches without a network: every readout plays on to the end of the game.

    Playouts follow the tree's own selection, and their positions become part of the tree, instead of being random: in
    connect four both are equally strong.

    Raises:
        SettingsError: the readouts are not positive.
    """
    options = SearchOptions(readouts=readouts, cpuct=_PURE_CPUCT, leaf="playout", solver=False, cache_megabytes=0)
    player = SearchPlayer(game, [Uniform(game)], options)
    size = max(1, MAX_NODES // (readouts * _playout_plies(game)))
    return lambda states: np.concatenate(
        [player(states[start : start + size]) for start in range(0, len(states), size)]
    )


def _playout_plies(game: Game) -> int:
    # How long a playout is, about. Games of chance may go on far longer than they do as a rule.
    if not has_chance(game):
        return game.max_plies
    states, generator, plies = game.initial(_RANDOM_GAMES), np.random.default_rng(0), 0
    while len(states) and plies < _RANDOM_GAMES * game.max_plies:
        plies += len(states)
        states = game.step(states, random_actions(followers(game, states), generator))
        states = states[~game.outcome(states)[0]]
    return 1 + plies // _RANDOM_GAMES


def solver_player(
    game: Game, perfect_actions: PerfectActions, seed: int = 0, seconds: float | None = None
) -> DrawingPlayer:
    """Return the player that knows the exact results, and draws among the perfect actions.

    After `seconds` for a position, it plays the solver's best guess.
    """
    stream = stream_key(f"solver-player-{seed}")
    return DrawingPlayer(lambda states: perfect_actions(states, seconds) & game.legal(states), stream)


def _minimax(game: Game, states: Array, depth: int) -> tuple[Array, Array, Array]:
    # All that may follow, by the index of the state: actions or outcomes, and their values for player 0, float32.
    rows, actions = np.nonzero(followers(game, states))
    successors, places = game.step(states[rows], actions), np.arange(len(rows))
    if depth > 1:  # different moves lead to the same positions
        firsts, places = distinct(successors)
        successors = successors[firsts]
    ended, results = game.outcome(successors)
    values = np.where(ended, results.reshape(len(ended), -1)[:, 0], banked_of(game, successors)).astype(np.float32)
    discount = _DISCOUNT if features_of(game).banked is None else np.float32(1)
    unfinished = np.flatnonzero(~ended) if depth > 1 else np.empty(0, np.int64)
    for start in range(0, len(unfinished), MAX_POSITIONS):
        chunk = unfinished[start : start + MAX_POSITIONS]
        values[chunk] = discount * _backed_up(game, successors[chunk], *_minimax(game, successors[chunk], depth - 1))
    return rows, actions, values[places]


def _backed_up(game: Game, states: Array, rows: Array, actions: Array, values: Array) -> Array:
    # The value of each state for player 0, float32, by the values of what follows: the best, or the expectation.
    firsts, to_play, chances = (
        np.flatnonzero(np.diff(rows, prepend=-1)),
        game.to_play(states),
        features_of(game).chances,
    )
    signs = _signs(to_play)
    best: Array = signs * np.maximum.reduceat(signs[rows] * values, firsts)
    if chances is None:
        return best
    odds = chances(states)
    expected = np.add.reduceat(odds[rows, np.minimum(actions, odds.shape[1] - 1)] * values, firsts)
    return np.where(to_play == CHANCE, expected, best).astype(np.float32)


def _signs(to_play: Array) -> Array:
    # Of the values for player 0, as the player to move sees them, float32.
    return np.where(to_play == 1, np.float32(-1), np.float32(1))
