"""Ratings: known strengths are recovered, with correct intervals."""

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from seraphim.errors import SettingsError
from seraphim.evaluation.match import MatchResult, Tally, make_openings, play_match
from seraphim.evaluation.ratings import Match, Rating, connected, matches_table, plot_ratings, rate, ratings_table
from seraphim.players.choose import mcts_player, minimax_player, random_player
from tictactoe.game import GAME

STRENGTHS = {"random": 0.0, "weak": 150.0, "fair": 300.0, "good": 420.0, "best": 700.0}


def match(first: str, second: str, wins: int, draws: int, losses: int) -> Match:
    """A match with these games, in random pairs."""
    points = np.random.default_rng([wins, draws, losses]).permutation(np.repeat([2, 1, 0], [wins, draws, losses]))
    pairs = np.bincount(points.reshape(-1, 2).sum(axis=1), minlength=5)
    tally = Tally(wins, draws, losses)
    return Match(first, second, MatchResult((tally, Tally(0, 0, 0)), tuple(pairs.tolist()), len(points)))


def tournament(games: int, seed: int) -> list[Match]:
    """All against all, by chance and Elo's formula."""
    rng = np.random.default_rng(seed)
    matches = []
    for first, second in combinations(STRENGTHS, 2):
        expected = 1 / (1 + 10 ** ((STRENGTHS[second] - STRENGTHS[first]) / 400))
        wins = int(rng.binomial(games, expected))
        matches.append(match(first, second, wins, 0, games - wins))
    return matches


def test_known_strengths_are_recovered() -> None:
    found = {rating.name: rating.elo for rating in rate(tournament(100_000, seed=0))}
    assert found == pytest.approx(STRENGTHS, abs=8)


def test_intervals_contain_the_known_strengths_95_percent_of_the_time() -> None:
    held = [
        rating.low <= STRENGTHS[rating.name] <= rating.high
        for seed in range(100)
        for rating in rate(tournament(100, seed))
        if rating.name != "random"
    ]
    assert 0.92 <= np.mean(held) <= 0.98


@pytest.mark.parametrize("together", [True, False])
def test_intervals_hold_where_the_two_games_of_an_opening_depend_on_each_other(together: bool) -> None:
    # Together: who wins one game wins the other as well. Apart: where an opening is decided, each wins once.
    rng, held, widths = np.random.default_rng(0), [], []
    chance = 1 / (1 + 10 ** (-150 / 400))
    for _ in range(400):
        wins = int(rng.binomial(50, chance if together else 2 * chance - 1))
        pairs = (50 - wins, 0, 0, 0, wins) if together else (0, 0, 50 - wins, 0, wins)
        points = sum(count * half for count, half in zip(pairs, range(5), strict=True)) // 2
        result = MatchResult((Tally(points, 0, 100 - points), Tally(0, 0, 0)), pairs, 100)
        better = next(each for each in rate([Match("weak", "random", result)]) if each.name == "weak")
        held.append(better.low <= 150 <= better.high)
        widths.append(better.high - better.low)
    assert 0.92 <= np.mean(held) <= 0.98
    independent = rate([match("weak", "random", 70, 0, 30)])[0]
    assert (np.mean(widths) > 1.3 * (independent.high - independent.low)) == together


def test_the_strongest_comes_first_and_random_is_the_zero() -> None:
    ratings = rate(tournament(1000, seed=1))
    assert [rating.name for rating in ratings] == ["best", "good", "fair", "weak", "random"]
    assert ratings[-1] == Rating("random", 0, 0, 0, 4000, ratings[-1].score)


def test_without_random_the_mean_is_the_zero() -> None:
    ratings = rate([one for one in tournament(1000, seed=1) if "random" not in one])
    assert sum(rating.elo for rating in ratings) == pytest.approx(0, abs=1e-6)
    assert all(rating.low < rating.elo < rating.high for rating in ratings)


def test_players_that_never_met_are_rated_through_a_third() -> None:
    ratings = rate([match("a", "b", 30, 0, 10), match("b", "c", 30, 0, 10)])
    assert [rating.name for rating in ratings] == ["a", "b", "c"]
    assert ratings[0].elo - ratings[2].elo == pytest.approx(2 * 400 * np.log10(30.5 / 10.5), rel=1e-3)


def test_a_draw_is_half_a_win_each() -> None:
    drawn, split = rate([match("a", "b", 20, 40, 0)]), rate([match("a", "b", 40, 0, 20)])
    assert [rating.elo for rating in drawn] == pytest.approx([rating.elo for rating in split])


def test_an_unbeaten_player_has_a_rating_with_a_wide_interval() -> None:
    best = rate([match("best", "random", 100, 0, 0)])[0]
    assert best.elo == pytest.approx(921, abs=1)
    assert best.high - best.low > 800
    even = rate([match("best", "random", 50, 0, 50)])[0]
    assert even.high - even.low < 150


def test_groups_that_never_met_are_refused() -> None:
    with pytest.raises(SettingsError, match="c and a cannot be rated together: no chain of matches connects them"):
        rate([match("a", "b", 1, 0, 1), match("c", "d", 1, 0, 1)])


def test_groups_that_never_met_the_players_of_the_last_match_are_left_out() -> None:
    first, second, last = (match(*names, 1, 0, 1) for names in (("d", "c"), ("c", "b"), ("b", "a")))
    removed, others = match("old", "older", 1, 0, 1), match("x", "y", 1, 0, 1)
    assert connected([first, removed, second, others, last]) == [first, second, last]
    assert connected([first, second, last, removed]) == [removed]
    assert {rating.name for rating in rate(connected([removed, first, others, second, last]))} == {*"abcd"}
    assert connected([]) == []


def test_no_matches_give_no_ratings() -> None:
    assert rate([]) == []


def test_players_of_known_order_are_rated_in_it() -> None:
    players = {"random": random_player(GAME), "minimax:1": minimax_player(GAME, 1), "mcts:100": mcts_player(GAME, 100)}
    openings = make_openings(GAME, 40, 2)
    matches = [
        Match(one, other, play_match(GAME, players[one], players[other], openings))
        for one, other in combinations(players, 2)
    ]
    assert [rating.name for rating in rate(matches)] == ["mcts:100", "minimax:1", "random"]


def test_the_tables_are_aligned_and_complete() -> None:
    matches = tournament(100, seed=2)
    for table, entries in ((ratings_table(rate(matches)), 5), (matches_table(matches), 10)):
        lines = table.splitlines()
        assert len(lines) == 1 + entries
        assert len({len(line) for line in lines}) == 1, table
    assert "random - weak" in matches_table(matches)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_ratings_are_drawn(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"ratings{suffix}"
    plot_ratings(rate(tournament(100, seed=2)), file)
    assert file.stat().st_size > 1000
    if suffix == ".svg":
        assert "Elo, 95 % intervals; random = 0" in file.read_text()


def test_names_of_players_are_drawn_as_they_are(tmp_path: Path) -> None:
    file, name = tmp_path / "ratings.svg", os.fsdecode(b"gtp:$5\\frac{$ \xff")
    plot_ratings([Rating(name, 0.0, -1.0, 1.0, 2, 0.5)], file)
    assert "<!-- gtp:$5\\frac{$ ? -->" in file.read_text()


def test_a_plot_of_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"a plot must end with \.png, \.svg or \.pdf, not 'ratings\.txt'"):
        plot_ratings(rate(tournament(100, seed=2)), tmp_path / "ratings.txt")
