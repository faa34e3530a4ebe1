"""Who may ask a server for what, and what strangers can do to its memory and its log."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from serving_tests import PATIENCE, Client, Running, sentence
from websockets.exceptions import ConnectionClosed, ConnectionClosedError
from websockets.frames import Frame, Opcode

import seraphim
from seraphim.server.middleware import Access
from seraphim.server.run import bind
from seraphim.server.searcher.model_host import ModelHost
from seraphim.server.searcher.requests import MAX_BYTES


@pytest.fixture(scope="module")
def served(fresh_root: Path) -> Iterator[Running]:
    running = Running(fresh_root)
    yield running
    running.close()


# ---------------------------------------------------------------- hosts


@pytest.fixture
def open_to_all(fresh_root: Path) -> Iterator[Callable[..., Running]]:
    """A function that starts a server at all addresses of this machine."""
    servers: list[Running] = []

    def start(access: Access | None = None) -> Running:
        servers.append(Running(fresh_root, access=access, address="0.0.0.0"))
        return servers[-1]

    yield start
    for each in servers:
        each.close()


def status(running: Running, host: str) -> int:
    return running.raw("/api/health", Host=host)[0]


def test_a_server_open_to_all_is_asked_by_its_addresses_and_own_names_only(
    open_to_all: Callable[..., Running],
) -> None:
    # A page from elsewhere can let its own name lead here (DNS rebinding), but it is not at an address of ours.
    running = open_to_all()
    name = socket.gethostname()
    for host in ("127.0.0.1", "192.168.1.7:8080", "[2001:db8::7]", "localhost", name, name.upper(), f"{name}.local"):
        assert status(running, host) == 200, host
    for host in ("evil.example", f"{name}.evil.example", "127.0.0.1.evil.example", "2001:db8::7", ""):
        assert status(running, host) == 400, host
    assert "name it with --allowed_hosts" in sentence(running.raw("/api/health", Host="evil.example")[1])


def test_with_allowed_hosts_other_names_of_the_machine_are_refused(open_to_all: Callable[..., Running]) -> None:
    running = open_to_all(Access(allowed_hosts=frozenset({"play.example.org"})))
    assert [status(running, host) for host in ("play.example.org", "127.0.0.1", "localhost")] == [200, 200, 400]


# ---------------------------------------------------------------- methods and facts


def test_head_is_answered_as_get_without_a_body(served: Running) -> None:
    paths = [path for path, methods in served.http.get("api/openapi.json").json()["paths"].items() if "get" in methods]
    assert len(paths) >= 5
    filled = [path.replace("{name}", "fresh").replace("{game_id}", "none") for path in paths]
    for path in (*filled, "/", "/index.html", "/history", "/history.html", "/config.js", "/icon.svg", "/nowhere"):
        answer, head = served.http.get(path), served.http.head(path)
        assert head.status_code == answer.status_code, path
        assert head.headers["content-length"] == answer.headers["content-length"], path
        assert head.content == b""


def test_the_schema_has_the_version_of_the_package(served: Running) -> None:
    assert served.http.get("api/openapi.json").json()["info"]["version"] == seraphim.__version__


# ---------------------------------------------------------------- memory


def test_a_message_that_is_too_long_is_refused_by_its_id(served: Running) -> None:
    client = served.opened()
    client.socket.send(json.dumps({"id": 3, "type": "load", "text": "x" * MAX_BYTES}))
    answer = client.receive()
    assert (answer["id"], answer["type"]) == (3, "error")
    assert f"may have {MAX_BYTES:,} bytes" in answer["message"]
    assert client.place()["type"] == "position"  # the connection stays open


@pytest.mark.parametrize("parts", [1, 2, 16])
def test_the_server_keeps_little_of_a_message_that_is_too_long(served: Running, parts: int) -> None:
    client = served.opened()
    kinds = (Opcode.TEXT, *(parts - 1) * (Opcode.CONT,))
    frames = [Frame(each, 2 * MAX_BYTES // parts * b"x", fin=False).serialize(mask=True) for each in kinds]
    head = 14  # bytes of the frame that is too much; were more under way, its end could reset the connection
    client.socket.socket.sendall(b"".join((*frames[: parts // 2], frames[parts // 2][:head])))
    with pytest.raises(ConnectionClosedError) as closed:
        client.receive_until_closed()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


def test_the_server_does_not_wait_for_the_end_of_a_message_without_end(served: Running) -> None:
    client = served.opened()
    raw = client.socket.socket
    raw.sendall(Frame(Opcode.TEXT, b"", fin=False).serialize(mask=True))
    empty = Frame(Opcode.CONT, b"", fin=False).serialize(mask=True)
    with suppress(OSError):  # the server may be faster than the writes
        for _ in range(20):
            raw.sendall(100 * empty)
    with pytest.raises(ConnectionClosed):
        client.socket.recv(PATIENCE)


# ---------------------------------------------------------------- the log


def test_strangers_cannot_fill_the_log(fresh_root: Path) -> None:
    command = [sys.executable, "bin/serve.py", "fresh", "--port=0"]
    environment = {**os.environ, "SERAPHIM_DATA": str(fresh_root)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as server:
        assert server.stdout is not None
        found = re.search(r"http://127.0.0.1:(\d+)/", server.stdout.readline())
        assert found
        for _ in range(60):
            client = Client(f"ws://127.0.0.1:{found[1]}/api/engine")
            client.socket.socket.sendall(Frame(Opcode.TEXT, b"\xff\xfe").serialize(mask=True))  # no UTF-8
            with pytest.raises(ConnectionClosed):
                client.receive()
            client.close()
            with socket.create_connection(("127.0.0.1", int(found[1])), PATIENCE) as raw:
                raw.sendall(b"no request\r\n\r\n")
                assert raw.recv(100).startswith(b"HTTP/1.1 400")
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=PATIENCE)
    assert 1 <= errors.count("Invalid UTF-8") <= 10
    assert 1 <= errors.count("Invalid HTTP request") <= 10
    assert len(errors.splitlines()) < 200


def test_a_busy_log_says_how_much_it_left_out(
    fresh_root: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = bind(ModelHost(fresh_root, "fresh"), "127.0.0.1", 0)
    moment = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: moment)
    logger = logging.getLogger("uvicorn.error")
    for number in range(40):
        moment += 1000.0 * (number == 39)
        logger.warning("garbage")
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 11
    assert said[-1].endswith("garbage (29 more like this were left out)")
    for listener in bound.sockets:
        listener.close()
