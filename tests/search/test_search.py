"""The compiled search equals the naive one; invariants hold after every search."""

from dataclasses import replace
from typing import Literal

import games
import knows_the_end
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import ArbitraryNetwork, random_states

from seraphim.errors import GameError, ModelError, SettingsError
from seraphim.game import Array, Game, PlainRules
from seraphim.options import Leaf, Root, SearchOptions
from seraphim.search import naive
from seraphim.search.evaluator import Uniform
from seraphim.search.rng import dirichlet, draw_actions, stream_key, uniform, uniform_of
from seraphim.search.search import Search
from seraphim.search.tree import NO_CHILD, allocate, slots
from tictactoe.game import TicTacToe
from tictactoe.minimax import action_results

pytestmark = pytest.mark.kernels

GAME = TicTacToe()
OPTIONS = SearchOptions(readouts=50, solver=False)


def position(drawing: str) -> Array:
    """The state [W] that a drawing shows, e.g. `X O · / · X · / · · O`."""
    marks = [mark for mark in drawing if mark in "XO·"]
    return np.array([sum(1 << cell for cell in range(9) if marks[cell] == side) for side in "XO"], np.int64)


def searched(
    game: Game, inference: object, states: Array, options: SearchOptions, keys: Array | None = None, leaves: int = 1
) -> Search:
    search = Search(game, inference, options, len(states), leaves)  # type: ignore[arg-type]
    search.begin(np.arange(len(states)), states, keys)
    search.run()
    return search


def visits(search: Search) -> Array:
    return search.result(np.arange(len(search.trees.progress))).visits


def keys(*names: str) -> Array:
    return np.array([stream_key(name) for name in names], np.uint64)


def noise_of(key: np.uint64, count: int, alpha: float) -> Array:
    draw = np.zeros(count)
    dirichlet(alpha, key, draw)
    return draw


def gumbel_noise(key: np.uint64, count: int) -> Array:
    return np.array([-np.log(-np.log(uniform(key, np.uint64(k)))) for k in range(count)])


def nodes_of(search: Search, tree: int = 0) -> Array:
    first = tree * slots(search.trees)[0]
    return search.trees.nodes[first : first + search.trees.progress[tree]["num_nodes"]]


def check_invariants(search: Search) -> None:
    trees = search.trees
    num_nodes, num_edges = slots(trees)
    for tree in range(len(trees.progress)):
        first_edge, used_edges = tree * num_edges, trees.progress[tree]["num_edges"]
        nodes, edges = nodes_of(search, tree).copy(), trees.edges[first_edge : first_edge + used_edges].copy()
        # As if it were the only tree.
        nodes["first_edge"] -= first_edge
        edges["child"] -= np.where(edges["child"] != NO_CHILD, tree * num_nodes, 0).astype(np.int32)
        assert not edges["pending"].any()
        assert (np.abs(edges["total"]) <= edges["visits"] + 1e-9).all()
        assert ((edges["visits"] > 0) == (edges["child"] != NO_CHILD)).all()
        for node in nodes:
            own = edges[node["first_edge"] : node["first_edge"] + node["num_edges"]]
            if not len(own):
                assert node["settled"]
                assert node["distance"] == 0
                continue
            assert own["prior"].sum() == pytest.approx(1.0, abs=1e-5)
            children = own["child"][own["child"] != NO_CHILD]
            assert (nodes["visits"][children] == own["visits"][own["child"] != NO_CHILD]).all()


