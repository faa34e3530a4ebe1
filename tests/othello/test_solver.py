"""The solver of Othello's endgames, against plain minimax and published results."""

import numpy as np
import pytest

from othello import GAME, action_results, perfect_actions, state_from_board
from othello.alphabeta import odd_regions, stable_stones
from othello.bits import Bits, stones_of
from othello.game import count_empty
from othello.plain import PASS, PlainOthello, State
from othello.solver import EndgameSolver
from seraphim.errors import GameError, SettingsError
from seraphim.game import Array

PLAIN = PlainOthello()

# The first positions of the endgame tests of the French Othello federation, with the results that their list gives:
# X is black, and the letter behind the board moves.
FFO = {
    40: ("O--OOOOX-OOOOOOXOOXXOOOXOOXOOOXXOOOOOOXX---OOOOX----O--X--------", "X", 38),
    41: ("-OOOOO----OOOOX--OOOOOO-XXXXXOO--XXOOX--OOXOXX----OXXO---OOO--O-", "X", 0),
    42: ("--OOO-------XX-OOOOOOXOO-OOOOXOOX-OOOXXO---OOXOO---OOOXO--OOOO--", "X", 6),
}


def endgames(empty: int, count: int, seed: int = 0) -> Array:
    """Unfinished positions of random games with a number of empty cells."""
    random, found = np.random.default_rng(seed), []
    while len(found) < count:
        (state,) = GAME.initial(1)
        while (legal := GAME.legal(state[None])[0]).any():
            if count_empty(state[None])[0] == empty:
                found.append(state)
                break
            (state,) = GAME.step(state[None], np.array([random.choice(np.flatnonzero(legal))]))
    return np.array(found)


def plain_state(state: Array) -> State:
    mover = int(GAME.to_play(state[None])[0])
    planes = GAME.observe(state[None])[0].astype(int)
    cells = planes[..., mover] + 2 * planes[..., 1 - mover]
    return (*cells.ravel().tolist(), mover)


def naive(state: State) -> int:
    """The difference of stones for the player to move by plain minimax, empty cells for the winner."""
    mover = PLAIN.to_play(state)
    if PLAIN.outcome(state) is not None:
        mine, theirs = state[:64].count(1 + mover), state[:64].count(2 - mover)
        return (mine > theirs) * (64 - 2 * theirs) + (mine < theirs) * (2 * mine - 64)
    return max(-naive(PLAIN.step(state, action)) for action in PLAIN.legal(state))


def drawn(board: str, mover: str) -> Array:
    return state_from_board("\n".join([*(board[row : row + 8] for row in range(0, 64, 8)), f"{mover} to move"]))


def test_results_of_late_positions_are_known_and_those_of_plain_minimax() -> None:
    states = np.concatenate([endgames(empty, count) for empty, count in ((1, 30), (2, 30), (3, 30), (5, 4))])
    known, results = GAME.known_results(states)
    assert known.all()
    values = np.array([naive(plain_state(state)) for state in states])
    assert results.tolist() == (np.sign(values) * np.where(GAME.to_play(states) == 0, 1, -1)).tolist()
    assert set(results.tolist()) == {-1.0, 0.0, 1.0}
    assert set(GAME.to_play(states).tolist()) == {0, 1}


def test_results_are_known_with_eight_empty_cells_but_not_with_nine() -> None:
    solver = EndgameSolver(1)
    states = endgames(8, 40)
    known, results = GAME.known_results(states)
    assert known.all()
    for state, result in zip(states, results, strict=True):
        weak = solver.solve_weakly(state)
        assert result == (weak if GAME.to_play(state[None])[0] == 0 else -weak)
    known, results = GAME.known_results(endgames(9, 10))
    assert not known.any()
    assert not results.any()


def test_values_are_those_of_plain_minimax() -> None:
    solver, values = EndgameSolver(1), []
    for empty, count in ((1, 40), (2, 40), (4, 12), (5, 3)):
        for state in endgames(empty, count):
            values.append(naive(plain_state(state)))
            assert solver.solve(state) == values[-1]
            assert solver.solve_weakly(state) == np.sign(values[-1])
    assert min(values) < 0 < max(values)


