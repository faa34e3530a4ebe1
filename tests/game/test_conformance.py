"""Each rule of the contract is broken once, by a game that is otherwise right, and the check finds it."""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import games
import knows_the_end
import numpy as np
import programs
import pytest

from pig.game import Pig
from pig.plain import PlainPig
from seraphim.errors import GameError
from seraphim.game import Array, PlainGame, PlainRules, Symmetries
from seraphim.game.conformance import Speed, check_agreement, check_game, draw_speeds, measure_speed
from tictactoe.game import GAME, TicTacToe, state_from_board
from twenty48.game import Twenty48

ROOT = Path(__file__).parents[2]


def finding(game: object) -> str:
    with pytest.raises(GameError) as caught:
        check_game(game, games=20)  # type: ignore[arg-type]
    return str(caught.value)


def tictactoe_with(**members: object) -> TicTacToe:
    """Tic-tac-toe with some of its members replaced."""
    return type("Broken", (TicTacToe,), members)()


def board(drawing: str) -> str:
    return "\n".join(
        ["  a b c", *(f"{name} {' '.join(row)}" for name, row in zip("123", drawing.split(), strict=True))]
    )


# ---------------------------------------------------------------- games that keep the contract


def test_tictactoe_keeps_the_contract() -> None:
    report = check_game(GAME, games=300)
    assert report.games == 300
    assert sum(report.results) == 300
    assert report.longest == 9
    assert str(report).startswith("tictactoe keeps the contract: 300 random games of up to 9 plies, 1,")
    assert str(report).endswith("symmetries: 8")


@pytest.mark.parametrize("game", [games.PLAIN_TICTACTOE, games.NIM, games.MOVES_TWICE], ids=lambda game: game.name)
def test_plain_games_keep_the_contract(game: games.PlainGame) -> None:
    assert check_game(game, games=50).games == 50
    assert check_game(PlainRules(game), games=50).games == 50


@pytest.mark.slow
def test_a_game_of_ten_thousand_plies_is_played_to_its_end() -> None:
    report = check_game(games.CHAIN, games=2)
    assert report.longest == 10_000
    assert report.results == (2, 0, 0, 0)


def test_games_that_reach_max_plies_are_reported_as_cut_off() -> None:
    report = check_game(games.ENDLESS, games=7)
    assert report.results == (0, 0, 0, 7)
    assert report.longest == games.ENDLESS.max_plies
    assert "7 cut off" in str(report)


def test_the_same_seed_plays_the_same_games() -> None:
    assert check_game(GAME, seed=1) == check_game(GAME, seed=1)
    assert check_game(GAME, seed=1) != check_game(GAME, seed=2)


def test_states_that_differ_without_a_visible_difference_are_counted() -> None:
    class RemembersItsAge(games.Endless):
        state_words = 3

        def initial(self) -> games.Words:
            return (*super().initial(), 0)

        def step(self, state: games.Words, action: int) -> games.Words:
            return (*super().step(state[:2], action), state[2] + 1)

    assert check_game(games.ENDLESS).duplicates == 0
    report = check_game(RemembersItsAge())
    assert report.duplicates > 0
    assert f"{report.duplicates} states differ from another one only in their words" in str(report)


def test_a_symmetry_that_changes_the_initial_position_is_reported_as_unchecked() -> None:
    turned = Symmetries(np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]), np.array([[0, 1], [0, 1]]))

    class Turnable(games.Endless):
        def symmetries(self) -> Symmetries:
            return turned

    report = check_game(Turnable())
    assert (report.symmetries, report.unchecked_symmetries) == (2, 1)
    assert "1 of them unchecked because they change the initial position" in str(report)


def test_a_true_symmetry_of_a_plain_game_is_checked() -> None:
    class Mirrored(games.Endless):
        def symmetries(self) -> Symmetries:
            return Symmetries(np.array([[0, 1, 2, 3, 4], [0, 4, 3, 2, 1]]), np.array([[0, 1], [1, 0]]))

    assert check_game(Mirrored()).unchecked_symmetries == 0


# ---------------------------------------------------------------- messages


def test_a_finding_names_the_rule_and_draws_the_position_after_its_moves() -> None:
    def crosses_win_with_a_centre(self: TicTacToe, states: Array) -> tuple[Array, Array]:
        ended, results = GAME.outcome(states)
        centre = (states[:, 0] & 0b000_010_000 != 0) & ~ended
        return ended, np.where(centre, np.float32(1), results)

    lines = finding(tictactoe_with(outcome=crosses_win_with_a_centre)).split("\n")
    assert lines[0] == "tictactoe breaks the contract: the result of an unfinished game must be 0, but it is 1.0"
    assert lines[1] == "position after b2:"
    assert "\n".join(lines[2:]) == board("··· ·X· ···")


def drawn_by_itself(self: TicTacToe, state: Array) -> str:
    return GAME.render(state)


