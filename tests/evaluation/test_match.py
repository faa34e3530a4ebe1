"""Matches: fair openings, swapped sides, and intervals of their scores."""

import games
import numpy as np
import pytest
from reference import ArbitraryNetwork, exact_network

from connectfour.game import GAME as CONNECTFOUR
from pig.game import Pig
from seraphim.errors import GameError, SettingsError
from seraphim.evaluation import match
from seraphim.evaluation.exact_play import measure_play
from seraphim.evaluation.match import (
    MatchResult,
    Tally,
    default_plies,
    make_openings,
    play_games,
    play_match,
    score_interval,
)
from seraphim.game import CHANCE, Array, Game, PlainRules
from seraphim.game.exhaustive import solve
from seraphim.game.notation import followers
from seraphim.options import SearchOptions
from seraphim.players.choose import Choose, SearchPlayer, mcts_player, minimax_player, random_player, solver_player
from seraphim.search.rng import draw_actions, fork
from tictactoe.game import GAME
from tictactoe.minimax import perfect_actions
from twenty48.game import Twenty48

CHAIN = PlainRules(games.Chain(30))
NIM = PlainRules(games.NIM)
MOVES_TWICE = PlainRules(games.MOVES_TWICE)
GAMES = [GAME, CONNECTFOUR, NIM, MOVES_TWICE]


def only_move(states: Array) -> Array:
    return CHAIN.legal(states).argmax(axis=1)


# ---------------------------------------------------------------- openings


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_openings_are_distinct_unfinished_and_reached_by_their_moves(game: Game) -> None:
    openings = make_openings(game, 60, 6)
    assert len({state.tobytes() for state in openings.states}) == len(openings.states) == len(openings.moves)
    assert not game.outcome(openings.states)[0].any()
    for state, moves in zip(openings.states, openings.moves, strict=True):
        replayed = game.initial(1)
        for action in moves:
            assert game.legal(replayed)[0, action]
            replayed = game.step(replayed, np.array([action]))
        assert (replayed[0] == state).all()


def test_openings_have_all_lengths_up_to_the_greatest() -> None:
    lengths = [len(moves) for moves in make_openings(CONNECTFOUR, 200, 5).moves]
    assert set(lengths) == set(range(6))


def test_the_same_seed_gives_the_same_openings_and_another_one_others() -> None:
    first, again, other = (make_openings(CONNECTFOUR, 50, 6, seed) for seed in (1, 1, 2))
    assert first.moves == again.moves
    assert len(set(first.moves) & set(other.moves)) < 25


def test_a_small_game_gives_all_of_its_openings_and_no_more() -> None:
    assert len(make_openings(GAME, 1000, 0).states) == 1
    assert len(make_openings(GAME, 1000, 1).states) == 1 + 9
    assert len(make_openings(GAME, 1000, 2).states) == 1 + 9 + 72
    assert len(make_openings(CHAIN, 1000, 4).states) == 5


def test_a_random_walk_that_ends_the_game_gives_an_opening_before_its_end() -> None:
    openings = make_openings(NIM, 1000, 40)
    assert not NIM.outcome(openings.states)[0].any()
    assert len(openings.states) == 28  # every heap from 15 to 1 with either player to move, but for 15 and 14 one only


def test_openings_are_short_by_default() -> None:
    assert [default_plies(game) for game in (GAME, CONNECTFOUR)] == [2, 6]


@pytest.mark.parametrize(("count", "plies"), [(0, 3), (5, -1)])
def test_bad_openings_are_refused(count: int, plies: int) -> None:
    with pytest.raises(SettingsError, match="expected at least 1 opening of at least 0 plies"):
        make_openings(GAME, count, plies)


# ---------------------------------------------------------------- matches


