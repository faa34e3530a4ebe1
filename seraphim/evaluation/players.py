"""Players: functions that choose an action in each of many positions. Deterministic, without noise.

What chance decides, such as which of equal actions is played, is a function of the player's seed and of the position:
the same seed plays the same games. Knows the search; knows nothing of matches, files or people.
"""

from collections.abc import Callable

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Array, Game
from seraphim.game.solved import PerfectActions
from seraphim.inference import Inference, Uniform
from seraphim.options import SearchOptions
from seraphim.search.rng import draw_actions, fork, stream_key
from seraphim.search.search import Search

Choose = Callable[[Array], Array]
"""Chooses an action in each of some unfinished positions: int64 [P, W] -> int [P]."""

MOST_TREES = 1024

# A result counts for a little less with every ply until it comes, so that wins are fast and losses slow.
_DELAY = np.float32(1 - 2**-10)
MOST_POSITIONS = 1 << 18  # that a minimax player looks beyond at a time
MOST_NODES = 1 << 20  # in all trees of a pure MCTS at a time, about

_PURE_CPUCT = 2.0  # of pure MCTS; from 2 to 8 it makes little difference in connect four


def search_player(game: Game, inference: Inference, options: SearchOptions) -> Choose:
    """Return the player that searches, and plays the most visited action (the first of equals)."""

    def choose(states: Array) -> Array:
        actions = np.empty(len(states), np.int32)
        search = Search(game, inference, options, min(len(states), MOST_TREES))
        for start in range(0, len(states), MOST_TREES):
            chunk = states[start : start + MOST_TREES]
            trees = np.arange(len(chunk))
            search.reset(trees)
            search.begin(trees, chunk)
            search.run()
            actions[start : start + MOST_TREES] = search.result(trees).best
        return actions

    return choose


def raw_player(game: Game, inference: Inference) -> Choose:
    """Return the player that does not search, and plays the action of the highest prior (the first of equals)."""

    def choose(states: Array) -> Array:
        logits, _ = inference.infer(game.observe(states))
        return np.where(game.legal(states), logits, -np.inf).argmax(axis=1)

    return choose


def random_player(game: Game, seed: int = 0) -> Choose:
    """Return the player that plays any legal action, each as likely as the others."""
    stream = stream_key(f"random-player-{seed}")
    return lambda states: draw_actions(game.legal(states), _keys(stream, states))


def minimax_player(game: Game, depth: int, seed: int = 0) -> Choose:
    """Return the player that looks `depth` plies ahead, and takes what is not over by then for a draw.

    It wins as fast and loses as slowly as it can see, and draws among equal actions. All positions are looked at
    together, a ply at a time, and each distinct one once: for its time and memory, that does without pruning.

    Raises:
        SettingsError: the depth is not positive.
    """
    if depth < 1:
        raise SettingsError(f"minimax must look 1 ply ahead or more, not {depth}")
    stream = stream_key(f"minimax-player-{seed}")

    def choose(states: Array) -> Array:
        rows, actions = np.nonzero(game.legal(states))
        values = _look_ahead(game, game.step(states[rows], actions), depth - 1)
        action_values = np.full((len(states), game.num_actions), -np.inf, np.float32)
        action_values[rows, actions] = np.where(game.to_play(states)[rows] == 0, values, -values)
        best = action_values == action_values.max(axis=1, keepdims=True)
        return draw_actions(best, _keys(stream, states))

    return choose


def mcts_player(game: Game, readouts: int) -> Choose:
    """Return the player that searches without a network: every readout goes on to the end of the game.

    It goes on as it does inside the tree, of which all its positions become part, rather than at random: in connect
    four both are equally strong.

    Raises:
        SettingsError: the readouts are not positive.
    """
    options = SearchOptions(readouts=readouts, cpuct=_PURE_CPUCT, leaf="playout", cache_megabytes=0)
    player = search_player(game, Uniform(game), options)
    at_a_time = max(1, MOST_NODES // (readouts * game.max_plies))

    def choose(states: Array) -> Array:
        chunks = [states[start : start + at_a_time] for start in range(0, len(states), at_a_time)]
        return np.concatenate([player(chunk) for chunk in chunks])

    return choose


def solver_player(game: Game, perfect_actions: PerfectActions, seed: int = 0, seconds: float | None = None) -> Choose:
    """Return the player that knows the exact results, and draws among the perfect actions.

    Args:
        game: the rules.
        perfect_actions: the solver.
        seed: of the draw.
        seconds: time for each position, after which the solver's best guess is played.
    """
    stream = stream_key(f"solver-player-{seed}")
    return lambda states: draw_actions(perfect_actions(states, seconds) & game.legal(states), _keys(stream, states))


def _keys(stream: np.uint64, states: Array) -> Array:
    # A stream of random numbers for each state, uint64 [P].
    keys = np.full(len(states), stream)
    for word in range(states.shape[1]):
        keys = fork(keys, states[:, word].astype(np.uint64))
    return keys


def _look_ahead(game: Game, states: Array, depth: int) -> Array:
    # What states are worth for player 0 by minimax, float32 [P]; 0 where it does not end within `depth` plies.
    ended, results = game.outcome(states)
    values = np.where(ended, results, 0).astype(np.float32)
    if depth:
        unfinished = np.flatnonzero(~ended)
        for start in range(0, len(unfinished), MOST_POSITIONS):
            chunk = unfinished[start : start + MOST_POSITIONS]
            values[chunk] = _DELAY * _best_successors(game, states[chunk], depth)
    return values


def _best_successors(game: Game, states: Array, depth: int) -> Array:
    rows, actions = np.nonzero(game.legal(states))
    successors = game.step(states[rows], actions)
    if depth == 1:
        values = _look_ahead(game, successors, 0)
    else:
        # Different moves lead to the same positions.
        distinct, places = _distinct(successors)
        values = _look_ahead(game, distinct, depth - 1)[places]
    signs = np.where(game.to_play(states) == 0, np.float32(1), np.float32(-1))
    first_of_row = np.flatnonzero(np.diff(rows, prepend=-1))
    return signs * np.maximum.reduceat(signs[rows] * values, first_of_row)


def _distinct(states: Array) -> tuple[Array, Array]:
    # The distinct states, and where among them each state is. Sorting hashes takes a fraction of sorting rows.
    _, firsts, places = np.unique(_keys(np.uint64(0), states), return_index=True, return_inverse=True)
    distinct = states[firsts]
    if not np.array_equal(distinct[places], states):  # two states have the same hash
        return states, np.arange(len(states))
    return distinct, places
