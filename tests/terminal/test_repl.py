"""Playing at a terminal: sessions with scripted lines, and real ones through a pseudo-terminal."""

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import programs
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from one_of_each import one_of_each
from reference import ArbitraryNetwork
from rich.console import Console

import tictactoe
from seraphim.errors import GameError, ModelError, SettingsError
from seraphim.game import Array, load_game
from seraphim.game.notation import format_moves
from seraphim.game.saved_games import Position
from seraphim.game.tree import GameTree
from seraphim.options import SearchOptions, SelfPlayOptions
from seraphim.players.opponent import PlayOptions
from seraphim.proof.known_moves import read_moves
from seraphim.proof.proving import Limits, prove
from seraphim.records.examples import encode_games
from seraphim.records.tfrecord import frame
from seraphim.search.evaluator import Inference, Uniform
from seraphim.selfplay.games import SelfPlay
from seraphim.terminal import screen
from seraphim.terminal.repl import Interactive
from seraphim.terminal.session import MOST_READOUTS, GameSession, SessionOptions
from seraphim.terminal.terminal import printable

OPTIONS = SearchOptions(readouts=24, cache_megabytes=1, solver=False)
PLAY = PlayOptions()


def make_session(
    game: str = "tictactoe",
    *,
    inference: Inference | None = None,
    search: SearchOptions = OPTIONS,
    play: PlayOptions = PLAY,
    seed: int = 1,
    **options: object,
) -> GameSession:
    """A session, by default with a uniform network."""
    network = inference or Uniform(load_game(game))
    return GameSession(game, network, search, play, SessionOptions(**options), np.random.default_rng(seed))  # type: ignore[arg-type]


def test_hexagons_are_drawn_as_text() -> None:
    lines = [line[:12].rstrip() for line in converse(make_session("hex:3"), ["b2"]).splitlines()]
    assert "  a b c" in lines
    assert " 2 · X ·" in lines


def converse(session: GameSession, lines: Sequence[str] | Callable[[], str | None], width: int = 80) -> str:
    """The output of a session in which a user types these lines, or those that a function returns, and then leaves."""
    console = Console(file=io.StringIO(), width=width, height=24, highlight=False)
    rest = iter(lines) if not callable(lines) else iter(lines, None)

    def read_line(prompt: str) -> str:
        line = next(rest, None)
        console.print(f"{prompt}{printable(line or '')}", markup=False)
        if line is None:
            raise EOFError
        return line

    Interactive(session, "mine", console, read_line).run()
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in printed  # no colors where there is no terminal
    assert max(map(len, printed.splitlines())) <= width
    return str(printed)


def moves(session: GameSession) -> str:
    return format_moves(session.game, session.tree.actions())


def test_the_computer_plays_a_proof_where_it_leads(tmp_path: Path) -> None:
    network, out = Uniform(tictactoe.GAME), tmp_path / "draw.proof"
    start = Position(None, [], [])
    for _ in prove("tictactoe", start, "draw", [network], Limits(60, 8), out, lambda *_: None):
        pass
    session = make_session(human="first")
    session = GameSession(
        "tictactoe",
        network,
        OPTIONS,
        PLAY,
        session.options,
        np.random.default_rng(0),
        read_moves("tictactoe", tictactoe.GAME, out),
    )
    printed = " ".join(converse(session, ["a1", "q"]).split())
    assert re.search(r"O plays \w\d: it is proven that the second player at least draws, in at most 8 plies", printed)
    assert len(session.tree.actions()) == 2
    session.new()
    session.play(0)
    session.change("debug", "on")
    assert "O to move, Enter lets the computer play > " in converse(session, ["q"])


def answer(line: str, session: GameSession) -> str:
    """The output after one line and before the next prompt."""
    return " ".join(converse(session, [line]).partition(f"> {line}\n")[2].partition(" > ")[0].split())


# ---------------------------------------------------------------- playing


@pytest.mark.parametrize(
    ("game", "human"),
    one_of_each(["tictactoe", "connectfour", "tictactoe.plain", "games"], ["first", "second", "both"]),
)
def test_a_whole_game_is_played_to_its_end(game: str, human: str) -> None:
    session = make_session(game, human=human)

    def first_legal() -> str | None:
        return None if session.ended else session.game.action_label(session.tree.legal()[0])

    printed = converse(session, first_legal)
    assert session.ended
    assert re.search(r"wins \((you|mine, 24 readouts)\)|the game is drawn", printed)
    assert "game over > " in printed
    computer = [node for node in session.tree.path()[:-1] if player(session, node.state) not in session.humans]
    assert len(re.findall(r"^\S+ plays ", printed, flags=re.MULTILINE)) == len(computer)


def player(session: GameSession, state: Array) -> int:
    return int(session.game.to_play(state[None])[0])


def test_the_computer_plays_itself_without_commands() -> None:
    session = make_session(human="none")
    printed = converse(session, [])
    assert session.ended
    # Every position is shown, and only the end asks for a line.
    assert len(re.findall(r"tictactoe, move \d", printed)) == session.tree.node.ply + 1
    assert printed.count(" > ") == 1


