"""Seraphim as an engine, by GTP and UCI: commands in a process of its own and in this one, and the clock."""

import io
import itertools
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from reference import ArbitraryNetwork

from seraphim.errors import ModelError, PlayerError
from seraphim.evaluation.match import make_openings, play_match
from seraphim.game import Game, load_game
from seraphim.gtp import uci
from seraphim.gtp.clock import FEWEST_MOVES, Clock
from seraphim.gtp.gtp import GtpServer
from seraphim.gtp.thinker import Thinker
from seraphim.gtp.uci import UciServer
from seraphim.options import SearchOptions
from seraphim.players.choose import random_player
from seraphim.players.external.gtp import GtpEngine, gtp_player
from seraphim.players.opponent import Opponent, PlayOptions
from seraphim.terminal.session import MOST_READOUTS

GTP_COMMANDS = {
    *("protocol_version", "name", "version", "known_command", "list_commands", "quit", "boardsize", "clear_board"),
    *("komi", "play", "genmove", "reg_genmove", "undo", "showboard", "time_settings", "time_left"),
    *("analyze", "lz-analyze", "final_score", "list_games", "set_game"),
}


PATIENCE = 60.0  # seconds, with a busy machine


class Input:
    """A stream of lines that come when they are sent."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str] = queue.Queue()

    def __iter__(self) -> "Input":
        return self

    def __next__(self) -> str:
        line = self._lines.get()
        if line == "end":
            raise StopIteration
        if line == "unreadable":
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return line

    def send(self, line: str) -> None:
        self._lines.put(line)


class Conversation:
    """A server that reads commands in this process."""

    def __init__(self, game: Game, server: type[GtpServer] | type[UciServer], readouts: int = 20) -> None:
        search = SearchOptions(readouts=readouts, cache_megabytes=0, solver=False)
        opponent = Opponent(game, ArbitraryNetwork(game), search, PlayOptions(), np.random.default_rng(0))
        self.input, self.out = Input(), io.StringIO()
        self.thinker = Thinker(game, opponent, self.input)  # type: ignore[arg-type]  # an iterable is enough
        self._server = server(self.thinker, self.out)

    def ask(self, command: str) -> str:
        """The answer to a command."""
        before = self.out.tell()
        self._server.answer(command)
        return self.out.getvalue()[before:]

    @contextmanager
    def running(self, last: str = "quit") -> Iterator[None]:
        """Answers what is sent, in a thread that a last line ends."""
        thread = threading.Thread(target=self._server.run, daemon=True)
        thread.start()
        yield
        self.send(last)
        thread.join(PATIENCE)
        assert not thread.is_alive()

    def send(self, *lines: str) -> None:
        for line in lines:
            self.input.send(line)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Waits until a text was answered."""
        deadline = time.monotonic() + PATIENCE
        while self.out.getvalue().count(text) < times:
            assert time.monotonic() < deadline, f"no {text} in {self.out.getvalue()}"
            time.sleep(0.01)

    def ask_all(self, commands: Sequence[str]) -> list[str]:
        return [self.ask(command) for command in commands]


@pytest.fixture
def tictactoe() -> Conversation:
    return Conversation(load_game("tictactoe"), GtpServer)


@pytest.fixture
def othello() -> Conversation:
    return Conversation(load_game("othello"), GtpServer)


# ---------------------------------------------------------------- GTP


def test_answers_have_the_form_of_the_protocol(tictactoe: Conversation) -> None:
    assert tictactoe.ask("protocol_version") == "= 2\n\n"
    assert tictactoe.ask("17 name  # who") == "=17 Seraphim\n\n"
    assert tictactoe.ask("3 dance") == "?3 unknown command\n\n"
    assert tictactoe.ask("# a comment") == tictactoe.ask("  ") == ""
    assert set(tictactoe.ask("list_commands")[2:].split()) == GTP_COMMANDS
    assert "loadsgf" in Conversation(load_game("othello"), GtpServer).ask("list_commands").split()
    assert tictactoe.ask_all(["known_command play", "known_command dance"]) == ["= true\n\n", "= false\n\n"]


def test_characters_that_the_protocol_ignores_are_dropped(tictactoe: Conversation, othello: Conversation) -> None:
    assert tictactoe.ask("17\tna\0me\x7f\r\n") == "=17 Seraphim\n\n"
    assert tictactoe.ask("\0\r") == ""
    assert othello.ask("loadsgf no\0ne") == "? cannot load file: No such file or directory\n\n"


