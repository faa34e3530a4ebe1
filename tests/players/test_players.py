"""Players without a model: legal, deterministic, and of known strength."""

from functools import cache

import games
import numpy as np
import pytest

from connectfour import perfect_actions as perfect_in_connectfour
from connectfour import position_from_moves
from connectfour.game import GAME as CONNECTFOUR
from pig.game import Pig
from seraphim.errors import GameError, ModelError, PlayerError, SettingsError
from seraphim.evaluation.check import StartLosses, loses_from_start
from seraphim.evaluation.error_rates import find_mistakes
from seraphim.evaluation.exact_play import measure_play
from seraphim.evaluation.match import make_openings, play_match
from seraphim.game import CHANCE, Array, Game, PlainRules
from seraphim.game.exhaustive import solve
from seraphim.game.solved import load_perfect_actions
from seraphim.options import SearchOptions
from seraphim.players import choose as players
from seraphim.players.choose import (
    Choose,
    SearchPlayer,
    greedy_player,
    mcts_player,
    minimax_player,
    random_player,
    raw_player,
    solver_player,
)
from seraphim.search.evaluator import Uniform
from tictactoe.game import GAME
from tictactoe.minimax import perfect_actions, position_sets
from twenty48.game import Twenty48

(POSITIONS,) = position_sets()
NIM = PlainRules(games.NIM)
MOVES_TWICE = PlainRules(games.MOVES_TWICE)
MAKERS = {
    "random": random_player,
    "minimax": lambda game, seed: minimax_player(game, 2, seed),
    "mcts": lambda game, seed: mcts_player(game, 8),
}


def board(drawing: str) -> Array:
    marks = drawing.replace(" ", "")
    return np.array([[sum(1 << cell for cell in range(9) if marks[cell] == side) for side in "XO"]], np.int64)


def column(moves: str, *, choose: Choose) -> str:
    return CONNECTFOUR.action_label(int(choose(position_from_moves(moves)[None])[0]))


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("game", [GAME, CONNECTFOUR, NIM, MOVES_TWICE], ids=lambda game: game.name)
def test_every_choice_is_legal(make, game: Game) -> None:
    states = make_openings(game, 200, 8).states
    actions = make(game, 0)(states)
    assert game.legal(states)[np.arange(len(states)), actions].all()


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_choice_depends_only_on_seed_and_position(make) -> None:
    states = make_openings(CONNECTFOUR, 60, 6).states
    actions = make(CONNECTFOUR, 1)(states)
    assert (make(CONNECTFOUR, 1)(states) == actions).all()
    shuffled = np.random.default_rng(0).permutation(len(states))
    assert (make(CONNECTFOUR, 1)(states[shuffled]) == actions[shuffled]).all()
    assert make(CONNECTFOUR, 1)(states[7:8]) == actions[7]


@pytest.mark.parametrize("make", [random_player, MAKERS["minimax"]], ids=["random", "minimax"])
def test_another_seed_makes_other_choices(make) -> None:
    states = make_openings(CONNECTFOUR, 60, 6).states
    assert (make(CONNECTFOUR, 2)(states) != make(CONNECTFOUR, 1)(states)).any()


@pytest.mark.parametrize("word", [0, 1])
def test_a_draw_depends_on_every_word_of_a_position(word: int) -> None:
    states = np.full((8, 2), 1)
    states[:, word] = 1 << np.arange(1, 9)  # seven cells are free in each
    places = GAME.legal(states).cumsum(axis=1)[np.arange(8), random_player(GAME)(states)]
    assert len(set(places.tolist())) > 3


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_network_whose_outputs_are_not_finite_plays_nothing(number: float) -> None:
    class Diverged(Uniform):
        name = "mine"

        def infer(self, observations: Array) -> tuple[Array, Array]:
            logits, values = super().infer(observations)
            logits[-1, 4] = number
            return logits, values

    free, taken = board("X·· ··· ···"), board("··· ·X· ···")
    for player in (
        raw_player(GAME, Diverged(GAME)),
        SearchPlayer(GAME, [Diverged(GAME)], SearchOptions(readouts=1, solver=False)),
    ):
        assert player(taken) != 4  # what the network says of illegal actions does not matter
        with pytest.raises(ModelError, match="^mine gave logits .*, but finite numbers are expected"):
            player(np.concatenate([taken, free]))


def test_random_play_draws_all_actions_equally_often() -> None:
    states = GAME.initial(1)
    drawn = np.concatenate([random_player(GAME, seed)(states) for seed in range(1800)])
    counts = np.bincount(drawn, minlength=9)
    assert ((counts - 200) ** 2 / 200).sum() < 26.1  # chi-square of 8 degrees of freedom, once in a thousand


# ---------------------------------------------------------------- minimax


