"""The search against OpenSpiel's `MCTSBot`, visit for visit.

The two count the same things, but for these definitions:

- OpenSpiel's first simulation evaluates the root. So R readouts are R + 1 of its simulations, N(s) is 1 + the visits
  of the node's children in both, and the visits of the root's children are the same.
- A child in which the game has ended is scored by Q + U like any other here. OpenSpiel's `SearchNode.puct_value`
  scores it by its result alone, once it was visited; everywhere else it is the same formula. So the bot is run with
  the documented formula wherever the end of the game is in reach, and with `puct_value` itself where it is not.
- OpenSpiel shuffles the children of each new node. Here they stand in ascending order, and the first of equals is
  chosen; a random state that does not shuffle gives OpenSpiel the same order, and its `max` takes the first as well.
- `solve` is off: what OpenSpiel proves about a node changes its visits.

Unvisited children have Q = 0, and a value counts for the player who made the move that led to it, in both. The bot
plays by OpenSpiel's own rules, so a rule that differs shows as well.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import mcts
from reference import ArbitraryNetwork

from seraphim.game import Array, Game, PlainGame, PlainRules, load_game
from seraphim.options import SearchOptions
from seraphim.search.evaluator import Inference, Uniform
from seraphim.search.roots import Result
from seraphim.search.search import Search

History = tuple[int, ...]

SEARCHES = [(0.4, 1), (1.5, 2), (0.25, 33), (1.5, 64), (4.0, 100), (1.25, 200)]  # cpuct and readouts
POSITIONS = 15  # for each of them but the longest, with priors and with uniform priors


class Registered(PlainGame):
    """A game of OpenSpiel. The state is its history, each action plus one, filled up with zeros."""

    def __init__(self, name: str, max_plies: int) -> None:
        self.name = name
        self.max_plies = max_plies
        self.state_words = max_plies
        self._game = pyspiel.load_game(name)
        self.num_actions = self._game.num_distinct_actions()
        self.observation_shape = (math.prod(self._game.observation_tensor_shape()),)
        self._after = lru_cache(100_000)(self._replay)

    def _replay(self, history: History) -> pyspiel.State:
        if not history:
            return self._game.new_initial_state()
        state = self._after(history[:-1]).clone()
        state.apply_action(history[-1])
        return state

    def _state(self, words: History) -> pyspiel.State:
        return self._after(tuple(word - 1 for word in words if word))

    def initial(self) -> History:
        return (0,) * self.max_plies

    def step(self, state: History, action: int) -> History:
        plies = state.index(0)
        return (*state[:plies], action + 1, *state[plies + 1 :])

    def legal(self, state: History) -> Sequence[int]:
        return self._state(state).legal_actions()

    def to_play(self, state: History) -> int:
        position = self._state(state)
        return 0 if position.is_terminal() else position.current_player()

    def outcome(self, state: History) -> float | None:
        position = self._state(state)
        return position.returns()[0] if position.is_terminal() else None

    def observe(self, state: History) -> Array:
        position = self._state(state)
        return np.array(position.observation_tensor(self.to_play(state))).astype(np.uint8)


class Pair(NamedTuple):
    """A game here, and the same game in OpenSpiel with the same numbers for its actions."""

    ours: Game
    theirs: pyspiel.Game


PAIRS = {
    "tictactoe": Pair(load_game("tictactoe"), pyspiel.load_game("tic_tac_toe")),
    "connectfour": Pair(load_game("connectfour"), pyspiel.load_game("connect_four")),
    # A player moves again after closing a box, or after sowing the last stone into their own store.
    **{
        name: Pair(PlainRules(Registered(name, plies)), pyspiel.load_game(name))
        for name, plies in (("dots_and_boxes", 12), ("mancala", 150))
    },
}


class Evaluator(mcts.Evaluator):
    """Evaluates a state of OpenSpiel by a network for the game here, by its history."""

    def __init__(self, game: Game, network: Inference) -> None:
        self._game = game
        self._network = network
        self._evaluations: dict[History, tuple[Array, Array]] = {}

    def _evaluate(self, state: pyspiel.State) -> tuple[Array, Array]:
        history = tuple(state.history())
        if history not in self._evaluations:
            logits, values = self._network.infer(self._game.observe(replay(self._game, history)))
            self._evaluations[history] = logits[0], values[0]
        return self._evaluations[history]

    def evaluate(self, state: pyspiel.State) -> Array:
        value = float(self._evaluate(state)[1])
        return np.array([value, -value] if state.current_player() == 0 else [-value, value])

    def prior(self, state: pyspiel.State) -> list[tuple[int, float]]:
        actions = state.legal_actions()
        priors = softmax(self._evaluate(state)[0][actions].tolist())
        return list(zip(actions, priors, strict=True))


class InOrder(np.random.RandomState):
    """Shuffles nothing."""

    def shuffle(self, x: list) -> None:  # type: ignore[override, type-arg]
        pass


def replay(game: Game, history: History) -> Array:
    """The state [1, W] after some actions."""
    state = game.initial(1)
    for action in history:
        state = game.step(state, np.array([action]))
    return state


def softmax(logits: Sequence[float]) -> list[float]:
    """Probabilities, rounded as in the search: weights and priors are stored in single precision."""
    weights = [math.exp(logit - max(logits)) for logit in logits]
    return [float(np.float32(float(np.float32(weight)) / sum(weights))) for weight in weights]


def documented(child: mcts.SearchNode, parent_visits: int, cpuct: float) -> float:
    """Q(s,a) + c·P(s,a)·√N(s)/(1+N(s,a)), whether or not the game has ended in the child; rounded as it is here."""
    score = cpuct * math.sqrt(parent_visits) * child.prior / (1 + child.explore_count)
    return score + child.total_reward / child.explore_count if child.explore_count else score


def random_histories(game: pyspiel.Game, count: int, seed: int, most_plies: int = 40) -> list[History]:
    """Histories of unfinished positions after up to `most_plies` random moves."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        state = game.new_initial_state()
        for _ in range(rng.integers(min(most_plies, game.max_game_length()))):
            successor = state.child(rng.choice(state.legal_actions()))
            if successor.is_terminal():
                break
            state = successor
        found.append(tuple(state.history()))
    return found


