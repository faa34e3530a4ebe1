"""The search where chance moves, or one player plays alone.

The naive one by its definitions and against exact values, the compiled one against the naive one.
"""

from typing import Any

import numpy as np
import pytest
from reference import ArbitraryNetwork

import seraphim
from pig.game import Pig
from seraphim.errors import GameError, SettingsError
from seraphim.game import CHANCE, Array, Game, PlainGame, PlainRules
from seraphim.game.exhaustive import Solution, solve
from seraphim.game.notation import followers
from seraphim.options import SearchOptions
from seraphim.search import naive
from seraphim.search.evaluator import Uniform
from seraphim.search.search import Search
from twenty48.game import Twenty48

PUCT = SearchOptions(readouts=60, root="puct", solver=False, cache_megabytes=0)


class Lottery(PlainGame):
    """Stop, or draw a ticket: half of them win, a third lose, the others go on to another draw.

    By `winner`, the tickets are good for player 0 or for player 1; after a draw the other player moves.
    """

    name = "lottery"
    num_actions = 2
    num_chance_outcomes = 5  # of which the first and the last are impossible
    observation_shape = (2,)
    state_words = (
        3  # the player, whether a ticket is drawn, and how it ended: 2 for a win of player 0, 1 a loss, 3 even
    )
    max_plies = 50
    odds = (0.0, 1 / 2, 1 / 3, 1 / 6, 0.0)

    def initial(self) -> tuple[int, ...]:
        return (0, 0, 0)

    def step(self, state: Any, action: int) -> tuple[int, ...]:
        player, drawn, _ = state
        if drawn:
            ended = {1: 2 if player == 0 else 1, 2: 1 if player == 0 else 2}.get(action, 0)
            return (1 - player, 0, ended)
        return (player, 1, 0) if action == 1 else (player, 0, 3)

    def legal(self, state: Any) -> list[int]:
        return [0, 1]

    def to_play(self, state: Any) -> int:
        return CHANCE if state[1] else state[0]

    def chances(self, state: Any) -> tuple[float, ...]:
        return self.odds

    def outcome(self, state: Any) -> float | None:
        return {1: -1.0, 2: 1.0, 3: 0.0}.get(state[2])

    def observe(self, state: Any) -> Array:
        return np.array([state[0], 1])


class WithValues:
    """A game that observes its states, and a network that knows their exact values."""

    def __init__(self, game: Game, solution: Solution) -> None:
        banked = naive.features_of(game).banked
        kept = game.state_words - (naive.features_of(game).bank_words or 0)
        before = np.zeros(len(solution.states)) if banked is None else banked(solution.states)[:, 0]
        self.game, self.kept = game, kept
        self.known = dict(zip((s[:kept].tobytes() for s in solution.states), solution.results - before, strict=True))
        self.name = self.description = "exact"
        self.overlaps = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.game, name)

    def observe(self, states: Array) -> Array:
        return states

    def infer(self, states: Array) -> tuple[Array, Array]:
        values = np.array([self.known[state[: self.kept].tobytes()] for state in states])
        scale = naive.features_of(self.game).value_scale or 1.0
        signs = np.where(self.game.to_play(states) == 1, -1, 1) / scale
        return np.zeros((len(states), self.game.num_actions), np.float32), (signs * values).astype(np.float32)


def choices(game: Game, solution: Solution, count: int) -> list[int]:
    """Positions in which there is a choice, drawn at random."""
    several = np.flatnonzero((~np.isnan(solution.action_values)).sum(axis=1) > 1)
    return np.random.default_rng(0).permutation(several)[:count].tolist()


@pytest.mark.parametrize("root", ["puct", "gumbel"])
@pytest.mark.parametrize("game", [Pig(10), Twenty48(2, 2)], ids=lambda game: game.name)
def test_with_exact_values_hardly_a_move_loses_anything(game: Game, root: str) -> None:
    solution = solve(game)
    both: Any = WithValues(game, solution)
    options = SearchOptions(readouts=60, root=root, solver=False, cache_megabytes=0)
    regrets = []
    for row in choices(game, solution, 25):
        found = naive.search(both, both, solution.states[row], options)
        values = solution.action_values[row]
        regrets.append(np.nanmax(values) - values[naive.move_of(found, options).action])
    assert np.mean(regrets) < 0.005


def children(node: naive.Node | None) -> list[naive.Node]:
    return [] if node is None else [edge.child for edge in node.edges if edge.child is not None]


