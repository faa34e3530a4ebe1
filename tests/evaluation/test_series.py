"""Series: the first player moves first, the others vary with the seed, and equal games count once."""

import subprocess
import sys

import games
import numpy as np
import pytest

from connectfour import GAME as CONNECTFOUR
from connectfour import perfect_actions, position_from_moves
from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.intervals import Rate
from seraphim.evaluation.match import SeriesResult, Tally, play_series
from seraphim.evaluation.match_csv import Conditions
from seraphim.evaluation.players import Choose, minimax_player, random_player, solver_player
from seraphim.evaluation.tournament import Entrant, play_from_start
from seraphim.game import Array, PlainRules
from tictactoe import GAME
from tictactoe import perfect_actions as perfect_tictactoe

NIM = PlainRules(games.NIM)  # of 15: the first player wins by leaving multiples of 4


def best_nim(states: Array) -> Array:
    return np.maximum(states[:, 0] % 4 - 1, 0)


def test_the_first_player_moves_first_in_every_game() -> None:
    result = play_series(NIM, best_nim, lambda seed: random_player(NIM, seed), games=40)
    assert result.tally == Tally(40, 0, 0)
    assert all(game[0] == 2 for game in result.games)  # takes 3 of 15
    assert play_series(NIM, random_player(NIM), lambda seed: best_nim, games=10).tally.losses > 5


def test_each_game_has_its_own_seed() -> None:
    seeds: list[int] = []

    def second(seed: int) -> Choose:
        seeds.append(seed)
        return random_player(GAME, seed)

    first = minimax_player(GAME, 2)
    result = play_series(GAME, first, second, games=30, seed=5)
    assert seeds == list(range(5, 35))
    assert len(set(result.games)) == sum(result.distinct) > 10
    assert play_series(GAME, first, second, games=30, seed=5) == result
    assert play_series(GAME, first, second, games=30, seed=50).games != result.games


def test_games_that_are_equal_count_once_in_the_interval() -> None:
    result = play_series(GAME, minimax_player(GAME, 9), lambda seed: minimax_player(GAME, 9), games=12)
    assert (result.tally, result.distinct) == (Tally(0, 12, 0), Tally(0, 1, 0))
    assert result.interval == Rate(0, 1).interval
    assert "1 of 12 games distinct" in str(result)


def test_a_result_reads_as_one_line() -> None:
    result = SeriesResult(Tally(48, 1, 1), Tally(38, 1, 1), ())
    low, high = Rate(38, 40).interval
    assert str(result) == (
        f"+48 =1 -1, wins 96.0%; 40 of 50 games distinct, of these +38 =1 -1 [{low:.1%}, {high:.1%}]"
    )


def test_games_that_are_cut_off_are_draws() -> None:
    endless = PlainRules(games.ENDLESS)
    result = play_series(endless, random_player(endless), lambda seed: random_player(endless, seed), games=3)
    assert result.tally == Tally(0, 3, 0)
    assert all(len(game) == endless.max_plies for game in result.games)


def test_an_illegal_action_is_an_error() -> None:
    def first_cell(states: Array) -> Array:
        return np.zeros(len(states), np.int64)

    with pytest.raises(GameError, match="illegal action"):
        play_series(GAME, first_cell, lambda seed: first_cell, games=2)
    with pytest.raises(SettingsError, match="at least 1 game, not 0"):
        play_series(GAME, first_cell, lambda seed: first_cell, games=0)


def test_perfect_play_draws_tic_tac_toe_against_a_solver_that_varies() -> None:
    result = play_series(
        GAME, minimax_player(GAME, 9), lambda seed: solver_player(GAME, perfect_tictactoe, seed), games=20
    )
    assert result.tally.losses == 0


def test_a_solver_varies_among_moves_that_are_equally_good() -> None:
    # · · · · · · ·    X has played the middle column and O as well, until it was full: O to move loses in any case,
    # after 444445     but some moves last longer, and only among these is drawn.
    state = position_from_moves("4444455236")
    best = perfect_actions(state[None])[0]
    moves = {int(solver_player(CONNECTFOUR, perfect_actions, seed)(state[None])[0]) for seed in range(60)}
    assert moves == set(np.flatnonzero(best))


def test_there_must_be_another_player_and_it_must_have_a_seed() -> None:
    fixed, seeded = Entrant("fixed", lambda: best_nim), Entrant("seeded", lambda: best_nim, lambda seed: best_nim)
    with pytest.raises(SettingsError, match="fixed has no seed: every game could be identical"):
        list(play_from_start(NIM, [seeded, fixed], Conditions(games=4)))
    with pytest.raises(SettingsError, match="a match needs two players, but there is only fixed"):
        list(play_from_start(NIM, [fixed], Conditions(games=4)))
    ((name, result),) = play_from_start(NIM, [fixed, seeded], Conditions(games=4))
    assert (name, result.tally) == ("seeded", Tally(4, 0, 0))


def test_the_program_prints_a_line_for_each_of_the_others() -> None:
    command = [sys.executable, "bin/arena.py", "minimax:9", "random", "solver", "--game=tictactoe", "--from_start"]
    done = subprocess.run([*command, "--games=20"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("minimax:9 moves first against random: +")
    assert "of 20 games distinct" in first
    assert second.startswith("minimax:9 moves first against solver: +0 =20 -0, wins 0.0%; ")
