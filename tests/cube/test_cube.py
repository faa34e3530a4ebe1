"""The cube: its turns against rotations in space, its symmetries, and its exact distances against published ones."""

import numpy as np
import pytest

from cube.corners import CORNERS, SIDES, TURNS
from cube.distances import action_values, distances, perfect_actions, position_sets
from cube.game import GAME, LAST, MOST_TURNS, MOVES, NO_SIDE, ORIENTATION, PERMUTATION, TO_COME, UNDRAWN
from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, load_game
from seraphim.game.conformance import check_game
from seraphim.game.interface import random_actions
from seraphim.game.notation import parse_moves
from seraphim.game.solved import load_perfect_actions, load_position_sets

# Positions by their distance (Jaap Scherphuis, "Mini Cube"), in half turns and in quarter turns.
HALF_TURNS = [1, 9, 54, 321, 1847, 9992, 50136, 227536, 870072, 1887748, 623800, 2644]
QUARTER_TURNS = [1, 6, 27, 120, 534, 2256, 8969, 33058, 114149, 360508, 930588, 1350852, 782536, 90280, 276]
# Directions to the right, up, and to the front.
NORMALS = {"R": (1, 0, 0), "L": (-1, 0, 0), "U": (0, 1, 0), "D": (0, -1, 0), "F": (0, 0, 1), "B": (0, 0, -1)}


def solved_cubes(count: int) -> Array:
    """Cubes in which a player moves, though none is to be made any more."""
    states = GAME.initial(count)
    states[:, TO_COME] = 0
    return states


