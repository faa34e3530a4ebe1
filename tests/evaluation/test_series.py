"""Series: the first player moves first, and its result is exact, or that of games with different seeds."""

import re
import sys
from collections import defaultdict
from fractions import Fraction

import games
import numpy as np
import programs
import pytest

from connectfour import GAME as CONNECTFOUR
from connectfour import perfect_actions, position_from_moves
from pig.game import Pig
from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.match_csv import Conditions
from seraphim.evaluation.series import SeriesResult, Shares, count_out, play_series
from seraphim.evaluation.tournament import play_from_start
from seraphim.game import Array, Game, PlainRules
from seraphim.players.choose import Choose, DrawingPlayer, minimax_player, random_player, solver_player
from seraphim.players.roster import Entrant
from tictactoe import GAME
from tictactoe import perfect_actions as perfect_tictactoe
from twenty48.game import Twenty48

NIM = PlainRules(games.NIM)  # of 15: the first player wins by leaving multiples of 4


def best_nim(states: Array) -> Array:
    return np.maximum(states[:, 0] % 4 - 1, 0)


def played(player: Choose) -> Choose:
    """The same player, but one whose choices are not known: its games are played, not counted out."""
    return lambda states: player(states)  # noqa: PLW0108  # hides what kind of player it is


def enumerate_games(first: DrawingPlayer, second: DrawingPlayer) -> dict[int, Fraction]:
    """The probability of each result of tic-tac-toe for the first player, game by game; equal positions are not one."""
    chances: dict[int, Fraction] = defaultdict(Fraction)
    known: dict[tuple[int, bytes], Array] = {}  # what a player chooses among in a position is the same in each game
    games = [(GAME.initial(1), Fraction(1), first, second)]
    while games:
        state, chance, mover, other = games.pop()
        ended, result = GAME.outcome(state)
        if ended[0]:
            chances[int(result[0])] += chance
            continue
        key = id(mover), state.tobytes()
        if key not in known:
            known[key] = np.flatnonzero(mover.choices(state)[0])
        actions = known[key]
        for action in actions:
            games.append((GAME.step(state, np.array([action])), chance / len(actions), other, mover))
    return chances


# ---------------------------------------------------------------- counted out


@pytest.mark.parametrize("depths", [(3, 2), (2, 3), (9, 1)])
def test_the_exact_result_is_that_of_all_games(depths: tuple[int, int]) -> None:
    first, second = (minimax_player(GAME, depth) for depth in depths)
    found = count_out(GAME, first, second)
    assert found is not None
    chances = enumerate_games(first, second)
    assert found.shares == pytest.approx([float(chances[result]) for result in (1, 0, -1)], abs=1e-12)
    assert sum(chances.values()) == 1
    assert 0 < found.shares.wins < 1


@pytest.mark.parametrize("seed", [0, 7])
def test_the_exact_result_is_that_of_very_many_games_with_different_seeds(seed: int) -> None:
    first = minimax_player(GAME, 2, seed)  # a deterministic player, with this seed
    exact = count_out(GAME, played(first), random_player(GAME))
    sampled = play_series(GAME, first, lambda number: played(random_player(GAME, number)), games=2000)
    assert exact is not None
    assert exact.shares == pytest.approx(sampled.shares, abs=0.04)
    assert (exact.games, sampled.positions, len(sampled.games)) == ((), 0, 2000)


def test_a_player_of_known_choices_is_counted_out_and_the_first_one_moves_first() -> None:
    result = play_series(NIM, best_nim, lambda seed: random_player(NIM, seed), games=40)
    assert result.shares == Shares(1, 0, 0)
    assert result.positions > 0
    assert play_series(NIM, random_player(NIM), lambda seed: best_nim, games=10).shares.losses > 0.5


def test_positions_that_are_equal_are_asked_about_once() -> None:
    asked: list[bytes] = []

    def first(states: Array) -> Array:
        asked.extend(state.tobytes() for state in states)
        return GAME.legal(states).argmax(axis=1)

    found = count_out(GAME, first, random_player(GAME))
    assert found is not None
    assert len(asked) == len(set(asked))
    assert found.positions > len(asked)


