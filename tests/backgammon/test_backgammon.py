"""Backgammon: its rules in two forms, positions by hand, and the plays that OpenSpiel allows."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyspiel
import pytest

from backgammon import rules
from backgammon.game import GAME
from backgammon.plain import GAME as PLAIN
from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, PlainRules, load_game
from seraphim.game.conformance import check_agreement, check_game
from seraphim.game.notation import label_in, parse_moves

BAR_IN_OPENSPIEL = 100


def position(own: Mapping[int, int], other: Mapping[int, int], dice: str = "", player: int = 0) -> Array:
    """A state [1, 5] in which a player is to move; the other checkers are borne off."""
    states = np.zeros((1, 5), np.int64)
    for seat, checkers in ((player, own), (1 - player, other)):
        for slot, number in {0: 15 - sum(checkers.values()), **checkers}.items():
            rules.add(states, 0, seat, slot, number)
    high, low = sorted(map(int, dice), reverse=True) if dice else (0, 0)
    states[0, 4] = rules.packed_turn(player, high, low, 0 if not dice else 4 if high == low else 2, rules.NOTHING)
    return states


def labels(states: Array) -> list[str]:
    return [label_in(GAME, states[0], action) for action in np.flatnonzero(GAME.legal(states)[0])]


def after(states: Array, moves: str) -> Array:
    for action in parse_moves(GAME, moves, states[0]):
        states = GAME.step(states, np.array([action]))
    return states


def plays(state: Array) -> set[bytes]:
    """The checkers after each way to finish the turn."""
    player, states, found = GAME.to_play(state[None])[0], state[None], set[bytes]()
    while len(states):
        rows, actions = np.nonzero(GAME.legal(states))
        states = np.unique(GAME.step(states[rows], actions), axis=0)
        over = (GAME.to_play(states) != player) | GAME.outcome(states)[0]
        found |= {each.tobytes() for each in states[over, :4]}
        states = states[~over]
    return found


@pytest.mark.slow
def test_both_forms_keep_the_contract_and_are_the_same_game() -> None:
    assert load_game("backgammon") is GAME
    check_game(GAME, games=3)
    check_agreement(GAME, PlainRules(PLAIN), games=3)


@pytest.mark.slow
def test_both_forms_are_the_same_game_for_long() -> None:
    check_game(GAME, games=100)
    check_game(PLAIN, games=4)
    check_agreement(GAME, PlainRules(PLAIN), games=300)


@pytest.mark.kernels
def test_kernels_follow_the_plain_rules_in_a_game() -> None:
    check_agreement(GAME, PlainRules(PLAIN), games=2, seed=5)


# ---------------------------------------------------------------- positions by hand


@pytest.mark.parametrize(
    ("own", "other", "dice", "expected"),
    [
        ({24: 1}, {}, "61", "24/23 24/18"),  # all in any order
        ({24: 1}, {8: 2}, "61", "24/18"),  # only one of two, as 17 is blocked: the larger
        ({24: 1}, {7: 2, 8: 2}, "61", "24/23"),  # the smaller, as the larger cannot
        ({24: 1, 8: 1}, {7: 2, 8: 2, 24: 2}, "61", "8/2 24/23"),  # 8/7 would leave no 6
        ({24: 1}, {2: 2, 7: 1}, "61", "24/18*"),  # a checker alone is hit
        ({25: 1, 6: 1}, {6: 2}, "61", "bar/24"),  # first from the bar, by a 1 alone
        ({25: 1, 6: 1}, {6: 2, 1: 1}, "61", "bar/24*"),
        ({25: 2, 6: 1}, {6: 2, 1: 2}, "61", "pass"),
        ({25: 1, 6: 1}, {6: 2, 5: 2, 4: 2, 3: 2, 2: 2, 1: 2}, "66", "pass"),
        ({7: 1, 6: 1}, {}, "61", "6/5 7/6 7/1"),  # not all at home
        ({6: 1, 3: 1}, {}, "65", "6/1 6/off"),
        ({3: 2}, {}, "65", "3/off(5) 3/off(6)"),  # two ways, by either die
        ({5: 1, 3: 1}, {}, "65", "5/off 5/off(6)"),
        ({5: 1, 3: 1}, {}, "64", "5/1 5/off"),  # a 6 bears off from the highest point alone
        ({4: 1}, {}, "66", "4/off"),
        ({5: 2, 2: 2}, {21: 2}, "44", "5/1"),
        ({5: 2, 2: 2}, {24: 2}, "44", "pass"),
    ],
)
def test_dice_are_played_as_far_as_they_can_be(
    own: dict[int, int], other: dict[int, int], dice: str, expected: str
) -> None:
    for player in (0, 1):
        states = position(own, other or {12: 1}, dice, player)
        assert " ".join(labels(states)) == expected


@pytest.mark.parametrize(
    ("own", "dice", "ways"),
    [
        ({24: 2, 13: 2}, "61", ["24/18 24/23", "24/23 24/18"]),
        ({24: 1}, "52", ["24/19 19/17", "24/22 22/17"]),
        ({8: 2, 6: 2}, "33", ["8/5 8/5 6/3 6/3", "6/3 8/5 6/3 8/5"]),
        ({8: 2, 6: 2}, "33", ["8/5 6/3", "6/3 8/5"]),
        ({24: 2, 6: 2}, "11", ["6/5", "6/5"]),
        ({4: 1, 2: 1}, "64", ["4/off(6) 2/off", "4/off 2/off"]),
    ],
)
def test_the_order_of_moves_leaves_no_trace(own: dict[int, int], dice: str, ways: list[str]) -> None:
    first, *others = (after(position(own, {4: 2}, dice), way) for way in ways)
    for states in others:
        assert np.array_equal(states, first)


def test_a_turn_is_a_roll_and_moves_and_ends_by_itself() -> None:
    states = GAME.initial(1)
    assert GAME.to_play(states)[0] == CHANCE
    assert np.allclose(GAME.chances(states), 1 / 30)
    states = after(states, "O31 8/5 6/5")
    assert (GAME.to_play(states).tolist(), labels(states)) == ([0], ["roll"])
    states = after(states, "roll")
    odds = GAME.chances(states)[0]
    assert [label_in(GAME, states[0], each) for each in np.flatnonzero(odds)][:4] == ["11", "21", "22", "31"]
    assert np.allclose(odds[:3] * 36, [1, 2, 1]) and np.allclose(odds.sum(), 1)
    states = after(states, "66 24/18")
    assert GAME.render(states[0]).splitlines()[-1] == "off: White X 0, Black O 0; White to play 6 6 6"
    assert "  X  ·  ·  ·  O  X |  |  O  O  ·  ·  ·  X" in GAME.render(states[0]).splitlines()[1]
    states = after(states, "24/18 13/7 13/7 roll 61")
    assert GAME.to_play(states)[0] == 1


def test_a_turn_ends_where_the_rest_cannot_be_played() -> None:
    states = after(position({24: 1}, {8: 2}, "61"), "24/18")
    assert (GAME.to_play(states).tolist(), labels(states)) == ([1], ["roll"])


@pytest.mark.parametrize(
    ("other", "points"),
    [({7: 14}, 1), ({7: 15}, 2), ({19: 1, 1: 14}, 3), ({18: 15}, 2), ({25: 1, 1: 14}, 3), ({25: 1, 1: 13}, 1)],
)
def test_a_gammon_counts_twice_and_a_backgammon_three_times(other: dict[int, int], points: int) -> None:
    for player, sign in ((0, 1), (1, -1)):
        states = after(position({2: 1}, other, "66", player), "2/off")
        ended, results = GAME.outcome(states)
        assert ended.all() and GAME.points * results[0] == pytest.approx(sign * points)
        assert GAME.is_position(states[0]) and not GAME.legal(states).any()


def test_the_mover_sees_both_sides_from_their_own_seat() -> None:
    for player in (0, 1):
        (seen,) = GAME.observe(position({25: 1, 6: 2, 1: 12}, {25: 2, 23: 13}, "41", player))
        assert np.flatnonzero(seen[0, :, 1]).tolist() == [1, 6]
        assert seen[0, 1, :8].all() and seen[0, 2, 8:16].all()
        assert np.flatnonzero(seen[0, :, 8]).tolist() == [0, 2]
        assert np.argwhere(seen[0, :, 16:]).tolist() == [[1, 0], [1, 3], [6, 0], [6, 3], [25, 0], [25, 3]]


@pytest.mark.parametrize(
    ("words", "possible"),
    [
        ({}, True),
        ({4: 0}, True),  # before a roll
        ({4: rules.packed_turn(1, 0, 0, 0, rules.ROLLS)}, True),
        ({4: rules.packed_turn(1, 0, 0, 0, rules.BEGINS)}, False),
        ({4: rules.packed_turn(0, 3, 1, 2, 0)}, True),
        ({4: rules.packed_turn(0, 1, 3, 2, 0)}, False),
        ({4: rules.packed_turn(0, 3, 1, 1, 0)}, False),
        ({4: rules.packed_turn(0, 3, 3, 5, 0)}, False),
        ({4: rules.packed_turn(0, 5, 0, 1, 0)}, True),
        ({4: rules.packed_turn(0, 0, 0, 1, 0)}, False),
        ({4: rules.packed_turn(0, 7, 7, 4, 0)}, False),
        ({4: -1}, False),
        ({0: 0}, False),
    ],
)
def test_only_positions_of_the_game_are_positions(words: dict[int, int], possible: bool) -> None:
    state = GAME.initial(1)[0]
    for word, value in words.items():
        state[word] = value
    assert GAME.is_position(state) is possible


def test_two_players_are_not_on_one_point_and_who_cannot_move_has_just_rolled() -> None:
    assert not GAME.is_position(position({6: 15}, {19: 15})[0])
    blocked = position({24: 15}, {7: 2, 5: 13}, "66")
    assert GAME.is_position(blocked[0]) and labels(blocked) == ["pass"]
    blocked[0, 4] = rules.packed_turn(0, 6, 0, 1, 0)
    assert not GAME.is_position(blocked[0])
    ended = position({}, {6: 15})
    assert not GAME.is_position(ended[0])  # after a win, the loser would be to move


def test_moves_have_names() -> None:
    assert [GAME.action_label(GAME.parse_action(text)) for text in ("13/11*", " BAR/22", "6/off", "2/off(6)")] == [
        *("13/11", "bar/22", "6/off"),
        "2/off(6)",
    ]
    with pytest.raises(GameError, match="expected one like 13/11"):
        GAME.parse_action("13/6")


# ---------------------------------------------------------------- OpenSpiel


def from_openspiel(theirs: Any) -> Array:
    """A state [5] of OpenSpiel's game, in which a player is to move."""
    mover, dice = max(0, theirs.current_player()), re.search(r"Dice: (\d\d)", str(theirs))
    own, other = (
        {24 - place if seat == 0 else place + 1: theirs.board(seat, place) for place in range(24)}
        | {rules.BAR: theirs.board(seat, BAR_IN_OPENSPIEL)}
        for seat in (mover, 1 - mover)
    )
    return position(own, other, dice[1] if dice else "", mover)[0]