@pytest.mark.parametrize("size", [6, 7, 19])
def test_a_board_that_is_not_square_has_no_size(size: int) -> None:
    assert Conversation(load_game("connectfour"), GtpServer).ask(f"boardsize {size}") == "? unacceptable size\n\n"


def test_a_game_is_played_and_taken_back(tictactoe: Conversation) -> None:
    empty = tictactoe.ask("showboard")
    assert tictactoe.ask_all(["boardsize 3", "clear_board", "komi 6.5", "play b B2", "play white a1"]) == ["=\n\n"] * 5
    assert tictactoe.thinker.tree.actions() == [4, 0]
    move = tictactoe.ask("genmove black")
    assert tictactoe.thinker.tree.actions()[:2] == [4, 0]
    assert move == f"= {tictactoe.thinker.game.action_label(tictactoe.thinker.tree.actions()[2])}\n\n"
    assert tictactoe.ask_all(["undo", "undo", "undo"]) == ["=\n\n"] * 3
    assert tictactoe.ask("undo") == "? cannot undo\n\n"
    assert tictactoe.ask("showboard") == empty
    assert "\n\n" not in empty[:-2]


def test_a_move_that_is_only_asked_for_is_not_played(tictactoe: Conversation) -> None:
    label = tictactoe.ask("reg_genmove b")[2:].strip()
    assert tictactoe.thinker.game.parse_action(label) in range(9)
    assert tictactoe.thinker.tree.actions() == []


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("boardsize 4", "unacceptable size"),
        ("boardsize", "syntax error: expected 1 non-negative integer"),
        ("boardsize x", "syntax error: expected 1 non-negative integer"),
        ("boardsize 3.0", "syntax error: expected 1 non-negative integer"),
        ("boardsize -3", "syntax error: expected 1 non-negative integer"),
        ("time_settings 1 2", "syntax error: expected 3 non-negative integers"),
        ("time_settings -5 0 0", "syntax error: expected 3 non-negative integers"),
        ("time_settings 1 1 -3", "syntax error: expected 3 non-negative integers"),
        (f"time_settings {'9' * 5000} 0 0", "syntax error: expected 3 non-negative integers"),
        ("time_left b 1", "syntax error: expected 2 non-negative integers"),
        ("time_left b -1 -1", "syntax error: expected 2 non-negative integers"),
        ("komi nan", "syntax error: expected a number"),
        ("komi x", "syntax error: expected a number"),
        ("komi", "syntax error: expected one word"),
        (f"analyze {'9' * 5000}", "syntax error: expected a color, black or white"),
        ("play b", "syntax error: expected a color and a vertex"),
        ("play red a1", "syntax error: expected a color, black or white"),
        ("genmove", "syntax error: expected a color, black or white"),
        ("genmove w", "it is not w's turn"),
        ("play w a1", "it is not w's turn"),
        ("play b d4", "illegal move: d4 is not legal here: expected one of a1 "),
        ("known_command", "syntax error: expected one word"),
        ("final_score", "cannot score: the game is not over"),
        ("set_game Go", "unsupported game: expected Tictactoe"),
        ("loadsgf game.sgf", "unknown command"),
        ("analyze b w", "syntax error: expected a color, and an interval"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(tictactoe: Conversation, command: str, answer: str) -> None:
    assert tictactoe.ask(command).startswith(f"? {answer}")
    assert tictactoe.thinker.tree.actions() == []
    assert tictactoe.ask("genmove b")[0] == "="


def test_players_pass_after_the_end(tictactoe: Conversation) -> None:
    for color, move in zip("bwbwb", ("a1", "b1", "a2", "b2", "a3"), strict=True):
        assert tictactoe.ask(f"play {color} {move}") == "=\n\n"
    assert tictactoe.ask("genmove w") == tictactoe.ask("reg_genmove b") == "= pass\n\n"
    assert tictactoe.ask("play w c3").startswith("? illegal move: c3 is not legal here: expected none")
    assert tictactoe.ask_all(["play b pass", "play w PASS"]) == ["=\n\n"] * 2
    assert tictactoe.ask_all(["undo"] * 3) == ["=\n\n"] * 3  # and the pass of genmove
    assert len(tictactoe.thinker.tree.actions()) == 5
    assert tictactoe.ask_all(["undo", "genmove b"])[0] == "=\n\n"
    assert tictactoe.ask_all(["undo", "play b a3"]) == ["=\n\n"] * 2
    assert tictactoe.ask("analyze") == "? the game is over\n\n"
    assert tictactoe.ask("final_score") == "= B+\n\n"
    assert tictactoe.ask_all(["set_game tictactoe", "list_games"]) == ["=\n\n", "= Tictactoe\n\n"]
    for color, move in zip("bwbwbwbwb", ("b2", "a1", "c1", "a3", "a2", "c2", "b1", "b3", "c3"), strict=True):
        assert tictactoe.ask(f"play {color} {move}") == "=\n\n"
    assert tictactoe.ask("final_score") == "= 0\n\n"


def test_the_score_of_a_game_is_what_another_program_counts(
    othello: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], "/usr/games"]))  # where Debian puts games
    if not shutil.which("gtp-rhino"):
        pytest.skip("not installed: apt install grhino")
    game, random, seen = othello.thinker.game, np.random.default_rng(2), set[str]()
    rhino = GtpEngine(game, "gtp-rhino")
    while len({score[:1] for score in seen} - {"0"}) < 2:
        othello.ask("clear_board")
        rhino.ask("clear_board")
        while legal := othello.thinker.tree.legal():
            move = f"play {'bw'[othello.thinker.mover]} {game.action_label(int(random.choice(legal)))}"
            assert othello.ask(move) == "=\n\n"
            if not move.endswith("pass"):  # Rhino passes by itself
                rhino.ask(move)
        score = othello.ask("final_score")[2:].strip()
        if int(game.observe(othello.thinker.tree.node.state[None]).sum()) == 64:  # else it counts empty cells, too
            assert score == rhino.ask("final_score")
            seen.add(score)
    rhino.close()


