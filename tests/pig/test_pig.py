"""Pig: its rules in two forms, and its exact solution in two ways and against published values."""

import numpy as np
import pytest

from pig.game import GAME, Pig
from pig.optimal import perfect_actions
from pig.optimal import solve as solve_pig
from pig.plain import PlainPig
from pig.rules import HOLD, ROLL
from seraphim.errors import GameError
from seraphim.game import PlainRules, load_game
from seraphim.game.conformance import check_agreement, check_game
from seraphim.game.exhaustive import solve

# Expected wins of the player who begins, to some points (value iteration of our own, of several programs).
FIRST_WINS = {10: 0.709424, 20: 0.615559, 50: 0.546151}


@pytest.mark.parametrize("target", [10, 100])
def test_both_forms_keep_the_contract_and_are_the_same_game(target: int) -> None:
    assert load_game("pig") is GAME
    check_game(Pig(target), games=40)
    check_game(PlainPig(target), games=20)
    check_agreement(Pig(target), PlainRules(PlainPig(target)), games=40)


@pytest.mark.parametrize("target", [10, 20])
def test_the_exhaustive_solution_is_that_of_value_iteration_and_the_published_one(target: int) -> None:
    solution, own = solve(Pig(target)), solve_pig(target)
    assert (1 + solution.results[0]) / 2 == pytest.approx(FIRST_WINS[target], abs=5e-7)
    assert solution.longest is None
    assert "games need not end" in str(solution)
    for state, values in zip(solution.states, solution.action_values, strict=True):
        first, second, turn, player, _ = state.tolist()
        scores = (first, second)
        if np.isnan(values).all() or scores[player] + turn >= target:
            continue
        found = own.roll[scores[player], scores[1 - player], turn], own.hold[scores[player], scores[1 - player], turn]
        assert values[ROLL] == pytest.approx(2 * found[0] - 1, abs=1e-6)
        assert np.isnan(values[HOLD]) if turn == 0 else values[HOLD] == pytest.approx(2 * found[1] - 1, abs=1e-6)


def test_the_first_player_wins_as_often_as_neller_and_presser_say() -> None:
    assert solve_pig(50).best[0, 0, 0] == pytest.approx(FIRST_WINS[50], abs=5e-7)
    assert solve_pig(100).best[0, 0, 0] == pytest.approx(0.530593, abs=5e-7)


def test_a_turn_ends_by_a_one_or_by_holding() -> None:
    game = Pig(20)
    state = game.initial(1)
    for action, expected in ((ROLL, (0, 0, 0, 0, 1)), (4, (0, 0, 5, 0, 0)), (HOLD, (5, 0, 0, 1, 0)), (ROLL, None)):
        state = game.step(state, np.array([action]))
        assert expected is None or tuple(state[0].tolist()) == expected
    assert game.step(state, np.array([0]))[0].tolist() == [5, 0, 0, 0, 0]  # a 1: the other player's turn, for nothing
    assert game.render(state[0]) == "player 0:   5\nplayer 1:   0  +0  rolls"


def test_only_positions_of_the_game_are_positions() -> None:
    game = Pig(20)
    good = [[0, 0, 0, 0, 0], [19, 3, 0, 1, 1], [25, 3, 0, 1, 0]]
    bad = [
        [0, 0, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 1, 0, 1, 1],
        [0, 0, 0, 2, 0],
        [0, 0, -1, 0, 0],
        [20, 0, 0, 0, 0],
        [26, 0, 0, 1, 0],
        [15, 0, 5, 0, 1],
    ]
    assert all(game.is_position(np.array(words)) for words in good)
    assert not any(game.is_position(np.array(words)) for words in bad)


def test_moves_have_names() -> None:
    assert [GAME.parse_action(text) for text in ("roll", " HOLD ")] == [ROLL, HOLD]
    with pytest.raises(GameError, match="expected roll or hold"):
        GAME.parse_action("stay")


@pytest.mark.slow
def test_the_best_moves_are_those_of_the_exhaustive_solution() -> None:
    solution = solve(GAME)
    states = solution.states[~np.isnan(solution.action_values).all(axis=1)]
    best = perfect_actions(states)
    assert (best & GAME.legal(states)).any(axis=1).all()
    assert not (best & ~solution.perfect_actions(states)).any()  # which takes values that are nearly equal as equal