def test_a_forced_win_is_played_and_its_line_marked() -> None:
    session = make_session(human="second", search=SearchOptions(readouts=60, solver=True, cache_megabytes=1))
    session.load("a1 a2 b1 b2")
    session.waiting = False
    printed = converse(session, [])
    assert moves(session) == "a1 a2 b1 b2 c1"
    assert "│*X*│*X*│*X*│" in printed
    assert "X wins (mine, 60 readouts)" in printed


def test_the_board_marks_the_last_move_and_names_the_legal_ones() -> None:
    session = make_session("connectfour", human="both")
    printed = converse(session, ["4", "4", "5"])
    board = [line for line in printed.splitlines() if line.startswith("│")][-6:]
    assert [line[:29] for line in board] == [
        "│   │   │   │   │   │   │   │",
        "│   │   │   │   │   │   │   │",
        "│   │   │   │   │   │   │   │",
        "│   │   │   │ 4 │   │   │   │",
        "│   │   │   │ O │ 5 │   │   │",
        "│ 1 │ 2 │ 3 │ X │[X]│ 6 │ 7 │",
    ]
    assert "moves: 4 4 [5]" in printed


def test_a_game_without_a_board_is_drawn_as_text() -> None:
    printed = converse(make_session("games", human="both"), ["take 2"])
    assert "(13, 1)" in printed
    assert "legal: take 1, take 2, take 3" in printed
    assert "second to move > " in printed


@pytest.mark.parametrize(("cells", "width", "fits"), [(7, 80, True), (7, 28, False)])
def test_a_board_too_wide_for_the_screen_is_drawn_as_text(cells: int, width: int, fits: bool) -> None:
    printed = converse(make_session("connectfour", human="both"), [], width=width)
    assert ("╭───" in printed) is fits
    assert ("· · · · · · ·" in printed) is not fits


@pytest.mark.parametrize("line", ["q", "quit", "exit", ":q"])
def test_q_leaves(line: str) -> None:
    session = make_session(human="both")
    printed = converse(session, ["a1", line, "a2"])
    assert moves(session) == "a1"
    assert printed.endswith("moves: a1\n")  # which --load takes


def test_ctrl_c_leaves() -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    assert converse(make_session(), interrupted).endswith("\n")


# ---------------------------------------------------------------- chance, and one player


def by_chance(session: GameSession) -> list[str]:
    """What chance did in the game so far."""
    path = session.tree.path()
    return [session.tree.label_of(node) for node in path[1:] if node.parent and player(session, node.parent.state) < 0]


@pytest.mark.parametrize("human", ["first", "second", "both", "none"])
def test_dice_are_rolled_and_shown(human: str) -> None:
    session = make_session("pig", human=human)

    def some_legal() -> str | None:
        assert player(session, session.tree.node.state) >= 0  # nobody is asked what the dice show
        return None if session.ended else session.tree.label(session.tree.legal()[-1])

    printed = converse(session, some_legal)
    assert session.ended
    assert re.findall(r"^chance: (\d)$", printed, flags=re.MULTILINE) == by_chance(session)
    assert len(set(by_chance(session))) == 6
    assert re.search(r"(first|second) wins \((you|mine, 24 readouts)\)", printed)
    assert f"moves: {moves(session)}" in " ".join(printed.split())


def test_dice_fall_by_their_probabilities() -> None:
    session = make_session("twenty48:2x2")
    labels = []
    for _ in range(2000):
        labels.append(session.roll())
        session.new()
    counts = {label: labels.count(label) for label in labels}
    assert len(counts) == 8
    for label, count in counts.items():
        expected = 2000 * (0.9 if label.endswith("=2") else 0.1) / 4
        assert abs(count - expected) < 5 * expected**0.5