# ---------------------------------------------------------------- equal to the naive search


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([0.1, 1.0, 5.0]),
    noisy=st.booleans(),
    options=st.builds(
        SearchOptions,
        readouts=st.integers(1, 80),
        cpuct=st.sampled_from([0.1, 0.25, 1.0, 1.5, 4.0]),
        leaf=st.sampled_from(["value", "playout"]),
        solver=st.booleans(),
        known_results=st.booleans(),
        root=st.sampled_from(["puct", "gumbel"]),
        gumbel_actions=st.sampled_from([1, 3, 4, 16]),
        cache_megabytes=st.sampled_from([0, 1]),
    ),
)
def test_a_search_equals_the_naive_one(seed: int, scale: float, noisy: bool, options: SearchOptions) -> None:
    game = knows_the_end.GAME
    network = ArbitraryNetwork(game, seed, scale)
    states = random_states(game, 4, seed)
    streams = keys(*(f"{seed}-{row}" for row in range(4))) if noisy else None
    search = searched(game, network, states, options, streams)
    check_invariants(search)
    result = search.result(np.arange(4))
    for row in range(4):
        noise = None
        if streams is not None:
            count = int(game.legal(states[row : row + 1]).sum())
            gumbel = options.root == "gumbel"
            noise = gumbel_noise(streams[row], count) if gumbel else noise_of(streams[row], count, 0.3)
        root = naive.search(game, network, states[row], options, noise=noise)
        assert result.visits[row].tolist() == naive.visits(root, game.num_actions).tolist()
        proven = naive.exact(root) if options.solver else None
        assert result.proven[row] == (proven is not None)
        if proven is not None:
            assert (result.values[row], nodes_of(search, row)[0]["distance"]) == (proven[0][root.mover], proven[1])
            continue
        policy = naive.policy_of(root, options)
        for edge, weight in policy.items():
            assert result.policies[row, edge.action] == pytest.approx(weight, abs=1e-6)
        assert result.policies[row].sum() == pytest.approx(1.0, abs=1e-5)
        assert result.values[row] == pytest.approx(naive.values_of(root, options)[root.mover], abs=1e-6)
        assert result.best[row] == naive.move_of(root, options).action


@pytest.mark.parametrize("solver", [False, True])
def test_a_gumbel_root_that_is_searched_further_equals_the_naive_one(solver: bool) -> None:
    options = replace(OPTIONS, readouts=20, root="gumbel", solver=solver)
    for seed in range(6):
        network = ArbitraryNetwork(GAME, seed)
        search = searched(GAME, network, GAME.initial(1), options)
        search.begin(np.array([0]), GAME.initial(1), readouts=100)
        search.run()
        root = naive.search(GAME, network, GAME.initial(1)[0], options, readouts=120)
        assert visits(search)[0].tolist() == naive.visits(root, 9).tolist()


@pytest.mark.parametrize("leaf", ["value", "playout"])
def test_a_reused_tree_equals_the_naive_search_that_goes_on_with_its_own(leaf: str) -> None:
    options = replace(OPTIONS, leaf=leaf)
    for seed in range(6):
        network = ArbitraryNetwork(GAME, seed)
        search = searched(GAME, network, GAME.initial(1), options)
        state, root = GAME.initial(1), naive.search(GAME, network, GAME.initial(1)[0], options)
        while True:
            action = visits(search).argmax(axis=1)
            edge = next(edge for edge in root.edges if edge.action == action[0])
            state = GAME.step(state, action)
            if GAME.outcome(state)[0][0]:
                break
            search.move(np.array([0]), action)
            search.begin(np.array([0]), state)
            search.run()
            assert edge.child is not None
            root = naive.search(GAME, network, state[0], options, root=edge.child)
            assert visits(search)[0].tolist() == naive.visits(root, GAME.num_actions).tolist()
            check_invariants(search)


def test_players_who_move_twice_are_searched_as_by_the_naive_search() -> None:
    game = PlainRules(games.MovesTwice())
    for seed in range(4):
        network = ArbitraryNetwork(game, seed)
        states = random_states(game, 5, seed)
        for leaf in ("value", "playout"):
            options = SearchOptions(readouts=60, leaf=leaf, solver=False)  # type: ignore[arg-type]
            found = visits(searched(game, network, states, options))
            for row in range(len(states)):
                root = naive.search(game, network, states[row], options)
                assert found[row].tolist() == naive.visits(root, game.num_actions).tolist()


# ---------------------------------------------------------------- trees do not affect each other


def test_a_tree_alone_equals_the_same_tree_among_many() -> None:
    network = ArbitraryNetwork(GAME, 3)
    states = random_states(GAME, 64, 5)
    streams = keys(*map(str, range(64)))
    together = visits(searched(GAME, network, states, OPTIONS, streams))
    for row in (0, 17, 63):
        alone = visits(searched(GAME, network, states[row : row + 1], OPTIONS, streams[row : row + 1]))
        assert alone[0].tolist() == together[row].tolist()


def test_a_tree_finds_the_same_if_the_others_start_later() -> None:
    network = ArbitraryNetwork(GAME, 4)
    states = random_states(GAME, 8, 6)
    together = visits(searched(GAME, network, states, OPTIONS))
    search = Search(GAME, network, OPTIONS, 8)
    for tree in range(8):
        search.begin(np.array([tree]), states[tree : tree + 1])
        search.advance()
    search.run()
    assert visits(search).tolist() == together.tolist()


