"""Engines of others as players: real programs of Debian, and scripts that misbehave."""

import os
import shlex
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seraphim.errors import GameError, NotInstalledError, PlayerError, SettingsError
from seraphim.evaluation.match import make_openings, play_match
from seraphim.game import Game, load_game
from seraphim.players.choose import Choose, random_player
from seraphim.players.external import gtp, player, uci
from seraphim.players.external.gtp import gtp_player
from seraphim.players.external.move_names import action_named, uci_names, vertex_names
from seraphim.players.external.process import EngineLostError
from seraphim.players.external.uci import uci_player
from seraphim.players.roster import Roster

# By game: the player's name, the program, and its Debian package.
PROGRAMS = {
    "othello": ("gtp:gtp-rhino --level=1", "grhino"),
    "openspiel:go(board_size=9,komi=7.5)": (
        "gtp:gnugo --mode gtp --level 1 --komi 7.5 --chinese-rules --capture-all-dead --seed 1",
        "gnugo",
    ),
    "openspiel:breakthrough": ("uci:fairy-stockfish go depth 2", "fairy-stockfish"),
    "openspiel:chess": ("uci:fairy-stockfish go depth 2", "fairy-stockfish"),
}
OTHELLO = load_game("othello")

# Plays the first legal move, or misbehaves; argument: how, and a file that remembers over starts.
SCRIPT = """
import sys, pathlib
how, memory = sys.argv[1], pathlib.Path(sys.argv[2])
starts = int(memory.read_text()) if memory.exists() else 0
memory.write_text(str(starts + 1))
sys.path[:0] = {path!r}
import numpy as np
from othello import GAME
state, asked = GAME.initial(1), 0
for line in sys.stdin:
    words = line.split()
    answer = ""
    if words[0] == "clear_board":
        state = GAME.initial(1)
    elif words[0] == "play":
        state = GAME.step(state, np.array([GAME.parse_action(words[2])]))
    elif words[0] == "boardsize" and how == "small":
        print("? unacceptable size\\n", flush=True)
        continue
    elif words[0] == "genmove":
        asked += 1
        if how == "dying" or how == "mortal" and starts < 2 and asked == 4:
            print("out of ideas", file=sys.stderr)
            sys.exit(3)
        if how == "silent":
            continue
        if how == "stray" and starts == 0:
            print("low on memory")
        answer = {{"illegal": "a1", "resigning": "resign", "mistaken": "" if starts else "a1"}}.get(how, "")
        if not answer:
            action = int(GAME.legal(state)[0].argmax())
            answer = GAME.action_label(action)
            state = GAME.step(state, np.array([action]))
    print(f"= {{answer}}\\n", flush=True)
"""


@pytest.fixture(autouse=True)
def _games_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    # Where Debian puts games, which root's path leaves out.
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], "/usr/games"]))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "engine.py"
    file.write_text(SCRIPT.format(path=sys.path))
    return file


def command(script: Path, how: str) -> str:
    return shlex.join([sys.executable, str(script), how, str(script.with_suffix(".txt"))])


def installed(name: str) -> Choose:
    """The player of a game; the test is skipped where its program is not installed."""
    player, package = PROGRAMS[name]
    kind, _, text = player.partition(":")
    if not shutil.which(text.split()[0]):
        pytest.skip(f"not installed: apt install {package}")
    roster = Roster(Path(), name, games=2)
    (entrant,) = roster.entrants([player])
    assert kind in ("gtp", "uci")
    return entrant.load()


def first_legal(states: np.ndarray) -> np.ndarray:
    return OTHELLO.legal(states).argmax(axis=1)


# ---------------------------------------------------------------- programs of Debian


@pytest.mark.parametrize(
    ("name", "openings"),
    [("othello", 1), ("openspiel:chess", 1), *(pytest.param(name, 10, marks=pytest.mark.slow) for name in PROGRAMS)],
)
def test_programs_play_games_to_the_end(name: str, openings: int) -> None:
    game = load_game(name)
    player = installed(name)
    result = play_match(game, player, random_player(game), make_openings(game, openings, 4))
    assert result.games == 2 * openings
    assert result.score > 0.75  # against random play
    assert not result.cut_off