def test_a_game_is_loaded_up_to_a_move(othello: Conversation, tmp_path: Path) -> None:
    file = tmp_path / "game.sgf"
    file.write_text("(;GM[2]SZ[8];B[d3];W[c3];B[c4](;W[e3])(;W[c5]))")
    loaded = [[], ["d3"], ["d3", "c3"], ["d3", "c3", "c4"], ["d3", "c3", "c4", "e3"], ["d3", "c3", "c4", "e3"]]
    for number, moves in enumerate(loaded, start=1):
        assert othello.ask(f"loadsgf {file} {number}") == "=\n\n"
        assert [othello.thinker.game.action_label(action) for action in othello.thinker.tree.actions()] == moves
    assert othello.ask(f"loadsgf {file}") == "=\n\n"
    assert len(othello.thinker.tree.actions()) == 4
    assert othello.ask("genmove b")[0] == "="
    file.write_text("(;GM[1];B[dd])")
    assert othello.ask(f"loadsgf {file}").startswith("? this is game number 1 of SGF, not othello")
    assert othello.ask(f"loadsgf {tmp_path}/none") == "? cannot load file: No such file or directory\n\n"
    assert othello.ask("loadsgf").startswith("? syntax error: expected a file")
    assert len(othello.thinker.tree.actions()) == 5


@pytest.fixture
def hexagons() -> Conversation:
    return Conversation(load_game("hex:7,swap"), GtpServer)


def test_pieces_are_swapped(hexagons: Conversation) -> None:
    assert hexagons.ask_all(["boardsize 7 7", "play b a3", "play w swap-pieces"]) == ["=\n\n"] * 3
    assert hexagons.ask("play b SWAP-PIECES").startswith("? illegal move: SWAP-PIECES is not legal here")
    tree = hexagons.thinker.tree
    assert tree.game.render(tree.node.state).splitlines()[1] == "1 · · O · · · ·"
    assert hexagons.ask_all(["undo", "showboard"])[1].splitlines()[4] == "  3 X · · · · · ·"
    hexagons.thinker.choose = lambda **_: 49  # type: ignore[method-assign]
    assert hexagons.ask("genmove w") == "= swap-pieces\n\n"
    assert hexagons.ask("play b c1").startswith("? illegal move: c1 is not legal here")
    assert hexagons.ask("play b a3") == "=\n\n"
    assert hexagons.ask("boardsize 7 8") == "? unacceptable size\n\n"