# ---------------------------------------------------------------- budgets, growth, leaves


@pytest.mark.parametrize("readouts", [1, 2, 3, 50, 333])
def test_exactly_the_readouts_asked_for_are_spent(readouts: int) -> None:
    states = random_states(GAME, 16, 1)
    search = searched(GAME, ArbitraryNetwork(GAME), states, replace(OPTIONS, readouts=readouts))
    assert (visits(search).sum(axis=1) == readouts).all()
    assert (search.trees.nodes[:: slots(search.trees)[0]]["visits"] == readouts + 1).all()


def test_trees_grow_when_readouts_are_added_to_them() -> None:
    network = ArbitraryNetwork(GAME)
    options = replace(OPTIONS, readouts=10)
    search = searched(GAME, network, GAME.initial(2), options)
    for _ in range(30):
        search.begin(np.arange(2), GAME.initial(2))
        search.run()
    whole = naive.search(GAME, network, GAME.initial(1)[0], replace(OPTIONS, readouts=310))
    assert visits(search)[1].tolist() == naive.visits(whole, 9).tolist()
    check_invariants(search)


@pytest.mark.parametrize("leaves", [2, 8, 32])
@pytest.mark.parametrize("leaf", ["value", "playout"])
def test_several_leaves_at_a_time_spend_the_budget_and_leave_no_virtual_loss(leaves: int, leaf: str) -> None:
    states = random_states(GAME, 6, 2)
    search = searched(GAME, ArbitraryNetwork(GAME, 2), states, replace(OPTIONS, readouts=203, leaf=leaf), leaves=leaves)
    assert (visits(search).sum(axis=1) == 203).all()
    check_invariants(search)


def test_eight_leaves_make_batches_of_different_positions() -> None:
    class Watched(ArbitraryNetwork):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            batches.append(len(np.unique(observations.reshape(len(observations), -1), axis=0)))
            return super().infer(observations)

    batches: list[int] = []
    searched(GAME, Watched(GAME, 1, scale=0.3), GAME.initial(1), replace(OPTIONS, readouts=400), leaves=8)
    assert np.median(batches) >= 6


@pytest.mark.parametrize("leaves", [1, 8])
def test_one_tree_is_halted_and_the_others_go_on(leaves: int) -> None:
    network = ArbitraryNetwork(GAME, 2)
    search = Search(GAME, network, replace(OPTIONS, readouts=400), 3, leaves)
    search.begin(np.arange(3), random_states(GAME, 3, 2))
    done: list[int] = []
    for _ in range(5):
        done += search.advance().tolist()
    search.halt(np.array([1]))
    halted_after = 0
    while 1 not in done:
        done += search.advance().tolist()
        halted_after += 1
    assert halted_after <= 3
    assert 0 < visits(search)[1].sum() < 400
    search.run()
    assert visits(search).sum(axis=1)[[0, 2]].tolist() == [400, 400]
    assert search.counters.readouts == visits(search).sum()
    check_invariants(search)
    # The halted tree can go on as if it had not been halted.
    search.begin(np.array([1]), random_states(GAME, 3, 2)[1:2], None, 400 - int(visits(search)[1].sum()))
    search.run()
    if leaves == 1:
        whole = searched(GAME, network, random_states(GAME, 3, 2), replace(OPTIONS, readouts=400))
        assert visits(search)[1].tolist() == visits(whole)[1].tolist()


def test_rounds_limit_a_step_when_the_cache_knows_every_position() -> None:
    network = ArbitraryNetwork(GAME, 2)
    search = searched(GAME, network, GAME.initial(1), replace(OPTIONS, readouts=3000))
    whole = visits(search)
    search.reset(np.array([0]))
    search.begin(np.array([0]), GAME.initial(1))  # all in the cache now, so that one step does it
    steps = 0
    while not len(search.advance(rounds=3)):
        steps += 1
    assert steps > 100
    assert visits(search).tolist() == whole.tolist()


def test_trees_whose_slots_have_no_number_are_refused() -> None:
    for sizes in ((1 << 11, 1 << 20), (1 << 20, 1 << 11)):
        with pytest.raises(SettingsError, match="too large: lower readouts or concurrent_games"):
            allocate(1 << 11, 1, *sizes, num_actions=9, state_words=2)


