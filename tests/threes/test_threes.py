"""Tic-tac-toe for three: its rules in two forms, positions by hand, and its solution on several boards."""

import numpy as np
import pytest

from seraphim.errors import GameError
from seraphim.game import Array, PlainRules, board_of, load_game
from seraphim.game.conformance import check_agreement, check_game
from seraphim.game.exhaustive import solve
from seraphim.game.notation import parse_moves
from threes.game import GAME, Threes, state_from_board
from threes.optimal import perfect_actions, position_sets
from threes.plain import PlainThrees


def after(moves: str, game: Threes = GAME) -> Array:
    """The state [1, 3] after moves."""
    states = game.initial(1)
    for action in parse_moves(game, moves):
        assert game.legal(states)[0, action]
        states = game.step(states, np.array([action]))
    return states


def drawn(states: Array, game: Threes = GAME) -> list[str]:
    return game.render(states[0]).splitlines()


@pytest.mark.parametrize("size", [(3, 4), (3, 3), (2, 4), (4, 3), (4, 4)])
def test_both_forms_keep_the_contract_and_are_the_same_game(size: tuple[int, int]) -> None:
    assert load_game("threes") is GAME
    report = check_game(Threes(*size), games=60)
    assert (report.symmetries, report.unchecked_symmetries) == (8 if size[0] == size[1] else 4, 0)
    check_game(PlainThrees(*size), games=10)
    check_agreement(Threes(*size), PlainRules(PlainThrees(*size)), games=60)


@pytest.mark.parametrize(
    ("moves", "winner"),
    [
        ("b2 a1 d1 c2 a2 d2 b1 b3", None),  # nobody, as yet
        ("a1 a2 a3 b1 b2 b3 c1", 0),  # a row
        ("a1 d1 b1 a3 d2 b3 b2 d3", 1),  # a column
        ("a1 b1 a3 b2 c1 b3 d1 d3 c2", None),
        ("a1 b1 c1 d1 a2 b2 c3 d3 a3", 2),  # a diagonal
        ("c1 a1 b1 b2 a2 d1 a3", 0),  # the other diagonal
    ],
)
def test_three_in_a_row_win(moves: str, winner: int | None) -> None:
    states = after(moves)
    ended, results = GAME.outcome(states)
    assert ended.tolist() == [winner is not None]
    assert results[0].tolist() == [0.0 if winner is None else 1.0 if seat == winner else -0.5 for seat in range(3)]
    board = board_of(GAME, states[0])
    assert board is not None
    assert len(board.line) == (0 if winner is None else 3)
    assert {int(board.cells[cell]) for cell in board.line} == (set() if winner is None else {winner})


def test_a_drawing_is_read_as_it_is_drawn() -> None:
    for moves in ("", "b2 a1 d1 c2", "a1 d1 b1 a3 d2 b3 b2 d3"):
        assert state_from_board(GAME.render(after(moves)[0])).tolist() == after(moves)[0].tolist()


@pytest.mark.parametrize(
    ("drawing", "said"),
    [
        ("X O Z . / X . . .", "a board of 2 rows: expected 3 rows of 4 cells"),
        ("X O . . / X . . . / . . . .", "these numbers of marks cannot come about"),
        ("X X X . / O O . . / Z Z O .", "three in a row of a player who did not move last"),
    ],
)
def test_what_play_cannot_lead_to_is_no_drawing(drawing: str, said: str) -> None:
    with pytest.raises(GameError, match=said):
        state_from_board(drawing)


def test_a_full_board_is_a_draw() -> None:
    states = after("c3 d2 b2 c1 d1 a1 b1 a2 c2 d3 b3 a3")
    assert drawn(states) == ["  a b c d", "1 Z X X O", "2 O Z Z O", "3 Z O X X"]
    ended, results = GAME.outcome(states)
    assert ended.all() and not results.any()


def test_the_mover_sees_their_own_stones_first_then_those_of_the_others_in_turn() -> None:
    states = after("a1 b2 d3 c1")  # player 1 is to move
    (seen,) = GAME.observe(states)
    assert GAME.to_play(states).tolist() == [1]
    assert [np.argwhere(seen[..., plane]).tolist() for plane in range(3)] == [[[1, 1]], [[2, 3]], [[0, 0], [0, 2]]]
    assert drawn(states) == ["  a b c d", "1 X · X ·", "2 · O · ·", "3 · · · Z"]


@pytest.mark.parametrize(
    ("state", "possible"),
    [
        ([0, 0, 0], True),
        ([1, 2, 4], True),
        ([1, 1, 4], False),  # two in a cell
        ([0, 1, 2], False),  # the first did not move
        ([3, 4, 0], False),  # the first moved twice
        ([1 << 12, 0, 0], False),  # beyond the board
        ([-1, 0, 0], False),
        ([0b111, 0b11_0000, 0b110_0000_0000], True),  # the last mover won
        ([0b111, 0b111_0000, 0b110_0000_0000], False),  # two won
        ([0b111, 0b1011_0000, 0b110_0000_0000], False),  # the game went on
    ],
)
def test_only_positions_of_the_game_are_positions(state: list[int], possible: bool) -> None:
    assert GAME.is_position(np.array(state)) is possible


# Positions that play can reach, those in which a result depends on how ties are broken, and those in which the mover
# wins by force.
SOLVED = {
    (3, 3): (26_930, 0, 3_936),
    (2, 4): (7_641, 36, 444),
    (2, 5): (97_931, 738, 10_568),
    (3, 4): (1_224_121, 28_738, 376_832),
}


@pytest.mark.parametrize("size", [(3, 3), (2, 4), (2, 5), pytest.param((3, 4), marks=pytest.mark.slow)])
def test_boards_are_solved(size: tuple[int, int]) -> None:
    solution, (positions, by_ties, won) = solve(Threes(*size)), SOLVED[size]
    assert len(solution.states) == positions
    assert solution.decided_by_ties.sum() == by_ties
    assert ((solution.action_values == 1).any(axis=1)).sum() == won
    assert not solution.low[0].any() and not solution.high[0].any()  # a draw, however ties are broken


@pytest.mark.slow
def test_the_game_offers_its_solution() -> None:
    assert position_sets("test") == []
    (positions,) = position_sets("validation")
    assert len(positions.states) == 1_071_253
    values = positions.action_values[:1000]
    best = np.nan_to_num(values, nan=-2) == np.nanmax(values, axis=1, keepdims=True)
    assert np.array_equal(best, perfect_actions(positions.states[:1000]))
