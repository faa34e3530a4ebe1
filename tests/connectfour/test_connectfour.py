"""The rules of connect four, compiled against plain ones, and its notation."""

from itertools import combinations

import numpy as np
import pytest

from connectfour.game import GAME, position_from_moves
from connectfour.plain import GAME as PLAIN
from connectfour.plain import PlainConnectFour
from connectfour.rules import COLUMNS, ROWS, STRIDE
from seraphim.errors import GameError
from seraphim.game import Array, PlainRules, load_game
from seraphim.game.conformance import check_agreement, check_game
from seraphim.settings import default_settings

CELLS = [(row, column) for row in range(ROWS) for column in range(COLUMNS)]  # row 0 at the top
# Where each of them stands in a word of a state.
BITS = np.array([STRIDE * column + ROWS - 1 - row for row, column in CELLS])

DRAWN_GAME = "735121537755647137321645736445261366424212"
DRAWN_BOARD = """
X O O X O O X
X O O X O X O
X O X X O O X
O X X O X X O
O O O X X O X
O X O O X X X
"""
WON_AT_LAST_GAME = "631171456153262444154735421355662367773722"


def position(drawing: str) -> Array:
    """The state [1, 2] that a drawing of six rows shows."""
    marks = np.array(drawing.split())
    return np.array([[(1 << BITS[marks == side]).sum() for side in "XO"]])


def to_cells(states: Array) -> Array:
    """The same positions as states of the plain rules, int64 [B, 42]."""
    return (states[:, :1] >> BITS & 1) + 2 * (states[:, 1:] >> BITS & 1)


def outcome(states: Array) -> tuple[bool, float]:
    ended, result = GAME.outcome(states)
    return bool(ended[0]), float(result[0])


@pytest.fixture(scope="module")
def played() -> Array:
    """All distinct positions of random games, the final ones too."""
    generator = np.random.default_rng(1)
    states, positions = GAME.initial(300), []
    for _ in range(GAME.max_plies + 1):
        positions.append(states)
        legal = GAME.legal(states)
        states, legal = states[legal.any(axis=1)], legal[legal.any(axis=1)]
        states = GAME.step(states, (generator.random(legal.shape) * legal).argmax(axis=1))
    return np.unique(np.concatenate(positions), axis=0)


# ---------------------------------------------------------------- against the plain rules


@pytest.mark.kernels
def test_random_games_reach_thousands_of_positions_of_every_length_and_result(played: Array) -> None:
    ended, results = GAME.outcome(played)
    assert len(played) > 5000
    assert set(np.count_nonzero(to_cells(played), axis=1)) == set(range(43))
    assert set(results[ended]) == {1.0, 0.0, -1.0}


@pytest.mark.kernels
@pytest.mark.parametrize("method", ["legal", "to_play", "observe"])
def test_the_rules_agree_with_plain_ones_in_every_position(method: str, played: Array) -> None:
    plain = getattr(PlainRules(PLAIN), method)(to_cells(played))
    batched = getattr(GAME, method)(played)
    assert plain.dtype == batched.dtype
    assert np.array_equal(plain, batched)


@pytest.mark.kernels
def test_the_rules_agree_with_plain_ones_on_every_outcome(played: Array) -> None:
    for plain, batched in zip(PlainRules(PLAIN).outcome(to_cells(played)), GAME.outcome(played), strict=True):
        assert plain.dtype == batched.dtype
        assert np.array_equal(plain, batched)


@pytest.mark.kernels
def test_the_rules_agree_with_plain_ones_on_every_move(played: Array) -> None:
    rows, actions = np.nonzero(GAME.legal(played))
    plain = PlainRules(PLAIN).step(to_cells(played[rows]), actions)
    assert np.array_equal(plain, to_cells(GAME.step(played[rows], actions)))


def test_the_plain_rules_keep_the_contract() -> None:
    assert check_game(PLAIN, games=20).duplicates == 0


# ---------------------------------------------------------------- wins and draws


@pytest.mark.kernels
@pytest.mark.parametrize(("side", "result"), [(0, 1.0), (1, -1.0)])
def test_of_all_sets_of_four_cells_exactly_the_69_lines_win(side: int, result: float) -> None:
    numbers = {cell: number for number, cell in enumerate(CELLS)}
    lines = {
        tuple(sorted(numbers[row + step * down, column + step * right] for step in range(4)))
        for row, column in CELLS
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
        if (row + 3 * down, column + 3 * right) in numbers
    }
    assert len(lines) == 69
    sets = np.array(list(combinations(range(len(CELLS)), 4)))
    states = np.zeros((len(sets), 2), np.int64)
    states[:, side] = (1 << BITS[sets]).sum(axis=1)
    ended, results = GAME.outcome(states)
    assert {tuple(cells) for cells in sets[ended].tolist()} == lines
    assert set(results[ended]) == {result}
    assert not results[~ended].any()
    assert np.array_equal(GAME.legal(states).any(axis=1), ~ended)