def test_compact_trees_are_the_same_and_take_less_memory() -> None:
    network = ArbitraryNetwork(GAME, 2)
    states = np.concatenate([random_states(GAME, 2, 2), GAME.initial(1)])
    search = searched(GAME, network, states, OPTIONS)
    search.begin(np.array([2]), states[2:], None, 4000)
    search.run()
    large, before = slots(search.trees), visits(search)
    search.reset(np.array([2]))
    search.compact()
    assert slots(search.trees)[0] < large[0] / 10
    assert slots(search.trees)[1] < large[1] / 10
    check_invariants(search)
    assert search.result(np.arange(2)).visits.tolist() == before[:2].tolist()
    search.begin(np.arange(3), states)
    search.run()
    fresh = searched(GAME, network, states, OPTIONS)
    assert visits(search)[2].tolist() == visits(fresh)[2].tolist()
    fresh.begin(np.arange(2), states[:2])
    fresh.run()
    assert visits(search)[:2].tolist() == visits(fresh)[:2].tolist()


def test_trees_can_be_compacted_during_a_search() -> None:
    network = ArbitraryNetwork(GAME, 3)
    states = random_states(GAME, 4, 3)
    search = Search(GAME, network, OPTIONS, 4, leaves=8)
    search.begin(np.arange(4), states)
    while not len(search.advance()):
        search.compact()
    search.run()
    assert visits(search).tolist() == visits(searched(GAME, network, states, OPTIONS, leaves=8)).tolist()


# ---------------------------------------------------------------- the end of the game


def test_positions_in_which_the_game_has_ended_are_never_evaluated() -> None:
    class Watched(ArbitraryNetwork):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            stones = observations.reshape(len(observations), 9, 2)
            lines = ([0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6])
            assert not any(stones[:, line, :].all(axis=1).any() for line in lines)
            assert not stones.any(axis=2).all(axis=1).any()
            return super().infer(observations)

    searched(GAME, Watched(GAME), random_states(GAME, 32, 8), replace(OPTIONS, readouts=200))


@pytest.mark.parametrize(
    ("drawing", "winning"),
    [("X X · / O O · / · · ·", 2), ("X X O / O O X / X · ·", None), ("X X · / O O · / X · ·", 5)],
    ids=["first player wins", "draw", "second player wins"],
)
def test_an_immediate_win_gets_the_visits_and_the_value_approaches_one(drawing: str, winning: int | None) -> None:
    search = searched(GAME, Uniform(GAME), position(drawing)[None], replace(OPTIONS, readouts=400))
    result = search.result(np.array([0]))
    if winning is None:
        assert abs(result.values[0]) < 0.2
    else:
        assert result.policies[0, winning] > 0.75
        assert result.values[0] > 0.75


def test_a_forced_loss_has_a_value_near_minus_one() -> None:
    # O to move; X threatens two lines at once.
    search = searched(GAME, Uniform(GAME), position("X · X / O · · / X · O")[None], replace(OPTIONS, readouts=2000))
    assert search.result(np.array([0])).values[0] < -0.8


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_a_playout_ends_as_a_draw_where_the_game_would_be_cut_off(root: Root) -> None:
    game = PlainRules(games.Wait())
    network = ArbitraryNetwork(game, 1)
    for readouts in (1, 2, 30):
        options = SearchOptions(readouts=readouts, leaf="playout", root=root, cache_megabytes=1, solver=False)
        search = searched(game, network, game.initial(1), options)
        found = naive.search(game, network, game.initial(1)[0], options)
        assert visits(search)[0].tolist() == naive.visits(found, 2).tolist()
        assert search.result(np.array([0])).values[0] == 0.0
        assert search.trees.progress[0]["num_nodes"] <= 1 + readouts * game.max_plies


