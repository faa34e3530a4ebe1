"""The rules of Hex, compiled against plain ones and OpenSpiel's, and its notation."""

import numpy as np
import pytest

from hex.game import GAME, Hex, state_from_board
from hex.plain import PlainHex
from seraphim.errors import GameError
from seraphim.game import Array, PlainRules, load_game, random_actions
from seraphim.game.conformance import check_game
from seraphim.game.exhaustive import solve

SIZES = (2, 3, 7, 8, 11)  # of the last two a player's cells take two words


def play(game: Hex, games: int) -> tuple[Array, list[list[int]]]:
    """All positions of random games, and the moves that lead to each."""
    random, positions, lines = np.random.default_rng(game.size), [], []
    for _ in range(games):
        (state,), moves = game.initial(1), []
        while True:
            positions.append(state)
            lines.append(list(moves))
            (legal,) = game.legal(state[None])
            if not legal.any():
                break
            moves.append(int(random.choice(np.flatnonzero(legal))))
            (state,) = game.step(state[None], np.array(moves[-1:]))
    return np.array(positions), lines


@pytest.mark.kernels
@pytest.mark.parametrize("size", SIZES)
def test_the_rules_agree_with_plain_ones(size: int) -> None:
    game, plain = Hex(size), PlainRules(PlainHex(size))
    states, lines = play(game, 8)
    same = plain.initial(len(lines))
    for row, moves in enumerate(lines):
        for move in moves:
            same[row : row + 1] = plain.step(same[row : row + 1], np.array([move]))
    for method in ("legal", "to_play", "observe"):
        np.testing.assert_array_equal(getattr(game, method)(states), getattr(plain, method)(same), method)
    ended, results = game.outcome(states)
    for found, expected in zip((ended, results), plain.outcome(same), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert ended.sum() == 8
    assert size == 2 or set(results[ended]) == {1.0, -1.0}
    assert not (ended & (results == 0)).any()


@pytest.mark.parametrize("size", [3, 7, 11])
def test_the_rules_agree_with_those_of_openspiel(size: int) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game, theirs = Hex(size), pyspiel.load_game(f"hex(board_size={size})")
    states, lines = play(game, 12)
    for state, moves in zip(states, lines, strict=True):
        other = theirs.new_initial_state()
        for move in moves:
            other.apply_action(move)
        ended, results = game.outcome(state[None])
        assert ended[0] == other.is_terminal()
        assert results[0] == other.returns()[0]
        assert np.flatnonzero(game.legal(state[None])[0]).tolist() == sorted(other.legal_actions())


@pytest.mark.parametrize("size", SIZES)
def test_it_keeps_the_contract(size: int) -> None:
    assert check_game(Hex(size), games=20).positions


@pytest.mark.parametrize("size", [2, 3])
def test_the_first_player_wins(size: int) -> None:
    assert solve(Hex(size)).results[0] == 1.0


def test_the_middle_of_the_smallest_boards_wins() -> None:
    values = solve(Hex(3)).action_values[0].reshape(3, 3)
    assert values[1, 1] == 1.0
    assert (values == values[::-1, ::-1]).all()
    assert values.min() == -1.0  # a corner loses


def test_cells_have_names_and_are_drawn() -> None:
    assert [GAME.action_label(action) for action in (0, 6, 7, 48)] == ["a1", "g1", "a2", "g7"]
    assert [GAME.parse_action(text) for text in ("a1", " G1", "a2", "g7")] == [0, 6, 7, 48]
    game = Hex(3)
    (state,) = game.initial(1)
    for move in ("b2", "c1", "b1"):
        (state,) = game.step(state[None], np.array([game.parse_action(move)]))
    assert game.render(state) == "  a b c\n1 · X O\n 2 · X ·\n  3 · · ·"
    board = game.board(state)
    assert board.cells.tolist() == [[-1, 0, 1], [-1, 0, -1], [-1, -1, -1]]
    assert board.targets == {0: [(0, 0)], 3: [(1, 0)], 5: [(1, 2)], 6: [(2, 0)], 7: [(2, 1)], 8: [(2, 2)]}


@pytest.mark.parametrize("text", ["", "h1", "a8", "a0", "1a", "a", "aa"])
def test_what_is_no_cell_is_refused(text: str) -> None:
    with pytest.raises(GameError, match="is not a move of hex: expected one such as a1 or g7"):
        GAME.parse_action(text)


def test_sizes_are_games() -> None:
    assert load_game("hex:5").observation_shape == (5, 5, 3)
    for name, message in (
        ("hex:12", "a board of 12x12 is not possible"),
        ("hex:x", "is no size of Hex"),
        ("hex:٥", "is no size of Hex"),
    ):
        with pytest.raises(GameError, match=message):
            load_game(name)


def test_a_row_of_thousands_of_digits_is_no_cell() -> None:
    with pytest.raises(GameError, match="is not a move of hex:5: expected one such as a1 or e5"):
        Hex(5).parse_action("a" + 5000 * "9")


def test_a_position_is_read_as_it_is_drawn() -> None:
    states, generator = GAME.initial(20), np.random.default_rng(1)
    for _ in range(30):
        for state in states:
            assert (state_from_board(GAME.render(state)) == state).all()
        ended = GAME.outcome(states)[0]
        states = GAME.step(states[~ended], random_actions(GAME.legal(states[~ended]), generator))
    column = "X . . . . . ./" * 7
    with pytest.raises(GameError, match="7 X and 0 O"):
        state_from_board(column)
    with pytest.raises(GameError, match="the game was over before"):  # and O plays no further stone
        state_from_board("X O . . . . ./" * 7)


@pytest.mark.parametrize("size", SIZES)
def test_the_chain_that_ends_a_game_is_marked(size: int) -> None:
    game = Hex(size)
    states, lines = play(game, 4)
    for state, moves in zip(states, lines, strict=True):
        board, (ended,) = game.board(state), game.outcome(state[None])[0]
        assert bool(board.line) == ended
        if ended:
            winner = (len(moves) - 1) % 2
            assert {board.cells[cell] for cell in board.line} == {winner}
            assert {board.line[0][winner], board.line[-1][winner]} == {0, size - 1}
            steps = zip(board.line, board.line[1:], strict=False)
            assert {(b[0] - a[0], b[1] - a[1]) for a, b in steps} <= {
                (0, 1),
                (0, -1),
                (1, 0),
                (-1, 0),
                (1, -1),
                (-1, 1),
            }