def our_search(game: Game, network: Inference, histories: Sequence[History], cpuct: float, readouts: int) -> Result:
    search = Search(game, network, SearchOptions(readouts=readouts, cpuct=cpuct, solver=False), len(histories))
    trees = np.arange(len(histories))
    search.begin(trees, np.concatenate([replay(game, history) for history in histories]))
    search.run()
    return search.result(trees)


def their_search(
    pair: Pair,
    network: Inference,
    history: History,
    cpuct: float,
    readouts: int,
    formula: Callable[[mcts.SearchNode, int, float], float],
) -> mcts.SearchNode:
    """The root of OpenSpiel's search."""
    bot = mcts.MCTSBot(
        pair.theirs,
        uct_c=cpuct,
        max_simulations=readouts + 1,  # the first one evaluates the root
        evaluator=Evaluator(pair.ours, network),
        solve=False,
        random_state=InOrder(),
        child_selection_fn=formula,
    )
    state = pair.theirs.new_initial_state()
    for action in history:
        state.apply_action(action)
    return bot.mcts_search(state)


def has_ended_child(root: mcts.SearchNode) -> bool:
    """Whether a search has seen the end of the game."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.outcome is not None:
            return True
        waiting.extend(node.children)
    return False


def check_equal(ours: Result, row: int, theirs: mcts.SearchNode) -> None:
    """Check visits, mean values to the last bit, and priors of a root's children."""
    num_actions = ours.visits.shape[1]
    visits, action_values, priors = np.zeros(num_actions, int), np.zeros(num_actions), np.zeros(num_actions)
    for child in theirs.children:
        visits[child.action] = child.explore_count
        action_values[child.action] = child.total_reward / max(1, child.explore_count)
        priors[child.action] = child.prior
    assert ours.visits[row].tolist() == visits.tolist()
    assert ours.action_values[row].tolist() == action_values.astype(np.float32).tolist()
    assert ours.priors[row].tolist() == priors.tolist()


@pytest.mark.parametrize(("cpuct", "readouts"), SEARCHES)
@pytest.mark.parametrize("name", PAIRS)
def test_visits_are_those_of_openspiel(name: str, cpuct: float, readouts: int) -> None:
    pair = PAIRS[name]
    network = ArbitraryNetwork(pair.ours, seed=readouts)
    histories = random_histories(pair.theirs, POSITIONS if readouts <= 64 else 6, seed=readouts)
    ours = our_search(pair.ours, network, histories, cpuct, readouts)
    for row, history in enumerate(histories):
        check_equal(ours, row, their_search(pair, network, history, cpuct, readouts, documented))


@pytest.mark.parametrize(("cpuct", "readouts"), SEARCHES)
@pytest.mark.parametrize("name", PAIRS)
def test_visits_are_those_of_openspiel_also_where_the_first_of_equals_decides(
    name: str, cpuct: float, readouts: int
) -> None:
    pair = PAIRS[name]
    network = Uniform(pair.ours)
    histories = random_histories(pair.theirs, POSITIONS if readouts <= 64 else 6, seed=readouts + 1)
    ours = our_search(pair.ours, network, histories, cpuct, readouts)
    for row, history in enumerate(histories):
        check_equal(ours, row, their_search(pair, network, history, cpuct, readouts, documented))


@pytest.mark.parametrize(("name", "most_plies"), [("connectfour", 8), ("dots_and_boxes", 4), ("mancala", 20)])
def test_visits_are_those_of_openspiels_own_formula_until_the_end_of_the_game_is_seen(
    name: str, most_plies: int
) -> None:
    pair = PAIRS[name]
    network = ArbitraryNetwork(pair.ours, seed=1)
    histories = random_histories(pair.theirs, 20, 2, most_plies)
    ours = our_search(pair.ours, network, histories, 1.5, 60)
    compared = 0
    for row, history in enumerate(histories):
        theirs = their_search(pair, network, history, 1.5, 60, mcts.SearchNode.puct_value)
        if not has_ended_child(theirs):
            check_equal(ours, row, theirs)
            compared += 1
    assert compared >= 10


def test_the_compared_trees_contain_ends_of_games() -> None:
    for name, pair in PAIRS.items():
        network = ArbitraryNetwork(pair.ours, seed=64)
        roots = [
            their_search(pair, network, history, 1.5, 64, documented)
            for history in random_histories(pair.theirs, POSITIONS, seed=64)
        ]
        assert sum(has_ended_child(root) for root in roots) >= 5, name


@pytest.mark.parametrize("name", ["dots_and_boxes", "mancala"])
def test_the_compared_trees_contain_players_who_move_twice(name: str) -> None:
    pair = PAIRS[name]
    twice = 0
    for history in random_histories(pair.theirs, POSITIONS, seed=64):
        root = their_search(pair, ArbitraryNetwork(pair.ours, seed=64), history, 1.5, 64, documented)
        twice += any(child.children and child.children[0].player == child.player for child in root.children)
    assert twice >= 5
