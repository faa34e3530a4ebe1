"""Models as bots of OpenSpiel, in OpenSpiel's own evaluation loops."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms.evaluate_bots import evaluate_bots

import seraphim
from seraphim.errors import GameError
from seraphim.export.openspiel_bot import make_bot
from seraphim.game import Array, Game, load_game
from seraphim.game.openspiel import MOST_PLIES, SPARE_PLIES
from tictactoe.game import TicTacToe


class First:
    """A player that plays the first legal action, and remembers the positions that it was given."""

    def __init__(self, name: str) -> None:
        self.game: Game = load_game(name)
        self.seen: list[Array] = []

    def play(self, position: Array, readouts: int | None) -> str:
        self.seen.append(position)
        action = int(self.game.legal(position[None])[0].argmax())
        label_in = getattr(self.game, "label_in", None)
        return label_in(position, action) if label_in else self.game.action_label(action)


SAME = [
    ("tictactoe", "tic_tac_toe"),
    ("connectfour", "connect_four"),
    ("connectfour:5x6", "connect_four(rows=5,columns=6)"),
    ("othello", "othello"),
    ("hex:4", "hex(board_size=4)"),
    ("openspiel:breakthrough", "breakthrough(rows=8,columns=8)"),
    ("openspiel:hex(board_size=3)", "hex(num_cols=3,num_rows=3)"),
    ("openspiel:chess", "chess"),
]


def random_game(game: Any, seed: int = 0) -> Iterator[Any]:
    """Yield the unfinished positions of a random game."""
    random, position = np.random.default_rng(seed), game.new_initial_state()
    while not position.is_terminal():
        yield position
        position.apply_action(int(random.choice(position.legal_actions())))


@pytest.mark.parametrize(("name", "other"), SAME)
def test_the_bot_sees_the_position_that_openspiel_has(name: str, other: str) -> None:
    game, model, theirs = pyspiel.load_game(other), First(name), load_game(f"openspiel:{other}")
    bot, state = make_bot(model, game), theirs.initial(1)
    for position in itertools.islice(random_game(game), 60):
        if position.history():
            state = theirs.step(state, np.array(position.history()[-1:]))
        assert bot.step(position) == position.legal_actions()[0]
        seen = model.seen[-1][None]
        np.testing.assert_array_equal(model.game.legal(seen), theirs.legal(state))
        np.testing.assert_array_equal(model.game.to_play(seen), theirs.to_play(state))
    assert len(model.seen) > 4


def test_a_policy_is_the_move_that_is_played() -> None:
    game = pyspiel.load_game("tic_tac_toe")
    bot, position = make_bot(First("tictactoe"), game), game.new_initial_state()
    position.apply_action(0)
    expected = [(1, 1.0), *((action, 0.0) for action in range(2, 9))]
    assert bot.provides_policy()
    assert bot.step_with_policy(position) == (expected, 1)
    assert bot.get_policy(position) == expected


def test_the_bot_begins_anywhere_in_a_game() -> None:
    game = pyspiel.load_game("connect_four")
    bot = make_bot(First("connectfour"), game)
    for position in random_game(game):
        for _ in range(2):
            bot.restart_at(position)
            assert bot.step(position) == position.legal_actions()[0]


@pytest.mark.parametrize(
    ("name", "other", "message"),
    [
        ("tictactoe", "connect_four", "one has 9 actions and the other 7"),
        ("hex:5", "hex(board_size=5,swap=True)", "one has 25 actions and the other 26"),
        ("hex:3", "tic_tac_toe", "after 5 moves they can differ in the legal moves"),
        ("connectfour:7x4", "connect_four(rows=6,columns=4)", "in the legal moves"),
        ("tictactoe", "backgammon", "is a game of chance, which is not played here"),
        ("openspiel:pig", "pig", "is a game of chance, which is not played here"),
        ("openspiel:cliff_walking", "cliff_walking", "is a game of one player, which is not played here"),
    ],
)
def test_a_model_of_another_game_is_refused_in_a_sentence(name: str, other: str, message: str) -> None:
    with pytest.raises(GameError) as caught:
        make_bot(First(name), pyspiel.load_game(other))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


class Misere(TicTacToe):
    name = "misere"

    def outcome(self, states: Array) -> tuple[Array, Array]:
        ended, results = super().outcome(states)
        return ended, 0 - results


class Reversed(TicTacToe):
    name = "reversed"

    def to_play(self, states: Array) -> Array:
        return 1 - super().to_play(states)


@pytest.mark.parametrize(("rules", "difference"), [(Misere(), "result"), (Reversed(), "player to move")])
def test_every_rule_is_compared(rules: Game, difference: str) -> None:
    model = First("tictactoe")
    model.game = rules
    with pytest.raises(GameError, match=f"they can differ in the {difference}"):
        make_bot(model, pyspiel.load_game("tic_tac_toe"))


def test_a_position_of_another_game_is_refused() -> None:
    bot = make_bot(First("connectfour"), pyspiel.load_game("connect_four"))
    other = pyspiel.load_game("connect_four(rows=5)").new_initial_state()
    with pytest.raises(GameError, match=r"this bot plays connect_four\(\), not connect_four\(rows=5\)"):
        bot.step(other)
    with pytest.raises(GameError, match="this bot plays"):
        pyspiel.evaluate_bots(other, [bot, bot], 0)


@pytest.mark.parametrize(
    ("start", "moves"),
    [
        ("4k3/8/8/8/8/8/4P3/4K3 b - - 0 1", []),
        ("4k3/8/8/8/8/8/4P3/4K3 b - - 0 1", ["Kd7"]),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 7 9", ["e4"]),  # the same moves are legal
    ],
)
def test_a_position_that_does_not_follow_from_the_initial_one_is_refused(start: str, moves: list[str]) -> None:
    game = pyspiel.load_game("chess")
    bot, position = make_bot(First("openspiel:chess"), game), game.new_initial_state(start)
    for move in moves:
        position.apply_action(position.string_to_action(move))
    with pytest.raises(
        GameError, match=rf"cannot play here: {len(moves)} moves .* of openspiel:chess, and at most 512"
    ):
        bot.step(position)


def test_a_game_that_is_too_long_for_a_state_is_refused() -> None:
    game = pyspiel.load_game("chinese_checkers(players=2)")
    bot = make_bot(First(f"openspiel:{game}"), game)
    longest = MOST_PLIES + SPARE_PLIES
    for position in random_game(game):
        if len(position.history()) == longest - 1:
            assert bot.step(position) in position.legal_actions()
        elif len(position.history()) >= longest:
            with pytest.raises(GameError, match=f"cannot play here: {len(position.history())} moves"):
                bot.step(position)
            if len(position.history()) > longest + 63:  # a state has room for a few more
                return
    pytest.fail("the random game was too short")


# ---------------------------------------------------------------- the models that come with Seraphim


@pytest.fixture(scope="module")
def tictactoe() -> Any:
    return make_bot(seraphim.load("tictactoe"), pyspiel.load_game("tic_tac_toe"), readouts=50)


@pytest.fixture(scope="module")
def connect_four() -> Any:
    return make_bot(seraphim.load("connectfour"), pyspiel.load_game("connect_four"), readouts=60)


def mcts_bot(game: Any, simulations: int, seed: int) -> Any:
    evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
    return pyspiel.MCTSBot(game, evaluator, 2.0, simulations, 1000, True, seed, False)


def play_in_cpp(game: Any, bots: list[Any], seed: int) -> list[float]:
    return pyspiel.evaluate_bots(game.new_initial_state(), bots, seed)


def play_in_python(game: Any, bots: list[Any], seed: int) -> list[float]:
    return evaluate_bots(game.new_initial_state(), bots, np.random.default_rng(seed))


@pytest.mark.parametrize("play", [play_in_cpp, play_in_python])
def test_tictactoe_is_not_lost_to_bots_of_openspiel(tictactoe: Any, play: Any) -> None:
    game = pyspiel.load_game("tic_tac_toe")
    for seed in range(6):
        seat = seed % 2
        for other in (pyspiel.make_uniform_random_bot(1 - seat, seed), mcts_bot(game, 100, seed)):
            bots = [tictactoe, other] if seat == 0 else [other, tictactoe]
            assert play(game, bots, seed)[seat] >= 0


@pytest.mark.parametrize("seat", [0, 1])
def test_tictactoe_is_not_lost_whatever_the_opponent_plays(tictactoe: Any, seat: int) -> None:
    pending, games = [pyspiel.load_game("tic_tac_toe").new_initial_state()], 0
    while pending:
        position = pending.pop()
        if position.is_terminal():
            assert position.returns()[seat] >= 0, str(position)
            games += 1
        elif position.current_player() == seat:
            pending.append(position.child(tictactoe.step(position)))
        else:
            pending.extend(position.child(action) for action in position.legal_actions())
    assert games > 20


@pytest.mark.slow
def test_a_move_is_legal_in_every_position_of_tictactoe() -> None:
    bot = make_bot(seraphim.load("tictactoe"), pyspiel.load_game("tic_tac_toe"), readouts=2)
    pending, seen = [pyspiel.load_game("tic_tac_toe").new_initial_state()], set()
    while pending:
        position = pending.pop()
        if str(position) not in seen and not position.is_terminal():
            seen.add(str(position))
            assert bot.step(position) in position.legal_actions()
            pending.extend(position.child(action) for action in position.legal_actions())
    assert len(seen) == 4520  # unfinished positions of tic-tac-toe


@pytest.mark.parametrize("play", [play_in_cpp, play_in_python])
def test_connect_four_beats_the_random_bot(connect_four: Any, play: Any) -> None:
    for seat in (0, 1):
        other = pyspiel.make_uniform_random_bot(1 - seat, 3)
        bots = [connect_four, other] if seat == 0 else [other, connect_four]
        assert play(pyspiel.load_game("connect_four"), bots, 3)[seat] == 1


def test_connect_four_beats_the_mcts_bot_with_more_readouts(connect_four: Any) -> None:
    game, points = pyspiel.load_game("connect_four"), 0.0
    for seed in range(4):
        for seat in (0, 1):
            other = mcts_bot(game, 300, seed)
            bots = [connect_four, other] if seat == 0 else [other, connect_four]
            points += play_in_cpp(game, bots, seed)[seat]
    assert points >= 4  # of 8 games; equal players would make 0