def test_a_position_whose_drawing_fails_is_shown_as_its_words() -> None:
    lines = finding(tictactoe_with(to_play=lambda self, states: np.full(len(states), 2, np.int8))).split("\n")
    assert lines[1:] == ["position after no moves:", "state [0, 0]"]


def test_a_finding_names_all_moves_in_order() -> None:
    def nobody_moves_at_the_end(self: TicTacToe, states: Array) -> Array:
        return np.where(GAME.outcome(states)[0], 2, GAME.to_play(states)).astype(np.int8)

    lines = finding(tictactoe_with(to_play=nobody_moves_at_the_end, render=drawn_by_itself)).split("\n")
    assert lines[0].endswith("to_play must be 0 or 1, but it is 2")
    moves = lines[1].removeprefix("position after ").removesuffix(":").split()
    state = GAME.initial(1)
    for move in moves:
        state = GAME.step(state, np.array([GAME.parse_action(move)]))
    assert GAME.render(state[0]) == "\n".join(lines[2:])
    assert GAME.outcome(state)[0].all()


# ---------------------------------------------------------------- fewer moves


class Marathon(PlainGame):
    """Twelve moves that do nothing; the fifth move 0 gives a result that is none."""

    name = "marathon"
    num_actions, observation_shape, state_words, max_plies = 12, (2,), 3, 300

    def initial(self) -> games.Words:
        return (0, 0, 0)  # zeros, what was played, ply

    def step(self, state: games.Words, action: int) -> games.Words:
        return (state[0] + (action == 0), (state[1] * 31 + action) % (1 << 40), state[2] + 1)

    def legal(self, state: games.Words) -> Sequence[int]:
        return range(12)

    def to_play(self, state: games.Words) -> int:
        return 0

    def outcome(self, state: games.Words) -> float | None:
        return 7.0 if state[0] == 5 else None

    def observe(self, state: games.Words) -> Array:
        return np.array([state[0], state[2] % 256])


def test_moves_that_do_not_matter_are_left_out_of_a_finding() -> None:
    with pytest.raises(GameError) as caught:
        check_game(Marathon(), games=1)
    lines = str(caught.value).split("\n")
    assert "a result must be from -1 to 1, but it is 7.0" in lines[0]
    found = re.fullmatch(r"position after 0 0 0 0 0 \(first found after (\d+) moves\):", lines[1])
    assert found
    assert int(found[1]) > 5


def test_the_fewest_moves_are_found_near_the_beginning() -> None:
    def noughts_in_the_centre_confuse(self: TicTacToe, states: Array) -> Array:
        return np.where(states[:, 1] >> 4 & 1, 5, GAME.to_play(states)).astype(np.int8)

    with pytest.raises(GameError, match="to_play must be 0 or 1, but it is 5") as caught:
        check_game(tictactoe_with(to_play=noughts_in_the_centre_confuse), games=1, seed=7)
    assert str(caught.value).split("\n")[1] == "position after a1 b2 (first found after 6 moves):"


def test_a_finding_of_a_move_leads_to_where_it_was_made() -> None:
    def forgets_the_third(self: TicTacToe, states: Array, actions: Array) -> Array:
        successors = GAME.step(states, actions)
        third = np.bitwise_count(states).sum(axis=1) == 2
        if third.any():
            states[:] = 0
        return successors

    lines = finding(tictactoe_with(step=forgets_the_third)).split("\n")
    assert "step must not modify its arguments, but did here" in lines[0]
    assert len(lines[1].removeprefix("position after ").split()) == 2


@pytest.mark.parametrize("form", [lambda plain: plain, PlainRules], ids=["plain", "batched"])
def test_an_error_in_the_rules_is_reported_with_its_line_and_position(form: Callable[[PlainGame], Any]) -> None:
    class Fragile(games.Nim):
        def legal(self, state: games.Words) -> Sequence[int]:
            return [[0, 1, 2], [0], [0, 1]][state[0] % 4]

    message = finding(form(Fragile(15)))
    assert "nim breaks the contract: legal must not raise, but it raised IndexError: list index out of range" in message
    assert "(test_conformance.py, line " in message
    assert message.endswith("position after no moves:\n(15, 0)")


@pytest.mark.parametrize("form", [lambda plain: plain, PlainRules], ids=["plain", "batched"])
def test_two_moves_of_one_name_in_a_position_are_found(form: Callable[[PlainGame], Any]) -> None:
    class Nameless(games.Nim):
        def label_in(self, state: games.Words, action: int) -> str:
            return "all" if action == state[0] - 1 else "some"

    message = finding(form(Nameless(15)))
    assert (
        "label_in must give each legal action another name, but returned some some some\nposition after no" in message
    )


# ---------------------------------------------------------------- boards


def read_nothing(_: str) -> Array:
    raise GameError("this is no board")