def test_too_many_positions_are_not_counted_out_but_played() -> None:
    first = random_player(CONNECTFOUR)
    assert count_out(CONNECTFOUR, first, first) is None
    found = play_series(CONNECTFOUR, first, lambda seed: random_player(CONNECTFOUR, seed), games=3)
    assert (found.positions, len(found.games)) == (0, 3)


def test_games_that_are_cut_off_are_draws() -> None:
    endless = PlainRules(games.ENDLESS)
    chosen = random_player(endless)
    assert play_series(endless, chosen, lambda seed: random_player(endless, seed), games=3).shares == Shares(0, 1, 0)
    result = play_series(endless, chosen, lambda seed: played(random_player(endless, seed)), games=3)
    assert result.shares == Shares(0, 1, 0)
    assert all(len(game) == endless.max_plies for game in result.games)


def test_a_player_without_any_choice_is_an_error() -> None:
    nothing = DrawingPlayer(lambda states: np.zeros((len(states), 9), np.bool_), np.uint64(0))
    with pytest.raises(GameError, match="no action to draw here"):
        count_out(GAME, random_player(GAME), nothing)


# ---------------------------------------------------------------- played


def test_each_game_has_its_own_seed() -> None:
    seeds: list[int] = []

    def second(seed: int) -> Choose:
        seeds.append(seed)
        return played(random_player(GAME, seed))

    first = minimax_player(GAME, 2)
    result = play_series(GAME, first, second, games=30, seed=5)
    assert seeds == list(range(5, 35))
    assert len(set(result.games)) > 10
    assert play_series(GAME, first, second, games=30, seed=5) == result
    assert play_series(GAME, first, second, games=30, seed=50).games != result.games


def test_a_result_reads_as_one_line_without_an_interval() -> None:
    games = ((1, 2), (1, 2), (3, 4))
    assert str(SeriesResult(Shares(2 / 3, 1 / 3, 0), games=games)) == (
        "wins 66.67%, draws 33.33%, losses 0% of 3 games, 2 distinct"
    )
    assert str(SeriesResult(Shares(0.99999, 0.00001, 0), 1234)) == (
        "wins 100%, draws 0.001%, losses 0%: exact, by all 1,234 positions that the opponent's choices lead to"
    )


def test_an_illegal_action_is_an_error() -> None:
    def first_cell(states: Array) -> Array:
        return np.zeros(len(states), np.int64)

    with pytest.raises(GameError, match="illegal action"):
        play_series(GAME, first_cell, lambda seed: first_cell, games=2)
    with pytest.raises(GameError, match="illegal action"):
        play_series(GAME, first_cell, lambda seed: random_player(GAME, seed), games=2)
    with pytest.raises(SettingsError, match="at least 1 game, not 0"):
        play_series(GAME, first_cell, lambda seed: first_cell, games=0)


def test_perfect_play_draws_tic_tac_toe_against_a_solver_that_varies() -> None:
    result = play_series(
        GAME, minimax_player(GAME, 9), lambda seed: solver_player(GAME, perfect_tictactoe, seed), games=20
    )
    assert result.shares == pytest.approx((0, 1, 0))


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
    assert (name, result.shares, len(result.games)) == ("seeded", Shares(1, 0, 0), 4)


def test_the_program_prints_a_line_for_each_of_the_others() -> None:
    command = [sys.executable, "bin/arena.py", "minimax:9", "random", "solver", "--game=tictactoe", "--from_start"]
    done = programs.run([*command, "--games=20"], timeout=100)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert re.fullmatch(
        r"minimax:9 moves first against random: wins 9\d\.\d+%, draws \d\.\d+%, losses 0%: exact, by all [\d,]+ "
        r"positions that the opponent's choices lead to",
        first,
    )
    assert second.startswith("minimax:9 moves first against solver: wins 0%, draws 100%, losses 0%: exact")


@pytest.mark.parametrize(
    ("game", "reason"),
    [
        (Pig(10), "a series is for games without chance, and pig to 10 has chance: play a match"),
        (Twenty48(2, 2), "a series from the initial position is for two players, and twenty48:2x2 is a game for one"),
    ],
)
def test_games_of_chance_and_for_one_player_have_no_series(game: Game, reason: str) -> None:
    with pytest.raises(GameError, match=f"^{reason}"):
        play_series(game, random_player(game), lambda seed: random_player(game, seed), 5)
    with pytest.raises(GameError, match=f"^{reason}"):
        count_out(game, random_player(game), random_player(game))