def test_values_follow_from_those_of_the_successors() -> None:
    solver = EndgameSolver(4)
    for state in endgames(12, 12, seed=1):
        actions = np.flatnonzero(GAME.legal(state[None])[0])
        successors = GAME.step(np.repeat(state[None], len(actions), axis=0), actions)
        of_moves = [-(EndgameSolver(1).solve(successor) or 0) for successor in successors]
        assert solver.solve(state) == max(of_moves)
        results = solver.solve_moves(state).results
        np.testing.assert_array_equal(results[actions], np.sign(of_moves))
        assert np.isnan(np.delete(results, actions)).all()


def test_values_are_the_same_on_a_turned_board() -> None:
    drawing = GAME.render(endgames(11, 1, seed=3)[0]).splitlines()
    rows = [line[2:].split() for line in drawing[1:9]]
    turned = "\n".join(["".join(row) for row in zip(*rows[::-1], strict=True)] + drawing[9:])
    original = state_from_board("\n".join(drawing))
    assert EndgameSolver(1).solve(state_from_board(turned)) == EndgameSolver(1).solve(original)


@pytest.mark.parametrize("number", [pytest.param(number, marks=pytest.mark.slow) for number in FFO])
def test_published_endgames_have_their_published_values(number: int) -> None:
    board, mover, value = FFO[number]
    solver = EndgameSolver(256)
    assert solver.solve_weakly(drawn(board, mover)) == np.sign(value)
    assert solver.solve(drawn(board, mover)) == value


def test_stable_stones_are_never_flipped() -> None:
    random, stable_seen = np.random.default_rng(0), 0
    for state in endgames(14, 20, seed=4):
        for player in (0, 1):
            own, other = (Bits(stones_of(state.view(np.uint64), who)) for who in (player, 1 - player))
            stable, current = int(stable_stones(own, other)), state
            assert stable & ~int(own) == 0
            stable_seen += stable.bit_count()
            while (legal := GAME.legal(current[None])[0]).any():
                (current,) = GAME.step(current[None], np.array([random.choice(np.flatnonzero(legal))]))
                assert stable & ~int(stones_of(current.view(np.uint64), player)) == 0
    assert stable_seen > 50


def test_odd_regions_are_quadrants() -> None:
    assert int(odd_regions(Bits(1))) == 0x0F0F0F0F
    assert int(odd_regions(Bits(0b11))) == 0
    assert int(odd_regions(Bits(1 << 63 | 1 << 7))) == 0xF0F0F0F0F0F0F0F0


def test_time_limits_a_search() -> None:
    (early,) = endgames(30, 1)
    solver = EndgameSolver(1)
    assert solver.solve(early, max_seconds=0.2) is None
    assert np.isnan(solver.solve_moves(early, max_seconds=0.2).results).any()
    (initial,) = GAME.initial(1)
    assert np.isnan(action_results(initial, 100.0).results).all()
    with pytest.raises(GameError, match="give the solver a time"):
        perfect_actions(initial[None])


def test_perfect_actions_keep_the_result() -> None:
    states = endgames(8, 10, seed=6)
    best = perfect_actions(states)
    for state, row in zip(states, best, strict=True):
        results = action_results(state, 10.0).results
        np.testing.assert_array_equal(row, results == np.nanmax(results))
        assert not row[PASS] or row.sum() == 1


def test_nothing_is_solved_after_the_end() -> None:
    state = endgames(1, 1)[0]
    while (legal := GAME.legal(state[None])[0]).any():
        (state,) = GAME.step(state[None], np.flatnonzero(legal)[:1])
    with pytest.raises(GameError, match="the game is over"):
        EndgameSolver(1).solve_moves(state)
    with pytest.raises(SettingsError, match="1 megabyte or more"):
        EndgameSolver(0)