def test_an_advantage_of_a_side_cancels_out() -> None:
    # The player that makes the first move of a chain wins.
    result = play_match(CHAIN, only_move, only_move, make_openings(CHAIN, 10, 0))
    assert result.as_player == (Tally(1, 0, 0), Tally(0, 0, 1))
    assert result.score == 0.5
    assert result.pairs == (0, 0, 1, 0, 0)


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_a_player_makes_half_of_the_points_against_itself(game: Game) -> None:
    result = play_match(game, random_player(game), random_player(game), make_openings(game, 40, 4))
    assert result.score == 0.5
    assert result.pairs[2] == result.games // 2
    low, high = result.interval
    assert low < 0.5 < high


def by_turns(game: Game, players: tuple[Choose, Choose], state: Array) -> float:
    """The result for player 0 of one game, one position at a time."""
    states = state[None]
    while not game.outcome(states)[0][0]:
        states = game.step(states, players[int(game.to_play(states)[0])](states))
    return float(game.outcome(states)[1][0])


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_a_match_is_the_sum_of_games_played_one_at_a_time(game: Game) -> None:
    openings = make_openings(game, 20, 3)
    first, second = minimax_player(game, 2), random_player(game)
    result = play_match(game, first, second, openings)
    as_0 = [by_turns(game, (first, second), state) for state in openings.states]
    as_1 = [-by_turns(game, (second, first), state) for state in openings.states]
    assert result.as_player == tuple(Tally(*(side.count(one) for one in (1, 0, -1))) for side in (as_0, as_1))
    points = [(one + other) / 2 + 1 for one, other in zip(as_0, as_1, strict=True)]
    assert result.pairs == tuple(points.count(one) for one in (0, 0.5, 1, 1.5, 2))


def test_perfect_players_draw_from_the_start_and_share_the_points_of_every_opening() -> None:
    perfect = [minimax_player(GAME, 9), solver_player(GAME, perfect_actions, seed=3)]
    assert play_match(GAME, *perfect, make_openings(GAME, 1, 0)).tally == Tally(0, 2, 0)
    result = play_match(GAME, *perfect, make_openings(GAME, 82, 2))
    assert result.pairs == (0, 0, 82, 0, 0)
    assert result.score == 0.5


def test_swapping_the_players_mirrors_the_result() -> None:
    openings = make_openings(CONNECTFOUR, 20, 4)
    first, second = minimax_player(CONNECTFOUR, 3), mcts_player(CONNECTFOUR, 10)
    one, other = play_match(CONNECTFOUR, first, second, openings), play_match(CONNECTFOUR, second, first, openings)
    assert one.tally == other.tally[::-1]
    assert one.pairs == other.pairs[::-1]
    assert one.interval == pytest.approx([1 - bound for bound in other.interval[::-1]])
    assert one.distinct_games == other.distinct_games


def test_most_of_a_hundred_games_are_distinct() -> None:
    player = minimax_player(CONNECTFOUR, 2)
    result = play_match(CONNECTFOUR, player, minimax_player(CONNECTFOUR, 3), make_openings(CONNECTFOUR, 50, 6))
    assert result.games == 100
    assert result.distinct_games >= 80


def test_openings_that_transpose_into_the_same_game_count_once() -> None:
    # A chain has one game; four openings of it are parts of that.
    result = play_match(CHAIN, only_move, only_move, make_openings(CHAIN, 10, 3))
    assert result.games == 8
    assert result.distinct_games == 2  # with either player moving first


def test_a_game_without_end_is_cut_off_and_drawn() -> None:
    game = PlainRules(games.ENDLESS)
    openings = make_openings(game, 10, 2)
    result = play_match(game, random_player(game), random_player(game, 1), openings)
    assert result.tally == Tally(0, result.games, 0)
    assert result.cut_off == result.games
    assert str(result).endswith(f"{result.games} cut off")


def test_both_players_get_their_positions_in_one_call_a_ply() -> None:
    calls = []

    def counting(states: Array) -> Array:
        calls.append(len(states))
        return GAME.legal(states).argmax(axis=1)

    play_match(GAME, counting, counting, make_openings(GAME, 40, 2))
    assert calls[:2] == [40, 40]
    assert len(calls) <= 2 * 9