@pytest.mark.parametrize("seed", range(3))
def test_minimax_to_the_end_of_tictactoe_is_the_solution(seed: int) -> None:
    actions = minimax_player(GAME, 9, seed)(POSITIONS.states)
    assert not find_mistakes(POSITIONS, actions).any()
    assert loses_from_start(GAME, minimax_player(GAME, 9, seed)) == StartLosses(False, False)


def test_minimax_to_the_end_never_loses_against_random() -> None:
    openings = make_openings(GAME, 1, plies=0)
    for seed in range(20):
        assert play_match(GAME, minimax_player(GAME, 9, seed), random_player(GAME, seed), openings).tally.losses == 0


def by_recursion(plain: games.Nim, state: tuple[int, ...], depth: int) -> float:
    """The value for player 0, a win being worth less the later it comes."""
    result = plain.outcome(state)
    if result is not None or depth == 0:
        return result or 0.0
    values = [by_recursion(plain, plain.step(state, action), depth - 1) for action in plain.legal(state)]
    return 0.999 * (min(values) if plain.to_play(state) else max(values))


@pytest.mark.parametrize("plain", [games.Nim(14), games.MovesTwice(14)], ids=lambda plain: plain.name)
@pytest.mark.parametrize("depth", [1, 2, 3, 5, 8])
def test_minimax_agrees_with_a_recursive_one(plain: games.Nim, depth: int) -> None:
    game = PlainRules(plain)
    states = make_openings(game, 100, 10).states
    recursion = cache(lambda state, left: by_recursion(plain, state, left))
    chosen = [minimax_player(game, depth, seed)(states) for seed in range(8)]
    for row, state in enumerate(map(tuple, states.tolist())):
        sign = -1 if plain.to_play(state) else 1
        values = [sign * recursion(plain.step(state, action), depth - 1) for action in plain.legal(state)]
        best = {action for action, value in enumerate(values) if value == max(values)}
        assert {int(actions[row]) for actions in chosen} <= best, (state, values)


def test_minimax_draws_among_equal_actions() -> None:
    drawn = {int(minimax_player(GAME, 9, seed)(GAME.initial(1))[0]) for seed in range(60)}
    assert drawn == set(range(9))  # every first move draws


def test_minimax_sees_exactly_its_depth() -> None:
    assert column("112233", choose=minimax_player(CONNECTFOUR, 1)) == "4"  # wins
    assert {column("11223", choose=minimax_player(CONNECTFOUR, 2, seed)) for seed in range(9)} == {"4"}  # else X wins
    assert len({column("11223", choose=minimax_player(CONNECTFOUR, 1, seed)) for seed in range(30)}) > 1


def test_minimax_wins_at_once_where_it_can() -> None:
    # Other moves win as well, a little later.
    winning = board("XX· OO· X·O")
    assert {int(minimax_player(GAME, 5, seed)(winning)[0]) for seed in range(20)} == {2}


def test_small_chunks_of_positions_give_the_same_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    states = make_openings(CONNECTFOUR, 30, 6).states
    actions = minimax_player(CONNECTFOUR, 4)(states)
    monkeypatch.setattr(players, "MAX_POSITIONS", 50)
    assert (minimax_player(CONNECTFOUR, 4)(states) == actions).all()


def test_minimax_must_look_ahead() -> None:
    with pytest.raises(SettingsError, match="minimax must look at least 1 ply ahead, not 0"):
        minimax_player(GAME, 0)


def expected(plain: games.Layers, state: tuple[int, ...], depth: int) -> float:
    """The value for player 0 by expectimax: what is banked where it ends, and no value lost by time."""
    result = plain.outcome(state)
    if result is not None:
        return result
    if depth == 0:
        return plain.bank_of(state)
    if plain.to_play(state) == CHANCE:
        return sum(
            odds * expected(plain, plain.step(state, outcome), depth - 1)
            for outcome, odds in enumerate(plain.chances(state))
            if odds
        )
    values = [expected(plain, plain.step(state, action), depth - 1) for action in plain.legal(state)]
    return min(values) if plain.to_play(state) == 1 else max(values)


@pytest.mark.parametrize("num_players", [1, 2])
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_minimax_takes_the_expectation_where_chance_moves(depth: int, num_players: int) -> None:
    for seed in range(6):
        plain = games.Layers(seed, num_players)
        plain.banked = plain.bank_of  # without points, they are all 0
        game = PlainRules(plain)
        states = np.array([(layer, place, 7) for layer in range(5) for place in range(6)], np.int64)
        if num_players == 2:
            states[:, 2] = 0
        states = states[game.to_play(states) != CHANCE]
        for state, action in zip(states, minimax_player(game, depth, seed)(states).tolist(), strict=True):
            words = tuple(state.tolist())
            sign = -1 if plain.to_play(words) == 1 else 1
            values = [sign * expected(plain, plain.step(words, each), depth - 1) for each in plain.legal(words)]
            assert values[action] == pytest.approx(max(values), abs=1e-6)