def test_outcomes_are_drawn_by_their_probabilities_and_evenly() -> None:
    def draw(outcomes: dict[int, float], offset: float, visits: int) -> int:
        edges = [naive.Edge(outcome, np.float32(share), np.float32(share)) for outcome, share in outcomes.items()]
        return naive.drawn_edge(naive.Node(np.zeros(1), 0, None, visits=visits, edges=edges, offset=offset)).action

    chances = {1: 0.5, 2: 0.3, 4: 0.2}
    drawn = np.array([draw(chances, 0.4, visits) for visits in range(1000)])
    for count in (10, 100, 1000):
        shares = np.bincount(drawn[:count], minlength=6) / count
        assert abs(shares - [chances.get(k, 0) for k in range(6)]).max() < 2 / count  # random draws: 1 / sqrt(count)
    assert set(drawn.tolist()) == {1, 2, 4}
    assert draw({1: 1.0}, 0.999, 12345) == 1


def test_the_moves_of_a_position_draw_the_same_outcomes_and_other_positions_others() -> None:
    game = Twenty48(2, 2)
    state = game.initial(1)
    for outcome in (0, 6):
        state = game.step(state, np.array([outcome]))
    root = naive.search(game, Uniform(game), state[0], PUCT)
    by_chance = [child for child in children(root) if child.offset is not None]
    assert len(by_chance) == 4
    assert len({node.offset for node in by_chance}) == 1
    later = {below.offset for node in by_chance for child in children(node) for below in children(child)} - {None}
    assert len(later) > 2
    assert by_chance[0].offset not in later


@pytest.mark.parametrize("solver", [False, True])
def test_a_value_is_the_expectation_and_no_sign_turns_at_chance(solver: bool) -> None:
    game = PlainRules(Lottery())
    options = SearchOptions(readouts=400, root="puct", solver=solver, cache_megabytes=0)
    solution = solve(game)
    # A draw is worth 1/2 - 1/3 and a sixth of the opponent's best, which is to draw as well: x = 1/6 - x/6.
    assert solution.results[0] == pytest.approx(1 / 7, abs=1e-6)
    for player in (0, 1):
        state = np.array([player, 0, 0])
        root = naive.search(game, Uniform(game), state, options)
        stop, draw = root.edges
        assert stop.means[player] == 0
        assert draw.means[player] == pytest.approx(1 / 7, abs=0.02)
        assert naive.move_of(root, options) is draw
        assert draw.child is not None
        assert draw.child.mover == player  # chance has the seat of the player before


def test_chance_is_proven_when_all_its_outcomes_are() -> None:
    class Once(Lottery):
        odds = (0.0, 1 / 2, 1 / 3, 0.0, 1 / 6)
        name = "lottery of one draw"

        def step(self, state: Any, action: int) -> tuple[int, ...]:
            return (1 - state[0], 0, 3) if state[1] and action == 4 else super().step(state, action)

    game = PlainRules(Once())
    options = SearchOptions(readouts=100, root="puct")
    for player in (0, 1):
        search, tree = Search(game, Uniform(game), options, 1), np.array([0])
        search.begin(tree, np.array([[player, 0, 0]]))
        search.run()
        assert search.result(tree).proven.all()
        assert search.result(tree).values[0] == pytest.approx(1 / 6, abs=1e-6)
    root = naive.search(game, Uniform(game), game.initial(1)[0], options)
    found = naive.exact(root)
    assert found is not None
    assert found[0].tolist() == pytest.approx([1 / 6, -1 / 6])
    assert found[1] == 2
    assert root.visits < 20  # it stops there


def test_a_win_by_every_outcome_is_a_win_though_their_probabilities_are_rounded() -> None:
    class Sure(Lottery):
        num_chance_outcomes = 47  # in single precision their probabilities add up to less than 1
        odds = (1 / 47,) * 47

        def step(self, state: Any, action: int) -> tuple[int, ...]:
            return (1 - state[0], 0, 2 - state[0]) if state[1] else super().step(state, action)

    game = PlainRules(Sure())
    search, tree = Search(game, Uniform(game), SearchOptions(readouts=400, root="puct"), 1), np.array([0])
    search.begin(tree, game.initial(1))
    search.run()
    root = naive.search(game, Uniform(game), game.initial(1)[0], search.options)
    found = naive.exact(root)
    assert found is not None
    assert (search.result(tree).values[0], found[0].tolist(), found[1]) == (1, [1, -1], 2)
    assert search.result(tree).visits[0].tolist() == naive.visits(root, 2).tolist()