@pytest.mark.kernels
def test_a_full_board_without_four_in_a_row_is_a_draw() -> None:
    assert position_from_moves(DRAWN_GAME).tolist() == position(DRAWN_BOARD)[0].tolist()
    assert outcome(position(DRAWN_BOARD)) == (True, 0.0)
    assert not GAME.legal(position(DRAWN_BOARD)).any()


@pytest.mark.kernels
def test_a_win_on_the_last_cell_is_no_draw() -> None:
    assert outcome(position_from_moves(WON_AT_LAST_GAME[:-1])[None]) == (False, 0.0)
    assert outcome(position_from_moves(WON_AT_LAST_GAME)[None]) == (True, -1.0)


@pytest.mark.parametrize(
    ("moves", "result"),
    [
        ("1213141", 1.0),  # upright
        ("21314171", -1.0),
        ("1122334", 1.0),  # along the bottom
        ("71122334", -1.0),
        ("12234334464", 1.0),  # rising to the right
        ("76654554424", 1.0),  # rising to the left
    ],
)
def test_a_game_is_won_by_its_last_move_and_not_before(moves: str, result: float) -> None:
    for plies in range(len(moves)):
        assert outcome(position_from_moves(moves[:plies])[None]) == (False, 0.0)
    assert outcome(position_from_moves(moves)[None]) == (True, result)


# ---------------------------------------------------------------- moves and observations


@pytest.mark.kernels
def test_stones_fall_onto_each_other_until_the_column_is_full() -> None:
    assert GAME.render(position_from_moves("333333")).splitlines() == [
        "1 2 3 4 5 6 7",
        "· · O · · · ·",
        "· · X · · · ·",
        "· · O · · · ·",
        "· · X · · · ·",
        "· · O · · · ·",
        "· · X · · · ·",
    ]
    assert np.flatnonzero(GAME.legal(position_from_moves("333333")[None])[0]).tolist() == [0, 1, 3, 4, 5, 6]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_a_move_may_be_of_any_integer_type(dtype: type) -> None:
    assert GAME.step(GAME.initial(1), np.array([6], dtype)).tolist() == [[1 << 42, 0]]


@pytest.mark.kernels
def test_the_mover_sees_the_own_stones_first_and_the_top_row_on_top() -> None:
    first_moves, second_moves = GAME.observe(np.stack([position_from_moves("12"), position_from_moves("122")]))
    own, other = np.moveaxis(first_moves, 2, 0)[:2]
    assert np.argwhere(own).tolist() == [[5, 0]]
    assert np.argwhere(other).tolist() == [[5, 1]]
    own, other = np.moveaxis(second_moves, 2, 0)[:2]
    assert np.argwhere(own).tolist() == [[5, 1]]
    assert np.argwhere(other).tolist() == [[4, 1], [5, 0]]


@pytest.mark.kernels
def test_the_mover_sees_the_empty_cells_that_complete_four() -> None:
    first_moves, second_moves = GAME.observe(np.stack([position_from_moves("112233"), position_from_moves("1122337")]))
    own, other = np.moveaxis(first_moves, 2, 0)[2:4]
    assert np.argwhere(own).tolist() == [[5, 3]]
    assert np.argwhere(other).tolist() == [[4, 3]]  # where no stone can be dropped yet
    own, other = np.moveaxis(second_moves, 2, 0)[2:4]
    assert np.argwhere(own).tolist() == [[4, 3]]
    assert np.argwhere(other).tolist() == [[5, 3]]


@pytest.mark.kernels
def test_the_mover_sees_where_a_stone_can_be_dropped() -> None:
    (planes,) = GAME.observe(position_from_moves("3333334")[None])
    landing = [[4, 3], [5, 0], [5, 1], [5, 4], [5, 5], [5, 6]]  # the third column is full
    assert np.argwhere(planes[..., 4]).tolist() == landing