def test_the_greedy_player_banks_as_much_as_it_can_at_once() -> None:
    game = Twenty48(2, 3)
    state = np.array([[0x000011, 0, 40]])  # two tiles of 2 side by side: left and right score 4, down nothing
    scores = {action: game.step(state, np.array([action]))[0, 2] for action in np.flatnonzero(game.legal(state)[0])}
    best = {int(action) for action, score in scores.items() if score == max(scores.values())}
    assert len(best) < len(scores)
    assert {int(greedy_player(game, seed)(state)[0]) for seed in range(30)} == best
    with pytest.raises(PlayerError, match="^greedy plays games for one player, not tictactoe: take minimax:1$"):
        greedy_player(GAME)


# ---------------------------------------------------------------- pure MCTS


@pytest.mark.parametrize("game", [Pig(10), Twenty48(2, 2)], ids=lambda game: game.name)
def test_a_search_without_network_plays_games_of_chance(game: Game) -> None:
    solution = solve(game)
    searched, random = (measure_play(game, solution, player) for player in (mcts_player(game, 60), random_player(game)))
    assert searched.regret < random.regret / 2


@pytest.mark.parametrize("game", [GAME, CONNECTFOUR], ids=lambda game: game.name)
def test_a_search_without_network_beats_random(game: Game) -> None:
    result = play_match(game, mcts_player(game, 25), random_player(game), make_openings(game, 25, 2))
    assert result.interval[0] > 0.7, str(result)


@pytest.mark.slow
def test_more_readouts_beat_fewer() -> None:
    openings = make_openings(CONNECTFOUR, 20, 4)
    result = play_match(CONNECTFOUR, mcts_player(CONNECTFOUR, 150), mcts_player(CONNECTFOUR, 5), openings)
    assert result.interval[0] > 0.6, str(result)


def test_trees_in_parts_give_the_same_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    states = make_openings(GAME, 30, 3).states
    actions = mcts_player(GAME, 30)(states)
    monkeypatch.setattr(players, "MAX_NODES", 7 * 30 * 9)
    assert (mcts_player(GAME, 30)(states) == actions).all()


def test_pure_mcts_needs_readouts() -> None:
    with pytest.raises(SettingsError, match="readouts must be at least 1, not 0"):
        mcts_player(GAME, 0)


# ---------------------------------------------------------------- solvers


def test_the_solver_of_tictactoe_plays_perfectly_and_varied() -> None:
    for seed in range(3):
        assert not find_mistakes(POSITIONS, solver_player(GAME, perfect_actions, seed)(POSITIONS.states)).any()
    drawn = {int(solver_player(GAME, perfect_actions, seed)(GAME.initial(1))[0]) for seed in range(60)}
    assert drawn == set(range(9))


def test_the_solver_of_connectfour_wins_as_fast_and_loses_as_slowly_as_it_can() -> None:
    assert column("112233", choose=solver_player(CONNECTFOUR, perfect_in_connectfour)) == "4"
    states = np.stack([position_from_moves(moves) for moves in LATE])
    expected = [set(np.flatnonzero(minimax_best(state, CONNECTFOUR)).tolist()) for state in states]
    found = perfect_in_connectfour(states)
    assert [set(np.flatnonzero(row).tolist()) for row in found] == expected


# Thirty stones: a dozen plies from the end.
LATE = [
    "446712672373262354117664623512",
    "145662562365454761246155471372",
    "673452716526367242556677711325",
]


def minimax_best(state: Array, game: Game) -> Array:
    """The actions that the generic minimax may play when it sees the end of the game."""
    best = np.zeros(game.num_actions, bool)
    for seed in range(30):
        best[minimax_player(game, 14, seed)(state[None])] = True
    return best


def test_a_solver_without_time_still_plays() -> None:
    early = position_from_moves("")[None]
    possible = perfect_in_connectfour(early, 0.0)
    assert possible.any()
    chosen = solver_player(CONNECTFOUR, perfect_in_connectfour, seconds=0.0)(early)
    assert possible[0, chosen[0]]


def test_a_move_that_is_known_to_lose_is_avoided_without_enough_time() -> None:
    # X threatens to win in column 4: all other moves lose at once, which is known though little else is.
    threatened = position_from_moves("11223")[None]
    assert np.flatnonzero(perfect_in_connectfour(threatened, 0.05)[0]).tolist() == [3]


def test_a_game_without_solver_is_an_error() -> None:
    with pytest.raises(GameError, match="games has no solver: its module offers no perfect_actions"):
        load_perfect_actions("games")
    assert load_perfect_actions("tictactoe") is perfect_actions