def plays_in_openspiel(theirs: Any) -> set[bytes]:
    """The checkers after each way to finish the turn; doubles are two moves of the same player."""
    found = set[bytes]()
    for action in theirs.legal_actions():
        child = theirs.child(action)
        again = not child.is_terminal() and child.current_player() == theirs.current_player()
        found |= plays_in_openspiel(child) if again else {from_openspiel(child)[:4].tobytes()}
    return found


def positions_of_openspiel(number: int) -> Iterable[tuple[Any, Array]]:
    """Positions of random play in which a player has rolled or the game is over, and the same ones of ours."""
    game, random = pyspiel.load_game("backgammon(scoring_type=full_scoring)"), np.random.default_rng(0)
    theirs, rolled = game.new_initial_state(), True
    while number:
        if theirs.is_terminal():
            yield theirs, from_openspiel(theirs)
            theirs = game.new_initial_state()
        if theirs.is_chance_node():
            rolled = True
        elif rolled:  # else the second half of doubles
            yield theirs, from_openspiel(theirs)
            number, rolled = number - 1, False
        theirs.apply_action(int(random.choice(theirs.legal_actions())))


@pytest.mark.parametrize("number", [150, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_plays_and_results_are_those_of_openspiel(number: int) -> None:
    for theirs, state in positions_of_openspiel(number):
        assert GAME.outcome(state[None])[1][0] == pytest.approx(theirs.returns()[0] / 3 if theirs.is_terminal() else 0)
        if not theirs.is_terminal():
            assert plays(state) == plays_in_openspiel(theirs), GAME.render(state)