@pytest.mark.kernels
def test_the_mover_sees_the_odd_rows_as_x_and_the_even_ones_as_o() -> None:
    first_moves, second_moves = GAME.observe(np.stack([position_from_moves("12"), position_from_moves("122")]))
    assert first_moves[..., 5].tolist() == [[0] * 7, [1] * 7] * 3  # from the top; X has the bottom row
    assert second_moves[..., 5].tolist() == [[1] * 7, [0] * 7] * 3


def test_a_won_game_is_drawn_as_it_lies() -> None:
    assert GAME.render(position_from_moves("76654554424")).splitlines() == [
        "1 2 3 4 5 6 7",
        "· · · · · · ·",
        "· · · · · · ·",
        "· · · X · · ·",
        "· · · X X · ·",
        "· · · O O X ·",
        "· O · X O O X",
    ]


# ---------------------------------------------------------------- the game as a whole


@pytest.mark.kernels
def test_the_rules_keep_the_contract_under_the_mirror_symmetry() -> None:
    report = check_game(GAME)
    assert (report.symmetries, report.unchecked_symmetries, report.duplicates) == (2, 0, 0)


def test_the_second_symmetry_mirrors_columns() -> None:
    symmetries = GAME.symmetries()
    (seen,) = GAME.observe(position_from_moves("4453")[None])
    (mirrored,) = GAME.observe(position_from_moves("4435")[None])
    assert np.array_equal(seen.ravel()[symmetries.observations[1]].reshape(seen.shape), mirrored)
    assert symmetries.actions[1].tolist() == [6, 5, 4, 3, 2, 1, 0]


def test_the_game_is_found_by_its_package() -> None:
    assert load_game("connectfour") is GAME


def test_the_defaults_are_a_residual_network() -> None:
    settings = default_settings("connectfour")
    assert (settings.network.kind, settings.network.filters, settings.network.blocks) == ("resnet", 32, 3)
    assert (settings.search.readouts, settings.search.cpuct) == (200, 1.5)


# ---------------------------------------------------------------- notation


def test_columns_are_named_by_digits_from_1_to_7() -> None:
    assert [GAME.action_label(action) for action in range(7)] == list("1234567")
    assert GAME.parse_action(" 7\n") == 6


@pytest.mark.parametrize("text", ["0", "8", "", "12", "a", "²", "-1"])
def test_a_text_that_is_no_column_is_refused(text: str) -> None:
    with pytest.raises(GameError, match=f"'{text}' is not a move of connectfour: expected one such as 1 or 7"):
        GAME.parse_action(text)


def test_a_position_is_read_from_its_moves() -> None:
    assert position_from_moves("").tolist() == GAME.initial(1)[0].tolist()
    assert position_from_moves("4453").tolist() == [1 << 21 | 1 << 28, 1 << 22 | 1 << 14]


@pytest.mark.parametrize(
    ("moves", "problem"),
    [
        ("4458", "'4458' is not a game: move 4: '8' is not a move of connectfour: expected one such as 1 or 7"),
        ("44-53", "'44-53' is not a game: move 3: '-' is not a move of connectfour: expected one such as 1 or 7"),
        ("4444444", "'4444444' is not a game: move 7 is not legal"),
        ("12131415", "'12131415' is not a game: move 8 comes after its end"),
        (DRAWN_GAME + "1", "is not a game: move 43 comes after its end"),
    ],
)
def test_moves_that_cannot_be_played_are_refused(moves: str, problem: str) -> None:
    with pytest.raises(GameError, match=problem):
        position_from_moves(moves)


@pytest.mark.parametrize("size", [(4, 4), (5, 6), (4, 9), (8, 5), (6, 8)])
def test_other_sizes_agree_with_plain_rules(size: tuple[int, int]) -> None:
    game, plain = load_game(f"connectfour:{size[0]}x{size[1]}"), PlainRules(PlainConnectFour(*size))
    check_agreement(game, plain, ("compiled", "plain"), games=100, seed=0)
    assert check_game(game, games=50).games == 50


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("connectfour:3x7", "a board of 3x7 is not possible: expected 4 rows and columns or more, at most 9 columns"),
        ("connectfour:6x10", "a board of 6x10 is not possible"),
        ("connectfour:7x8", "fewer than 63 cells with an empty row above"),
        ("connectfour:٤x٤", "'connectfour:٤x٤' is no size of connect four"),
        ("connectfour:big", "'connectfour:big' is no size of connect four: expected one such as connectfour:5x6"),
    ],
)
def test_sizes_that_are_not_possible_are_refused(name: str, message: str) -> None:
    with pytest.raises(GameError, match=message):
        load_game(name)
