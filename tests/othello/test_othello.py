"""The rules of Othello, compiled against plain ones, OpenSpiel's and published counts, and its notation."""

import numpy as np
import pytest

from othello.game import GAME, state_from_board
from othello.plain import PlainOthello
from othello.rules import PASS
from seraphim.errors import GameError
from seraphim.game import Array, PlainRules
from seraphim.game.conformance import check_game
from seraphim.game.notation import format_moves, parse_moves

# Sequences of moves of each length, passes counted as moves, as published by several authors of Othello programs.
PERFT = (1, 4, 12, 56, 244, 1_396, 8_200, 55_092, 390_216, 3_005_288)


def play(games: int, seed: int = 0) -> tuple[Array, list[list[int]]]:
    """All positions of random games, and the moves that lead to each."""
    random, positions, lines = np.random.default_rng(seed), [], []
    for _ in range(games):
        (state,), moves = GAME.initial(1), []
        while True:
            positions.append(state)
            lines.append(list(moves))
            (legal,) = GAME.legal(state[None])
            if not legal.any():
                break
            moves.append(int(random.choice(np.flatnonzero(legal))))
            (state,) = GAME.step(state[None], np.array(moves[-1:]))
    return np.array(positions), lines


def state_after(text: str) -> Array:
    """The state after moves from the start."""
    (state,) = GAME.initial(1)
    for move in parse_moves(GAME, text):
        assert GAME.legal(state[None])[0, move]
        (state,) = GAME.step(state[None], np.array([move]))
    return state


@pytest.mark.kernels
def test_the_rules_agree_with_plain_ones() -> None:
    plain = PlainRules(PlainOthello())
    states, lines = play(12)
    same = plain.initial(len(lines))
    for row, moves in enumerate(lines):
        if moves:
            same[row : row + 1] = plain.step(same[row - 1 : row], np.array(moves[-1:]))
    for method in ("legal", "to_play", "observe"):
        np.testing.assert_array_equal(getattr(GAME, method)(states), getattr(plain, method)(same), method)
    ended, results = GAME.outcome(states)
    for found, expected in zip((ended, results), plain.outcome(same), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert ended.sum() == 12
    assert set(results[ended]) >= {1.0, -1.0}
    assert GAME.legal(states)[:, PASS].any()


def test_the_rules_agree_with_those_of_openspiel() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    states, lines = play(40, seed=1)
    other = theirs = pyspiel.load_game("othello")
    for state, moves in zip(states, lines, strict=True):
        other = theirs.new_initial_state() if not moves else other
        if moves:
            other.apply_action(moves[-1])
        ended, results = GAME.outcome(state[None])
        assert ended[0] == other.is_terminal()
        assert np.flatnonzero(GAME.legal(state[None])[0]).tolist() == other.legal_actions()
        if ended[0]:
            assert results[0] == other.returns()[0]
        else:
            assert GAME.to_play(state[None])[0] == other.current_player()


@pytest.mark.parametrize("plies", [7, pytest.param(9, marks=pytest.mark.slow)])
def test_the_number_of_games_of_each_length_is_the_published_one(plies: int) -> None:
    states, counts = GAME.initial(1), np.ones(1, np.int64)
    for expected in PERFT[: plies + 1]:
        assert counts.sum() == expected
        rows, actions = np.nonzero(GAME.legal(states))
        successors = GAME.step(states[rows], actions)
        states, places = np.unique(successors, axis=0, return_inverse=True)
        counts = np.bincount(places.ravel(), weights=counts[rows]).astype(np.int64)


def test_it_keeps_the_contract() -> None:
    assert check_game(GAME, games=30, read_board=state_from_board).positions


def test_a_player_who_can_flip_nothing_passes_and_the_other_goes_on() -> None:
    states, _ = play(30)
    legal = GAME.legal(states)
    passing = states[legal[:, PASS]]
    assert len(passing)
    assert (legal[legal[:, PASS]].sum(axis=1) == 1).all()
    after = GAME.step(passing, np.full(len(passing), PASS))
    np.testing.assert_array_equal(GAME.to_play(after), 1 - GAME.to_play(passing))
    np.testing.assert_array_equal(GAME.observe(after), GAME.observe(passing)[..., [1, 0, 3, 2]])
    assert GAME.legal(after)[:, :PASS].any(axis=1).all()


def test_the_shortest_games_end_early() -> None:
    # Black takes the last white stone with the ninth move.
    state = state_after("e6f4e3f6g5d6e7f5c5")
    ended, results = GAME.outcome(state[None])
    assert (ended[0], results[0]) == (True, 1.0)
    assert not (GAME.board(state).cells == 1).any()
    assert not GAME.legal(state[None]).any()


def test_moves_are_written_together_or_apart() -> None:
    together, apart = parse_moves(GAME, "f5d6c3"), parse_moves(GAME, "F5, d6 c3")
    assert together == apart == [GAME.parse_action(name) for name in ("f5", "d6", "c3")]
    assert format_moves(GAME, together) == "f5 d6 c3"
    assert [GAME.action_label(action) for action in (0, 7, 56, 63, PASS)] == ["a1", "h1", "a8", "h8", "pass"]


@pytest.mark.parametrize("text", ["", "i1", "a9", "a0", "1a", "a", "aa", "a10"])
def test_what_is_no_cell_is_refused(text: str) -> None:
    with pytest.raises(GameError, match="is not a move of othello: expected one such as a1 or pass"):
        GAME.parse_action(text)


def test_drawings_are_read_back() -> None:
    states, _ = play(4)
    for state in states:
        np.testing.assert_array_equal(state_from_board(GAME.render(state)), state)
    assert GAME.render(GAME.initial(1)[0]).splitlines()[3:6] == [
        "3 · · · · · · · ·",
        "4 · · · O X · · ·",
        "5 · · · X O · · ·",
    ]
    without_mover = "\n".join(GAME.render(GAME.initial(1)[0]).splitlines()[:-1])
    np.testing.assert_array_equal(state_from_board(without_mover), GAME.initial(1)[0])


def test_a_board_without_a_stone_on_d4_is_refused() -> None:
    drawing = GAME.render(GAME.initial(1)[0]).replace("O X", "· X")
    with pytest.raises(GameError, match="d4 is empty"):
        state_from_board(drawing)