def test_a_program_whose_players_exchange_colors_sees_its_own_board(hexagons: Conversation) -> None:
    """White swaps, and white moves next: the stone stays, so white goes on against it."""
    swapped = ["play b a3", "play w swap-pieces"]
    hexagons.ask_all([*swapped, "play b d4", "play w e3", "play b c6"])
    state = hexagons.thinker.tree.node.state
    hexagons.ask_all(["clear_board", *swapped, "play w d4", "play b c5", "play w f3"])
    assert (hexagons.thinker.tree.node.state == state).all()
    assert hexagons.ask("play w g7") == "? it is not w's turn\n\n"
    for cell in ("a3", "d4", "c5", "f3"):
        assert f"{cell} is not legal here" in hexagons.ask(f"play b {cell}")
    move = hexagons.ask("genmove b")[2:].strip()
    played = hexagons.thinker.tree.label_of(hexagons.thinker.tree.node)
    assert (move[0], int(move[1:])) == ("abcdefg"[int(played[1:]) - 1], "abcdefg".index(played[0]) + 1)
    assert hexagons.ask_all(["undo"] * 4 + ["play b d4"]) == ["=\n\n"] * 5  # now colors alternate
    assert hexagons.ask("play w c1").startswith("? illegal move: c1 is not legal here")


def test_a_program_whose_players_exchange_colors_is_told_who_won(hexagons: Conversation) -> None:
    hexagons.ask_all(["play b d4", "play w swap-pieces"])
    for row in (1, 2, 3, 5, 6, 7):  # black connects top and bottom
        assert hexagons.ask_all([f"play w a{row}", f"play b d{row}"]) == ["=\n\n"] * 2
    assert hexagons.ask("final_score") == "= B+\n\n"
    hexagons.ask_all(["clear_board", "play b d4", "play w swap-pieces"])
    for row in (1, 2, 3, 5, 6, 7):  # white connects left and right
        assert hexagons.ask_all([f"play b a{row}", f"play w {'abcdefg'[row - 1]}4"]) == ["=\n\n"] * 2
    assert hexagons.ask("final_score") == "= W+\n\n"


def test_a_forced_pass_may_be_left_out(othello: Conversation) -> None:
    game, random = othello.thinker.game, np.random.default_rng(0)
    passes = 0
    for _ in range(30):
        othello.ask("clear_board")
        while legal := othello.thinker.tree.legal():
            if legal == [64]:
                passes += 1
                (state,) = game.step(othello.thinker.tree.node.state[None], np.array([64]))
                color, legal = "bw"[1 - othello.thinker.mover], np.flatnonzero(game.legal(state[None])[0]).tolist()
            else:
                color = "bw"[othello.thinker.mover]
            assert othello.ask(f"play {color} {game.action_label(int(random.choice(legal)))}") == "=\n\n"
    assert passes


@pytest.fixture
def forced_pass(othello: Conversation) -> Conversation:
    """A game of Othello in which a player can only pass, and is not the one to win."""
    random = np.random.default_rng(0)
    while othello.thinker.tree.legal() != [64]:
        if not (legal := othello.thinker.tree.legal()):
            othello.ask("clear_board")
        else:
            color, label = "bw"[othello.thinker.mover], othello.thinker.game.action_label(int(random.choice(legal)))
            assert othello.ask(f"play {color} {label}") == "=\n\n"
    return othello


def test_a_pass_that_is_left_out_is_played_with_the_next_move_alone(forced_pass: Conversation) -> None:
    tree = forced_pass.thinker.tree
    passer, other = "bw"[forced_pass.thinker.mover], "wb"[forced_pass.thinker.mover]
    before, moves = forced_pass.ask("showboard"), tree.actions()
    forced_pass.input.send("")
    for command in (f"reg_genmove {other}", f"play {other} a9", f"play {other} pass", f"analyze {other}"):
        forced_pass.ask(command)
        assert tree.actions() == moves
        assert forced_pass.ask("showboard") == before
    label = forced_pass.ask(f"genmove {other}")[2:].strip()
    assert tree.actions()[:-1] == [*moves, 64]
    assert forced_pass.ask("undo") == "=\n\n"  # both
    assert tree.actions() == moves
    assert forced_pass.ask_all([f"play {passer} pass", f"play {other} {label}", "undo"]) == ["=\n\n"] * 3
    assert tree.actions() == [*moves, 64]
    assert forced_pass.ask_all(["undo", f"play {other} {label}", "undo", "undo"]) == ["=\n\n"] * 4
    assert tree.actions() == moves[:-1]


