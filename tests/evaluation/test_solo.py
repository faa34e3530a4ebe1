"""Games for one player: mean results by the same chance, against exact ones."""

import numpy as np
import pytest

import seraphim
from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.exact_play import measure_play
from seraphim.evaluation.intervals import Mean
from seraphim.evaluation.match import make_openings, play_match
from seraphim.evaluation.match_csv import Conditions
from seraphim.evaluation.seats import SoloGames, differences, play_solo
from seraphim.evaluation.tournament import Tournament
from seraphim.game import Array
from seraphim.game.exhaustive import solve
from seraphim.players.choose import DrawingPlayer, greedy_player, minimax_player, random_player, solver_player
from tictactoe.game import GAME as TICTACTOE
from twenty48.game import Twenty48

GAME = Twenty48(2, 2)
SOLUTION = solve(GAME)
BEST = solver_player(GAME, SOLUTION.perfect_actions, seed=2)


def test_a_mean_has_the_interval_of_its_standard_error() -> None:
    numbers = np.random.default_rng(0).normal(3, 2, 400)
    found = Mean.of(numbers[:100]) + Mean.of(numbers[100:])
    margin = 1.959964 * numbers.std(ddof=1) / 20
    assert found.value == pytest.approx(numbers.mean())
    assert found.interval == pytest.approx((numbers.mean() - margin, numbers.mean() + margin))
    assert Mean.of(np.array([5.0, 5.0])).interval == (5, 5)
    assert Mean.of(np.array([5.0])).interval == (-np.inf, np.inf)
    assert str(Mean.of(np.array([1000.0, 3000.0]))) == "2,000 [40.036, 3,960]"


@pytest.mark.parametrize(
    "player", [random_player(GAME), greedy_player(GAME), solver_player(GAME, SOLUTION.perfect_actions)]
)
def test_the_mean_result_is_the_expected_one(player: DrawingPlayer) -> None:
    def choose(states: Array) -> Array:
        return player(states * np.array([1, 1, 0]))  # draws alike whatever the score is, as the exact figure asks once

    games, exact = play_solo(GAME, choose, make_openings(GAME, 4000, 0)), measure_play(GAME, SOLUTION, choose)
    low, high = games.mean.interval
    assert abs(games.mean.value - exact.results[0] * exact.points) < high - low < 4  # four standard errors


def test_players_of_the_same_seed_have_the_same_luck() -> None:
    openings = make_openings(GAME, 300, 0)
    games = [play_solo(GAME, minimax_player(GAME, depth), openings) for depth in (3, 3, 5)]
    assert np.array_equal(games[0].points, games[1].points)
    assert (games[0] - games[1]).interval == (0, 0)
    assert (games[2] - games[0]).value == pytest.approx(games[2].mean.value - games[0].mean.value)
    other = play_solo(GAME, minimax_player(GAME, 3), make_openings(GAME, 300, 0, seed=1))
    assert not np.array_equal(games[0].points, other.points)


def test_results_print_as_lines() -> None:
    played = {name: SoloGames(np.array(points)) for name, points in (("one", [2.0, 4.0]), ("two", [1.0, 1.0]))}
    assert str(played["one"]) == "3 [1.04, 4.96] points a game, 2 games"
    assert str(SoloGames(np.array([2.0, 4.0]), 1)).endswith("2 games, 1 cut off")
    assert differences(played) == ["one - two: 2 [0.040036, 3.96] points a game"]
    with pytest.raises(SettingsError, match="expected as many games of both players, not 2 and 1"):
        played["one"] - SoloGames(np.array([1.0]))


def test_a_game_that_is_cut_off_counts_what_is_banked() -> None:
    game = Twenty48(2, 2)
    game.max_plies = 12
    games = play_solo(game, greedy_player(game), make_openings(game, 50, 0))
    assert games.cut_off > 10
    assert games.mean.value > 5


def test_the_library_plays_alone() -> None:
    best, greedy = (seraphim.play_alone(name, 60, game="twenty48:2x2", seed=2) for name in ("solver", "greedy"))
    assert np.array_equal(best.points, seraphim.play_alone(BEST, 60, game=GAME, seed=2).points)
    assert (best - greedy).interval[0] > 20


def test_what_is_for_two_players_says_so() -> None:
    openings, player = make_openings(GAME, 2, 0), random_player(GAME)
    with pytest.raises(GameError, match="^matches are for two players, and twenty48:2x2 is a game for one: seraphim"):
        play_match(GAME, player, player, openings)
    with pytest.raises(GameError, match="^ratings are for two players"):
        Tournament(GAME, Conditions())
    with pytest.raises(GameError, match="^matches are for two players"):
        seraphim.match("random", "random", game="twenty48:2x2")
    with pytest.raises(GameError, match="^tictactoe is for several players: seraphim.match plays it"):
        play_solo(TICTACTOE, random_player(TICTACTOE), make_openings(TICTACTOE, 2, 0))