def with_board(**changes: Any) -> TicTacToe:
    return tictactoe_with(board=lambda self, state: GAME.board(state)._replace(**changes))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        (
            {"cells": np.full((3, 3), 2)},
            "board must give cells [R, C] that are -1 or the index of one of its 2 marks, but gave",
        ),
        ({"targets": {0: [(0, 0)]}}, "but missing are: b1 c1 a2 b2 c2 a3 b3 c3; not legal are: none"),
        ({"targets": {cell: [(cell, 0)] for cell in range(9)}}, "on a board of 3×3, but gave [(3, 0)] for a2"),
        ({"targets": {cell: [] for cell in range(9)}}, "board must give each action one cell or more"),
        ({"row_names": ("a", "b")}, "board must name all rows and columns or none, but gave the names ('a', 'b')"),
    ],
)
def test_a_board_that_does_not_fit_the_game_is_found(changes: dict[str, Any], rule: str) -> None:
    message = finding(with_board(**changes))
    assert rule in message
    assert "position after no moves" in message


@pytest.mark.parametrize(
    ("read_board", "said"),
    [
        (lambda text: GAME.initial(1)[0], "state_from_board must read what render draws, but it read this:\n  a b c\n"),
        (
            read_nothing,
            "state_from_board must not raise, but it raised GameError: this is no board (test_conformance.py",
        ),
        (lambda text: [0, 0], "state_from_board must return int64 [2], but returned a list\n"),
    ],
)
def test_a_drawing_that_is_read_wrongly_is_found(read_board: Callable[[str], Array], said: str) -> None:
    check_game(GAME, games=20, read_board=state_from_board)
    with pytest.raises(GameError) as caught:
        check_game(GAME, games=20, read_board=read_board)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (np.float64(1.5), "progress must be from 0 to 1 where a game has ended, but it is 1.5"),
        (np.float64(-0.1), "progress must be from 0 to 1 where a game has ended, but it is -0.1"),
        (np.float64(np.nan), "progress must be from 0 to 1 where a game has ended, but it is nan"),
        (np.float32(0.5), "progress must return float64 [20], but returned float32 [20]"),
    ],
)
def test_a_progress_out_of_range_is_found(value: Any, rule: str) -> None:
    assert rule in finding(tictactoe_with(progress=lambda self, states: np.full(len(states), value)))


@pytest.mark.parametrize(
    ("is_position", "rule"),
    [
        (lambda self, state: True, "is_position must be False for words that play does not lead to, but it is True"),
        (lambda self, state: state.sum() == 0, "is_position must be True wherever play leads, but it is False"),
    ],
)
def test_an_is_position_that_is_wrong_is_found(is_position: Callable[..., bool], rule: str) -> None:
    assert rule in finding(tictactoe_with(is_position=is_position))


def test_a_known_result_that_is_not_that_of_best_play_is_found() -> None:
    class Hopeful(knows_the_end.KnowsTheEnd):
        def known_results(self, states: Array) -> tuple[Array, Array]:
            known, results = super().known_results(states)
            two_empty = np.bitwise_count(states).sum(axis=1) == 7
            return known, np.where(two_empty & (results == 0), 1.0, results).astype(np.float32)

    assert check_game(knows_the_end.GAME, games=20).games == 20
    assert "known_results must be the results under best play, but returned" in finding(Hopeful())


# ---------------------------------------------------------------- two forms of one game


def disagreement(**members: object) -> str:
    with pytest.raises(GameError) as caught:
        check_agreement(GAME, tictactoe_with(**members), ("right", "wrong"), games=20)
    return str(caught.value)


def test_two_forms_of_a_game_agree_though_their_states_differ() -> None:
    report = check_agreement(GAME, PlainRules(games.PLAIN_TICTACTOE), games=100)
    assert report.positions[0] == report.positions[1] > 300
    assert str(report).startswith("plain tictactoe is the same game as tictactoe: 100 random games, ")