def test_a_search_that_fails_changes_nothing(forced_pass: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise ModelError("the model gave a NaN")

    moves = forced_pass.thinker.tree.actions()
    monkeypatch.setattr(forced_pass.thinker, "choose", fail)
    for command in ("genmove", "reg_genmove"):
        answer = forced_pass.ask(f"{command} {'wb'[forced_pass.thinker.mover]}")
        assert answer == "? the model gave a NaN\n\n"
        assert forced_pass.thinker.tree.actions() == moves


def test_an_analysis_goes_on_until_a_command_comes(tictactoe: Conversation) -> None:
    tictactoe.ask("play b b2")
    tictactoe.input.send("")
    answer = tictactoe.ask("17 lz-analyze w 1")
    first, *lines = answer.split("\n")
    assert first == "=17"
    assert lines[-2:] == ["", ""]
    moves = [part.split() for part in lines[-3].split("info ")[1:]]
    assert {words[1] for words in moves} <= {"a1", "b1", "c1", "a2", "c2", "a3", "b3", "c3"}
    assert [words[::2][:5] for words in moves] == [["move", "visits", "winrate", "prior", "order"]] * len(moves)
    for order, words in enumerate(moves):
        values = dict(zip(words[0:10:2], words[1:10:2], strict=True))
        assert 0 <= int(values["winrate"]) <= 10_000
        assert int(values["order"]) == order
        assert words[10:12] == ["pv", values["move"]]


def test_other_programs_play_with_it() -> None:
    game = load_game("tictactoe")
    command = shlex.join([sys.executable, "bin/engine.py", "tictactoe"])
    result = play_match(game, gtp_player(game, command), random_player(game), make_openings(game, 4, 2))
    assert result.games == 8
    assert result.tally.losses == 0


@pytest.mark.parametrize("encoding", ["ascii:strict", "utf-8:strict"])
def test_characters_of_any_kind_are_read_and_written(encoding: str) -> None:
    game, commands = load_game("tictactoe"), b"1 \xff\n2 name\n3 showboard\nquit\n"
    done = subprocess.run(
        [sys.executable, "bin/engine.py", "tictactoe"],
        input=commands,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=120,
        check=True,
    )
    board = game.render(game.initial(1)[0])
    assert done.stdout.decode().split("\n\n") == ["?1 unknown command", "=2 Seraphim", f"=3\n{board}", "=", ""]


def test_a_referee_carries_all_moves_between_it_and_another_program(
    othello: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], "/usr/games"]))
    if not shutil.which("gtp-rhino"):
        pytest.skip("not installed: apt install grhino")
    rhino, random = GtpEngine(othello.thinker.game, "gtp-rhino --level=1"), np.random.default_rng(4)
    forced = plies = 0
    for rhinos in (0, 1) * 4:
        othello.ask("clear_board")
        rhino.ask("clear_board")
        asked = 0
        for color in itertools.islice(itertools.cycle("bw"), 200):
            tree = othello.thinker.tree
            forced += tree.legal() == [64]
            if "bw".index(color) == rhinos:
                vertex = rhino.ask(f"genmove {color}").lower()
                assert othello.ask(f"play {color} {vertex}") == "=\n\n"
            else:
                if len(tree.legal()) > 1 and random.random() < 0.5:  # so that games differ
                    vertex = tree.label(int(random.choice(tree.legal())))
                    assert othello.ask(f"play {color} {vertex}") == "=\n\n"
                else:
                    vertex = othello.ask(f"genmove {color}")[2:].strip()
                if vertex != "pass":  # which Rhino plays by itself
                    rhino.ask(f"play {color} {vertex.upper()}")
            asked += 1
            if not tree.legal() and vertex == "pass":
                break
        assert asked >= len(tree.actions())
        assert not tree.legal()
        plies += len(tree.actions())
        if int(tree.game.observe(tree.node.state[None]).sum()) == 64:  # else it counts empty cells, too
            assert othello.ask("final_score")[2:].strip() == rhino.ask("final_score")
        for _ in range(asked):
            assert othello.ask("undo") == "=\n\n"
        assert othello.ask("undo") == "? cannot undo\n\n"
    assert forced
    assert plies > 8 * 30  # though a player may lose the last stone early
    rhino.close()


# ---------------------------------------------------------------- the clock


def test_a_clock_lasts_for_the_game() -> None:
    for clock in (Clock(10), Clock(10, 0.1), Clock(1)):
        left, moves = clock, 30
        for move in range(moves):
            budget = left.budget(moves - move)
            assert 0 < budget < left.main
            left = left.after(budget)
    assert Clock(10).budget(1) <= 10 / FEWEST_MOVES


