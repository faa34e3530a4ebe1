"""Analysis: readouts add up and stop when asked, and all figures come from the search."""

import numpy as np
import pytest
from reference import ArbitraryNetwork

from pig.game import Pig
from seraphim.errors import SettingsError
from seraphim.game import CHANCE, Game
from seraphim.game.notation import first_choice, followers, parse_moves
from seraphim.options import SearchOptions
from seraphim.search import naive
from seraphim.search.analysis import Analysis
from seraphim.search.evaluator import Uniform
from seraphim.search.naive import softmax
from seraphim.search.search import Search
from tictactoe.game import TicTacToe
from twenty48.game import Twenty48

pytestmark = pytest.mark.kernels

GAME = TicTacToe()
NETWORK = ArbitraryNetwork(GAME, 2)
OPTIONS = SearchOptions(readouts=100, solver=False)


def test_readouts_in_portions_equal_all_at_once() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS, leaves=1)
    assert [analysis.more(readouts) for readouts in (1, 30, 69)] == [1, 30, 69]
    search = Search(GAME, NETWORK, OPTIONS, 1)
    search.begin(np.array([0]), GAME.initial(1))
    search.run()
    result = search.result(np.array([0]))
    assert {each.action: each.visits for each in analysis.result().moves} == dict(enumerate(result.visits[0].tolist()))
    assert analysis.result().best_action == result.best[0]


def test_without_readouts_the_policy_the_move_and_the_value_are_the_networks() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.play(0)
    assert analysis.more(0) == 0
    with pytest.raises(SettingsError, match="readouts must be at least 0, not -1"):
        analysis.more(-1)
    logits, values = NETWORK.infer(GAME.observe(analysis.state[None]))
    assert analysis.policy.tolist() == pytest.approx([0, *softmax(logits[0, 1:])])
    assert analysis.result().best_action == 1 + np.argmax(logits[0, 1:]) > 1
    assert analysis.result().value == values[0]


def test_what_was_found_has_labels_and_the_figures_of_the_latest_search() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.play(4)
    analysis.more(40)
    analysis.more(25)
    found = analysis.result()
    assert (found.readouts, found.new_readouts, found.to_play) == (65, 25, 1)
    assert found.board == GAME.render(analysis.state)
    assert (found.best, found.moves[0].label) == (GAME.action_label(found.best_action), found.best)
    assert found.seconds > 0
    for move in found.moves:
        assert move.variation == tuple(GAME.action_label(action) for action in move.actions)
    told = found.to_dict()
    assert (told["best"], told["readouts"], told["value_first"]) == (found.best_action, 65, -found.value)
    assert told["readouts_per_second"] == round(25 / found.seconds)
    assert [each["q"] for each in told["candidates"]] == [move.value for move in found.moves]
    analysis.start(GAME.initial(1)[0])
    analysis.more(10)
    assert (analysis.result().readouts, analysis.result().new_readouts) == (10, 10)


def test_an_analysis_stops_when_asked_and_can_go_on() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    asked = []

    def stop() -> bool:
        asked.append(True)
        return len(asked) >= 5

    spent = analysis.more(100_000, stop)
    assert 0 < spent < 100
    assert sum(each.visits for each in analysis.result().moves) == spent
    assert analysis.more(50) == 50
    assert sum(each.visits for each in analysis.result().moves) == spent + 50


def test_the_best_move_comes_first_even_with_fewer_visits() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS, leaves=1)
    analysis.more(100)
    first, second, *_ = analysis.result().moves
    assert first.action == analysis.result().best_action
    assert first.visits < second.visits


def test_candidates_show_what_the_search_is_made_of() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS, leaves=1)
    analysis.more(200)
    candidates = analysis.result().moves
    first, *others = candidates
    assert first.action == analysis.result().best_action
    assert [each.visits for each in others] == sorted((each.visits for each in others), reverse=True)
    assert sum(each.prior for each in candidates) == pytest.approx(1.0, abs=1e-6)
    assert sum(each.share for each in candidates) == pytest.approx(1.0)
    for each in candidates:
        assert each.searched_prior == each.prior
        assert each.u == pytest.approx(OPTIONS.cpuct * each.prior * np.sqrt(201) / (1 + each.visits))
        assert each.actions[0] == each.action
    # One readout more goes where Q + U is highest.
    favorite = max(candidates, key=lambda each: each.value + each.u)
    analysis.more(1)
    assert {each.action: each.visits for each in analysis.result().moves}[favorite.action] == favorite.visits + 1


def test_a_variation_is_a_legal_line() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.more(300)
    state = GAME.initial(1)
    line = analysis.result().moves[0].actions
    assert len(line) >= 3
    for action in line:
        assert GAME.legal(state)[0, action]
        state = GAME.step(state, np.array([action]))


