"""Analysis: readouts add up and stop when asked, and all figures come from the search."""

import numpy as np
import pytest
from reference import ArbitraryNetwork

from seraphim.options import SearchOptions
from seraphim.search.analysis import Analysis
from seraphim.search.naive import softmax
from seraphim.search.search import Search
from tictactoe.game import TicTacToe

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
    assert {each.action: each.visits for each in analysis.candidates()} == dict(enumerate(result.visits[0].tolist()))
    assert analysis.best == result.best[0]


def test_without_readouts_the_policy_the_move_and_the_value_are_the_networks() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.play(0)
    assert analysis.more(0) == 0
    logits, values = NETWORK.infer(GAME.observe(analysis.state[None]))
    assert analysis.policy.tolist() == pytest.approx([0, *softmax(logits[0, 1:])])
    assert analysis.best == 1 + np.argmax(logits[0, 1:]) > 1
    assert analysis.value == values[0]


def test_an_analysis_stops_when_asked_and_can_go_on() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    asked = []

    def stop() -> bool:
        asked.append(True)
        return len(asked) >= 5

    spent = analysis.more(100_000, stop)
    assert 0 < spent < 100
    assert sum(each.visits for each in analysis.candidates()) == spent
    assert analysis.more(50) == 50
    assert sum(each.visits for each in analysis.candidates()) == spent + 50


def test_the_best_move_comes_first_even_with_fewer_visits() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS, leaves=1)
    analysis.more(100)
    first, second, *_ = analysis.candidates()
    assert first.action == analysis.best
    assert first.visits < second.visits


def test_candidates_show_what_the_search_is_made_of() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS, leaves=1)
    analysis.more(200)
    candidates = analysis.candidates()
    first, *others = candidates
    assert first.action == analysis.best
    assert [each.visits for each in others] == sorted((each.visits for each in others), reverse=True)
    assert sum(each.prior for each in candidates) == pytest.approx(1.0, abs=1e-6)
    assert sum(each.share for each in candidates) == pytest.approx(1.0)
    for each in candidates:
        assert each.searched_prior == each.prior
        assert each.u == pytest.approx(OPTIONS.cpuct * each.prior * np.sqrt(201) / (1 + each.visits))
        assert each.variation[0] == each.action
    # One readout more goes where Q + U is highest.
    favorite = max(candidates, key=lambda each: each.q + each.u)
    analysis.more(1)
    assert {each.action: each.visits for each in analysis.candidates()}[favorite.action] == favorite.visits + 1


def test_a_variation_is_a_legal_line() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.more(300)
    state = GAME.initial(1)
    line = analysis.candidates()[0].variation
    assert len(line) >= 3
    for action in line:
        assert GAME.legal(state)[0, action]
        state = GAME.step(state, np.array([action]))


def test_a_move_keeps_the_tree_below_it() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.more(300)
    favorite = analysis.candidates()[0]
    value = -favorite.q
    analysis.play(favorite.action)
    assert sum(each.visits for each in analysis.candidates()) == favorite.visits - 1
    assert analysis.value == pytest.approx(value, abs=0.1)
    analysis.start(GAME.initial(1)[0])
    assert analysis.more(10) == 10
    assert sum(each.visits for each in analysis.candidates()) == 10


def test_a_proven_position_needs_no_more_readouts() -> None:
    analysis = Analysis(GAME, NETWORK, SearchOptions(solver=True))
    analysis.start(np.array([0b000_000_011, 0b000_011_000]))  # X wins at a3
    analysis.more(500)
    assert analysis.value == 1.0
    assert analysis.best == 2
    assert next(each for each in analysis.candidates() if each.action == 2).proven
    assert analysis.more(500) == 0


def test_noise_shows_in_the_searched_priors_only() -> None:
    analysis = Analysis(GAME, NETWORK, OPTIONS)
    analysis.more(20, noise_key=7)
    assert any(abs(each.searched_prior - each.prior) > 0.01 for each in analysis.candidates())
    assert sum(each.searched_prior for each in analysis.candidates()) == pytest.approx(1.0, abs=1e-5)