@pytest.mark.parametrize("chances", [[0.5, 0.4, 0, 0, 0, 0], [1.5, -0.5, 0, 0, 0, 0]])
def test_chances_that_are_no_probabilities_are_named(chances: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_session("pig")
    features = replace(session._features, chances=lambda states: np.array([chances] * len(states)))
    monkeypatch.setattr(session, "_features", features)
    session.play(0)
    with pytest.raises(GameError, match="^pig gives chances that are no probabilities: run seraphim check-game on it$"):
        session.roll()


def test_a_person_enters_what_real_dice_show() -> None:
    session = make_session("pig", human="both", rolls="enter")
    printed = converse(
        session, ["roll", "7", "hint", "table", "more 5", "play", "raw", "5", "roll", "", "undo", "redo"]
    )
    assert moves(session).split()[:3] == ["roll", "5", "roll"]
    assert session.tree.node.ply == 4
    assert printed.count("chance moves, such as 1, Enter rolls > ") == 8
    assert "'7' is neither a move nor a command: expected 1 2 3 4 5 6, or help" in printed
    assert printed.count("chance moves here: Enter rolls, or type the outcome, such as 1") == 5
    session.change("rolls", "program")
    assert "Enter rolls > " not in converse(session, ["roll"])
    assert session.tree.node.ply == 6


def test_undo_takes_dice_back_as_well_and_another_roll_is_a_branch() -> None:
    session = make_session("pig", human="both", rolls="enter")
    converse(session, ["roll", "5", "roll", "3", "undo", "roll", "4"])
    assert moves(session) == "roll 5 roll 4"
    assert list(session.tree.lines()) == ["A", "B"]
    converse(session, ["go A3"])  # where chance moves, which waits after a step in the history
    assert session.chance_moves
    assert not session.rolls_itself
    converse(session, ["go start"])
    session.change("rolls", "program")
    converse(session, ["go A3", "hint", ""])
    assert session.tree.node.ply == 4


@pytest.mark.parametrize("game", ["pig", "twenty48:2x2", "cube"])
def test_a_saved_game_contains_what_chance_did(game: str, tmp_path: Path) -> None:
    session, file = make_session(game), tmp_path / "game.txt"

    def some_legal() -> str | None:
        done = session.ended or session.tree.node.ply > 30
        return None if done else session.tree.label(session.tree.legal()[-1])

    converse(session, some_legal)
    converse(session, [f"save {file}"])
    again = make_session(game)
    again.load(str(file))
    assert again.tree.actions() == session.tree.actions()
    assert by_chance(again) == by_chance(session) != []
    listed = make_session(game)
    listed.load(moves(session))
    assert listed.tree.actions() == session.tree.actions()
    refused = f"the Smart Game Format has Go, Othello and Hex, not {game}"
    assert refused in " ".join(converse(session, [f"save {tmp_path / 'game.sgf'}"]).split())
    assert not (tmp_path / "game.sgf").exists()


def test_three_play_each_for_themselves() -> None:
    session = make_session("threes", human="second")
    printed = converse(session, lambda: None if session.ended else session.tree.label(session.tree.legal()[0]))
    assert session.ended
    for line in ("▸  O  you", "   X  mine, 24 readouts", "   Z  mine, 24 readouts"):
        assert line in printed
    assert re.search(r"X █*░* +[+-]\d\.\d\d\s.*O █*░* +[+-]\d\.\d\d\s.*Z █*░* +[+-]\d\.\d\d", printed, re.DOTALL)
    assert re.search(r"the game is drawn, \+0\.00 for each|[XOZ] wins: X [+-]\d\.\d\d, O [+-]\d\.\d\d, Z ", printed)


def test_of_three_players_all_may_be_people() -> None:
    session = make_session("threes", human="both")
    printed = converse(session, ["a1", "a2", "a3", "b1", "b2", "b3", "c1"])
    assert session.tree.node.ply == 7
    assert session.values == (1.0, -0.5, -0.5)
    assert "X wins: X +1.00, O -0.50, Z -0.50" in printed


def test_a_puzzle_is_solved_by_the_model_and_its_score_is_in_points() -> None:
    session = make_session("twenty48:2x2", human="none")
    printed = converse(session, [])
    assert session.ended
    assert " ▸  player  mine, 24 readouts" in printed
    score = session.game.render(session.tree.node.state).rpartition("score ")[2]
    assert f"the game is over, with {score}.0 points" in printed
    assert re.search(r"player plays (up|right|down|left): .* expects \+\d+\.\d, ", printed)


def test_of_a_puzzle_the_table_and_the_hint_are_in_points() -> None:
    session = make_session("twenty48:2x2")
    session.load("a1=2 b1=2")
    printed = converse(session, ["table", "hint", "set debug off"])
    assert re.search(r"share +Q variation +\n1 (right|left) .*% \+\d+\.\d (right|left) +\w\d=[24]", printed)
    assert re.search(r"hint: .*player expects \+\d+\.\d; likely", printed)
    assert re.search(r"expected \+\d+\.\d points", printed)
    assert re.search(r"legal: right down left", printed)


def test_what_is_proven_where_chance_moves_is_expected_and_not_forced() -> None:
    for game, start, words in (("pig", "roll 3", "X expects exactly "), ("tictactoe", "b2", "X can force ")):
        session = make_session(game, human="both")
        session.load(start)
        found = replace(session.read(24), proven=True)
        assert words in screen.draw_hint(session.tree, found, "X").plain


@pytest.mark.parametrize("human", ["second", "both"])
def test_a_puzzle_has_one_side(human: str) -> None:
    sentence = f"twenty48:2x2 has one player: human must be first or none, not {human}"
    with pytest.raises(SettingsError, match=sentence):
        make_session("twenty48:2x2", human=human)
    session = make_session("twenty48:2x2")
    assert sentence in " ".join(converse(session, [f"set human {human}"]).split())
    assert session.options.human == "first"


def test_a_record_of_a_game_of_chance_is_a_position(tmp_path: Path) -> None:
    pig = load_game("pig")
    options = SelfPlayOptions(concurrent_games=1, random_plies=0)
    play = SelfPlay(pig, Uniform(pig), OPTIONS, options, stream="records")
    (record,) = play.play(iter(range(1)))
    (payloads,) = encode_games(pig, [record])
    (tmp_path / "games.tfrecord").write_bytes(b"".join(map(frame, payloads)))
    session = make_session("pig")
    session.load(f"{tmp_path}/games.tfrecord:7")
    assert session.tree.node.state.tolist() == record.states[7].tolist()
    assert session.tree.ahead() == []
    assert session.mover == pig.to_play(record.states[7][None])[0]


# ---------------------------------------------------------------- invalid input


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("b2", "b2 is not legal here: expected one of a1 b1 c1 a2 c2 a3 b3 c3"),
        ("z9", "'z9' is neither a move nor a command: expected a1 b1 c1 a2 c2 a3 b3 c3, or help"),
        ("3", "no candidates are shown here: table shows them with their numbers"),
        ("more", "how many more readouts? Try: more 1000"),
        ("more lots", "expected a whole number, not 'lots'"),
        ("more -5", "expected a whole number, not '-5'"),
        ("more " + 30 * "1", f"expected a number of at most 9 digits, not '{20 * '1'}'"),
        ("undo " + 30 * "1", f"expected a number of at most 9 digits, not '{20 * '1'}'"),
        ("go " + 30 * "1", "is not a position: expected start, end, a number of moves"),
        ("#" + 30 * "1", "is neither a move nor a command"),
        ("more 1,000,001", f"at most {MOST_READOUTS:,} readouts at a time, not 1,000,001"),
        ("undo 2", "cannot take back 2 moves: there are only 1"),
        ("redo", "there is no move to redo"),
        ("go B", "there is no line B: expected one of A"),
        ("go 5", "there are 1 moves here: expected a number from 0 to 1"),
        ("go A9", "line A has 1 moves: expected a number from 0 to 1, not 9"),
        ("go there!", "'there!' is not a position: expected start, end, a number of moves, or a line such as B or B3"),
        ("go", "'' is not a position"),
        (
            "load b9",
            "move 1: 'b9' is not a move of tictactoe: expected one such as a1 or c3; and there is no file",
        ),
        ("load X.O/.X.", "a board of 2 rows: expected 3 rows of 3 cells"),
        ("load missing.tfrecord:3", "there is no file or folder missing.tfrecord"),
        ("save", "save where? Try: save game.txt"),
        ("save missing/game.txt", "cannot write missing/game.txt: No such file or directory"),
        ("set readouts", "expected the name of an option and its new value: set readouts 800"),
        ("set readouts many", "readouts must be int, not 'many'"),
        ("set readouts 0", "readouts must be at least 1, not 0"),
        ("set readouts 2000000", "at most 1,000,000 readouts at a time"),
        ("set cpuct high", "cpuct must be float, not 'high'"),
        ("set cpuct inf", "cpuct must be at most 1,000,000,000, not inf"),
        ("set cpuct nan", "cpuct must be above 0, not nan"),
        ("set leaf best", "leaf must be one of value, playout, not 'best'"),
        ("set human third", "human must be one of first, second, both, none, not 'third'"),
        ("set noise maybe", "noise must be bool, not 'maybe'"),
        ("set root gumbel", "root must be puct or afterstates here, not gumbel: only these can resume a search"),
        ("set rolls enter", "there is no option 'rolls': expected one of human, debug"),
        ("set readuots 3", "there is no option 'readuots': expected one of human, debug"),
    ],
)
def test_invalid_input_gets_an_error_and_changes_nothing(line: str, sentence: str) -> None:
    session = make_session(human="both")
    session.play(4)
    tree, before = session.tree, session.settings()
    assert sentence in answer(line, session)
    assert session.tree is tree
    assert moves(session) == "b2"
    assert session.settings() == before