def test_a_move_keeps_the_tree_below_it() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.more(300)
    favorite = analysis.result().moves[0]
    value = -favorite.value
    analysis.play(favorite.action)
    assert sum(each.visits for each in analysis.result().moves) == favorite.visits - 1
    assert analysis.result().value == pytest.approx(value, abs=0.1)
    analysis.start(GAME.initial(1)[0])
    assert analysis.more(10) == 10
    assert sum(each.visits for each in analysis.result().moves) == 10


def test_a_proven_position_needs_no_more_readouts() -> None:
    analysis = Analysis(GAME, NETWORK, SearchOptions(solver=True))
    analysis.start(np.array([0b000_000_011, 0b000_011_000]))  # X wins at a3
    analysis.more(500)
    assert analysis.result().value == 1.0
    assert analysis.result().best_action == 2
    assert next(each for each in analysis.result().moves if each.action == 2).proven
    assert analysis.more(500) == 0


def test_noise_shows_in_the_searched_priors_only() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.more(20, noise_key=7)
    assert any(abs(each.searched_prior - each.prior) > 0.01 for each in analysis.result().moves)
    assert sum(each.searched_prior for each in analysis.result().moves) == pytest.approx(1.0, abs=1e-5)


# ---------------------------------------------------------------- chance, and one player


@pytest.mark.parametrize("game", [Pig(20), Twenty48(2, 3)], ids=lambda game: game.name)
def test_where_chance_moves_the_figures_are_those_of_the_naive_search(game: Game) -> None:
    network, options = ArbitraryNetwork(game), SearchOptions(readouts=80, root="puct", solver=False, cache_megabytes=0)
    analysis = Analysis(game, network, options, leaves=1)
    state, random = first_choice(game), np.random.default_rng(2)
    for _ in range(6):
        analysis.start(state)
        analysis.more(80)
        found, root = analysis.result(), naive.search(game, network, state, options)
        assert found.best_action == naive.move_of(root, options).action
        assert found.to_play == game.to_play(state[None])[0]
        assert found.value == pytest.approx(naive.values_of(root, options)[root.mover], abs=1e-5)
        assert found.points == getattr(game, "points", None)
        for edge in root.edges:
            (move,) = (each for each in found.moves if each.action == edge.action)
            assert move.visits == len(edge.returns)
            assert move.value == pytest.approx(edge.means[root.mover] if edge.returns else 0, abs=1e-5)
        state = game.step(state[None], np.array([found.best_action]))[0]
        while game.to_play(state[None])[0] == CHANCE:
            state = game.step(state[None], random.choice(np.flatnonzero(followers(game, state[None])[0]), 1))[0]


@pytest.mark.parametrize("game", [Pig(20), Twenty48(2, 3)], ids=lambda game: game.name)
def test_variations_contain_the_most_visited_outcomes(game: Game) -> None:
    analysis = Analysis(game, ArbitraryNetwork(game), OPTIONS)
    start = first_choice(game)
    analysis.start(start)
    analysis.more(400)
    longest = max(analysis.result().moves, key=lambda move: len(move.actions))
    assert parse_moves(game, " ".join(longest.variation), start) == list(longest.actions)
    trees = analysis._search.trees
    state, node, outcomes = start, 0, 0
    for action in longest.actions:
        assert followers(game, state[None])[0, action]
        first, count = trees.nodes[node]["first_edge"], trees.nodes[node]["num_edges"]
        edges = trees.edges[first : first + count]
        (edge,) = edges[edges["action"] == action]
        assert node == 0 or edge["visits"] == edges["visits"].max()
        outcomes += game.to_play(state[None])[0] == CHANCE
        state, node = game.step(state[None], np.array([action]))[0], int(edge["child"])
    assert outcomes >= 2


def test_a_tree_follows_a_move_and_its_outcome() -> None:
    game = Pig(20)
    analysis = Analysis(game, ArbitraryNetwork(game), OPTIONS)
    analysis.more(300)
    for action in (0, 4):  # roll, a 5
        analysis.play(action)
    assert analysis.more(0) == 0
    kept = analysis.result().readouts
    assert 300 / 6 / 2 < kept < 300 / 6 * 2
    assert analysis.more(10) == 10
    assert analysis.result().readouts == kept + 10


def test_values_are_shown_in_points_where_there_are_some() -> None:
    game = Twenty48(2, 2)
    analysis = Analysis(game, Uniform(game), OPTIONS)
    analysis.start(np.array([0x1122, 0, 8]))
    analysis.more(60)
    found = analysis.result()
    shown = f"{found.points * found.value:+,.1f}"  # type: ignore[operator]
    assert float(shown) >= 8
    assert f"value {shown}, " in str(found)
    assert f"{found.points * found.moves[0].value:+,.1f}" in str(found).splitlines()[2]  # type: ignore[operator]
    assert f"<td>{found.points * found.moves[0].value:+,.1f}" in found._repr_html_()  # type: ignore[operator]