def test_a_match_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    player = random_player(GAME, 0)
    result = play_match(GAME, player, player, make_openings(GAME, 40, 2), lambda *news: told.append(news))
    unfinished, plies = zip(*told, strict=True)
    assert unfinished[0] == result.games == 80
    assert list(unfinished) == sorted(unfinished, reverse=True)
    assert (plies[0], plies[-1]) == (2, 9)
    assert list(plies) == sorted(plies)
    assert unfinished[-1] == 0 < unfinished[-2]


def test_an_illegal_choice_is_an_error() -> None:
    with pytest.raises(GameError, match="a player chose the illegal action 0 here:\n  a b c\n1 [XO]"):
        play_match(GAME, lambda states: np.zeros(len(states), int), random_player(GAME), make_openings(GAME, 9, 1))


@pytest.mark.parametrize(
    "returned",
    [[0.0] * 18, [True] * 18, [0] * 17, [[0]] * 18, 0],
    ids=["numbers", "booleans", "too few", "a row for each", "one"],
)
def test_what_is_no_action_for_each_state_is_an_error(returned: object) -> None:
    openings = make_openings(GAME, 1, 0).repeated(18)
    expected = r"^a player must return an action, an integer, for each of 18 states, not "
    with pytest.raises(GameError, match=expected):
        play_games(GAME, [lambda _: np.array(returned)], np.zeros((18, 2), int), openings)


@pytest.mark.parametrize("action", [-1, 9, 2**40])
def test_a_number_that_is_no_action_of_the_game_is_an_error(action: int) -> None:
    with pytest.raises(GameError, match=f"^a player chose the illegal action {action} here:"):
        play_match(GAME, lambda states: np.full(len(states), action), random_player(GAME), make_openings(GAME, 1, 0))


def test_the_result_prints_as_one_line() -> None:
    result = MatchResult((Tally(9, 1, 0), Tally(5, 0, 5)), (0, 0, 5, 1, 4), 18)
    low, high = result.interval
    assert str(result) == (
        f"+14 =1 -5 (+9 =1 -0 and +5 =0 -5 by side), score 72.5% [{low:.1%}, {high:.1%}], 18 of 20 games distinct"
    )


def test_results_of_the_same_players_add_up() -> None:
    players = minimax_player(GAME, 1), random_player(GAME)
    openings = make_openings(GAME, 40, 2)
    halves = [openings.part(0, 20), openings.part(20, 40)]
    total = play_match(GAME, *players, halves[0]) + play_match(GAME, *players, halves[1])
    whole = play_match(GAME, *players, openings)
    assert (total.as_player, total.pairs) == (whole.as_player, whole.pairs)
    assert total.distinct_games >= whole.distinct_games


# ---------------------------------------------------------------- intervals


@pytest.mark.parametrize("count", [20, 50])
@pytest.mark.parametrize("strength", [0.5, 0.7, 0.95])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_intervals_contain_the_true_score_95_percent_of_the_time(count: int, strength: float, bias: float) -> None:
    rng = np.random.default_rng(int(100 * strength + count + bias))

    def simulated(openings: int) -> Array:
        # Openings favor a side by random odds; a fifth of the games is drawn.
        favors = bias * rng.normal(size=openings)
        points = np.zeros(openings, int)
        for side in (1, -1):
            chance = 1 / (1 + np.exp(-np.log(strength / (1 - strength)) - side * favors))
            points += np.where(rng.random(openings) < 0.2, 1, 2 * (rng.random(openings) < chance))
        return np.bincount(points, minlength=5)

    true_score = float(simulated(1_000_000) @ np.arange(5)) / 4e6
    held = sum(
        low <= true_score <= high for low, high in (score_interval(tuple(simulated(count))) for _ in range(1000))
    )
    assert 925 <= held <= 992


def test_identical_results_do_not_make_the_score_certain() -> None:
    low, high = score_interval((0, 0, 0, 0, 20))
    assert 0.8 < low < 0.9
    assert high == 1.0
    assert score_interval((20, 0, 0, 0, 0)) == pytest.approx((0.0, 1 - low))


