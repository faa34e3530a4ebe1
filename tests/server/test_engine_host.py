"""External engines that pages play with: Rhino, an Othello program of Debian, and scripts that misbehave."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from serving_tests import PATIENCE, Client, Running, until

from seraphim.game import load_game
from seraphim.server.searcher import engine_host
from seraphim.server.searcher.engine_host import EngineHost
from seraphim.server.service import ServerLimits
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training.trainer import bootstrap

RHINO = "gtp:gtp-rhino --level=1"

# Answers every request for a move in the same way, whatever the position, and is never in a hurry to end.
SCRIPT = """
import sys, time
for line in sys.stdin:
    command = line.split()[0]
    if command == "genmove" and sys.argv[1] == "silence":
        time.sleep(1000)
    print("=", {"genmove": sys.argv[1], "name": "Fool"}.get(command, ""), end="\\n\\n", flush=True)
"""


@pytest.fixture(autouse=True)
def _games_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    # Where Debian puts games, which root's path leaves out.
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], "/usr/games"]))


@pytest.fixture
def rhino() -> EngineHost:
    if not shutil.which("gtp-rhino"):
        pytest.skip("not installed: apt install grhino")
    return EngineHost(load_game("othello"), RHINO)


@pytest.fixture
def fool(tmp_path: Path) -> Callable[[str], EngineHost]:
    """Return a function that makes programs for tic-tac-toe, which always play the same move."""
    file = tmp_path / "fool.py"
    file.write_text(SCRIPT)
    return lambda move: EngineHost(load_game("tictactoe"), f"gtp:{shlex.join([sys.executable, str(file), move])}")


@pytest.fixture(scope="module")
def othello_root(small_settings: Settings, fresh_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with a model `fresh` of Othello, and a model `other` of tic-tac-toe."""
    root = tmp_path_factory.mktemp("othello")
    shutil.copytree(fresh_root / "models/fresh", root / "models/other", symlinks=True)
    bootstrap(ModelFolder(root, "fresh"), load_game("othello"), replace(small_settings, game="othello"), seed=1)
    return root


