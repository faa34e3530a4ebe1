"""Seraphim as an engine, by GTP and UCI: commands in a process of its own and in this one, and the clock."""

import io
import os
import queue
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from reference import ArbitraryNetwork

from seraphim.errors import SettingsError
from seraphim.evaluation.engines.gtp import GtpEngine, gtp_player
from seraphim.evaluation.match import make_openings, play_match
from seraphim.evaluation.players import random_player
from seraphim.game import Game, load_game
from seraphim.options import SearchOptions
from seraphim.play.engine.clock import FEWEST_MOVES, Clock
from seraphim.play.engine.gtp import GtpServer
from seraphim.play.engine.thinker import Thinker
from seraphim.play.engine.uci import UciServer
from seraphim.play.opponent import Opponent, PlayOptions

GTP_COMMANDS = {
    *("protocol_version", "name", "version", "known_command", "list_commands", "quit", "boardsize", "clear_board"),
    *("komi", "play", "genmove", "reg_genmove", "undo", "showboard", "time_settings", "time_left"),
    *("analyze", "lz-analyze", "final_score", "list_games", "set_game"),
}


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
        return line

    def send(self, line: str) -> None:
        self._lines.put(line)


class Conversation:
    """A server that reads commands in this process."""

    def __init__(self, game: Game, server: type[GtpServer] | type[UciServer], readouts: int = 20) -> None:
        search = SearchOptions(readouts=readouts, cache_megabytes=0)
        opponent = Opponent(game, ArbitraryNetwork(game), search, PlayOptions(), np.random.default_rng(0))
        self.input, self.out = Input(), io.StringIO()
        self.thinker = Thinker(game, opponent, self.input)  # type: ignore[arg-type]  # an iterable is enough
        self._server = server(self.thinker, self.out)

    def ask(self, command: str) -> str:
        """The answer to a command."""
        before = self.out.tell()
        self._server.answer(command)
        return self.out.getvalue()[before:]

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
        ("boardsize", "syntax error: expected 1 number"),
        ("boardsize x", "syntax error: expected 1 number"),
        ("time_settings 1 2", "syntax error: expected 3 numbers"),
        ("time_left b 1", "syntax error: expected 2 numbers"),
        ("komi nan", "syntax error: expected 1 number"),
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


def test_an_analysis_goes_on_until_a_command_comes(tictactoe: Conversation) -> None:
    tictactoe.ask("play b b2")
    tictactoe.input.send("")
    answer = tictactoe.ask("lz-analyze w 1")
    first, *lines = answer.split("\n")
    assert first == "="
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
    for command in ("genmove b", "time_settings 0 0.2 1", "genmove w", "time_settings 1 0 0", "genmove b"):
        assert tictactoe.ask(command)[0] == "="
    for command in (
        "time_left w 0.5 0",
        "genmove w",
        "time_left b 0.6 2",
        "genmove b",
        "time_settings 0 1 0",
        "genmove w",
    ):
        assert tictactoe.ask(command)[0] == "="
    budgets = [seconds for _, seconds in seen]
    assert budgets[0] is None
    assert budgets[1] == Clock(0, 0.2, 1).budget(1)
    assert budgets[2] == Clock(1).budget(1.75)
    assert budgets[3] == Clock(0.5).budget(1.5)
    assert budgets[4] == Clock(0, 0.6, 2).budget(1)
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
    assert answer[-1] == "uciok"
    assert any("UCI_Variant" in line for line in answer)
    assert breakthrough.ask("isready") == "readyok\n"
    assert breakthrough.ask("setoption name Hash value 1") == breakthrough.ask("dance") == ""


@pytest.mark.parametrize("limit", ["", " nodes 10", " movetime 200", " wtime 500 btime 400 winc 10 binc 10"])
def test_uci_chooses_a_legal_move(breakthrough: Conversation, limit: str) -> None:
    game = breakthrough.thinker.game
    breakthrough.ask("ucinewgame")
    breakthrough.ask("position startpos moves a2a3")
    word, move = breakthrough.ask(f"go{limit}").split()
    assert word == "bestmove"
    tree = breakthrough.thinker.tree
    assert len(tree.actions()) == 1
    legal = [game.uci_in(tree.node.state, action) for action in tree.legal()]  # type: ignore[attr-defined]
    assert move in legal
    breakthrough.ask(f"position startpos moves a2a3 {move}")
    assert len(tree.actions()) == 2


def test_uci_searches_until_it_is_stopped(breakthrough: Conversation) -> None:
    breakthrough.ask("position startpos")
    breakthrough.input.send("stop")
    lines = breakthrough.ask("go infinite").splitlines()
    assert lines[-1].startswith("bestmove ")
    assert lines[-2].startswith("info nodes ")
    assert lines[-1].split()[1] == lines[-2].split(" pv ")[1].split()[0]


def test_uci_says_what_it_cannot_do(breakthrough: Conversation) -> None:
    assert breakthrough.ask("position fen 8/8 w").startswith("info string only positions from the start")
    assert breakthrough.ask("position startpos moves a2a5").startswith("info string a2a5 is not legal here")
    with pytest.raises(SettingsError, match="UCI plays games such as"):
        Conversation(load_game("tictactoe"), UciServer)


@pytest.mark.parametrize("server", [GtpServer, UciServer])
def test_a_conversation_ends(server: Callable[..., GtpServer | UciServer]) -> None:
    pytest.importorskip("pyspiel")
    for last in ("quit", "end"):
        conversation = Conversation(load_game("openspiel:breakthrough"), server)  # type: ignore[arg-type]
        for line in ("name", "isready", last):
            conversation.input.send(line)
        conversation._server.run()
        assert conversation.out.getvalue()