def test_a_form_that_tells_more_states_apart_is_reported() -> None:
    class KnowsTheOrder(PlainGame):
        name, num_actions, observation_shape, state_words, max_plies = "ordered", 3, (16,), 2, 15

        def initial(self) -> games.Words:
            return (15, 0)

        def step(self, state: games.Words, action: int) -> games.Words:
            return (state[0] - 1 - action, 4 * state[1] + action + 1)

        def legal(self, state: games.Words) -> Sequence[int]:
            return range(min(3, state[0]))

        def to_play(self, state: games.Words) -> int:
            return len(self.moves(state[1])) % 2

        def outcome(self, state: games.Words) -> float | None:
            return None if state[0] else (1.0 if self.to_play(state) else -1.0)

        def observe(self, state: games.Words) -> Array:
            return np.arange(16) == state[0]

        def action_label(self, action: int) -> str:
            return f"take {action + 1}"

        def moves(self, number: int) -> list[int]:
            return [] if not number else [*self.moves(number // 4), number % 4]

    report = check_agreement(PlainRules(games.NIM), PlainRules(KnowsTheOrder()), games=100)
    assert report.positions[0] < report.positions[1]
    assert str(report).endswith(f"{report.positions[0]} positions, which are {report.positions[1]} states of ordered")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"max_plies": 10},
            "wrong is another game than right: max_plies must be the same, but right has 9 and wrong 10",
        ),
        (
            {"action_label": lambda self, action: str(action)},
            "action 0 must have the same label, but right has 'a1' and wrong '0'",
        ),
        (
            {"to_play": lambda self, states: np.zeros(len(states), np.int8)},
            "the player to move must be the same, but right has 1 and wrong 0\nposition after a1:\n",
        ),
        (
            {"legal": lambda self, states: GAME.legal(states) & (np.arange(9) != 4)},
            "the legal actions must be the same, but only right has b2\nposition after no moves:\n",
        ),
        (
            {"outcome": lambda self, states: (GAME.outcome(states)[0], np.abs(GAME.outcome(states)[1]))},
            "the result must be the same, but right has -1.0 and wrong 1.0\nposition after ",
        ),
        (
            {"observe": lambda self, states: GAME.observe(states)[..., ::-1]},
            "the observation must be the same, but right has 0 and wrong 1 at [0, 0, 0]\nposition after a1:\n",
        ),
    ],
)
def test_a_difference_between_two_forms_is_shown_after_few_moves(members: dict[str, object], message: str) -> None:
    assert message in disagreement(**members)


# ---------------------------------------------------------------- speed


def test_every_rule_is_timed() -> None:
    speed = measure_speed(GAME)
    assert list(speed.microseconds) == ["step", "legal", "to_play", "outcome", "observe"]
    assert all(figure > 0 for figures in speed.microseconds.values() for figure in figures)
    # One call takes about as long for many positions as for one.
    assert all(one > 3 * many for one, many in speed.microseconds.values())


def test_speeds_are_drawn_side_by_side() -> None:
    rules = ("step", "legal", "to_play", "outcome", "observe")
    slow, fast = Speed(dict.fromkeys(rules, (120.0, 2.0))), Speed(dict.fromkeys(rules, (0.5, 0.004)))
    lines = draw_speeds({"slow": slow, "fast": fast}).splitlines()
    assert lines[1].split() == ["in", "batches", "of", "1", "256", "1", "256"]
    assert lines[2].split() == ["step", "120", "2", "0.5", "0.004"]
    assert "slow: a readout takes each of these once, 10.0 µs in large batches" in lines[7]
    assert lines[7].endswith("100,000 readouts/s a core")
    assert lines[8].endswith("50,000,000 readouts/s a core")


# ---------------------------------------------------------------- shapes, types, members


def test_a_missing_member_is_named() -> None:
    members = {name: getattr(GAME, name) for name in dir(GAME) if name not in ("observe", "render")}
    assert "is not a game: it lacks observe, render" in finding(SimpleNamespace(**members))


def test_a_missing_member_of_a_plain_game_is_named() -> None:
    class Unfinished(PlainGame):
        name, num_actions, observation_shape, state_words = "unfinished", 2, (2,), 1

        def initial(self) -> games.Words:
            return (0,)

    assert "Unfinished is not a game: it lacks max_plies, step, legal, to_play, outcome, observe" in finding(
        Unfinished()
    )


@pytest.mark.parametrize(
    ("member", "value", "rule"),
    [
        ("num_actions", 0, "num_actions must be an int of at least 1, but it is 0"),
        ("max_plies", None, "max_plies must be an int of at least 1, but it is None"),
        ("state_words", 2.0, "state_words must be an int of at least 1, but it is 2.0"),
        (
            "observation_shape",
            [3, 3, 2],
            "observation_shape must be a tuple of ints of at least 1, but it is [3, 3, 2]",
        ),
        ("observation_shape", (18, 0), "observation_shape must be a tuple of ints of at least 1, but it is (18, 0)"),
    ],
)
def test_a_member_of_the_wrong_kind_is_named(member: str, value: object, rule: str) -> None:
    assert rule in finding(tictactoe_with(**{member: value}))


