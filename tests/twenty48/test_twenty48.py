"""2048: its rules against plain lists, its symmetries, and its exact value on small boards."""

import numpy as np
import pytest

from seraphim.errors import GameError
from seraphim.game import Array, load_game
from seraphim.game.conformance import check_game
from seraphim.game.exhaustive import solve
from twenty48.game import ACTIONS, GAME, Twenty48
from twenty48.rules import BITS, MOST, tile

# Expected scores of best play from two random tiles, of programs of our own that share nothing with this one.
EXPECTED = {(2, 2): 66.96415, (2, 3): 480.25827}


def slide_line(line: list[int]) -> tuple[list[int], int]:
    """Tiles as people read them, moved to the front of a list."""
    tiles, moved, score = [each for each in line if each], [], 0
    while tiles:
        first = tiles.pop(0)
        if tiles and tiles[0] == first:
            tiles.pop(0)
            first *= 2
            score += first
        moved.append(first)
    return moved + [0] * (len(line) - len(moved)), score


def slide(board: Array, action: str) -> tuple[Array, int]:
    """A board of tiles [R, C] after a move, and what it scores."""
    turns = {"left": 0, "up": 1, "right": 2, "down": 3}[action]
    lines = [slide_line(line) for line in np.rot90(board, turns).tolist()]
    return np.rot90(np.array([line for line, _ in lines]), -turns), sum(score for _, score in lines)


def tiles(game: Twenty48, state: Array) -> Array:
    """The tiles [R, C] of a state."""
    powers = [int(tile(state[0], cell)) for cell in range(game.cells)]
    return np.array([1 << power if power else 0 for power in powers]).reshape(game.rows, game.columns)


def random_boards(game: Twenty48, count: int) -> Array:
    rng = np.random.default_rng(0)
    powers = rng.integers(0, 5, (count, game.cells), np.int64) * rng.integers(0, 2, (count, game.cells))
    powers[: count // 8] = rng.integers(10, MOST, (count // 8, game.cells))
    powers[0] = 1 + np.indices((game.rows, game.columns)).sum(axis=0).ravel() % 2  # where nothing moves
    words = (powers << (BITS * np.arange(game.cells))).sum(axis=1)
    return np.stack([words, np.zeros(count, np.int64), rng.integers(0, 1000, count)], axis=1)


@pytest.mark.parametrize("size", [(2, 2), (2, 3), (3, 2), (4, 4), (4, 3)])
def test_it_keeps_the_contract(size: tuple[int, int]) -> None:
    check_game(Twenty48(*size), games=20)


@pytest.mark.parametrize("size", [(2, 3), (4, 3), (4, 4)])
def test_moves_are_those_of_plain_lists(size: tuple[int, int]) -> None:
    game = Twenty48(*size)
    states = random_boards(game, 400)
    legal = game.legal(states)
    for action, name in enumerate(ACTIONS):
        after = game.step(states, np.full(len(states), action))
        for state, successor, is_legal in zip(states, after, legal[:, action], strict=True):
            board, score = slide(tiles(game, state), name)
            assert is_legal == (board != tiles(game, state)).any()
            if is_legal:
                assert np.array_equal(tiles(game, successor), board)
                assert successor[1:].tolist() == [1, state[2] + score]
    ended, results = game.outcome(states)
    assert np.array_equal(ended, ~legal.any(axis=1))
    assert ended.any()
    assert np.array_equal(results[:, 0], np.where(ended, (states[:, 2] / game.points).astype(np.float32), 0))


def test_chance_adds_a_tile_to_any_empty_cell() -> None:
    game = Twenty48(2, 3)
    state = game.initial(1)
    (chances,) = game.chances(state)
    assert chances.tolist() == pytest.approx([0.9 / 6, 0.1 / 6] * 6)
    state = game.step(state, np.array([3]))  # a 4 in the second cell
    assert tiles(game, state[0]).tolist() == [[0, 4, 0], [0, 0, 0]]
    assert game.chance_label(state[0], 7) == "a2=4"
    (chances,) = game.chances(state)
    assert chances[2:4].tolist() == [0, 0]
    assert chances.sum() == pytest.approx(1)
    state = game.step(state, np.array([0]))
    assert game.to_play(state).tolist() == [0]
    assert not game.chances(state).any()


@pytest.mark.parametrize("size", [(2, 3), (3, 3), (4, 4)])
def test_a_symmetry_maps_each_move_to_a_move(size: tuple[int, int]) -> None:
    game = Twenty48(*size)
    observations, actions = game.symmetries()
    assert len(actions) == (8 if size[0] == size[1] else 4)
    assert len({tuple(row) for row in observations.tolist()}) == len(actions)
    states = random_boards(game, 60)
    seen = game.observe(states).reshape(len(states), -1)
    legal, cells = game.legal(states), game.cells
    for symmetry in range(len(actions)):
        turned = seen[:, observations[symmetry]].reshape(len(states), cells, MOST + 1).argmax(axis=2).astype(np.int64)
        mapped = states.copy()
        mapped[:, 0] = (turned << (BITS * np.arange(cells))).sum(axis=1)
        assert np.array_equal(game.legal(mapped), legal[:, actions[symmetry]])
        for place, action in enumerate(actions[symmetry].tolist()):
            moved = game.step(states, np.full(len(states), action))
            expected = game.observe(moved).reshape(len(states), -1)[:, observations[symmetry]]
            found = game.step(mapped, np.full(len(states), place))
            assert np.array_equal(game.observe(found).reshape(len(states), -1), expected)
            assert np.array_equal(found[:, 2], moved[:, 2])


@pytest.mark.parametrize("size", [(2, 2), pytest.param((2, 3), marks=pytest.mark.slow)])
def test_the_expected_score_is_exact(size: tuple[int, int]) -> None:
    game = Twenty48(*size)
    solution = solve(game)
    assert solution.results[0] * game.points == pytest.approx(EXPECTED[size], abs=5e-4)
    assert abs(solution.results).max() <= 1


@pytest.mark.parametrize(
    ("size", "expected"), [*EXPECTED.items(), ((3, 3), 5468.5), ((4, 3), 50_724), ((4, 4), 60_000)]
)
def test_a_value_of_one_is_a_little_more_than_play_can_expect(size: tuple[int, int], expected: float) -> None:
    game = Twenty48(*size)
    assert 1.3 * expected < game.value_scale * game.points < 1.8 * expected


def test_the_board_of_sixteen_cells_is_drawn() -> None:
    assert load_game("twenty48") is GAME
    drawing = GAME.render(np.array([(-1 << 60) + 3, 0, 1200]))  # the highest tile in the last cell
    assert drawing.splitlines() == [
        "          a     b     c     d",
        "    1     8     ·     ·     ·",
        "    2     ·     ·     ·     ·",
        "    3     ·     ·     ·     ·",
        "    4     ·     ·     · 32768",
        "score 1,200",
    ]
    with pytest.raises(GameError, match="expected up, right, down, left"):
        GAME.parse_action("north")
    with pytest.raises(GameError, match="5x4 is not possible"):
        Twenty48(5, 4)


def test_the_report_speaks_of_one_player_and_of_chance() -> None:
    report = str(check_game(Twenty48(2, 2), games=5))
    assert "won by" not in report
    assert "symmetries: 8, 7 of them unchecked because chance moves" in report