def test_uniform_numbers_are_below_one() -> None:
    # The key whose first number has all bits set, by inverting SplitMix64's steps.
    bits, mask = 2**64 - 1, 2**64 - 1

    def unshift(number: int, by: int) -> int:
        found = number
        for _ in range(64 // by + 1):
            found = number ^ (found >> by)
        return found

    bits = unshift(bits, 31) * pow(0x94D049BB133111EB, -1, 2**64) & mask
    bits = unshift(bits, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & mask
    key = np.uint64((unshift(bits, 30) - 0x9E3779B97F4A7C15) & mask)
    assert 1 - 2.0**-50 < uniform(key, np.uint64(0)) < 1.0
    assert np.isfinite(gumbel_noise(key, 1)).all()
    assert draw_actions(np.ones((1, 3)), np.array([key])).tolist() == [2]


def test_playouts_score_only_the_end_of_the_game() -> None:
    class Biased(Uniform):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            logits, values = super().infer(observations)
            return logits, values + np.float32(0.9)

    options = replace(OPTIONS, leaf="playout")
    states = random_states(GAME, 8, 3)
    biased = searched(GAME, Biased(GAME), states, options).result(np.arange(8))
    plain = searched(GAME, Uniform(GAME), states, options).result(np.arange(8))
    assert biased.visits.tolist() == plain.visits.tolist()
    assert biased.values.tolist() == plain.values.tolist()


def test_a_game_of_ten_thousand_plies_is_searched_without_recursion() -> None:
    game = PlainRules(games.Chain(plies=10_000))
    search = searched(game, Uniform(game), game.initial(1), SearchOptions(readouts=1, leaf="playout", solver=False))
    assert search.trees.progress[0]["num_nodes"] == 10_001
    assert visits(search).sum() == 1


# ---------------------------------------------------------------- priors


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([-1e4, -30.0, -1.0, 0.0, 1.0, 30.0, 1e4]), min_size=9, max_size=9), st.integers(0, 99))
def test_priors_are_probabilities_over_the_legal_actions(logits: list[float], seed: int) -> None:
    class Fixed(Uniform):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            return np.tile(np.array(logits, np.float32), (len(observations), 1)), np.zeros(
                len(observations), np.float32
            )

    states = random_states(GAME, 4, seed)
    result = searched(GAME, Fixed(GAME), states, OPTIONS).result(np.arange(4))
    legal = GAME.legal(states)
    assert (result.priors >= 0).all()
    assert result.priors.sum(axis=1) == pytest.approx(1.0, abs=1e-6)
    assert not result.priors[~legal].any()
    assert not result.visits[~legal].any()


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("head", ["policy", "value"])
def test_a_model_that_returns_nan_is_named_in_the_error(broken: float, head: str) -> None:
    class Broken(Uniform):
        name = "models/broken/00000100-20250101T000000Z"

        def infer(self, observations: Array) -> tuple[Array, Array]:
            logits, values = super().infer(observations)
            (logits if head == "policy" else values)[-1] = broken
            return logits, values

    with pytest.raises(ModelError, match="models/broken/00000100.*finite"):
        searched(GAME, Broken(GAME), GAME.initial(2), OPTIONS)


def test_an_unfinished_position_without_a_legal_action_is_shown() -> None:
    class Stuck(TicTacToe):
        def legal(self, states: Array) -> Array:
            return super().legal(states) & (states[:, :1] == 0)

    with pytest.raises(GameError, match=r"(?s)no legal action.*X"):
        searched(Stuck(), Uniform(GAME), GAME.initial(1), OPTIONS)


# ---------------------------------------------------------------- noise


def test_noise_is_one_draw_over_the_legal_actions_of_the_root_alone() -> None:
    network = ArbitraryNetwork(GAME, 7)
    state = position("X O · / · X · / · · O")[None]
    options = replace(OPTIONS, noise_coefficient=1.0)
    noisy = searched(GAME, network, state, options, keys("a"))
    clean = searched(GAME, network, state, options)
    count = int(GAME.legal(state).sum())
    root_priors = noisy.trees.root_scores[:count]
    assert root_priors.sum() == pytest.approx(1.0, abs=1e-6)
    assert root_priors == pytest.approx(noise_of(keys("a")[0], count, options.dirichlet_alpha), abs=1e-6)
    for node in nodes_of(noisy):
        own = noisy.trees.edges[node["first_edge"] : node["first_edge"] + node["num_edges"]]
        if len(own) == count:  # the root: its own priors stay the network's
            assert own["prior"].tolist() == clean.trees.edges[:count]["prior"].tolist()


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_noisy_and_other_roots_of_a_batch_do_not_change_each_other(root: Literal["puct", "gumbel"]) -> None:
    network, states = ArbitraryNetwork(GAME, 7), random_states(GAME, 3, 1)
    options = replace(OPTIONS, root=root, readouts=16, cache_megabytes=0)
    search = Search(GAME, network, options, 3)
    search.begin(np.array([0, 2]), states[[0, 2]])
    search.begin(np.array([1]), states[1:2], keys("a"))
    search.run()
    alone = [
        searched(GAME, network, states[place : place + 1], options, keys("a") if place == 1 else None)
        for place in range(3)
    ]
    assert visits(search).tolist() == [visits(each)[0].tolist() for each in alone]
    assert search.trees.root_scores.tolist() == [score for each in alone for score in each.trees.root_scores.tolist()]