def test_openings_that_split_the_points_give_a_narrower_interval_than_independent_games() -> None:
    split, independent = score_interval((0, 0, 50, 0, 0)), score_interval((12, 0, 26, 0, 12))
    assert 0 < split[1] - split[0] < (independent[1] - independent[0]) / 2


def test_no_games_give_the_whole_interval() -> None:
    assert score_interval((0, 0, 0, 0, 0)) == (0.0, 1.0)


# ---------------------------------------------------------------- chance

DICE = Pig(20)


def rolls_of(moves: tuple[int, ...]) -> list[int]:
    """The outcomes of the die in a game of Pig to 20."""
    state, rolls = DICE.initial(1), list[int]()
    for action in moves:
        rolls += [action] * int(DICE.to_play(state)[0] == CHANCE)
        state = DICE.step(state, np.array([action]))
    return rolls


def test_both_games_of_an_opening_have_the_same_rolls() -> None:
    openings = make_openings(DICE, 40, 0)
    seats = np.repeat([[0, 1], [1, 0]], 40, axis=0)
    played = play_games(DICE, (random_player(DICE), minimax_player(DICE, 2)), seats, openings.repeated(2))
    rolls = [rolls_of(moves) for moves in played.moves]
    for one, other in zip(rolls[:40], rolls[40:], strict=True):
        shared = min(len(one), len(other))
        assert one[:shared] == other[:shared]
    assert len({tuple(each[:8]) for each in rolls}) > 35
    counts = np.bincount(np.concatenate([np.array(each) for each in rolls[:40]]), minlength=6)
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 20.5  # chi-square of 5 degrees, once in a thousand