@pytest.mark.parametrize(
    ("method", "broken", "rule"),
    [
        (
            "observe",
            lambda found: found.astype(np.float32),
            "observe must return uint8 [20, 3, 3, 2], but returned float32",
        ),
        (
            "observe",
            lambda found: found.reshape(-1, 18),
            "observe must return uint8 [20, 3, 3, 2], but returned uint8 [20, 18]",
        ),
        ("legal", lambda found: found.astype(np.uint8), "legal must return bool [20, 9], but returned uint8 [20, 9]"),
        ("legal", lambda found: found.tolist(), "legal must return bool [20, 9], but returned a list"),
        ("to_play", lambda found: found.astype(np.int64), "to_play must return int8 [20], but returned int64 [20]"),
        ("outcome", lambda found: found[0], "outcome must return bool [20] and float32 [20], but returned bool [20]"),
        (
            "outcome",
            lambda found: (found[0], found[1].astype(float)),
            "and float32 [20], but returned bool [20] and float64",
        ),
        ("step", lambda found: found.astype(np.int32), "step must return int64 [20, 2], but returned int32 [20, 2]"),
        (
            "initial",
            lambda found: found.astype(np.int32),
            "initial(20) must return int64 [20, 2], but returned int32 [20, 2]",
        ),
        ("initial", lambda found: found[:1], "initial(20) must return int64 [20, 2], but returned int64 [1, 2]"),
    ],
)
def test_a_result_of_the_wrong_type_or_shape_is_named(method: str, broken: Callable[[Any], Any], rule: str) -> None:
    game = tictactoe_with(**{method: lambda self, *inputs: broken(getattr(GAME, method)(*inputs))})
    assert rule in finding(game)


# ---------------------------------------------------------------- what must hold in each position


def test_actions_after_the_end_are_found() -> None:
    def any_free_cell(self: TicTacToe, states: Array) -> Array:
        return (states[:, :1] | states[:, 1:]) >> np.arange(9) & 1 == 0

    message = finding(tictactoe_with(legal=any_free_cell))
    assert (
        "legal must be all False exactly when the game has ended, but ended is True and the legal actions are"
        in message
    )


def test_an_unfinished_position_without_an_action_is_found() -> None:
    def no_last_cell(self: TicTacToe, states: Array) -> Array:
        legal = GAME.legal(states)
        return legal & (legal.sum(axis=1) > 1)[:, None]

    assert "ended is False and the legal actions are none" in finding(tictactoe_with(legal=no_last_cell))


@pytest.mark.parametrize(("result", "shown"), [(2.0, "2.0"), (np.nan, "nan"), (-np.inf, "-inf")])
def test_a_result_out_of_range_is_found(result: float, shown: str) -> None:
    def outcome(self: TicTacToe, states: Array) -> tuple[Array, Array]:
        ended, results = GAME.outcome(states)
        return ended, np.where(results > 0, np.float32(result), results)

    assert f"a result must be from -1 to 1, but it is {shown}" in finding(tictactoe_with(outcome=outcome))


def test_a_drawing_that_is_no_text_is_found() -> None:
    assert "render must return a drawing as text, but returned None" in finding(
        tictactoe_with(render=lambda self, state: None)
    )


@pytest.mark.parametrize("goal", ["", "Win.\nOr lose."])
def test_a_goal_that_is_no_sentence_is_found(goal: object) -> None:
    assert f"goal must be a sentence, the rules in a line of text, but it is {goal!r}" in finding(
        tictactoe_with(goal=goal)
    )