def test_noise_is_mixed_in_by_its_coefficient() -> None:
    network = ArbitraryNetwork(GAME, 7)
    search = searched(GAME, network, GAME.initial(1), replace(OPTIONS, noise_coefficient=0.25), keys("a"))
    priors = search.result(np.array([0])).priors[0]
    expected = 0.75 * priors + 0.25 * noise_of(keys("a")[0], 9, OPTIONS.dirichlet_alpha)
    assert search.trees.root_scores == pytest.approx(expected, abs=1e-6)


def test_a_reused_root_gets_new_noise_instead_of_the_old() -> None:
    network = ArbitraryNetwork(GAME, 7)
    search = searched(GAME, network, GAME.initial(1), OPTIONS, keys("a"))
    action = visits(search).argmax(axis=1)
    state = GAME.step(GAME.initial(1), action)
    search.move(np.array([0]), action)
    search.begin(np.array([0]), state, keys("b"))
    priors = search.result(np.array([0])).priors[0][GAME.legal(state)[0]]
    raw = naive.softmax(network.infer(GAME.observe(state))[0][0][GAME.legal(state)[0]])
    assert priors == pytest.approx(raw, abs=1e-7)
    expected = 0.75 * raw + 0.25 * noise_of(keys("b")[0], 8, OPTIONS.dirichlet_alpha)
    assert search.trees.root_scores[:8] == pytest.approx(expected, abs=1e-6)


def test_without_noise_two_searches_are_the_same_and_with_noise_they_follow_their_keys() -> None:
    network = ArbitraryNetwork(GAME, 7)
    states = GAME.initial(3)
    clean = visits(searched(GAME, network, states, OPTIONS))
    assert (clean == clean[0]).all()
    options = replace(OPTIONS, noise_coefficient=0.8)
    noisy = visits(searched(GAME, network, states, options, keys("a", "b", "a")))
    assert noisy[0].tolist() != noisy[1].tolist()
    assert noisy[0].tolist() == noisy[2].tolist()


@pytest.mark.parametrize("alpha", [0.03, 0.3, 1.0, 10.0])
def test_noise_has_the_moments_of_the_dirichlet_distribution(alpha: float) -> None:
    count, draws = 4, 4000
    sample = np.array([noise_of(key, count, alpha) for key in keys(*(f"{alpha}-{n}" for n in range(draws)))])
    assert sample.sum(axis=1) == pytest.approx(1.0)
    variance = (1 / count) * (1 - 1 / count) / (count * alpha + 1)
    # Five standard errors.
    assert sample.mean(axis=0) == pytest.approx(1 / count, abs=5 * np.sqrt(variance / draws))
    assert sample.var(axis=0) == pytest.approx(variance, rel=0.12)
    theirs = np.random.default_rng(0).dirichlet([alpha] * count, draws)
    # Kolmogorov-Smirnov distance of the first component to NumPy's; exceeded with probability below 0.0001.
    grid = np.sort(np.concatenate([sample[:, 0], theirs[:, 0]]))
    distance = np.abs(
        np.searchsorted(np.sort(sample[:, 0]), grid, "right") - np.searchsorted(np.sort(theirs[:, 0]), grid, "right")
    ).max()
    assert distance / draws < 2.23 * np.sqrt(2 / draws)


# ---------------------------------------------------------------- choosing a move


def test_sampled_moves_are_drawn_in_proportion_to_the_policy() -> None:
    counts, draws = np.array([0, 10, 0, 30, 60]), 10_000
    streams = np.arange(draws, dtype=np.uint64)
    found = np.bincount(draw_actions(np.tile(counts, (draws, 1)), streams), minlength=5)
    assert found[counts == 0].sum() == 0
    expected = draws * counts[counts > 0] / counts.sum()
    # χ² with two degrees of freedom exceeds 18.4 with probability 0.0001.
    assert ((found[counts > 0] - expected) ** 2 / expected).sum() < 18.4