# ---------------------------------------------------------------- names of moves


@pytest.mark.parametrize("name", ["openspiel:chess", "openspiel:breakthrough"])
def test_names_of_uci_stand_for_the_moves(name: str) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game, random = load_game(name), np.random.default_rng(0)
    name_of, (state,), promoted = uci_names(game), game.initial(1), 0
    theirs = pyspiel.load_game(name.removeprefix("openspiel:")).new_initial_state()
    for _ in range(300):
        legal = np.flatnonzero(game.legal(state[None])[0]).tolist()
        if not legal:
            break
        names = [name_of(state, action) for action in legal]
        assert len(set(names)) == len(names)
        assert [action_named(game, name_of, state, each) for each in names] == legal
        if name == "openspiel:chess":
            assert [theirs.parse_move_to_action(each) for each in names] == legal
            promoted += any(len(each) == 5 for each in names)
        action = int(random.choice(legal))
        theirs.apply_action(action)
        (state,) = game.step(state[None], np.array([action]))
    assert name != "openspiel:chess" or promoted


def test_breakthrough_is_turned_for_uci() -> None:
    game = load_game("openspiel:breakthrough")
    (state,) = game.initial(1)
    assert uci_names(game)(state, int(game.legal(state[None])[0].argmax())) == "a2a3"  # a7a6 in OpenSpiel


def test_uci_plays_only_games_that_have_names_for_it() -> None:
    with pytest.raises(PlayerError, match="UCI plays games such as openspiel:chess .*, not othello"):
        uci_player(OTHELLO, "fairy-stockfish")


def test_gtp_plays_no_games_of_chance() -> None:
    with pytest.raises(GameError, match="pig is a game of chance, which is not played here"):
        gtp_player(load_game("pig"), "gnugo --mode gtp")


def test_a_name_that_is_not_legal_is_refused() -> None:
    (state,) = OTHELLO.initial(1)
    assert action_named(OTHELLO, vertex_names(OTHELLO), state, "D3") == OTHELLO.parse_action("d3")
    with pytest.raises(GameError, match="a1 is not legal here: expected one of d3 c4 f5 e6"):
        action_named(OTHELLO, vertex_names(OTHELLO), state, "a1")


# ---------------------------------------------------------------- programs that misbehave


def test_a_program_plays_what_it_would_play_here(script: Path) -> None:
    openings = make_openings(OTHELLO, 2, 6)
    result = play_match(OTHELLO, gtp_player(OTHELLO, command(script, "well")), random_player(OTHELLO), openings)
    assert result == play_match(OTHELLO, first_legal, random_player(OTHELLO), openings)


def test_a_program_that_dies_is_started_again(script: Path) -> None:
    openings = make_openings(OTHELLO, 1, 6)
    result = play_match(OTHELLO, gtp_player(OTHELLO, command(script, "mortal")), random_player(OTHELLO), openings)
    assert result == play_match(OTHELLO, first_legal, random_player(OTHELLO), openings)
    assert int(script.with_suffix(".txt").read_text()) > 2