def test_a_finished_game_offers_only_undo_and_new() -> None:
    over = "the game is over here: undo takes moves back, new begins another game"
    for line in ("a3", "play", "raw", "hint", "table", "more 10"):
        session = make_session(human="both")
        session.load("a1 a2 b1 b2 c1")
        assert over in answer(line, session), line
    assert "expected undo, new or q" in answer("zz", session)
    assert "The game is over: undo takes moves back" in answer("", session)


def test_an_error_of_the_network_is_shown_and_the_session_continues() -> None:
    class Broken(Uniform):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            logits, values = super().infer(observations)
            return logits, np.where(observations.any(axis=-1).sum(axis=(1, 2)) >= 3, np.nan, values)

    session = make_session(inference=Broken(load_game("tictactoe")))
    printed = converse(session, ["b2", "", "a1", "undo", "table"])
    assert printed.count("uniform gave logits") == 2
    assert printed.count("O to move, Enter lets the computer play > ") == 2
    assert moves(session) == ""


def test_an_error_of_the_network_at_the_start_ends_the_session() -> None:
    class Broken(Uniform):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            logits, values = super().infer(observations)
            return np.nan * logits, values

    with pytest.raises(ModelError, match="finite numbers are expected"):
        converse(make_session(inference=Broken(load_game("tictactoe"))), [])


WORDS = st.sampled_from(
    "a1 b2 c3 1 #2 play raw hint table undo redo branches new board help debug : # load set more go save q".split()
)
RESTS = st.sampled_from(
    ["", " 1", " 3", " A2", " B", " b", " start", " a1 b2", " X../.../...", " noise on", " \0", " -", " 9e9"]
)
LINES = st.one_of(st.builds(lambda word, rest: word + rest, WORDS, RESTS), st.text(max_size=8))


@hypothesis_settings(max_examples=30)
@given(st.lists(LINES, max_size=12), st.sampled_from(["tictactoe", "pig", "twenty48:2x2", "threes"]))
def test_no_input_ends_the_session_with_an_error(lines: list[str], game: str) -> None:
    session = make_session(game, search=SearchOptions(readouts=4, cache_megabytes=0, solver=False))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        converse(session, lines)
    assert session.tree.find(session.tree.node.line, session.tree.node.ply) is session.tree.node