def test_the_naive_regularized_policy_maximizes_its_objective() -> None:
    rng = np.random.default_rng(1)
    for strength in (1e-3, 0.05, 0.5):
        for size in (1, 2, 9):
            priors, values = rng.dirichlet(np.ones(size)), rng.uniform(-1, 1, size)

            def objective(policy: Array, p: Array = priors, q: Array = values, c: float = strength) -> float:
                return float(policy @ q - c * (p * np.log(p / policy)).sum())

            policy = np.array(naive.regularized_policy(priors.tolist(), values.tolist(), strength))
            assert policy.sum() == pytest.approx(1.0, abs=1e-9)
            for other in rng.dirichlet(np.ones(size), 100):
                for share in (1e-4, 0.01, 1.0):
                    assert objective((1 - share) * policy + share * other) <= objective(policy) + 1e-12


def test_visits_tend_to_the_regularized_policy() -> None:
    class Skewed(Uniform):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            logits, values = super().infer(observations)
            return logits + np.arange(logits.shape[1], dtype=np.float32) / 2, values

    game = PlainRules(games.Results(0.3, -0.2, 0.25, 0.1))
    result = searched(game, Skewed(game), game.initial(1), replace(OPTIONS, readouts=50_000)).result(np.array([0]))
    priors, values = result.priors[0].tolist(), result.action_values[0].tolist()
    policy = naive.regularized_policy(priors, values, 1.5 * np.sqrt(50_000) / (50_000 + len(priors)))
    assert result.policies[0] == pytest.approx(policy, abs=1e-3)


def test_moves_that_are_not_sampled_have_the_highest_regularized_probability() -> None:
    states = random_states(GAME, 30, 1)
    result = searched(GAME, ArbitraryNetwork(GAME), states, OPTIONS).result(np.arange(30))
    moves = [
        naive.move_of(naive.search(GAME, ArbitraryNetwork(GAME), state, OPTIONS), OPTIONS).action for state in states
    ]
    assert result.best.tolist() == moves
    assert result.best.tolist() != result.visits.argmax(axis=1).tolist()


def test_the_first_of_equal_moves_is_played() -> None:
    result = searched(GAME, Uniform(GAME), GAME.initial(1), replace(OPTIONS, readouts=9)).result(np.array([0]))
    assert result.visits[0].tolist() == [1] * 9
    assert result.best[0] == 0


def test_with_playouts_the_most_visited_move_is_played() -> None:
    options = replace(OPTIONS, leaf="playout")
    result = searched(GAME, ArbitraryNetwork(GAME), random_states(GAME, 30, 1), options).result(np.arange(30))
    assert result.best.tolist() == result.visits.argmax(axis=1).tolist()


def test_a_billion_visits_do_not_overflow() -> None:
    counts = np.tile(np.array([0, 2**30, 2**30, 2**30], np.int32), (64, 1))
    assert set(draw_actions(counts, np.arange(64, dtype=np.uint64)).tolist()) == {1, 2, 3}


def test_numbers_of_different_streams_are_uniform_and_unrelated() -> None:
    numbers = uniform_of(np.arange(20_000, dtype=np.uint64))
    assert np.bincount((numbers * 10).astype(int), minlength=10) == pytest.approx(2000, abs=250)
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.05


# ---------------------------------------------------------------- moving the root


def test_an_action_that_was_never_searched_gives_a_fresh_root() -> None:
    class Sure(Uniform):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            logits, values = super().infer(observations)
            logits[:, 4] = 1e4
            return logits, values

    network = Sure(GAME)
    options = replace(OPTIONS, readouts=3)
    search = searched(GAME, network, GAME.initial(1), options)
    unseen = int(np.flatnonzero(visits(search)[0] == 0)[0])
    state = GAME.step(GAME.initial(1), np.array([unseen]))
    search.move(np.array([0]), np.array([unseen]))
    assert search.trees.progress[0]["num_nodes"] == 0
    search.begin(np.array([0]), state)
    search.run()
    assert visits(search).tolist() == visits(searched(GAME, network, state, options)).tolist()


