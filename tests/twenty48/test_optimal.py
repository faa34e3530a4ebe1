"""2048 solved by value iteration, against the solver for any game."""

import numpy as np
import pytest

from seraphim.errors import GameError
from seraphim.game.exhaustive import solve as solve_any
from twenty48.game import Twenty48
from twenty48.optimal import Optimum, solve

# Boards, those that a symmetry maps to each other counted once (662 and 85,844 otherwise), and the expected scores.
KNOWN = {(2, 2): (110, 66.96415), (2, 3): (21_752, 480.25827), (3, 2): (21_752, 480.25827)}


def check_against_solution(optimum: Optimum) -> None:
    game = optimum.game
    solution = solve_any(game)
    rows = np.flatnonzero(~np.isnan(solution.action_values).all(axis=1))
    states = solution.states[rows]
    found, expected = optimum.action_values(states), solution.action_values[rows] * game.points
    assert np.allclose(found + states[:, 2:], expected, atol=1e-3, equal_nan=True)
    best = optimum.perfect_actions(states)
    assert best.any(axis=1).all()
    assert not (best & ~solution.perfect_actions(states)).any()  # which takes moves for equal that differ in float64
    in_play = game.to_play(solution.states) == 0
    values = optimum.values_of(solution.states[in_play, 0].copy())
    assert np.allclose(values, solution.to_come[in_play] * game.points, atol=1e-6)


@pytest.mark.parametrize("size", KNOWN)
def test_the_expected_score_and_the_number_of_boards_are_known(size: tuple[int, int]) -> None:
    optimum, (boards, score) = solve(*size), KNOWN[size]
    assert len(optimum.boards) == boards
    assert optimum.expected == pytest.approx(score, abs=5e-6)


@pytest.mark.parametrize("size", [(2, 2), pytest.param((2, 3), marks=pytest.mark.slow)])
def test_all_positions_have_the_values_of_the_solver_for_any_game(size: tuple[int, int]) -> None:
    check_against_solution(solve(*size))


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(GameError, match="on boards of up to 9 cells, not of 4x3"):
        solve(4, 3)
    full = sum(15 << 4 * cell for cell in range(4))
    for board in (full, 1):  # a board with a single tile is never a player's
        with pytest.raises(GameError, match="play does not lead to one of these boards of twenty48:2x2"):
            solve(2, 2).values_of(np.array([board]))
    with pytest.raises(GameError, match="play does not lead to one of these boards"):
        solve(2, 2).perfect_actions(Twenty48(2, 2).initial(1) + np.array([[0x1100 + (5 << 4), -2, 0]]))
