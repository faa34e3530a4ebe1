"""Positions that come as words or drawings: what play does not lead to reaches no rules, no search and no proof."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from games import NIM

import seraphim
from connectfour.game import ConnectFour
from hex.game import Hex
from othello.game import GAME as OTHELLO
from seraphim.errors import GameError, RecordError
from seraphim.game import Array, Game, PlainRules, load_game, random_actions
from seraphim.game.exhaustive import solve
from seraphim.game.openspiel import OpenSpielGame
from seraphim.game.saved_games import check_position, from_text, read_position
from seraphim.terminal.sgf import from_sgf
from tictactoe.game import GAME as TICTACTOE

HIGH = 1 << 62


@pytest.mark.parametrize(
    "game", [TICTACTOE, Hex(2), pytest.param(Hex(3), marks=pytest.mark.slow)], ids=lambda game: game.name
)
def test_all_words_on_the_board_are_positions_exactly_if_play_leads_to_them(game: Game) -> None:
    reached = {tuple(state) for state in solve(game).states.tolist()}
    words = range(1 << game.num_actions)
    pairs = [(first, second) for first in words for second in words if game.num_actions < 9 or not first & second]
    assert {pair for pair in pairs if game.is_position(np.array(pair))} == reached  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_stones_of_connect_four_are_a_position_exactly_if_play_leads_to_them(number: int) -> None:
    game, random = ConnectFour(4, 4), np.random.default_rng(0)
    solution = solve(game).states
    assert all(map(game.is_position, solution[::23]))
    reached, found = {tuple(state) for state in solution.tolist()}, 0
    for _ in range(number):
        words = [0, 0]
        for column, height in enumerate(random.integers(0, 5, 4)):
            for row in range(height):
                words[random.integers(2)] |= 1 << 5 * column + row
        found += tuple(words) in reached
        assert game.is_position(np.array(words)) == (tuple(words) in reached), words
    assert 0.05 < found / number < 0.95


def changed(game: Game, plies: int, change: Callable[[Array], None]) -> Array:
    random, states = np.random.default_rng(3), game.initial(1)
    for _ in range(plies):
        states = game.step(states, random_actions(game.legal(states), random))
    check_position(game, states[0])
    change(states[0])
    return states[0]


def add(word: int, bits: int) -> Callable[[Array], None]:
    def change(state: Array) -> None:
        state[word] = int(state[word]) ^ bits

    return change


def negative(state: Array) -> None:
    state[0] = -1


WRONG = {
    "a stone off the board": (TICTACTOE, 2, add(1, 1 << 9)),
    "ten stones in a column that is not there": (ConnectFour(), 4, add(1, 0b11111 << 56)),
    "a floating stone": (ConnectFour(), 4, add(0, 1 << 5)),
    "a stone above the top": (ConnectFour(), 4, add(0, 1 << 6)),
    "the sign": (ConnectFour(), 4, negative),
    "no stone in the center": (OTHELLO, 0, add(0, 1 << 28)),
    "a lonely stone": (OTHELLO, 0, add(0, 1 << 63 - 1)),
    "two stones in a cell": (OTHELLO, 6, add(1, (1 << 28) | (1 << 35))),
    "a bit that no cell shows": (load_game("hex:3"), 2, add(0, 1 << 50)),
    "another player": (load_game("hex:3"), 2, add(1, 1 << 8)),
    "plies before the first": (load_game("openspiel:tic_tac_toe"), 0, negative),
    "fewer plies than moves": (load_game("openspiel:tic_tac_toe"), 2, add(0, 3)),
    "plies beyond all memory": (load_game("openspiel:tic_tac_toe"), 0, add(0, 10**8)),
    "moves after the last ply": (load_game("openspiel:tic_tac_toe"), 2, add(1, HIGH >> 10)),
}


@pytest.mark.parametrize("what", WRONG)
def test_words_that_play_does_not_lead_to_are_refused_everywhere(what: str) -> None:
    game, plies, change = WRONG[what]
    state = changed(game, plies, change)
    refused = f"these words are not a position of {re.escape(game.name)}: play does not lead there"
    with pytest.raises(GameError, match=refused):
        check_position(game, state)
    with pytest.raises(GameError, match=refused):
        seraphim.prove(state, game=game.name)
    saved = f"game: {game.name}\nstart: {' '.join(map(str, state.tolist()))}\n"
    with pytest.raises(RecordError, match=refused):
        from_text(game, saved)


def test_a_game_that_cannot_tell_takes_moves_alone() -> None:
    game = PlainRules(NIM)
    state, refused = (
        game.step(game.initial(1), np.array([0]))[0],
        "cannot check a position that is given as a board or as words: give the moves",
    )
    with pytest.raises(GameError, match=refused):
        read_position(NIM, state)
    with pytest.raises(RecordError, match=refused):
        from_text(game, f"game: nim\nstart: {' '.join(map(str, state.tolist()))}\n")
    assert read_position(NIM, game.initial(1)[0]) == (None, [], [])


def test_a_board_that_floats_or_was_over_before_is_no_position() -> None:
    for board in ("X../OOO/XXX", "XXX/OOO/..."):
        with pytest.raises(GameError):
            read_position("tictactoe", board)
    bottom_up = "......./......./......./......./XXX..../OOO...."  # X moves first, but all that stands below is O
    with pytest.raises(GameError, match="play does not lead there"):
        read_position("connectfour", bottom_up)


def test_sgf_with_stones_set_up_is_refused() -> None:
    with pytest.raises(RecordError, match="sets up a board"):
        from_sgf(OTHELLO, "(;GM[2]SZ[8]AB[aa][hh]AW[bb];B[dc])")


def test_openspiel_never_changes_a_state_that_it_knows() -> None:
    game = OpenSpielGame("tic_tac_toe")
    (start,) = game.initial(1)
    for words in ([-1, 0], [-9, 0], [2, 0], [1, 1 << 40], [10**12, 0], [0, 5]):
        state = np.array(words, np.int64)
        for rule in (game.legal, game.to_play, game.outcome, game.observe):
            with pytest.raises(GameError, match="these words are not a game of openspiel:tic_tac_toe"):
                rule(state[None])  # type: ignore[operator]
        with pytest.raises(GameError, match="these words are not a game of openspiel:tic_tac_toe"):
            game.step(state[None], np.array([8]))
        assert not game.is_position(state)
    assert game.legal(start[None]).sum() == 9
    (after,) = game.step(start[None], np.array([8]))
    assert game.is_position(after) and game.legal(after[None]).sum() == 8