def test_a_clock_divides_a_period_among_its_moves() -> None:
    assert 0.5 < Clock(0, 1, 1).budget(30) < 1
    assert 0.5 < Clock(0, 10, 10).budget(30) < 1
    assert Clock(100, 1, 1).budget(20) > 5
    assert Clock(0, 0, 0).budget(3) == 0
    assert Clock(0.1, 5).budget(10) < 0.1  # what is added comes after the move


def test_a_search_ends_by_the_clock(tictactoe: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int | None, float | None]] = []
    choose = tictactoe.thinker.choose

    def watched(readouts: int | None = None, seconds: float | None = None) -> int:
        seen.append((readouts, seconds))
        return choose(readouts, seconds)

    monkeypatch.setattr(tictactoe.thinker, "choose", watched)
    for command in ("genmove b", "time_settings 0 1 1", "genmove w", "time_settings 1 0 0", "genmove b"):
        assert tictactoe.ask(command)[0] == "="
    for command in (
        "time_left w 2 0",
        "genmove w",
        "time_left b 3 2",
        "genmove b",
        "time_settings 0 1 0",
        "genmove w",
    ):
        assert tictactoe.ask(command)[0] == "="
    budgets = [seconds for _, seconds in seen]
    assert budgets[0] is None
    assert budgets[1] == Clock(0, 1, 1).budget(1)
    assert budgets[2] == Clock(1).budget(1.75)
    assert budgets[3] == Clock(2).budget(1.5)
    assert budgets[4] == Clock(0, 3, 2).budget(1)
    assert budgets[5] is None


def test_time_that_nobody_measures_is_counted(othello: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now.__setitem__(0, now[0] + 0.25) or now[0])
    othello.ask("time_settings 20 0 0")
    left = []
    for color in "bwbw":
        othello.ask(f"genmove {color}")
        left.append([clock.main for clock in othello._server._clocks.values()])
    assert left[0][0] < 20 == left[0][1]
    assert left[3][0] < left[0][0]
    assert left[3][1] < 20


# ---------------------------------------------------------------- UCI


@pytest.fixture
def breakthrough() -> Conversation:
    pytest.importorskip("pyspiel")
    return Conversation(load_game("openspiel:breakthrough"), UciServer)


def test_uci_is_spoken(breakthrough: Conversation) -> None:
    answer = breakthrough.ask("uci").splitlines()
    assert answer[0].startswith("id name Seraphim ")
    assert answer[1] == "id author The Seraphim Authors"
    assert answer[-1] == "uciok"
    assert any("UCI_Variant" in line for line in answer)
    assert breakthrough.ask("isready") == "readyok\n"
    assert breakthrough.ask("setoption name Hash value 1") == breakthrough.ask("dance") == ""


@pytest.mark.parametrize("limit", ["", " nodes 10", " movetime 200", " wtime 500 btime 400 winc 10 binc 10"])
def test_uci_chooses_a_legal_move(breakthrough: Conversation, limit: str) -> None:
    game = breakthrough.thinker.game
    breakthrough.ask("ucinewgame")
    breakthrough.ask("position startpos moves a2a3")
    word, move = breakthrough.ask(f"go{limit}").splitlines()[-1].split()
    assert word == "bestmove"
    tree = breakthrough.thinker.tree
    assert len(tree.actions()) == 1
    legal = [game.uci_in(tree.node.state, action) for action in tree.legal()]  # type: ignore[attr-defined]
    assert move in legal
    breakthrough.ask(f"position startpos moves a2a3 {move}")
    assert len(tree.actions()) == 2


def test_uci_searches_until_it_is_stopped(breakthrough: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uci, "_INTERVAL", 0.01)
    with breakthrough.running():
        breakthrough.send("position startpos", "go infinite", "isready", "setoption name Hash value 1", "dance")
        breakthrough.wait_for("readyok")
        breakthrough.wait_for("info depth ", 3)  # more than the first
        assert "bestmove" not in breakthrough.out.getvalue()
        breakthrough.send("stop")
        breakthrough.wait_for("bestmove ")
    lines = breakthrough.out.getvalue().splitlines()
    assert lines[-1].startswith("bestmove ")
    assert lines[-2].startswith("info depth ")
    assert lines[-1].split()[1] == lines[-2].split(" pv ")[1].split()[0]