def test_labels_that_do_not_come_back_are_found() -> None:
    message = finding(tictactoe_with(parse_action=lambda self, text: GAME.parse_action(text) // 3))
    assert (
        "parse_action must be the inverse of action_label, but action 1 has the label 'b1', which is parsed as 0"
        in message
    )


def test_a_parser_that_accepts_any_text_is_found() -> None:
    def parse(self: TicTacToe, text: str) -> int:
        return next((action for action in range(9) if GAME.action_label(action) == text), 0)

    message = finding(tictactoe_with(parse_action=parse))
    assert "parse_action must raise a GameError for a text that names no action, but '?!' gave 0" in message


# ---------------------------------------------------------------- pure functions of single rows


def test_a_step_that_changes_its_argument_is_found() -> None:
    def step(self: TicTacToe, states: Array, actions: Array) -> Array:
        successors = GAME.step(states, actions)
        states[:] = successors
        return successors

    assert "step must not modify its arguments, but did here\nposition after no moves:" in finding(
        tictactoe_with(step=step)
    )


def test_a_step_that_returns_its_argument_is_found() -> None:
    class Waiting(games.Endless):
        def step(self, state: games.Words, action: int) -> games.Words:
            return state

    class InPlace(PlainRules):
        def step(self, states: Array, actions: Array) -> Array:
            return states

    assert "step must return new arrays, but returned its argument" in finding(InPlace(Waiting()))


def test_a_result_that_is_used_again_is_found() -> None:
    kept: dict[int, Array] = {}

    def legal(self: TicTacToe, states: Array) -> Array:
        buffer = kept.setdefault(len(states), np.empty((len(states), 9), np.bool_))
        buffer[:] = GAME.legal(states)
        return buffer

    assert "legal must return a new array at each call, but returned the same one twice" in finding(
        tictactoe_with(legal=legal)
    )


def test_an_initial_state_that_is_used_again_is_found() -> None:
    kept = np.zeros((20, 2), np.int64)
    game = tictactoe_with(initial=lambda self, batch: kept[:batch])
    assert "initial must return equal rows, the same at each call, but they differ" in finding(game)


def test_initial_rows_that_differ_are_found() -> None:
    game = tictactoe_with(initial=lambda self, batch: np.arange(2 * batch).reshape(batch, 2))
    assert "initial must return equal rows, the same at each call, but they differ" in finding(game)


def test_chance_is_found() -> None:
    generator = np.random.default_rng(0)

    def step(self: TicTacToe, states: Array, actions: Array) -> Array:
        legal = GAME.legal(states)
        return GAME.step(states, (generator.random(legal.shape) * legal).argmax(axis=1))

    assert "step must return the same at each call, but returned" in finding(tictactoe_with(step=step))


def test_a_row_that_depends_on_its_place_in_the_batch_is_found() -> None:
    def observe(self: TicTacToe, states: Array) -> Array:
        observations = GAME.observe(states)
        observations[0] = 7
        return observations

    assert "observe must return the same in any order, but returned" in finding(tictactoe_with(observe=observe))


def test_a_batch_of_one_that_differs_is_found() -> None:
    def legal(self: TicTacToe, states: Array) -> Array:
        found = GAME.legal(states)
        return ~found if len(states) == 1 else found

    assert "legal must return the same for a row alone as in a batch" in finding(tictactoe_with(legal=legal))


def test_a_game_that_remembers_more_than_its_states_is_found() -> None:
    class Counts(PlainRules):
        steps = 0

        def step(self, states: Array, actions: Array) -> Array:
            self.steps += 1
            return super().step(states, actions)

        def observe(self, states: Array) -> Array:
            return super().observe(states) + np.uint8(self.steps)

    message = finding(Counts(games.ENDLESS))
    assert "equal states must have the same observation, player, legal actions and outcome" in message


# ---------------------------------------------------------------- symmetries


def with_symmetries(observations: Array, actions: Array) -> TicTacToe:
    return tictactoe_with(symmetries=lambda self: Symmetries(observations, actions))


def test_a_symmetry_that_is_no_permutation_is_found() -> None:
    observations, actions = GAME.symmetries()
    actions = actions.copy()
    actions[2, 0] = actions[2, 1]
    assert "each row of symmetries().actions must be a permutation, but row 2 is" in finding(
        with_symmetries(observations, actions)
    )


def test_an_identity_that_does_not_come_first_is_found() -> None:
    observations, actions = GAME.symmetries()
    assert "row 0 of symmetries().observations must be the identity, but it is" in finding(
        with_symmetries(observations[::-1], actions[::-1])
    )


def test_symmetries_of_the_wrong_shape_are_found() -> None:
    observations, actions = GAME.symmetries()
    message = finding(with_symmetries(observations.reshape(8, 3, 3, 2), actions))
    assert "symmetries().observations must be int [S, 18], but it is int32 [8, 3, 3, 2]" in message


def test_a_symmetry_that_moves_the_board_but_not_the_policy_is_found() -> None:
    observations, actions = GAME.symmetries()
    unmoved = np.tile(actions[:1], (8, 1))
    message = finding(with_symmetries(observations, unmoved))
    assert (
        "symmetry 1 must map a game to a game: observations, legal actions and outcomes, but the mapped moves"
        in message
    )


def test_a_symmetry_that_moves_the_policy_the_other_way_round_is_found() -> None:
    observations, actions = GAME.symmetries()
    assert "symmetry 1 must map a game to a game" in finding(with_symmetries(observations, np.argsort(actions, axis=1)))


def test_a_permutation_of_cells_that_is_no_symmetry_of_the_rules_is_found() -> None:
    # Two rows change places: every observation stays possible, but the diagonals break.
    cells = np.array([[0, 1, 2, 3, 4, 5, 6, 7, 8], [3, 4, 5, 0, 1, 2, 6, 7, 8]])
    planes = (2 * cells[:, :, None] + np.arange(2)).reshape(2, 18)
    message = finding(with_symmetries(planes, cells))
    assert "symmetry 1 must map a game to a game" in message
    assert message.count("  a b c\n") == 2  # both positions are drawn


# ---------------------------------------------------------------- plain games


def plain_finding(**members: object) -> str:
    return finding(type("Broken", (games.Nim,), members)(15))


def test_words_that_do_not_tell_the_whole_state_are_found() -> None:
    def from_words(self: games.Nim, words: games.Words) -> games.Words:
        return (words[0], 0)

    message = plain_finding(from_words=from_words)
    assert "nim breaks the contract: from_words must return the state that to_words was given, but (" in message


def test_a_word_of_more_than_64_bits_is_found() -> None:
    message = plain_finding(initial=lambda self: (2**80, 0))
    assert f"to_words must return ints of 64 bits, from -2**63 to 2**63 - 1, but returned ({2**80}, 0)" in message


@pytest.mark.parametrize("value", [256, -1, 0.5])
def test_an_observation_that_does_not_fit_into_a_byte_is_found(value: float) -> None:
    message = plain_finding(observe=lambda self, state: np.full(16, value))
    assert "observe must return ints from 0 to 255 of shape [16]" in message


def test_a_plain_observation_of_another_shape_is_found() -> None:
    assert "of shape [16], but returned 1\nposition after no moves:\n(15, 0)" in plain_finding(
        observe=lambda self, state: 1
    )


@pytest.mark.parametrize(("actions", "shown"), [((-1,), "[-1]"), ((3,), "[3]"), ((), "[]")])
def test_plain_actions_that_do_not_exist_are_found(actions: Sequence[int], shown: str) -> None:
    message = plain_finding(legal=lambda self, state: actions)
    assert f"legal must return actions below 3 until the end, but returned {shown}" in message


# ---------------------------------------------------------------- the program


def check(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "bin" / "check_game.py"), *arguments]
    return programs.run(program, cwd=tmp_path)


def test_the_program_prints_what_was_played(tmp_path: Path) -> None:
    done = check(tmp_path, "tictactoe", "tictactoe.plain", "--games=50")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("tictactoe keeps the contract: 50 random games")
    assert lines[1].startswith("plain tictactoe keeps the contract: 50 random games")
    assert lines[2].startswith("tictactoe.plain is the same game as tictactoe: 50 random games")
    assert lines[3].startswith("plain tictactoe is solved: play can reach 5,478 positions")
    assert lines[4].split() == ["µs", "a", "position", "tictactoe", "tictactoe.plain"]


def test_the_program_says_that_a_game_is_too_large_to_be_solved(tmp_path: Path) -> None:
    done = check(tmp_path, "tictactoe", "--games=5", "--solve=100")
    assert "tictactoe is not solved: play can reach more than 100 positions" in done.stdout
    assert done.returncode == 0


def test_the_program_fails_with_the_finding_of_a_game_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from tictactoe.game import TicTacToe\n\n\n"
        "class Broken(TicTacToe):\n"
        "    def render(self, state):\n"
        "        return ''\n\n\n"
        "GAME = Broken()\n"
    )
    done = check(tmp_path, "broken")
    assert done.stderr == (
        "seraphim check-game: tictactoe breaks the contract: render must return a drawing as text, but returned ''\n"
    )
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "which game? Try: seraphim check-game tictactoe"),
        (("tictactoe", "tictactoe.plain", "connectfour"), "which game? Try: seraphim check-game tictactoe"),
        (
            ("tictactoe", "connectfour", "--games=5"),
            "num_actions must be the same, but tictactoe has 9 and connectfour 7",
        ),
        (("nosuchgame",), "there is no game 'nosuchgame'"),
    ],
)
def test_the_program_says_which_game_it_needs(tmp_path: Path, arguments: Sequence[str], message: str) -> None:
    done = check(tmp_path, *arguments)
    assert message in done.stderr
    assert done.returncode == 1