def scrambled_cubes(count: int) -> tuple[Array, Array]:
    """Cubes [N, W] as games begin, and the numbers of their turns [N]."""
    rng = np.random.default_rng(0)
    states = GAME.initial(count)
    numbers = rng.choice(GAME.num_chance_outcomes, size=count, p=GAME.chances(states)[0])
    states = GAME.step(states, numbers)
    while (rows := np.flatnonzero(GAME.to_play(states) == CHANCE)).size:
        chances = GAME.chances(states[rows])
        assert chances.sum(axis=1) == pytest.approx(1)
        turns = random_actions(chances > 0, rng)
        assert (turns // 3 != states[rows, LAST]).all()
        states[rows] = GAME.step(states[rows], turns)
    return states, numbers + 1


def positions(states: Array) -> Array:
    """The numbers of positions."""
    return 729 * states[:, PERMUTATION] + states[:, ORIENTATION]


Stickers = dict[tuple[tuple[int, ...], tuple[int, ...]], str]


def turned(stickers: Stickers, turn: str) -> Stickers:
    """Stickers by the place of their corner and the direction they face, after a turn of a half of the cube."""
    axis = np.array(NORMALS[turn[0]])
    for _ in range({"": 1, "2": 2, "'": 3}[turn[1:]]):
        after = {}
        for (place, normal), color in stickers.items():
            moved = place, normal
            if np.dot(axis, place) > 0:  # clockwise as seen from outside
                along = (axis * np.dot(axis, each) - np.cross(axis, each) for each in (place, normal))
                moved = tuple(tuple(each.tolist()) for each in along)
            after[moved] = color
        stickers = after
    return stickers


def test_it_keeps_the_contract() -> None:
    assert load_game("cube") is GAME
    assert check_game(GAME, games=100).symmetries == 6


def test_turns_are_rotations_in_space() -> None:
    rng = np.random.default_rng(1)
    state = solved_cubes(1)
    places = {corner: tuple(np.sum([NORMALS[side] for side in corner], axis=0).tolist()) for corner in CORNERS}
    stickers = {(places[corner], NORMALS[side]): side for corner in CORNERS for side in corner}
    for turn in rng.integers(len(TURNS), size=100).tolist():
        state, stickers = GAME.step(state, np.array([turn])), turned(stickers, TURNS[turn])
        shown = GAME.observe(state)[0]
        assert shown.sum(axis=1).tolist() == [1] * 21
        expected = [stickers[places[corner], NORMALS[side]] for corner in CORNERS[:-1] for side in corner]
        assert [SIDES[color] for color in shown.argmax(axis=1)] == expected
        assert all(stickers[places["DBL"], NORMALS[side]] == side for side in "DBL")
    assert state[0, MOVES] == 100


def test_distances_are_the_published_ones() -> None:
    for found, counts, mean in (
        (distances(), HALF_TURNS, 8.7556),
        (distances(quarter_turns=True), QUARTER_TURNS, 10.6664),
    ):
        assert np.bincount(found).tolist() == counts
        assert found.mean() == pytest.approx(mean, abs=5e-5)
    assert len(distances()) == 3_674_160


def test_perfect_moves_solve_the_hardest_cubes_in_eleven() -> None:
    (hardest, _) = position_sets()
    states = hardest.states
    for _ in range(11):
        assert GAME.legal(states).all()
        states = GAME.step(states, perfect_actions(states).argmax(axis=1))
    ended, results = GAME.outcome(states)
    assert ended.all()
    assert np.array_equal(results[:, 0], hardest.action_values.max(axis=1))
    assert results[:, 0] * GAME.points == pytest.approx(-11)
    assert GAME.score(states[0]) == -11
    assert not GAME.legal(states).any()


def test_a_move_is_worth_the_moves_made_and_those_to_make() -> None:
    state = GAME.step(solved_cubes(1), np.array([GAME.parse_action("U")]))
    values = dict(zip(TURNS, (action_values(state)[0] * GAME.points).round().tolist(), strict=True))
    assert [values[turn] for turn in ("U'", "U", "U2", "R")] == [-2, -3, -3, -4]
    assert load_perfect_actions("cube")(state, None).tolist() == [[turn == "U'" for turn in TURNS]]


def test_no_result_is_out_of_range_even_with_the_moves_that_a_network_expects() -> None:
    longest = solved_cubes(1)
    longest[0, MOVES] = GAME.max_plies - 2  # without the number, and one turn at least
    assert GAME.banked(longest)[0, 0] - GAME.value_scale >= -1
    assert distances().max() / GAME.points < GAME.value_scale


def test_games_begin_with_easy_cubes_and_with_hard_ones() -> None:
    states, numbers = scrambled_cubes(8000)
    found = distances()[positions(states)]
    assert (found <= numbers).all()
    assert found.min() == 1  # never a solved one
    shares = np.bincount(found, minlength=12) / len(found)
    assert shares[1] > 0.3
    assert shares[1:9].min() > 0.02
    assert 0.1 < shares[8:].sum() < 0.2
    assert numbers.max() == MOST_TURNS
    assert np.mean(numbers == 1) == pytest.approx(2 * np.mean(numbers == 2), rel=0.1)
    assert np.array_equal(states[:, [TO_COME, LAST, MOVES]], np.tile([0, NO_SIDE, 0], (len(states), 1)))


def test_the_last_turn_of_a_scramble_does_not_solve_the_cube() -> None:
    moves = "U2 R2 U2 R2 U2"
    state = GAME.initial(1)
    for turn in parse_moves(GAME, f"n6 {moves}"):
        assert GAME.chances(state)[0, turn] > 0
        state = GAME.step(state, np.array([turn]))
    last, earlier = GAME.chances(state)[0], GAME.chances(np.array([[*state[0, :TO_COME], 2, *state[0, LAST:]]]))[0]
    turn = GAME.parse_action("R2")
    assert distances()[positions(GAME.step(state, np.array([turn])))] == 0
    assert (last[turn], earlier[turn]) == (0, pytest.approx(1 / 6))
    assert ((last > 0).sum(), (earlier > 0).sum()) == (5, 6)


def test_outcomes_have_names() -> None:
    initial, turning = GAME.initial(1)[0], GAME.step(GAME.initial(1), np.array([6]))[0]
    assert (initial[TO_COME], turning[TO_COME]) == (UNDRAWN, 7)
    assert [GAME.chance_label(initial, outcome) for outcome in (0, 13)] == ["n1", "n14"]
    assert [GAME.chance_label(turning, outcome) for outcome in range(9)] == list(TURNS)
    assert parse_moves(GAME, "N2 r2 u' U R") == [1, 4, 2, 0, 3]
    assert [GAME.parse_action(text) for text in ("u", " U2 ", "f'")] == [0, 1, 8]
    with pytest.raises(GameError, match="'U4' is not a move of the cube: expected U, U2, U', R"):
        GAME.parse_action("U4")


def test_symmetries_commute_with_moves() -> None:
    observations, actions = GAME.symmetries()
    assert len({tuple(row) for row in actions.tolist()}) == 6
    turns = np.random.default_rng(2).integers(len(TURNS), size=(30, 200))
    for observation, action in zip(observations, actions, strict=True):
        states = mapped = solved_cubes(turns.shape[1])
        for turn in turns:
            states, mapped = GAME.step(states, turn), GAME.step(mapped, np.argsort(action)[turn])
            seen = GAME.observe(states).reshape(len(states), -1)
            assert np.array_equal(seen[:, observation], GAME.observe(mapped).reshape(len(states), -1))
        assert np.array_equal(distances()[positions(states)], distances()[positions(mapped)])
        assert np.array_equal(GAME.legal(mapped), GAME.legal(states)[:, action])


def test_the_solved_positions_are_all_of_the_hardest_and_a_sample_for_each_split() -> None:
    hardest, sample = load_position_sets("cube")
    again, other = load_position_sets("cube", "test")
    assert (hardest.name, hardest.sampled, len(hardest.states)) == ("hardest", False, 2644)
    assert np.array_equal(again.states, hardest.states)
    assert (sample.name, sample.sampled, len(sample.states)) == ("random positions", True, 1000)
    assert len(np.unique(np.concatenate([sample.states, other.states]), axis=0)) == 2000
    assert all(GAME.is_position(state) for each in (hardest, sample) for state in each.states[:50])


def test_only_positions_of_the_game_are_positions() -> None:
    good = [[0, 0, -1, -1, 0], [0, 0, 14, -1, 0], [7, 7, 13, 2, 0], [0, 0, 5, 1, 0], [5039, 728, 0, -1, 28]]
    bad = [
        [0, 0, 0, -1, 0],  # no scramble solves the cube
        [5040, 0, 0, -1, 1],
        [1, 729, 0, -1, 1],
        [1, -1, 0, -1, 1],
        [1, 1, 0, 0, 1],
        [1, 1, 0, -1, 29],
        [1, 1, 0, -1, -1],
        [1, 1, -1, -1, 0],
        [1, 1, 3, -1, 0],
        [0, 0, 15, -1, 0],
        [1, 1, 14, 0, 0],
        [1, 1, 3, 3, 0],
        [1, 1, 3, 1, 1],
        [0, 0, -2, -1, 0],
        [0, 0, -1, -1, 1],
    ]
    assert all(GAME.is_position(np.array(words)) for words in good)
    assert not any(GAME.is_position(np.array(words)) for words in bad)


def test_the_cube_is_drawn_as_a_net() -> None:
    state = GAME.step(GAME.step(solved_cubes(1), np.array([0])), np.array([GAME.parse_action("R")]))
    assert GAME.render(state[0]).splitlines() == [
        "    U R",
        "    U F",
        "F F R D R B U L",
        "L L F D R B U B",
        "    D B",
        "    D L",
        "moves: 2",
    ]
    assert GAME.render(GAME.initial(1)[0]).splitlines()[-1] == "to be scrambled"
    assert GAME.render(np.array([0, 0, 4, NO_SIDE, 0])).splitlines()[-1] == "4 turns to come"