# ---------------------------------------------------------------- history


def test_undo_and_redo_stop_at_the_users_turns() -> None:
    session = make_session()
    converse(session, ["b2", first_free("b2"), "undo"])
    after = moves(session)
    assert session.tree.node.ply == 2
    assert session.mover == 0
    converse(session, ["undo", "redo"])
    assert moves(session) == after


def first_free(*taken: str) -> str:
    """A cell that the computer's answer to these moves leaves free."""
    copy = make_session()
    converse(copy, list(taken))
    return copy.game.action_label(copy.tree.legal()[0])


def test_the_computer_waits_for_enter_after_a_step_in_the_history() -> None:
    session = make_session()
    session.load("b2")
    printed = converse(session, [])
    assert moves(session) == "b2"
    assert "O to move, Enter lets the computer play > " in printed
    converse(session, [""])
    assert session.tree.node.ply == 2


def test_undo_takes_back_a_number_of_moves() -> None:
    session = make_session(human="both")
    session.load("a1 a2 b1 b2")
    converse(session, ["undo 3", "redo 2"])
    assert moves(session) == "a1 a2 b1"


def test_branches_are_listed_and_can_be_visited() -> None:
    session = make_session("connectfour", human="both")
    printed = converse(session, ["4", "4", "5", "undo", "3", "go A1", "7", "branches"])
    listed = [" ".join(line.split()) for line in printed.splitlines()[-7:]]
    assert listed[:4] == ["line from moves", "A 4 4 5", "B A2 3", "▸ C A1 [7]"]
    assert "line C of 3" in printed
    for place, expected in (
        ("go A", "445"),
        ("go B", "443"),
        ("go b 2", "44"),
        ("go start", ""),
        ("go end", "443"),
        ("go 1", "4"),
    ):
        converse(session, [place])
        assert moves(session) == expected, place


def test_a_list_of_moves_becomes_a_branch_of_the_game() -> None:
    session = make_session("connectfour", human="both")
    converse(session, ["4", "4", "load 4355", "load 44"])
    assert sorted(moves_of_lines(session.tree)) == ["4355", "44"]
    assert moves(session) == "44"


def moves_of_lines(tree: GameTree) -> list[str]:
    return [format_moves(tree.game, tree.actions(nodes[-1])) for nodes in tree.lines().values()]


def test_a_drawing_can_be_typed_over_several_lines() -> None:
    session = make_session(human="both")
    converse(session, ["load", "X . O", ". X .", ". . .", "", "c3"])
    assert session.game.render(session.tree.node.state) == "  a b c\n1 X · O\n2 · X ·\n3 · · O"
    printed = converse(make_session(), ["load", ""])
    assert "load what? Try: load and some moves, or the name of a file" in printed


def test_a_game_is_saved_with_its_branches_and_loaded_again(tmp_path: Path) -> None:
    session = make_session("connectfour", human="both")
    file = tmp_path / "game.txt"
    printed = converse(session, ["4", "4", "5", "undo", "3", f"save {file}"])
    assert "saved in" in printed
    again = make_session("connectfour", human="both")
    converse(again, [f"load {file}"])
    assert moves_of_lines(again.tree) == ["445", "443"]
    assert moves(again) == "443"


def test_a_new_game_starts_from_the_initial_position() -> None:
    session = make_session(human="both")
    converse(session, ["load X../.../...", "b2", "new"])
    assert session.tree.starts_afresh
    assert len(session.tree.lines()) == 1


def test_a_colon_marks_a_command() -> None:
    session = make_session(human="both")
    assert moves(session) == ""
    converse(session, ["b2", ":undo"])
    assert moves(session) == ""


# ---------------------------------------------------------------- search results


def rows(printed: str) -> list[list[str]]:
    """The rows of the last table of candidates, as words."""
    lines = printed.splitlines()
    header = max(place for place, line in enumerate(lines) if "Q+U variation" in line)
    end = next(place for place in range(header, len(lines)) if re.match("HOT|COLD", lines[place]))
    return [line.split() for line in lines[header + 1 : end]]


def percent(text: str) -> float:
    return float(text.removesuffix("%")) / 100


NETWORK = ArbitraryNetwork(tictactoe.GAME, 3)


def debug_session(**options: object) -> GameSession:
    return make_session(inference=NETWORK, debug=True, human="both", **options)  # type: ignore[arg-type]