@pytest.mark.parametrize(
    ("how", "message", "starts"),
    [
        ("dying", "ended with status 3: out of ideas", 2),
        ("silent", "did not answer in time", 1),  # who waits once more waits twice as long as was promised
        ("illegal", "plays a1 is not legal here: expected one of d3 c4 f5 e6", 1),
        ("resigning", "plays resign is not legal here", 1),
    ],
)
def test_what_a_program_does_wrong_is_said(
    script: Path, how: str, message: str, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = gtp_player(OTHELLO, command(script, how))
    monkeypatch.setattr(gtp, "THINKING_SECONDS", 3.0 if how == "silent" else 60.0)
    with pytest.raises(GameError, match=message):
        player.choose([()])
    assert int(script.with_suffix(".txt").read_text()) == starts


@pytest.mark.parametrize(
    ("how", "message"), [("stray", "answered 'low on memory': expected = or ?"), ("mistaken", "plays a1 is not legal")]
)
def test_a_program_that_is_out_of_step_is_not_asked_again(script: Path, how: str, message: str) -> None:
    player, moves = gtp_player(OTHELLO, command(script, how)), list[int]()
    with pytest.raises(GameError, match=message):
        player.choose([moves])
    state = OTHELLO.initial(1)
    for _ in range(4):
        moves.append(int(first_legal(state)[0]))
        state = OTHELLO.step(state, np.array(moves[-1:]))
        assert player.choose([moves]) == first_legal(state)
    assert int(script.with_suffix(".txt").read_text()) == 2


def test_a_board_that_a_program_does_not_have_is_refused(script: Path) -> None:
    with pytest.raises(PlayerError, match="does not play on a board of 8x8: unacceptable size"):
        gtp_player(OTHELLO, command(script, "small"))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (
            "no-such-program --x",
            NotInstalledError,
            "there is no program 'no-such-program': install it, or give its path",
        ),
        ("'", SettingsError, "is not a command: No closing quotation"),
        (" ", SettingsError, "expected the command of a program"),
        ("cat", GameError, "does it speak GTP?"),
        ("false", GameError, "ended with status 1"),
    ],
)
def test_what_is_no_engine_is_refused(wrong: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gtp_player(OTHELLO, wrong)


def test_a_silent_program_is_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    for protocol in (gtp, uci):
        monkeypatch.setattr(protocol, "ANSWER_SECONDS", 0.5)
    with pytest.raises(GameError, match="gtp:sleep 600 did not answer in time"):
        gtp_player(OTHELLO, "sleep 600")
    with pytest.raises(GameError, match="uci:cat did not answer in time"):
        uci_player(load_game("openspiel:chess"), "cat")


def test_a_move_may_take_longer_than_another_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("fairy-stockfish"):
        pytest.skip("not installed: apt install fairy-stockfish")
    player = uci_player(load_game("openspiel:chess"), "fairy-stockfish go movetime 1000")
    monkeypatch.setattr(uci, "ANSWER_SECONDS", 0.1)
    assert player.choose([()]).shape == (1,)


@pytest.mark.parametrize(
    "limit", ["movtime 100", "depth", "depth 0", "depth 5 nodes", "depth -5", "depth 5 6", "infinite"]
)
def test_a_limit_that_an_engine_would_ignore_is_refused(limit: str) -> None:
    with pytest.raises(SettingsError, match="expected depth, nodes or movetime and a number after go"):
        uci_player(load_game("openspiel:chess"), f"cat go {limit}")


# Accepts everything, as UCI engines do; arguments: what it says of its variants.
UCI_SCRIPT = """
import sys
for line in sys.stdin:
    command = line.split()[0]
    if command == "uci":
        print("id name Only", *sys.argv[1:], "uciok", sep="\\n", flush=True)
    elif command == "isready":
        print("readyok", flush=True)
"""


@pytest.mark.parametrize(
    ("game", "options", "plays"),
    [
        ("openspiel:chess", [], None),
        (
            "openspiel:chess",
            ["option name uci_variant type combo default breakthrough var breakthrough"],
            "breakthrough",
        ),
        ("openspiel:breakthrough", [], "chess"),
        ("openspiel:breakthrough", ["option name Style type combo default breakthrough var breakthrough"], "chess"),
        (
            "openspiel:breakthrough",
            ["option name UCI_Variant type combo default chess var chess var atomic"],
            "chess atomic",
        ),
        (
            "openspiel:breakthrough",
            ["option name UCI_Variant type combo default chess var chess var breakthrough"],
            None,
        ),
    ],
)
def test_a_uci_engine_must_offer_the_variant(tmp_path: Path, game: str, options: list[str], plays: str | None) -> None:
    (file := tmp_path / "engine.py").write_text(UCI_SCRIPT)
    engine = shlex.join([sys.executable, str(file), *options])
    if plays is None:
        assert uci_player(load_game(game), engine).title == "Only"
    else:
        wanted = game.removeprefix("openspiel:")
        with pytest.raises(PlayerError, match=f"plays {plays}, not {wanted}: expected an engine whose option UCI_V"):
            uci_player(load_game(game), engine)


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_one_program_stops_the_others(failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "count_cores", lambda: 2)
    begun, failed, asked = threading.Event(), threading.Event(), []

    class Stub:
        title = "stub"
        moves: tuple[int, ...] = ()

        def __init__(self) -> None:
            self.fails = len(engines) == failing
            engines.append(self)

        def choose(self, moves: tuple[int, ...]) -> int:
            if self.fails:
                begun.wait()
                failed.set()
                raise GameError("it plays nonsense")
            begun.set()
            failed.wait()
            time.sleep(0.01)
            asked.append(moves)
            return 0

        def close(self) -> None:
            pass

    engines: list[Stub] = []
    with pytest.raises(GameError, match="nonsense"):
        player.EnginePlayer("stub", Stub).choose([(row,) for row in range(1000)])
    assert len(asked) < 400  # of 999


class Follower:
    """An engine that follows a game, and meets the other one in each move."""

    title = "follower"

    def __init__(self, *moves: int) -> None:
        self.moves, self.asked = moves, list[player.Moves]()
        self.meeting: threading.Barrier

    def choose(self, moves: player.Moves) -> int:
        self.asked.append(moves)
        self.meeting.wait(60)
        return 0

    def close(self) -> None:
        pass


def test_programs_go_on_with_the_games_that_they_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "count_cores", lambda: 2)
    both = [Follower(2, 3), Follower(1)]
    both[0].meeting = both[1].meeting = threading.Barrier(2)
    engines = iter(both)
    player.EnginePlayer("followers", lambda: next(engines)).choose([(0, 9), (1, 9), (2, 9), (2, 3, 9)])
    assert [engine.asked[0] for engine in both] == [(2, 3, 9), (1, 9)]
    assert {engine.asked[1] for engine in both} == {(0, 9), (2, 9)}