def test_uci_is_answered_during_a_search_with_a_limit(breakthrough: Conversation) -> None:
    with breakthrough.running():
        breakthrough.send("go movetime 3600000", "isready", "position startpos moves a2a3")
        breakthrough.wait_for("readyok")
        assert "bestmove" not in breakthrough.out.getvalue()
        breakthrough.send("stop")
        breakthrough.wait_for("bestmove ")
        breakthrough.send("go nodes 1")  # in the position that came meanwhile
        breakthrough.wait_for("bestmove ", 2)
    assert len(breakthrough.thinker.tree.actions()) == 1


@pytest.mark.parametrize("go", ["go", "go nodes 10", "go nodes 0", "go movetime 100", "go infinite"])
def test_uci_tells_what_it_thinks_of_a_position_before_its_move(breakthrough: Conversation, go: str) -> None:
    breakthrough.ask("position startpos moves a2a3 a7a6")
    breakthrough.send("stop") if "infinite" in go else None
    *_, info, best = breakthrough.ask(go).splitlines()
    found = re.fullmatch(r"info depth (\d+) nodes (\d+) time \d+ score cp (-?\d+) pv ((?:[a-h][1-8]){2}.*)", info)
    assert found, info
    depth, nodes, _, variation = found.groups()
    assert int(depth) == len(variation.split())
    assert int(nodes) >= {"go": 20, "go nodes 10": 10}.get(go, 0)
    assert best == f"bestmove {variation.split()[0]}"
    breakthrough.ask(f"position startpos moves a2a3 a7a6 {variation}")
    assert len(breakthrough.thinker.tree.actions()) == 2 + int(depth)


@pytest.mark.parametrize("unknown", ["joho ", "joho dance ", "  joho\t"])
def test_uci_reads_a_line_from_its_first_command_on(breakthrough: Conversation, unknown: str) -> None:
    assert breakthrough.ask(f"{unknown}isready") == "readyok\n"  # the protocol's own example has the word joho
    assert breakthrough.ask(f"{unknown}position startpos moves a2a3") == ""
    assert len(breakthrough.thinker.tree.actions()) == 1
    assert "bestmove" in breakthrough.ask(f"{unknown}go nodes 3")
    with breakthrough.running(f"{unknown}quit"):
        breakthrough.send("go infinite", f"{unknown}isready")
        breakthrough.wait_for("readyok", 2)
        breakthrough.send(f"{unknown}stop")
        breakthrough.wait_for("bestmove", 2)


@pytest.mark.parametrize("command", ["setoption name", "debug", "register", "stop", "ponderhit", "joho setoption name"])
def test_uci_finds_no_command_behind_another_one(breakthrough: Conversation, command: str) -> None:
    assert breakthrough.ask(f"{command} go nodes 3") == ""


def test_uci_says_that_chess_has_ended_by_repetition() -> None:
    pytest.importorskip("pyspiel")
    chess = Conversation(load_game("openspiel:chess"), UciServer)
    twice = "g1f3 g8f6 f3g1 f6g8 " * 2
    assert chess.ask(f"position startpos moves {twice}") == ""
    assert chess.ask("go nodes 3").splitlines() == [
        "info string the game is over by the rules of this engine",
        "bestmove 0000",
    ]
    assert chess.ask(f"position startpos moves {twice} e2e4").startswith("info string e2e4 is not legal here")


@pytest.mark.parametrize("last", ["quit", "end"])
@pytest.mark.parametrize("go", ["go infinite", "go movetime 3600000"])
def test_uci_ends_during_a_search(breakthrough: Conversation, go: str, last: str) -> None:
    with breakthrough.running(last):
        breakthrough.send(go, "isready")
        breakthrough.wait_for("readyok")