def test_what_is_banked_counts_once() -> None:
    game = Twenty48(2, 2)
    network: Any = WithValues(game, solve(game))
    state = np.array([0x1122, 0, 500])  # two pairs, and a score of before
    root = naive.evaluate(network, network, state)
    (exact_value,) = (network.known[state[:2].tobytes()],)
    assert root.value == pytest.approx(500 / game.points + exact_value, abs=1e-6)
    other = naive.search(network, network, np.array([0x1122, 0, 0]), PUCT)
    same = naive.search(network, network, state, PUCT)
    assert naive.visits(same, 4).tolist() == naive.visits(other, 4).tolist()  # only the rest decides


def test_of_one_player_results_that_are_close_together_are_told_apart() -> None:
    large, small = Twenty48(2, 2), Twenty48(2, 2)
    small.points = 1000 * large.points  # the same game in a currency of little value
    found = []
    for game in (large, small):
        network: Any = WithValues(game, solve(game))
        found.append(naive.visits(naive.search(network, network, np.array([0x1102, 0, 0]), PUCT), 4))
    assert np.abs(found[0] - found[1]).max() <= 1
    assert found[0].max() > 30


@pytest.mark.parametrize("game", [Pig(10), PlainRules(Lottery()), Twenty48(2, 2)], ids=lambda game: game.name)
def test_what_cannot_play_such_a_game_says_so(game: Game) -> None:
    with pytest.raises(GameError, match="which is not played here: learn, evaluate, play and arena take it$"):
        seraphim.prove(game=game)


# ---------------------------------------------------------------- the compiled search

GAMES = [Pig(20), Twenty48(2, 2), Twenty48(2, 3), PlainRules(Lottery())]


def played(game: Game, count: int, seed: int = 0) -> Array:
    """Unfinished positions int64 [count, W] in which a player moves, after up to 25 random moves and outcomes."""
    rng, found = np.random.default_rng(seed), list[Array]()
    while len(found) < count:
        state = game.initial(1)
        for _ in range(rng.integers(0, 25)):
            possible = np.flatnonzero(followers(game, state)[0])
            state = game.step(state, rng.choice(possible, 1)) if len(possible) else state
        if game.legal(state)[0].any():
            found.append(state[0])
    return np.stack(found)


@pytest.mark.parametrize(
    ("root", "leaf", "solver", "cache"),  # each value of one with each of another
    [
        ("puct", "value", False, 0),
        ("puct", "playout", True, 1),
        ("gumbel", "value", True, 1),
        ("gumbel", "playout", False, 0),
    ],
)
@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_it_equals_the_naive_search(game: Game, root: str, leaf: str, solver: bool, cache: int) -> None:
    network, states = ArbitraryNetwork(game), played(game, 6)
    options = SearchOptions(readouts=50, root=root, leaf=leaf, solver=solver, cache_megabytes=cache)
    search, trees = Search(game, network, options, len(states)), np.arange(len(states))
    search.begin(trees, states)
    search.run()
    found = search.result(trees)
    for tree, state in enumerate(states):
        root_node = naive.search(game, network, state, options)
        exact = naive.exact(root_node) if solver else None
        assert found.visits[tree].tolist() == naive.visits(root_node, game.num_actions).tolist()
        assert bool(found.proven[tree]) == (exact is not None)
        if exact is None:
            assert found.best[tree] == naive.move_of(root_node, options).action
            assert found.values[tree] == pytest.approx(naive.values_of(root_node, options)[root_node.mover], abs=1e-5)
        else:
            assert found.values[tree] == pytest.approx(exact[0][root_node.mover], abs=1e-6)


