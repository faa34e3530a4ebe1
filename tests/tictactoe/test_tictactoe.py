"""The rules of tic-tac-toe, its symmetries, and its solution."""

from functools import cache

import games
import numpy as np
import pytest

from seraphim.errors import GameError
from seraphim.game import Array
from seraphim.game.conformance import check_game
from seraphim.game.solved import load_position_sets
from seraphim.settings import default_settings
from tictactoe.game import GAME
from tictactoe.minimax import position_sets, solve

pytestmark = pytest.mark.kernels


def position(drawing: str) -> Array:
    """The state [1, 2] that a drawing shows, e.g. `XX· O·O ··X`."""
    marks = drawing.replace(" ", "")
    return np.array([[sum(1 << cell for cell in range(9) if marks[cell] == side) for side in "XO"]], np.int64)


def outcome(drawing: str) -> tuple[bool, float]:
    ended, result = GAME.outcome(position(drawing))
    return bool(ended[0]), float(result[0])


@pytest.mark.parametrize(
    "drawing",
    [
        *("XXX OO· ···", "OO· XXX ···", "OO· ··· XXX"),
        *("XO· XO· X··", "OX· OX· ·X·", "O·X O·X ··X"),
        *("XO· OX· ··X", "O·X OX· X··"),
    ],
)
def test_three_in_a_row_win_for_their_player(drawing: str) -> None:
    swapped = drawing.translate(str.maketrans("XO", "OX"))
    assert outcome(drawing) == (True, 1.0)
    assert outcome(swapped) == (True, -1.0)


def test_a_full_board_without_three_in_a_row_is_a_draw() -> None:
    assert outcome("XOX XOO OXX") == (True, 0.0)


def test_a_win_on_the_last_cell_is_no_draw() -> None:
    assert outcome("XOX OXO XOX") == (True, 1.0)


def test_a_game_goes_on_until_then() -> None:
    assert outcome("XOX XOO OX·") == (False, 0.0)
    assert outcome("··· ··· ···") == (False, 0.0)


def test_a_move_puts_the_movers_stone_on_a_free_cell() -> None:
    first = GAME.step(position("··· ··· ···"), np.array([4]))
    second = GAME.step(first, np.array([0]))
    assert first.tolist() == position("··· ·X· ···").tolist()
    assert second.tolist() == position("O·· ·X· ···").tolist()


def test_taken_cells_are_illegal() -> None:
    assert np.flatnonzero(GAME.legal(position("X·O ·X· O··"))[0]).tolist() == [1, 3, 5, 7, 8]


def test_the_mover_sees_the_own_stones_first() -> None:
    crosses_move, noughts_move = GAME.observe(np.concatenate([position("X·· ·O· ···"), position("X·· ·O· ··X")]))
    assert crosses_move[:, :, 0].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert crosses_move[:, :, 1].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert noughts_move[:, :, 0].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert noughts_move[:, :, 1].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_a_position_is_drawn_with_its_coordinates() -> None:
    assert GAME.render(position("X·O ·X· ··O")[0]) == "  a b c\n1 X · O\n2 · X ·\n3 · · O"


def test_cells_are_named_by_column_and_row() -> None:
    assert [GAME.action_label(cell) for cell in range(9)] == "a1 b1 c1 a2 b2 c2 a3 b3 c3".split()
    assert GAME.parse_action(" B2 ") == 4


def test_a_text_that_is_no_cell_is_refused_with_an_example() -> None:
    with pytest.raises(GameError, match="'d1' is not a move of tictactoe: expected one such as a1 or c3"):
        GAME.parse_action("d1")


def test_the_rules_keep_the_contract_under_all_eight_symmetries() -> None:
    report = check_game(GAME)
    assert (report.symmetries, report.unchecked_symmetries, report.duplicates) == (8, 0, 0)


def test_the_symmetries_are_eight_different_ones() -> None:
    assert len(np.unique(GAME.symmetries().actions, axis=0)) == 8
    assert len(np.unique(GAME.symmetries().observations, axis=0)) == 8


def test_the_defaults_of_the_game_are_valid() -> None:
    assert default_settings("tictactoe").network.kind == "mlp"


# ---------------------------------------------------------------- the solution


def test_play_reaches_5478_positions_of_which_4520_are_unfinished() -> None:
    states = np.concatenate([layer.states for layer in solve()])
    assert len(states) == len(np.unique(states, axis=0)) == 5478
    assert (~GAME.outcome(states)[0]).sum() == 4520


def test_of_the_final_positions_626_are_won_316_lost_and_16_drawn() -> None:
    ended, results = GAME.outcome(np.concatenate([layer.states for layer in solve()]))
    assert [int((results[ended] == result).sum()) for result in (1, -1, 0)] == [626, 316, 16]


def test_every_value_is_that_of_a_recursive_minimax_over_other_rules() -> None:
    plain = games.PLAIN_TICTACTOE

    @cache
    def value(state: tuple[int, ...]) -> float:  # for player 0
        result = plain.outcome(state)
        if result is not None:
            return result
        best = max if plain.to_play(state) == 0 else min
        return best(value(plain.step(state, action)) for action in plain.legal(state))

    cells = np.arange(9)
    for layer in solve():
        for state, values in zip(layer.states, layer.action_values, strict=True):
            board = tuple(int(cell) for cell in (state[0] >> cells & 1) + 2 * (state[1] >> cells & 1))
            if plain.outcome(board) is None:
                sign = 1 if plain.to_play(board) == 0 else -1
                expected = {action: sign * value(plain.step(board, action)) for action in plain.legal(board)}
                assert {action: values[action] for action in np.flatnonzero(~np.isnan(values))} == expected
            else:
                assert np.isnan(values).all()


def test_the_game_is_drawn_and_an_early_mistake_loses() -> None:
    first, second, third = (solve()[stones] for stones in (0, 1, 2))
    assert first.values.tolist() == [0.0]
    assert second.values.tolist() == [0.0] * 9
    row = third.states.tolist().index(position("X·· ··· ·O·")[0].tolist())
    assert third.values[row] == 1.0  # after a corner, an edge is answered by a win


def test_the_positions_offered_are_all_unfinished_ones_with_a_value_for_each_legal_action() -> None:
    (positions,) = position_sets()
    assert len(positions.states) == 4520
    assert np.array_equal(~np.isnan(positions.action_values), GAME.legal(positions.states))
    assert load_position_sets("tictactoe")[0].name == positions.name


def test_values_are_the_same_under_every_symmetry() -> None:
    (positions,) = position_sets()
    symmetries = GAME.symmetries()
    seen = GAME.observe(positions.states).reshape(4520, -1)
    values = {row.tobytes(): row_values for row, row_values in zip(seen, positions.action_values, strict=True)}
    for observation, action in zip(symmetries.observations, symmetries.actions, strict=True):
        for row in range(0, 4520, 7):
            symmetric = values[seen[row, observation].tobytes()]
            assert np.array_equal(symmetric, positions.action_values[row, action], equal_nan=True)


def test_the_solution_cannot_be_changed_by_mistake() -> None:
    with pytest.raises(ValueError, match="read-only"):
        solve()[0].values[0] = 1