def test_a_move_that_ends_the_game_leaves_an_empty_tree() -> None:
    state = position("X X · / O O · / · · ·")[None]
    search = searched(GAME, ArbitraryNetwork(GAME), state, OPTIONS)
    assert visits(search)[0, 2]
    search.move(np.array([0]), np.array([2]))
    assert search.trees.progress[0]["num_nodes"] == 0


def test_a_reset_tree_is_empty() -> None:
    network = ArbitraryNetwork(GAME, 9)
    search = searched(GAME, network, random_states(GAME, 2, 4), OPTIONS)
    search.reset(np.arange(2))
    search.begin(np.arange(2), GAME.initial(2))
    search.run()
    assert visits(search).tolist() == visits(searched(GAME, network, GAME.initial(2), OPTIONS)).tolist()


class Hurried(TicTacToe):
    """Tic-tac-toe where a win counts 1 with the fifth stone, and less with each later one."""

    def outcome(self, states: Array) -> tuple[Array, Array]:
        ended, results = super().outcome(states)
        stones = np.bitwise_count(states).sum(axis=1).astype(np.float32)
        return ended, (results * (1 - 0.9 * (stones - 5) / 4)).astype(np.float32)


@pytest.mark.parametrize("leaf", ["value", "playout"])
def test_fast_wins_search_as_if_the_rules_gave_those_results(leaf: Leaf) -> None:
    states, options = random_states(GAME, 30, seed=3), replace(OPTIONS, leaf=leaf)
    trees = np.arange(len(states))
    network = ArbitraryNetwork(GAME)
    found = searched(GAME, network, states, replace(options, fast_wins=0.9)).result(trees)
    expected = searched(Hurried(), network, states, options).result(trees)
    np.testing.assert_array_equal(found.visits, expected.visits)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-6)
    assert (found.visits != searched(GAME, network, states, options).result(trees).visits).any()


def test_known_results_need_no_network_and_prove_more() -> None:
    game, states = knows_the_end.GAME, random_states(GAME, 40, seed=5)
    trees, options = np.arange(len(states)), replace(OPTIONS, readouts=200, solver=True)
    without = searched(game, ArbitraryNetwork(game), states, options)
    search = searched(game, ArbitraryNetwork(game), states, replace(options, known_results=True))
    assert search.counters.evaluations < without.counters.evaluations
    found, before = search.result(trees), without.result(trees)
    assert found.proven.sum() > before.proven.sum()
    for tree in trees[found.proven]:
        assert found.values[tree] == np.nanmax(action_results(states[tree], 0.0).results)


@pytest.mark.parametrize("solver", [False, True])
def test_a_tree_goes_on_from_a_position_whose_result_is_known(solver: bool) -> None:
    game = knows_the_end.GAME
    options = replace(OPTIONS, solver=solver, known_results=True)
    state = position("X O X · O · · · ·")
    search = searched(game, ArbitraryNetwork(game), state[None], options)
    while not game.outcome(state[None])[0][0]:
        best = search.result(np.array([0])).best
        search.move(np.array([0]), best)
        (state,) = game.step(state[None], best)
        if not game.outcome(state[None])[0][0]:
            search.begin(np.array([0]), state[None])
            search.run()
            check_invariants(search)


def test_fast_wins_exclude_known_results() -> None:
    message = r"^fast_wins must be 0 with known_results, which do not tell when a game ends, not 0\.5$"
    with pytest.raises(SettingsError, match=message):
        SearchOptions(fast_wins=0.5, known_results=True, solver=False)


def test_known_results_need_a_game_that_offers_them() -> None:
    with pytest.raises(
        SettingsError, match=r"^known_results needs a game that offers known_results\(states\), but tictactoe does not"
    ):
        Search(GAME, Uniform(GAME), SearchOptions(known_results=True, solver=False), 1)


def test_fast_wins_exclude_the_solver() -> None:
    with pytest.raises(SettingsError, match=r"^fast_wins must be 0 with solver, which proves results, not 0\.5$"):
        SearchOptions(fast_wins=0.5, solver=True)


def test_fast_wins_need_a_game_with_progress() -> None:
    game = PlainRules(games.NIM)
    with pytest.raises(
        SettingsError, match=r"^fast_wins needs a game that offers progress\(states\), but nim does not"
    ):
        Search(game, Uniform(game), SearchOptions(fast_wins=0.5, solver=False), 1)
