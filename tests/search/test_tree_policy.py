"""Tree policies and evaluations from outside: those of docs/your-own-search.md, against naive and default searches."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import games
import numba
import numpy as np
import pytest
from one_of_each import one_of_each
from pages import blocks_of, function_of
from reference import ArbitraryNetwork, random_states

import seraphim
from connectfour.game import GAME as CONNECTFOUR
from seraphim.errors import ModelError, SettingsError
from seraphim.game import Array, Game, PlainRules
from seraphim.options import SearchOptions
from seraphim.search import naive, traversal
from seraphim.search.evaluator import Inference, StateFunction, Uniform
from seraphim.search.rng import stream_key
from seraphim.search.search import Search
from seraphim.search.tree import LOST, OPEN
from tictactoe.game import TicTacToe

pytestmark = pytest.mark.kernels

GAMES = {"tictactoe": TicTacToe(), "moves twice": PlainRules(games.MOVES_TWICE), "connectfour": CONNECTFOUR}
UCB1, PUCT = function_of("your-own-search.md", "ucb1"), function_of("your-own-search.md", "puct")


def compiled(policy: Any) -> Any:
    return policy


def interpreted(policy: Any) -> Any:
    return getattr(policy, "py_func", policy)


@numba.njit
def puct_of_the_solver(node: Any, edges: Array, priors: Array) -> int:
    """PUCT as in `selection`, with proofs, visits under way and the constants of the test."""
    exploration = 1.25 * math.sqrt(max(1, node["visits"]))
    best, highest = 0, -np.inf
    for k in range(len(edges)):
        edge = edges[k]
        visits = np.int64(edge["visits"]) + np.int64(edge["pending"])
        q = (edge["total"] - edge["pending"]) / max(visits, 1)
        if edge["proof"] == OPEN:
            q += exploration * np.float64(priors[k]) / (1 + visits)
        if edge["proof"] != LOST and q > highest:
            best, highest = k, q
    return best


@numba.njit
def beyond(node: Any, edges: Array, priors: Array) -> int:
    return len(edges)


@numba.njit
def before(node: Any, edges: Array, priors: Array) -> int:
    return -1


def nothing(node: Any, edges: Array, priors: Array) -> None:
    return None


def half(node: Any, edges: Array, priors: Array) -> float:
    return 0.5


def searched(
    game: Game, network: Inference, states: Array, options: SearchOptions, policy: Any = None, leaves: int = 1
) -> Search:
    search = Search(game, network, options, len(states), leaves, policy)
    search.begin(
        np.arange(len(states)), states, np.array([stream_key(f"{row}") for row in range(len(states))], np.uint64)
    )
    search.run()
    return search


def visits(search: Search) -> list[list[int]]:
    return search.result(np.arange(len(search.trees.progress))).visits.tolist()


def naive_ucb1(node: naive.Node, options: SearchOptions, is_root: bool) -> naive.Edge:
    """Auer et al. 2002: the mean, and the square root of 2 ln(n) / n(a); what was never tried comes first."""
    untried = [edge for edge in node.edges if not edge.visits]
    if untried:
        return untried[0]
    return max(node.edges, key=lambda edge: edge.means[node.mover] + math.sqrt(2 * math.log(node.visits) / edge.visits))


@pytest.mark.parametrize(("name", "change"), one_of_each(list(GAMES), [compiled, interpreted]))
def test_ucb1_of_the_page_equals_a_naive_search_by_ucb1(
    name: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    game, options = GAMES[name], SearchOptions(readouts=150, solver=False)
    monkeypatch.setattr(naive, "best_edge", naive_ucb1)
    for seed in range(2):
        network, states = ArbitraryNetwork(game, seed), random_states(game, 3, seed)
        found = visits(searched(game, network, states, options, change(UCB1)))
        roots = [naive.search(game, network, state, options) for state in states]
        assert found == [naive.visits(root, game.num_actions).tolist() for root in roots]
        assert found != visits(searched(game, network, states, options))


@pytest.mark.parametrize(
    ("name", "change", "leaf"), one_of_each(list(GAMES), [compiled, interpreted], ["playout", "value"])
)
def test_puct_of_the_page_searches_as_the_default_does(name: str, change: Callable[[Any], Any], leaf: Any) -> None:
    game, options = GAMES[name], SearchOptions(readouts=120, cpuct=1.5, noise_coefficient=0.25, leaf=leaf, solver=False)
    for seed in range(2):
        network, states = ArbitraryNetwork(game, seed), random_states(game, 4, seed)
        expected = searched(game, network, states, options)
        found = searched(game, network, states, options, change(PUCT))
        assert visits(found) == visits(expected)
        assert (found.trees.edges == expected.trees.edges).all()
        assert visits(found) != visits(searched(game, network, states, replace(options, cpuct=2.5)))


@pytest.mark.parametrize("policy", [UCB1, PUCT])
def test_with_a_policy_the_most_visited_move_is_played(policy: Any) -> None:
    game = GAMES["tictactoe"]
    found = searched(
        game, ArbitraryNetwork(game), random_states(game, 30, 1), SearchOptions(readouts=50, solver=False), policy
    )
    result = found.result(np.arange(30))
    assert result.best.tolist() == result.visits.argmax(axis=1).tolist()


@pytest.mark.parametrize("leaves", [1, 8])
def test_a_policy_sees_proofs_and_visits_under_way(leaves: int) -> None:
    options = SearchOptions(readouts=200, cpuct=1.25, solver=True)
    for game in GAMES.values():
        network, states = ArbitraryNetwork(game), random_states(game, 4, seed=5)
        expected = searched(game, network, states, options, leaves=leaves)
        found = searched(game, network, states, options, puct_of_the_solver, leaves)
        assert visits(found) == visits(expected)
        assert expected.trees.edges["proof"].any()


def test_the_default_search_stays_itself() -> None:
    before = getattr(traversal.select, "signatures", None), traversal.best_edge
    searched(
        GAMES["tictactoe"],
        Uniform(GAMES["tictactoe"]),
        GAMES["tictactoe"].initial(1),
        SearchOptions(solver=False),
        UCB1,
    )
    assert (getattr(traversal.select, "signatures", None), traversal.best_edge) == before
    assert traversal.select_by(UCB1) is traversal.select_by(UCB1)


@pytest.mark.parametrize("policy", [beyond, before, *map(interpreted, (beyond, before, nothing, half))])
def test_a_policy_that_names_no_edge_is_refused(policy: Any) -> None:
    game = GAMES["tictactoe"]
    with pytest.raises(SettingsError, match="tree_policy must return an edge index"):
        searched(game, Uniform(game), game.initial(2), SearchOptions(solver=False), policy)


def test_a_gumbel_root_has_a_rule_of_its_own() -> None:
    game = GAMES["tictactoe"]
    with pytest.raises(SettingsError, match="a tree policy replaces PUCT, but the root is searched by gumbel"):
        Search(game, Uniform(game), SearchOptions(root="gumbel", solver=False), 1, tree_policy=UCB1)


# ---------------------------------------------------------------- evaluations


def test_a_function_of_states_searches_as_a_network_does() -> None:
    for game in GAMES.values():
        network, states, options = (
            ArbitraryNetwork(game, 4),
            random_states(game, 4, 1),
            SearchOptions(readouts=60, solver=False),
        )
        by_states = StateFunction(game, lambda states, game=game, network=network: network.infer(game.observe(states)))
        assert visits(searched(game, by_states, states, options)) == visits(searched(game, network, states, options))


@pytest.mark.parametrize(
    "returned", [(np.zeros((1, 8)), np.zeros(1)), (np.zeros((1, 9)), np.zeros((1, 1))), (np.zeros((2, 9)), np.zeros(2))]
)
def test_other_shapes_and_what_is_not_finite_are_refused(returned: tuple[Array, Array]) -> None:
    with pytest.raises(ModelError, match="returned logits of shape"):
        seraphim.Model("tictactoe", lambda states: returned).analyze("b2", readouts=3)


@pytest.mark.parametrize("returned", [None, 5, "no arrays", ("a", "b"), (1, 2, 3), (np.zeros((1, 9)),), ([[1], []], 0)])
def test_what_is_no_pair_of_arrays_is_refused(returned: Any) -> None:
    with pytest.raises(ModelError, match="must return logits and values, two arrays, not"):
        seraphim.Model("tictactoe", lambda states: returned).analyze("b2", readouts=3)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1.5])
def test_values_out_of_range_are_refused(value: float) -> None:
    def nowhere(states: Array) -> tuple[Array, Array]:
        return np.zeros((len(states), 9)), np.full(len(states), value)

    with pytest.raises(ModelError, match="nowhere returned NaN among the logits, or a value that is not from -1 to 1"):
        seraphim.Model("tictactoe", nowhere).analyze("b2", readouts=3)


def test_rollouts_of_the_page_have_the_mean_of_random_play() -> None:
    """Against the exact value of random play, by recursion over all games."""
    names: dict[str, Any] = {}
    exec(blocks_of("your-own-search.md")[0].code.partition("model =")[0], names)
    game = names["game"]

    def exact(state: Array) -> float:
        (ended,), (result,) = game.outcome(state[None])
        if ended:
            return float(result)
        actions = np.flatnonzero(game.legal(state[None])[0])
        successors = game.step(np.repeat(state[None], len(actions), axis=0), actions)
        return float(np.mean([exact(each) for each in successors]))

    for plies in (4, 5):
        state = random_state_after(game, plies)
        logits, values = names["rollout"](np.repeat(state[None], 20_000, axis=0))
        assert not logits.any()
        assert set(values.tolist()) <= {-1.0, 0.0, 1.0}
        value = exact(state) * (1 if plies % 2 == 0 else -1)
        assert value != 0
        assert values.mean() == pytest.approx(value, abs=0.03)


def random_state_after(game: Game, plies: int) -> Array:
    (state,) = game.initial(1)
    for action in (0, 1, 4, 2, 5)[:plies]:
        (state,) = game.step(state[None], np.array([action]))
    return state


@pytest.mark.parametrize("illegal", [-np.inf, np.nan, np.inf])
def test_logits_of_illegal_actions_do_not_matter(illegal: float) -> None:
    game = TicTacToe()

    def masked(states: Array) -> tuple[Array, Array]:
        return np.where(game.legal(states), 0.0, illegal), np.zeros(len(states))

    def plain(states: Array) -> tuple[Array, Array]:
        return np.zeros((len(states), 9)), np.zeros(len(states))

    one, other = (seraphim.Model("tictactoe", evaluate) for evaluate in (masked, plain))
    assert one.analyze("b2 a2", readouts=50).moves == other.analyze("b2 a2", readouts=50).moves
    assert seraphim.prove("b2 a2", model=one).value == 1


def test_a_nan_among_the_logits_of_legal_actions_is_refused() -> None:
    def nowhere(states: Array) -> tuple[Array, Array]:
        return np.full((len(states), 9), np.nan), np.zeros(len(states))

    with pytest.raises(ModelError, match="nowhere returned NaN among the logits"):
        seraphim.Model("tictactoe", nowhere).analyze("b2", readouts=3)