@pytest.mark.parametrize("plies", [0, 9])
def test_no_two_rolls_share_a_stream(plies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = list[int]()

    def draw(weights: Array, keys: Array) -> Array:
        drawn.extend(keys.tolist())
        return draw_actions(weights, keys)

    monkeypatch.setattr(match, "draw_actions", draw)
    openings = make_openings(DICE, 64, plies)
    play_games(DICE, (random_player(DICE),), np.zeros((64, 2), np.int64), openings)
    assert len(drawn) > 500
    assert len(set(drawn)) == len(drawn)
    assert not set(drawn) & {int(key) for key in openings.rolls}
    assert set(drawn).isdisjoint(fork(make_openings(DICE, 64, 0, seed=1).rolls, np.zeros(64, np.uint64)).tolist())


def test_openings_of_dice_are_as_many_as_asked_for() -> None:
    assert default_plies(DICE) == 0
    openings = make_openings(DICE, 300, 5)
    assert len(openings.states) == len(openings.moves) == len(openings.rolls) == 300
    assert {len(moves) for moves in openings.moves} == set(range(6))
    for state, moves in zip(openings.states, openings.moves, strict=True):
        replayed = DICE.initial(1)
        for action in moves:
            assert followers(DICE, replayed)[0, action]
            replayed = DICE.step(replayed, np.array([action]))
        assert (replayed[0] == state).all()
    assert openings.part(3, 5).rolls.tolist() == openings.rolls[3:5].tolist()


def test_outcomes_of_openings_are_drawn_by_their_probabilities() -> None:
    game = Twenty48(4, 4)
    openings = make_openings(game, 3000, 1)
    outcomes = np.array([moves[0] for moves in openings.moves if moves])
    assert len(outcomes) == 1500
    assert abs((outcomes % 2).mean() - 0.1) < 0.03  # a 4, not a 2
    assert len(set(outcomes.tolist())) > 20


def test_a_player_is_as_strong_as_itself_and_others_as_exact_play_says() -> None:
    openings, random, solution = make_openings(DICE, 1000, 0), random_player(DICE), solve(DICE)
    assert play_match(DICE, random, random, openings).pairs[2] == 1000
    best = solver_player(DICE, solution.perfect_actions)
    result, exact = play_match(DICE, random, best, openings), measure_play(DICE, solution, random)
    assert result.interval[0] < exact.score < result.interval[1]
    assert "points a game" not in str(result)


@pytest.mark.parametrize("turns", [1, 2])
def test_luck_is_what_mistakes_leave_of_a_result(turns: int) -> None:
    solution, random = solve(DICE), random_player(DICE)
    best = SearchPlayer(DICE, [exact_network(DICE)], SearchOptions(root="afterstates", turns=turns))
    openings, seats = make_openings(DICE, 200, 0), np.repeat([[0, 1], [1, 0]], 200, axis=0)
    played = play_games(DICE, (best, random), seats, openings.repeated(2), luck=best.luck)
    rows = {state.tobytes(): row for row, state in enumerate(solution.states)}
    for moves, result, luck in zip(played.moves, played.results, played.luck, strict=True):
        state, left = DICE.initial(1), float(solution.results[0])
        for action in moves:
            mover = int(DICE.to_play(state)[0])
            if mover != CHANCE:
                values = solution.action_values[rows[state.tobytes()]]
                left += (values[action] - np.nanmax(values)) * (-1 if mover else 1)
            state = DICE.step(state, np.array([action]))
        assert result - luck == pytest.approx(left, abs=1e-4)
    exact, result = measure_play(DICE, solution, random).score, play_match(DICE, random, best, openings)
    assert result.points is not None and result.luck_adjusted is not None
    low, high = result.luck_adjusted.interval
    assert low < 2 * exact - 1 < high
    assert high - low < np.ptp(result.points.interval)
    assert f", luck-adjusted {(2 + low + high) / 4:.1%} [{(1 + low) / 2:.1%}, {(1 + high) / 2:.1%}], " in str(result)


def test_luck_of_a_judge_that_knows_nothing_is_0_in_the_mean() -> None:
    judge = SearchPlayer(DICE, [ArbitraryNetwork(DICE)], SearchOptions(readouts=2))
    openings = make_openings(DICE, 1000, 0)
    result = play_match(DICE, random_player(DICE), judge, openings)
    assert result.points is not None and result.luck_adjusted is not None
    differences = result.luck_adjusted.value - result.points.value
    assert 0 < abs(differences) < 0.1
    parts = [play_match(DICE, random_player(DICE), judge, openings.part(i, i + 500)) for i in (0, 500)]
    both = (parts[0] + parts[1]).luck_adjusted
    assert both is not None and both.interval == pytest.approx(result.luck_adjusted.interval)
    assert play_match(DICE, random_player(DICE), random_player(DICE), openings).luck_adjusted is None
    assert (
        play_match(
            GAME,
            SearchPlayer(GAME, [ArbitraryNetwork(GAME)], SearchOptions(readouts=2)),
            random_player(GAME),
            make_openings(GAME, 2, 0),
        ).luck_adjusted
        is None
    )


def test_results_between_win_and_loss_are_counted_in_points() -> None:
    game = PlainRules(games.Layers(6))
    game.points = 10.0  # type: ignore[attr-defined]
    openings = make_openings(game, 200, 0)
    players, seats = (random_player(game), minimax_player(game, 1)), np.repeat([[0, 1], [1, 0]], 200, axis=0)
    played = play_games(game, players, seats, openings.repeated(2)).results
    pairs = 10 * (played[:200] - played[200:]) / 2
    result = play_match(game, *players, openings)
    assert len(set(pairs.tolist())) > 1
    assert result.points is not None
    assert result.points.value == pytest.approx(pairs.mean())
    margin = 1.959964 * pairs.std(ddof=1) / 200**0.5
    assert result.points.interval == pytest.approx((pairs.mean() - margin, pairs.mean() + margin))
    assert f", {result.points} points a game, " in str(result)
    few = play_match(game, players[0], players[0], openings.part(0, 1))  # whose points are those of its score
    assert few.points is not None and few.points.value == 2 * few.score - 1
    assert " 0 [-inf, inf] points a game, " in str(few)
    parts = [play_match(game, *players, openings.part(start, start + 100)) for start in (0, 100)]
    assert str(parts[0] + parts[1]).split(" points a game")[0] == str(result).split(" points a game")[0]