# ---------------------------------------------------------------- games of chance, and of one player


def pig_with(**members: object) -> Pig:
    """Pig to 20 points with some of its members replaced."""
    return type("Broken", (Pig,), members)(20)


def puzzle_with(**members: object) -> Twenty48:
    """2048 on 2×2 cells with some of its members replaced."""
    return type("Broken", (Twenty48,), members)(2, 2)


def plain_pig_with(**members: object) -> PlainPig:
    """Pig in plain Python with some of its members replaced."""
    return type("Broken", (PlainPig,), members)(20)


PIG, PUZZLE = Pig(20), Twenty48(2, 2)


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (pig_with(chances=lambda _, states: 0.9 * PIG.chances(states)), "chances must be 0 or more, and their sum 1"),
        (pig_with(chances=lambda _, states: PIG.chances(states) + 1 / 6), "chances must be 0 or more, and their sum 1"),
        (pig_with(chances=lambda _, states: PIG.chances(states)[:, :5]), r"chances must return float64 \[20, 6\]"),
        (pig_with(chances=lambda _, states: PIG.chances(states) * np.nan), "chances must be 0 or more"),
        (pig_with(num_chance_outcomes=2), r"chances must return float64 \[20, 2\]"),
        (pig_with(num_chance_outcomes=None), "a game that offers chances must offer num_chance_outcomes"),
        (pig_with(num_chance_outcomes=1.5), "num_chance_outcomes must be an int from 1 to"),
        (pig_with(num_players=9), "num_players must be an int from 1 to 8"),
        (pig_with(num_players=3), r"outcome must return bool \[20\] and float32 \[20, 3\]"),
        (
            pig_with(legal=lambda self, states: PIG.legal(states) | (self.to_play(states) == -1)[:, None]),
            "legal must be all False exactly when the game has ended, or chance moves",
        ),
        (
            pig_with(to_play=lambda _, states: np.maximum(PIG.to_play(states), 0)),
            "legal must be all False exactly when",
        ),
        (
            pig_with(to_play=lambda _, states: np.where(states[:, 4] == 1, -1, 2 * states[:, 3]).astype(np.int8)),
            "to_play must be 0 or 1 or -1",
        ),
        (puzzle_with(num_players=2), r"outcome must return bool \[20\] and float32 \[20\]"),
        (puzzle_with(bank_words=3), "bank_words must be an int from 0 to 2"),
        (puzzle_with(bank_words=2), "only banked and outcome may read the last 2 words of a state"),
        (
            pig_with(banked=lambda _, states: states[:, :2].astype(np.float32)),
            "what two players have in the bank must add up to 0",
        ),
        (puzzle_with(banked=None), "a game that offers bank_words must offer banked"),
        (
            puzzle_with(outcome=lambda _, states: (PUZZLE.outcome(states)[0], PUZZLE.outcome(states)[1] ** 2)),
            "a result must be what is banked and what does not depend on it",
        ),
        (puzzle_with(value_scale=-1), "value_scale must be a number from 0"),
        (puzzle_with(value_scale=float("inf")), "value_scale must be a number from 0"),
        (puzzle_with(value_scale=0), "value_scale must be a number from 0.0001 to"),
        (puzzle_with(value_scale=1e300), "value_scale must be a number from 0.0001 to"),
        (pig_with(points=0.0), "points must be a number from 0.0001 to"),
        (puzzle_with(banked=lambda _, states: np.full((len(states), 1), np.nan, np.float32)), "banked must be finite"),
        (pig_with(num_chance_outcomes=2**16 + 1), "num_chance_outcomes must be an int from 1 to 65536"),
        (pig_with(chance_label=lambda *_: "a six"), "a name without spaces or commas, but 'a six' was given"),
        (pig_with(chance_label=lambda _, __, outcome: outcome), "a name without spaces or commas, but 0 was given"),
        (pig_with(initial=lambda _, batch: np.tile([25, 0, 0, 1, 0], (batch, 1))), "a player must move before the end"),
        (plain_pig_with(chances=lambda *_: [1 / 7] * 7), "chances must return 6 numbers, but returned"),
        (plain_pig_with(chances=lambda *_: 1 / 6), "chances must return 6 numbers, but returned"),
        (plain_pig_with(chances=lambda *_: [1 / 6]), "chances must return 6 numbers, but returned"),
        (plain_pig_with(chances=lambda *_: [[1 / 6] * 5, 1]), "chances must return 6 numbers, but returned"),
        (plain_pig_with(num_chance_outcomes=6.0), "num_chance_outcomes must be an int from 1 to"),
    ],
)
def test_a_broken_rule_of_chance_or_of_the_bank_is_found(game: object, message: str) -> None:
    assert re.search(message, finding(game))