def test_the_table_shows_the_search_statistics() -> None:
    session = debug_session(search=SearchOptions(readouts=200, cache_megabytes=0, solver=False))
    session.load("b2 a1")
    table = rows(converse(session, [], width=120))
    state = session.tree.node.state[None]
    logits, _ = NETWORK.infer(tictactoe.GAME.observe(state))
    raw = np.exp(logits[0]) / np.exp(logits[0]).sum()
    legal = np.where(tictactoe.GAME.legal(state)[0], raw, 0)
    assert len(table) == 7
    visits = [int(row[5]) for row in table]
    assert visits[1:] == sorted(visits[1:], reverse=True)
    assert sum(visits) == 200 == sum(int(row[4]) for row in table)
    for row in table:
        action = tictactoe.GAME.parse_action(row[1])
        assert percent(row[2]) == pytest.approx(raw[action], abs=6e-4)  # with the illegal ones
        assert percent(row[3]) == pytest.approx(legal[action] / legal.sum(), abs=6e-4)  # without
        assert percent(row[6]) == pytest.approx(int(row[5]) / 200, abs=6e-4)
        q, u = float(row[7].removeprefix("=")), float(row[8])
        assert float(row[9]) == pytest.approx(q + u, abs=2e-3)
        prior, weight = legal[action] / legal.sum(), OPTIONS.cpuct * np.sqrt(201)
        assert u == pytest.approx(weight * prior / (1 + int(row[5])), abs=6e-4)
        assert row[10] == row[1]  # a variation begins with its move


def test_the_table_distinguishes_visits_of_the_read_and_of_the_tree() -> None:
    session = debug_session(search=SearchOptions(readouts=60, cache_megabytes=0, solver=False))
    printed = converse(session, ["more 100"])
    table = rows(printed)
    assert sum(int(row[4]) for row in table) == 100
    assert sum(int(row[5]) for row in table) == 160
    assert re.search(r"100 readouts in \d+\.\d\d s, [\d,]+ readouts/s; tree 160; X expects [+-]\d\.\d\d", printed)


def test_the_subtree_of_a_played_move_is_kept() -> None:
    session = debug_session(search=SearchOptions(readouts=100, cache_megabytes=0, solver=False))
    printed = converse(session, [""])
    first = int(rows(printed.partition(" plays ")[0])[0][5])
    table = rows(printed)
    assert sum(int(row[4]) for row in table) == 100
    assert sum(int(row[5]) for row in table) == 100 + first - 1


@pytest.mark.parametrize(("line", "rank"), [("", 0), ("1", 0), ("3", 2), ("#3", 2)])
def test_enter_plays_the_computers_move_and_a_number_that_candidate(line: str, rank: int) -> None:
    session, candidates = debug_session(), rows(converse(debug_session(), []))
    printed = converse(session, [line])
    assert moves(session) == candidates[rank][1]
    assert f"Enter plays {candidates[0][1]} > " in printed


def test_candidates_have_a_number_sign_if_moves_are_numbers() -> None:
    session = make_session("connectfour", debug=True)
    printed = converse(session, [])
    assert [row[0] for row in rows(printed)] == [f"#{rank}" for rank in range(1, 8)]
    best = rows(printed)[0][1]
    converse(session, ["#1", "7"])
    assert moves(session) == f"{best}7"
    assert "there is no candidate 8: expected a number from 1 to 7" in answer("#8", session)


def test_noise_shows_in_the_effective_priors_only() -> None:
    session = debug_session(play=PlayOptions(noise=True))
    printed = converse(session, [])
    table = rows(printed)
    assert sum(percent(row[3]) for row in table) == pytest.approx(1, abs=5e-3)
    assert max(abs(percent(row[3]) - percent(row[2])) for row in table) > 0.01
    assert "noised priors" in printed
    assert [row[2] for row in sorted(table, key=lambda row: row[1])] == [
        row[2] for row in sorted(rows(converse(debug_session(), [])), key=lambda row: row[1])
    ]


def test_moves_are_sampled_up_to_the_tempering_point() -> None:
    session = debug_session(
        play=PlayOptions(temperature="auto"),
        search=SearchOptions(readouts=12, tempering_point=2, cache_megabytes=0, solver=False),
    )
    printed = converse(session, ["a1", "a2", "a3"])
    assert re.findall("HOT|COLD", printed) == ["HOT", "HOT", "COLD", "COLD"]


def test_a_hot_move_is_sampled_and_a_cold_one_is_the_best() -> None:
    played = set()
    for seed in range(12):
        session = debug_session(play=PlayOptions(temperature="hot"), seed=seed)
        visited = {row[1] for row in rows(converse(session, [""]).partition(" plays ")[0]) if row[5] != "0"}
        assert moves(session) in visited
        played.add(moves(session))
    assert len(played) > 2
    cold = {moves(session) for seed in range(3) for session in [debug_session(seed=seed)] if converse(session, [""])}
    assert len(cold) == 1


def test_the_same_seed_plays_the_same_moves() -> None:
    games = []
    for _ in range(2):
        session = make_session(human="none", play=PlayOptions(temperature="hot", noise=True), seed=5)
        converse(session, [])
        games.append(moves(session))
    assert games[0] == games[1]


@pytest.mark.parametrize("lines", [["set computer raw", "play"], ["raw"]])
def test_the_raw_network_plays_the_action_of_the_highest_prior(lines: list[str]) -> None:
    session = make_session(inference=NETWORK, human="both")
    session.load("b2 a1")
    state = session.tree.node.state[None]
    logits, _ = NETWORK.infer(tictactoe.GAME.observe(state))
    best = int(np.where(tictactoe.GAME.legal(state)[0], logits[0], -np.inf).argmax())
    printed = converse(session, lines)
    assert moves(session) == f"b2 a1 {tictactoe.GAME.action_label(best)}"
    assert "the raw network's choice, with a prior of" in printed