@pytest.mark.parametrize(
    ("limit", "unknown"),
    [
        ("depth 1 searchmoves a2a3 b2b3", "depth 1 searchmoves a2a3 b2b3"),
        ("depth 1 nodes 5", "depth 1"),
        ("nodes many", "nodes many"),
        ("nodes", "nodes"),
        ("ponder movetime 100", "ponder"),
    ],
)
def test_uci_says_which_limits_it_does_not_have(breakthrough: Conversation, limit: str, unknown: str) -> None:
    first, _, last = breakthrough.ask(f"go {limit}").splitlines()
    assert first == f"info string not understood: {unknown}"
    assert last.startswith("bestmove ")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("nodes 7", (7, None)),
        ("nodes -7", (0, None)),
        ("nodes 99999999999999 movetime 1000", (MOST_READOUTS, Clock(0, 1, 1).budget(1))),
        (f"nodes {'9' * 5000}", (MOST_READOUTS, None)),
        ("wtime -100 btime 1000", (None, 0)),
        ("wtime 60000 btime 1000 movestogo 1", (None, Clock(60).budget(1))),
        ("wtime 1000 winc -100 movestogo 0", (None, Clock(1).budget(1))),
    ],
)
def test_uci_reads_numbers(
    breakthrough: Conversation, monkeypatch: pytest.MonkeyPatch, limit: str, expected: tuple[int | None, float | None]
) -> None:
    seen = list[tuple[int | None, float | None]]()

    def choose(readouts: int | None, seconds: float | None, *_: object) -> int:
        seen.append((readouts, seconds))
        return breakthrough.thinker.tree.legal()[0]

    monkeypatch.setattr(breakthrough.thinker, "choose", choose)
    assert breakthrough.ask(f"go {limit}").startswith("bestmove ")
    assert seen == [expected]


def test_uci_says_what_it_cannot_do(breakthrough: Conversation) -> None:
    assert breakthrough.ask("position fen 8/8 w").startswith("info string only positions from the start")
    assert breakthrough.ask("position startpos a2a3").startswith("info string only positions from the start")
    assert breakthrough.ask("position startpos moves a2a5").startswith("info string a2a5 is not legal here")
    with pytest.raises(PlayerError, match="UCI plays games such as"):
        Conversation(load_game("tictactoe"), UciServer)


@pytest.mark.parametrize("refused", ["fen 8/8 w", "startpos moves a2a3 a2a3", "startpos a2a3", ""])
def test_uci_has_no_move_for_a_position_that_it_refused(breakthrough: Conversation, refused: str) -> None:
    breakthrough.ask("position startpos moves a2a3")
    breakthrough.ask(f"position {refused}")
    assert breakthrough.ask("go nodes 5") == "bestmove 0000\n"
    assert breakthrough.ask("position startpos moves a2a3") == ""
    assert breakthrough.ask("go nodes 5") != "bestmove 0000\n"


def test_uci_waits_for_stop_without_a_move_too(breakthrough: Conversation) -> None:
    with breakthrough.running():
        breakthrough.send("position startpos a2a3", "go infinite", "isready")
        breakthrough.wait_for("readyok")
        assert "bestmove" not in breakthrough.out.getvalue()
        breakthrough.send("stop")
        breakthrough.wait_for("bestmove 0000")


def test_uci_answers_though_a_search_fails(breakthrough: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise ModelError("the model gave a NaN")

    monkeypatch.setattr(breakthrough.thinker, "choose", fail)
    assert breakthrough.ask("go nodes 5") == "info string the model gave a NaN\nbestmove 0000\n"


def test_uci_takes_the_initial_position_of_chess_as_fen() -> None:
    pytest.importorskip("pyspiel")
    chess = Conversation(load_game("openspiel:chess"), UciServer)
    fen = str(chess.thinker.game._game.new_initial_state())  # type: ignore[attr-defined]
    assert chess.ask(f"position fen {fen} moves e2e4 e7e5") == ""
    assert len(chess.thinker.tree.actions()) == 2
    assert chess.ask(f"position fen {fen}") == ""
    assert chess.thinker.tree.actions() == []
    assert chess.ask(f"position fen {fen.replace('KQkq', 'KQ')}").startswith(
        "info string only positions from the start"
    )
    assert chess.ask("go nodes 5") == "bestmove 0000\n"


def test_a_line_that_cannot_be_read_ends_the_conversation() -> None:
    conversation = Conversation(load_game("tictactoe"), GtpServer)
    with conversation.running("unreadable"):
        conversation.send("name")
    assert conversation.out.getvalue() == "= Seraphim\n\n"


@pytest.mark.parametrize("server", [GtpServer, UciServer])
def test_a_conversation_ends(server: Callable[..., GtpServer | UciServer]) -> None:
    pytest.importorskip("pyspiel")
    for last in ("quit", "end"):
        conversation = Conversation(load_game("openspiel:breakthrough"), server)  # type: ignore[arg-type]
        for line in ("name", "isready", last):
            conversation.input.send(line)
        conversation._server.run()
        assert conversation.out.getvalue()