def processes(name: str) -> list[int]:
    """The processes that this one has started with a word in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
            command = (path / "cmdline").read_text()
        except OSError:  # it is gone
            continue
        if int(parent) == os.getpid() and name in command:
            found.append(int(path.name))
    return found


def test_each_client_plays_with_a_process_of_its_own(
    serve: Callable[..., Running], othello_root: Path, rhino: EngineHost
) -> None:
    running = serve(root=othello_root, engines=rhino)
    clients = [running.client() for _ in range(2)]
    lines: list[list[int]] = [[], []]
    for client in clients:
        assert client.ask("open", model="fresh", snapshot=None)["program"] == rhino.title == "GTP GRhino"
    assert processes("gtp-rhino") == []
    random = np.random.default_rng(1)
    for _ in range(12):  # moves of each side
        for client, line in zip(clients, lines, strict=True):
            line.append(int(random.choice(client.place(*line)["legal"])))
            legal = client.place(*line)["legal"]
            answer = client.ask("move")
            assert answer["type"] == "move"
            assert answer["action"] in legal
            line.append(answer["action"])
    assert lines[0] != lines[1]
    assert len(processes("gtp-rhino")) == 2
    clients[0].close()
    until(lambda: len(processes("gtp-rhino")) == 1)
    # Back to an earlier position, on another branch.
    legal = clients[1].place(*lines[0][:7])["legal"]
    assert clients[1].ask("move")["action"] in legal
    clients[1].vanish()
    until(lambda: not processes("gtp-rhino"))


def test_a_program_that_dies_is_started_again(
    serve: Callable[..., Running], othello_root: Path, rhino: EngineHost
) -> None:
    client = serve(root=othello_root, engines=rhino).opened()
    legal = client.place(19)["legal"]  # the program, which opens at random, is told what was played
    assert client.ask("move")["action"] in legal
    (process,) = processes("gtp-rhino")
    os.kill(process, signal.SIGKILL)
    assert client.ask("move")["action"] in legal
    (again,) = processes("gtp-rhino")
    assert again != process


def test_a_program_plays_only_its_own_game(
    serve: Callable[..., Running], othello_root: Path, rhino: EngineHost
) -> None:
    client = serve(root=othello_root, engines=rhino).opened()
    client.ask("move")
    assert client.ask("open", model="other", snapshot=None)["program"] is None
    until(lambda: not processes("gtp-rhino"))
    assert "no program that plays tictactoe" in client.ask("move")["message"]


def test_a_program_follows_games_from_the_initial_position(
    serve: Callable[..., Running], fresh_root: Path, fool: Callable[[str], EngineHost]
) -> None:
    client = serve(root=fresh_root, engines=fool("a1")).opened()
    start = client.ask("load", text="X··/·O·/···")["start"]
    assert client.ask("position", start=start, moves=[])["legal"]
    assert client.ask("move")["message"] == ("Fool follows games from the initial position only: begin a new game")
    client.place(0, 3, 1, 4, 2)
    assert "the game is over" in client.ask("move")["message"]


def test_what_a_program_does_wrong_is_said_without_its_command(
    serve: Callable[..., Running], fresh_root: Path, fool: Callable[[str], EngineHost]
) -> None:
    client = serve(root=fresh_root, engines=fool("a1")).opened()
    assert client.ask("move")["action"] == 0
    client.place(0)
    assert client.ask("move")["message"].startswith("Fool plays a1 is not legal here: expected one of b1 c1 ")


def test_no_message_chooses_the_command(
    serve: Callable[..., Running], fresh_root: Path, fool: Callable[[str], EngineHost]
) -> None:
    client = serve(root=fresh_root, engines=fool("a1")).opened()
    for field in ("command", "engine", "program", "name"):
        assert "Extra inputs are not permitted" in client.ask("move", **{field: "gtp:touch me"})["message"]
    assert not processes("fool.py")


def test_a_program_answers_one_question_at_a_time_and_ends_with_its_client(
    serve: Callable[..., Running], fresh_root: Path, fool: Callable[[str], EngineHost]
) -> None:
    client = serve(root=fresh_root, engines=fool("silence")).opened()
    asked = client.send("move")
    until(lambda: processes("fool.py"))
    assert client.ask("move")["message"] == "Fool is still thinking about your last request: wait for its answer"
    assert client.think(20)["readouts"] == 20  # the model is free
    client.ask("open", model="fresh", snapshot=None)
    assert client.answer(asked)["type"] == "error"
    until(lambda: not processes("fool.py"))
    client.send("move")
    until(lambda: processes("fool.py"))
    client.vanish()
    until(lambda: not processes("fool.py"))


def test_the_processes_are_bounded_by_address(
    serve: Callable[..., Running], fresh_root: Path, fool: Callable[[str], EngineHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_host, "MAX_ENGINES", 2)
    running = serve(root=fresh_root, engines=fool("a1"))
    first, second, third = running.opened("127.0.0.1"), running.opened("127.0.0.1"), running.opened("127.0.0.2")
    assert first.ask("move")["action"] == 0
    assert second.ask("move")["message"] == "too many games with Fool from your address (limit 1): try again later"
    assert third.ask("move")["action"] == 0
    first.close()
    until(lambda: second.ask("move")["type"] == "move")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_server_ends_a_program_in_a_wrapper(fresh_root: Path, tmp_path: Path, sign: int) -> None:
    (file := tmp_path / "fool.py").write_text(SCRIPT)
    wrapper = shlex.join(["sh", "-c", f"{shlex.join([sys.executable, str(file), 'silence'])}; true"])
    server = subprocess.Popen(
        [sys.executable, "bin/serve.py", "fresh", "--port=0", f"--engine=gtp:{wrapper}"],
        env={**os.environ, "SERAPHIM_DATA": str(fresh_root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def programs_of_it() -> list[str]:
        listed = subprocess.run(["pgrep", "--full", str(file)], stdout=subprocess.PIPE, text=True).stdout.split()
        return [process for process in listed if int(process) != server.pid]

    try:
        url = re.findall(r"http(://\S+)", server.stdout.readline())[0]
        client = Client(f"ws{url}api/engine")
        client.ask("open", model="fresh", snapshot=None)
        client.place()
        client.send("move")
        until(lambda: len(programs_of_it()) == 2)
        server.send_signal(sign)
        _, errors = server.communicate(timeout=PATIENCE)
        assert (server.returncode, errors) == (0, "")
        until(lambda: not programs_of_it())
    finally:
        server.kill()
        server.communicate()
        for process in programs_of_it():
            os.kill(int(process), signal.SIGKILL)


def test_an_idle_client_gives_its_process_back(
    serve: Callable[..., Running], fresh_root: Path, fool: Callable[[str], EngineHost]
) -> None:
    client: Client = serve(ServerLimits(session_idle=0.2), root=fresh_root, engines=fool("a1")).opened()
    assert client.ask("move")["action"] == 0
    until(lambda: not processes("fool.py"))
    assert client.ask("move")["action"] == 0
