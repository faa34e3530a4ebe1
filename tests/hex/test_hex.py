"""The rules of Hex, compiled against plain ones and OpenSpiel's, and its notation."""

import numpy as np
import pytest

from hex.game import GAME, Hex, state_from_board
from hex.plain import PlainHex
from seraphim.errors import GameError
from seraphim.game import Array, PlainRules, load_game, random_actions
from seraphim.game.conformance import check_agreement, check_game
from seraphim.game.exhaustive import solve

SIZES = (2, 3, 7, 8, 11)  # of the last two a player's cells take two words


def play(game: Hex, games: int) -> tuple[Array, list[list[int]]]:
    """All positions of random games, and the moves that lead to each; with the swap rule, every second game swaps."""
    random, positions, lines = np.random.default_rng(game.size), [], []
    for number in range(games):
        (state,), moves = game.initial(1), []
        while True:
            positions.append(state)
            lines.append(list(moves))
            (legal,) = game.legal(state[None])
            if not legal.any():
                break
            swaps = game.swap and len(moves) == 1 and number % 2
            moves.append(game.num_actions - 1 if swaps else int(random.choice(np.flatnonzero(legal))))
            (state,) = game.step(state[None], np.array(moves[-1:]))
    return np.array(positions), lines


@pytest.mark.kernels
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_the_rules_agree_with_plain_ones(size: int, swap: bool) -> None:
    game, plain = Hex(size, swap), PlainRules(PlainHex(size, swap))
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


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("size", [3, 7, 11])
def test_the_rules_agree_with_those_of_openspiel(size: int, swap: bool) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game, theirs = Hex(size, swap), pyspiel.load_game(f"hex(board_size={size},swap={swap})")
    states, lines = play(game, 12)
    for state, moves in zip(states, lines, strict=True):
        other = theirs.new_initial_state()
        for move in moves:
            other.apply_action(move)
        ended, results = game.outcome(state[None])
        assert ended[0] == other.is_terminal()
        assert results[0] == other.returns()[0]
        assert np.flatnonzero(game.legal(state[None])[0]).tolist() == sorted(other.legal_actions())


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_it_keeps_the_contract(size: int, swap: bool) -> None:
    game, plain = Hex(size, swap), PlainRules(PlainHex(size, swap))
    assert check_game(game, games=8, read_board=game.read_board).positions
    assert check_agreement(game, plain, ("compiled", "plain"), games=8).positions


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
        ("hex:7,swop", "expected one such as hex:5, or hex:7,swap with the swap rule"),
        ("hex:7,", "expected one such as hex:5, or hex:7,swap with the swap rule"),
        ("hex:12,swap", "a board of 12x12 is not possible"),
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


# ---------------------------------------------------------------- the swap rule


def after(game: Hex, moves: str) -> Array:
    """The state after moves."""
    (state,) = game.initial(1)
    for move in moves.split():
        action = game.parse_action(move)
        assert game.legal(state[None])[0, action]
        (state,) = game.step(state[None], np.array([action]))
    return state


def test_a_swap_mirrors_the_first_stone_and_changes_its_color() -> None:
    game = Hex(3, swap=True)
    assert game.render(after(game, "a3")) == "  a b c\n1 · · ·\n 2 · · ·\n  3 X · ·\nO to move"
    state = after(game, "a3 swap-pieces")
    assert game.render(state) == "  a b c\n1 · · O\n 2 · · ·\n  3 · · ·\nX to move"
    assert game.render(after(game, "a3 swap-pieces b1")) == "  a b c\n1 · X O\n 2 · · ·\n  3 · · ·\nO to move"
    assert game.board(after(game, "a3")).targets.keys() == set(range(9)) - {6}  # the swap is no cell


@pytest.mark.parametrize("size", SIZES)
def test_pieces_are_swapped_at_the_second_ply_alone(size: int) -> None:
    game = Hex(size, swap=True)
    states, lines = play(game, 6)
    assert any(moves[1:2] == [size * size] for moves in lines)
    assert game.legal(states)[:, size * size].tolist() == [len(moves) == 1 for moves in lines]
    assert game.to_play(states).tolist() == [len(moves) % 2 for moves in lines]


@pytest.mark.parametrize("size", SIZES)
def test_a_swap_leads_to_the_game_that_is_mirrored(size: int) -> None:
    """Play after a swap is play without one, with the board mirrored and the players exchanged."""
    game, without = Hex(size, swap=True), Hex(size)
    states, lines = play(game, 8)
    swapped = [moves for moves in lines if moves[1:2] == [size * size]]
    for state, moves in ((state, moves) for state, moves in zip(states, lines, strict=True) if moves in swapped):
        (other,) = without.initial(1)
        for move in (moves[0], *(size * (move % size) + move // size for move in moves[2:])):
            (other,) = without.step(other[None], np.array([move]))
        (ended,), (result,) = game.outcome(state[None])
        assert (ended, -result) == tuple(each[0] for each in without.outcome(other[None]))
        expected = np.select([player == without.cells(other).T for player in (0, 1)], [1, 0], -1)
        np.testing.assert_array_equal(game.cells(state), expected)


def test_a_swap_is_worth_what_the_opening_was_worth() -> None:
    game, solution = Hex(3, swap=True), solve(Hex(3, swap=True))
    assert solution.results[0] == -1.0  # the second player wins
    for opening, value in enumerate(solve(Hex(3)).action_values[0]):
        (state,) = game.step(game.initial(1), np.array([opening]))
        (row,) = np.flatnonzero((solution.states == state).all(axis=1))
        *replies, swap = solution.action_values[row]
        assert (swap, np.nanmax(replies)) == (value, -value)


@pytest.mark.parametrize("size", [3, 7, 8, 11])
def test_a_position_with_the_swap_rule_is_read_as_it_is_drawn(size: int) -> None:
    game = Hex(size, swap=True)
    states, lines = play(game, 6)
    for state, moves in zip(states, lines, strict=True):
        assert game.is_position(state)
        assert (game.read_board(game.render(state)) == state).all()
        told = moves[1:2] != [size * size] or len(moves) % 2 == 0  # X moves unless there are more X
        if told and game.legal(state[None]).any():
            assert (game.read_board(game.render(state).rpartition("\n")[0]) == state).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X../.../...\nX to move", "1 X and 0 O with X to move"),
        (".../.../...\nO to move", "0 X and 0 O with O to move"),
        ("XO./XO./...\nX to move\n", None),
        ("XO./.../...\nO to move", None),  # after a swap
        ("OO./.../...", "0 X and 2 O with X to move"),
        ("XO./XO./X..\nX to move", "3 X and 2 O with X to move"),
        ("XO./XO./XO.", "the game was over before"),
        ("X../.../...\nZ to move", "a board of 4 rows"),
    ],
)
def test_a_drawing_with_the_swap_rule_must_be_a_position(text: str, message: str | None) -> None:
    game = Hex(3, swap=True)
    if message is None:
        assert game.is_position(game.read_board(text))
        return
    with pytest.raises(GameError, match=message):
        game.read_board(text)


def test_words_that_play_does_not_lead_to_are_no_positions() -> None:
    game = Hex(3, swap=True)
    swapped = 1 << 9
    assert game.is_position(np.array([swapped, 1]))
    for words in ([swapped, 0], [swapped | 1, 0], [0, 1], [swapped | 1, 1 << 1 | 1], [swapped | 6, 1], [0, swapped]):
        assert not game.is_position(np.array(words)), words
    assert not Hex(3).is_position(np.array([swapped, 1]))