def test_a_hint_shows_the_move_and_changes_nothing() -> None:
    session = make_session(inference=NETWORK)
    hint = answer("hint", session)
    best = session.opponent.choose(session.tree)
    assert re.match(rf"hint: {tictactoe.GAME.action_label(best)}, \d+% of visits; X expects [+-]\d\.\d\d; likely", hint)
    assert moves(session) == ""


def test_options_change_during_a_game() -> None:
    session = make_session("connectfour")
    printed = converse(session, ["set readouts 31", "set --cpuct=2.5", "set human second", "set"])
    assert moves(session) != ""  # the computer moved, now that it is its turn
    assert "connectfour, move 1" in printed and "mine, 31 readouts" in printed
    assert {"readouts 31", "cpuct 2.5", "human second"} <= set(re.split(r"\s{2,}|\n", printed))
    assert "of the visits (31)" in printed


def test_search_options_start_a_new_tree_but_readouts_do_not() -> None:
    session = debug_session(search=SearchOptions(readouts=40, cache_megabytes=0, solver=False))
    kept = rows(converse(session, ["set readouts 10"]))
    assert sum(int(row[5]) for row in kept) == 50
    anew = rows(converse(session, ["set cpuct 3"]))
    assert sum(int(row[5]) for row in anew) == 10


def test_debug_is_switched_on_and_off() -> None:
    printed = converse(make_session(human="both"), ["debug", "b2", "debug", "a1"])
    assert printed.count("Q+U variation") == 2


def test_a_gumbel_root_is_searched_by_puct_with_a_note() -> None:
    session = make_session(search=SearchOptions(readouts=10, root="gumbel", cache_megabytes=0, solver=False))
    assert "The search is by PUCT here: with root=gumbel" in converse(session, ["b2"])
    assert session.tree.node.ply == 2


def test_too_many_readouts_are_refused_at_the_start() -> None:
    with pytest.raises(SettingsError, match="at most 1,000,000 readouts"):
        make_session(search=SearchOptions(readouts=MOST_READOUTS + 1, solver=False))


def test_the_bar_shows_who_is_ahead() -> None:
    sides = screen.Sides(("you", "mine"), ("X", "O"))
    bars = {value: screen.draw_values((value,), sides).plain for value in (-1.0, 0.0, 0.5, 1.0)}
    assert [bar.count("█") for bar in bars.values()] == [0, 10, 15, 20]
    assert bars[-1.0].endswith("O  +1.00 for O")
    assert bars[0.5].endswith("O  +0.50 for X")


def test_help_lists_every_command() -> None:
    printed = converse(make_session(), ["help"])
    for word in ("undo", "redo", "branches", "go", "load", "save", "hint", "more", "raw", "set", "debug", "q, quit"):
        assert re.search(rf"^{word}\b", printed, flags=re.MULTILINE), word


# ---------------------------------------------------------------- through a pseudo-terminal


PIECE_COLOR = "48;5;160"  # of a background


class TerminalSession:
    """The program in a pseudo-terminal with 80 columns."""

    def __init__(self, root: Path, *arguments: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "bin/interactive.py", *arguments, "--runtime=litert"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            # So that Ctrl-C is its signal.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
            env={**kept, "TERM": "xterm-256color", "SERAPHIM_DATA": str(root), **environment},
        )
        os.close(slave)
        self.seen = self.raw = ""

    def wait_for(self, text: str, seconds: float = 120) -> str:
        """Return what is printed until a text comes, without control sequences, which `raw` has."""
        end = time.monotonic() + seconds
        while text not in plain(self.seen):
            ready, _, _ = select.select([self._master], [], [], max(0, end - time.monotonic()))
            assert ready, f"{text!r} does not come: {self.seen}"
            self.seen += self._read()
        self.raw, self.seen = self.seen, ""
        return plain(self.raw)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def leave(self, again: str = "", seconds: float = 60) -> tuple[str, int]:
        """Return the rest of what is printed, and the exit code; type `again` every ten seconds until it ends."""
        printed, end = self.seen, time.monotonic() + seconds
        while True:
            if not select.select([self._master], [], [], 10)[0]:
                assert time.monotonic() < end, f"it does not end: {printed}"
                self.type(again)
                continue
            part = self._read()
            if not part:
                break
            printed += part
        code = self.process.wait(60)
        os.close(self._master)
        return printed, code

    def _read(self) -> str:
        try:
            return os.read(self._master, 65536).decode(errors="replace")
        except OSError:  # it has ended
            return ""