@pytest.mark.parametrize("solver", [False, True])
@pytest.mark.parametrize("game", GAMES[:3], ids=lambda game: game.name)
def test_a_tree_is_reused_after_a_move_and_its_outcomes(game: Game, solver: bool) -> None:
    network = ArbitraryNetwork(game)
    options = SearchOptions(readouts=40, root="puct", solver=solver, cache_megabytes=1)
    search, tree = Search(game, network, options, 1), np.array([0])
    (state,) = played(game, 1)
    root: naive.Node | None = None
    rng, moved = np.random.default_rng(0), 0
    for _ in range(8):
        search.begin(tree, state[None])
        search.run()
        root = naive.search(game, network, state, options, root=root)
        assert search.result(tree).visits[0].tolist() == naive.visits(root, game.num_actions).tolist()
        action = int(search.result(tree).best[0])
        node = next(edge.child for edge in root.edges if edge.action == action)
        while True:
            search.move(tree, np.array([action]))
            state = game.step(state[None], np.array([action]))[0]
            possible = np.flatnonzero(followers(game, state[None])[0])
            if game.to_play(state[None])[0] != CHANCE or not len(possible):
                break
            action = int(rng.choice(possible))
            following = game.step(state[None], np.array([action]))[0]
            node = next((child for child in children(node) if (child.state == following).all()), None)
        moved += 1
        root = node
        if not len(possible):
            break
    assert moved > 1


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_several_leaves_at_a_time_find_nearly_the_same(game: Game) -> None:
    network, states = ArbitraryNetwork(game), played(game, 4)
    options = SearchOptions(readouts=400, root="puct", solver=False, cache_megabytes=0)
    found = []
    for leaves in (1, 8):
        search, trees = Search(game, network, options, len(states), leaves=leaves), np.arange(len(states))
        search.begin(trees, states)
        search.run()
        found.append(search.result(trees))
        assert not search.trees.edges["pending"].any()
        assert (search.trees.rows["node"] == -1).all()
        chance = search.trees.nodes[search.trees.nodes["chance"] == 1]
        assert len(chance) >= 4
        for node in chance:  # each readout went on by an outcome, about as often as it is probable
            edges = search.trees.edges[node["first_edge"] : node["first_edge"] + node["num_edges"]]
            assert edges["visits"].sum() == node["visits"]
            assert edges["prior"].sum() == pytest.approx(1, abs=1e-6)
            # Readouts that were withdrawn, as another one waited for the same leaf, leave gaps among several; in the
            # expectation an outcome has its probability all the same.
            most = 2.5 if leaves == 1 else 4 + node["visits"] / 20
            assert abs(edges["visits"] - node["visits"] * edges["prior"]).max() < most
    assert found[0].visits.sum(axis=1).tolist() == found[1].visits.sum(axis=1).tolist()
    assert np.abs(found[0].values - found[1].values).max() < 0.1


def test_positions_that_differ_in_the_bank_share_their_evaluations() -> None:
    game = Twenty48(2, 3)
    options = SearchOptions(readouts=60, root="puct", solver=False, cache_megabytes=1)
    state = played(game, 1)
    richer = state + np.array([0, 0, 40])
    network = ArbitraryNetwork(game)
    search = Search(game, network, options, 1)
    search.begin(np.array([0]), state)
    search.run()
    asked, visits = network.positions, search.result(np.array([0])).visits
    search.reset(np.array([0]))
    search.begin(np.array([0]), richer)
    search.run()
    assert network.positions == asked
    assert np.array_equal(search.result(np.array([0])).visits, visits)


def test_the_value_scale_applies_to_the_network_alone() -> None:
    game = Twenty48(2, 2)
    game.value_scale = 0.25  # type: ignore[attr-defined]
    network, states = ArbitraryNetwork(game), played(game, 4)
    search, trees = Search(game, network, PUCT, len(states)), np.arange(len(states))
    search.begin(trees, states, readouts=0)
    search.run()
    values = 0.25 * network.infer(game.observe(states))[1] + game.banked(states)[:, 0]
    assert search.result(trees).values == pytest.approx(values, abs=1e-6)
    search.begin(trees, states)
    search.run()
    for tree, state in enumerate(states):
        root = naive.search(game, network, state, PUCT)
        assert search.result(trees).visits[tree].tolist() == naive.visits(root, 4).tolist()


def test_the_value_scale_applies_without_a_bank_as_well() -> None:
    game = PlainRules(Lottery())
    game.value_scale = 0.25  # type: ignore[attr-defined]
    network, state = ArbitraryNetwork(game), game.initial(1)
    search, tree = Search(game, network, PUCT, 1), np.array([0])
    search.begin(tree, state, readouts=0)
    search.run()
    assert search.result(tree).values == pytest.approx(0.25 * network.infer(game.observe(state))[1], abs=1e-6)


def test_more_outcomes_than_a_search_has_room_for_are_refused() -> None:
    class Many(Lottery):
        num_chance_outcomes = 2**16 + 1

    game = PlainRules(Many())
    with pytest.raises(SettingsError, match="65,537 outcomes of chance"):
        Search(game, Uniform(game), PUCT, 1)


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_a_result_that_is_known_where_chance_moves_counts(root: str) -> None:
    class Told(Lottery):
        def known_results(self, state: Any) -> float | None:
            return (1 / 7 if state[0] == 0 else -1 / 7) if state[1] else None

    game = PlainRules(Told())
    options = SearchOptions(readouts=20, root=root, known_results=True, cache_megabytes=0)
    search, tree = Search(game, Uniform(game), options, 1), np.array([0])
    search.begin(tree, game.initial(1))
    search.run()
    assert search.result(tree).proven.all()
    found = naive.exact(naive.search(game, Uniform(game), game.initial(1)[0], options))
    assert found is not None
    assert found[0][0] == pytest.approx(float(search.result(tree).values[0]), abs=1e-6)
    assert found[0] == pytest.approx([1 / 7, -1 / 7], abs=1e-6)