def test_a_broken_roll_is_shown_with_the_moves_that_lead_there() -> None:
    class Stays(Pig):
        def legal(self, states: Array) -> Array:
            return super().legal(states) & (states[:, 2] != 5)[:, None]  # nothing to do with 5 points

    text = finding(Stays(20))
    assert "legal must be all False exactly when the game has ended, or chance moves" in text
    assert "position after roll 5:" in text or "position after roll 3 roll 2:" in text or "roll 2 roll 3" in text


def test_games_that_are_cut_off_before_a_player_moves_are_found() -> None:
    endless = pig_with(
        initial=lambda _, batch: np.tile([0, 0, 0, 0, 1], (batch, 1)), step=lambda _, states, __: +states
    )
    endless.max_plies = 5
    assert "a player must move before the end, but none does" in finding(endless)


def test_a_result_may_be_known_where_chance_moves() -> None:
    def known(_: Pig, states: Array) -> tuple[Array, Array]:
        told = PIG.to_play(states) == -1
        return told, np.where(told, 0.25, 0).astype(np.float32)

    assert check_game(pig_with(known_results=known), games=20).games == 20


def test_speed_is_measured_by_outcomes_that_are_possible_and_where_a_player_observes() -> None:
    class Strict(PlainPig):
        def chances(self, _state: Any) -> Sequence[float]:
            return [0.0, 0.5, 0.5, 0.0, 0.0, 0.0]

        def step(self, state: Any, action: int) -> Any:
            assert not state.rolls or action in (1, 2)
            return super().step(state, action)

        def observe(self, state: Any) -> Array:
            assert not state.rolls
            return super().observe(state)

    assert measure_speed(PlainRules(Strict(20))).readout > 0


def test_two_forms_of_a_game_of_chance_must_have_the_same_chances() -> None:
    other = type("Other", (PlainPig,), {"chances": lambda _, __: [0.5, *[0.1] * 5]})(20)
    with pytest.raises(GameError, match="the chances must be the same"):
        check_agreement(PIG, PlainRules(other), games=5)