def plain(printed: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", printed)


@pytest.fixture
def terminal(root: Path) -> Iterator[Callable[..., TerminalSession]]:
    """Return a function that starts the program in a new terminal."""
    started = []

    def start(*arguments: str, **environment: str) -> TerminalSession:
        started.append(TerminalSession(root, *arguments, **environment))
        return started[-1]

    yield start
    for session in started:
        if session.process.poll() is None:
            session.process.kill()
            session.process.wait()


def test_a_user_plays_undoes_branches_and_loads(terminal: Callable[..., TerminalSession], tmp_path: Path) -> None:
    session = terminal("fresh", "--readouts=20", "--human=both")
    assert "help lists the commands, q leaves." in session.wait_for("X to move > ")
    session.type("b2\r")
    assert "[X]" in session.wait_for("O to move > ")
    session.type("a1\r")
    session.wait_for("X to move > ")
    session.type("undo\r")
    assert "redo: a1" in session.wait_for("O to move > ")
    session.type("c3\r")
    assert "line B of 2" in session.wait_for("X to move > ")
    session.type("branches\r")
    assert "B    A1   [c3]" in session.wait_for("X to move > ")
    session.type(f"save {tmp_path}/game\r")
    session.wait_for("X to move > ")
    session.type("load a1 a2 b1 b2 c1\r")
    assert "X wins (you)" in session.wait_for("game over > ")
    session.type(f"load {tmp_path}/game\r")
    assert "moves: b2 [c3]" in session.wait_for("X to move > ")
    session.type("hi\t\r")  # Tab completes
    assert "hint: " in session.wait_for("X to move > ")
    session.type("q\r")
    printed, code = session.leave()
    assert code == 0
    assert plain(printed).endswith("moves: b2 c3\n")
    assert "Traceback" not in printed


def test_a_debug_session_shows_its_table_in_color(terminal: Callable[..., TerminalSession]) -> None:
    session = terminal("fresh", "--readouts=20", "--debug", "--seed=1")
    session.wait_for("Enter plays ")
    session.type("\r")
    printed = session.wait_for("O to move, Enter plays ")
    assert "X plays " in printed and "Q+U variation" in printed and "COLD" in printed
    assert PIECE_COLOR in session.raw
    session.type("\x04")  # Ctrl-D
    _, code = session.leave()
    assert code == 0


def test_no_color_disables_colors(terminal: Callable[..., TerminalSession]) -> None:
    session = terminal("fresh", "--load=b2", "--human=both", NO_COLOR="1")
    session.type("q\r")
    printed, code = session.leave()
    assert code == 0
    assert PIECE_COLOR not in printed
    assert "[X]" in printed  # the mark of the last move is there without colors


@pytest.mark.slow
def test_ctrl_c_stops_a_search_and_then_leaves(terminal: Callable[..., TerminalSession]) -> None:
    session = terminal("fresh", "--human=both", "--cache_megabytes=0")
    session.wait_for("X to move > ")
    session.type("more 1000000\r")
    session.wait_for("readouts/s")  # the search is shown while it goes on
    session.type("\x03")
    assert "stopped after " in session.wait_for("X to move > ")
    session.type("\x03")
    # Python's readline misses a signal that comes between its prompt and its wait for keys: it is typed again then.
    printed, code = session.leave(again="\x03")
    assert code == 0
    assert "Traceback" not in printed


def run(root: Path, *arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SERAPHIM_DATA": str(root)}
    return programs.run([sys.executable, "bin/interactive.py", *arguments], input=lines, env=environment, timeout=120)


def test_lines_from_a_pipe_are_executed_and_echoed(root: Path) -> None:
    done = run(root, "fresh", "--readouts=20", "--runtime=litert", lines="b2\nhint\nundo\nnonsense\n")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "X to move > b2\n" in done.stdout
    assert re.search(r"^O plays ", done.stdout, flags=re.MULTILINE)
    assert "'nonsense' is neither a move nor a command" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nobody",), "model 'nobody' does not exist in "),
        (("fresh", "--snapshot=none"), "model 'fresh' has no snapshot 'none'"),
        (("fresh", "--load=z9", "--runtime=litert"), "move 1: 'z9' is not a move of tictactoe"),
        (("fresh", "--readouts=0"), "readouts must be at least 1, not 0"),
        (("fresh", "--rolls=enter"), "--rolls changes nothing here: chance never moves in tictactoe"),
    ],
)
def test_invalid_arguments_exit_with_an_error(root: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = run(root, *arguments)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_model_that_plays_by_afterstates_speaks_of_turns() -> None:
    session = make_session(human="second", search=SearchOptions(root="afterstates", turns=2))
    said = converse(session, ["q"])
    assert "2-turn search" in said
    assert "plays" in said
    assert "expects" in said
    assert "visits" not in said
    assert "readouts" not in said
    shown = answer("table", session)
    assert re.search(r"move +prior +ends +Q +variation", shown)
    assert re.search(r"ends of turns: \d in 0\.\d\d s; ", shown)
    assert re.search(r"hint: \w\d; \w expects .*; else \w\d [+-]0\.\d\d", answer("hint", session))


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("set readouts 5", "root=puct or gumbel"),
        ("set cpuct 3", "root=puct"),
        ("set noise on", "root=puct"),
        ("set temperature hot", "root=puct"),
        ("set temperature auto", "root=puct"),
        ("more 50", "set root puct"),
    ],
)
def test_what_changes_nothing_where_turns_are_valued_is_refused(line: str, needs: str) -> None:
    session = make_session(human="both", search=SearchOptions(root="afterstates"))
    before, name = session.settings(), line.removeprefix("set ").split()[0]
    said = answer(line, session)
    assert f"{name} changes nothing" in said
    assert needs in said
    assert session.settings() == before
    answer("set root puct", session)
    assert "changes nothing" not in answer(line, session)
    assert "turns changes nothing here: it needs root=afterstates" in answer("set turns 2", session)