def test_a_program_keeps_its_game_when_others_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "count_cores", lambda: 2)
    both = [Follower(), Follower(1)]
    both[0].meeting = both[1].meeting = threading.Barrier(1)
    engines = iter(both)
    followers = player.EnginePlayer("followers", lambda: next(engines))
    followers.choose([(0,), (0,)])
    for engine in both:
        engine.asked.clear()
    followers.choose([(1, 9)])
    assert [engine.asked for engine in both] == [[], [(1, 9)]]


def test_a_program_that_thinks_long_keeps_no_games_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "count_cores", lambda: 2)
    others = threading.Semaphore(0)

    class Stub:
        title = "stub"
        moves: player.Moves = ()

        def choose(self, moves: player.Moves) -> int:
            if moves == (0,):
                assert all(others.acquire(timeout=60) for _ in range(9))
            else:
                others.release()
            return moves[0]

        def close(self) -> None:
            pass

    actions = player.EnginePlayer("stub", Stub).choose([(row,) for row in range(10)])
    np.testing.assert_array_equal(actions, np.arange(10))


def test_a_player_that_follows_games_needs_them(script: Path) -> None:
    game: Game = OTHELLO
    with pytest.raises(PlayerError, match="needs the moves that led to a position"):
        gtp_player(game, command(script, "well"))(game.initial(1))


class Thinking:
    """An engine that thinks until it is closed."""

    title, moves = "thinking", ()

    def __init__(self) -> None:
        self.is_asked, self.is_closed = threading.Event(), threading.Event()

    def choose(self, _: player.Moves) -> int:
        self.is_asked.set()
        assert self.is_closed.wait(60)
        raise EngineLostError("ended")

    def close(self) -> None:
        self.is_closed.set()


def test_ctrl_c_ends_the_programs_while_games_are_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "count_cores", lambda: 2)
    first = Thinking()
    engines = iter([first, Thinking()])

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **options: Any) -> Any:
            if first.is_asked.is_set():
                raise KeyboardInterrupt
            future = super().submit(*arguments, **options)
            assert first.is_asked.wait(60)
            return future

    monkeypatch.setattr(player, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        player.EnginePlayer("thinking", lambda: next(engines)).choose([[], []])
    assert first.is_closed.is_set()  # nobody waits for its answer
