"""A server under load, with greedy clients: none takes what others need."""

import asyncio
import contextlib
import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from serving_tests import PATIENCE, Client, Running, sentence, until
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from seraphim.errors import CapacityError, QuotaError, SettingsError
from seraphim.server.middleware import Access, RequestLimits
from seraphim.server.quotas import FairThread, Quota, to_client
from seraphim.server.run import bind
from seraphim.server.searcher.model_host import ModelHost
from seraphim.server.searcher.shared_search import Line
from seraphim.server.service import ServerLimits
from seraphim.server.webfiles import WEB, WebFiles
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME

Serve = Callable[..., Running]

SILENT = 1000
GREEDY = 16


class Silence:
    """Connections of many addresses that say nothing; those that the server closes are opened again."""

    def __init__(self, port: int, addresses: list[str], count: int) -> None:
        self.opened = 0
        self._port, self._addresses, self._count = port, addresses, count
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.ExitStack() as held:
            sockets: list[socket.socket] = []
            while not self._stop.is_set():
                if len(sockets) < self._count:
                    source = (self._addresses[self.opened % len(self._addresses)], 0)
                    sockets.append(socket.create_connection(("127.0.0.1", self._port), PATIENCE, source))
                    held.callback(sockets[-1].close)
                    self.opened += 1
                else:
                    sockets = [each for each in sockets if is_open(each)]
                    self._stop.wait(0.05)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def is_open(connection: socket.socket) -> bool:
    """Whether the other side has not closed a silent connection."""
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


class Greed:
    """Sockets of one address that ask for as much as they can, and for more as soon as they are told something."""

    def __init__(self, port: int, address: str, count: int) -> None:
        self.answers = 0
        self._url = f"ws://127.0.0.1:{port}/api/engine"
        self._address, self._count = address, count
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()

    async def _run(self) -> None:
        tasks = [asyncio.create_task(self._one()) for _ in range(self._count)]
        while not self._stop.is_set():
            await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self) -> None:
        async with connect(
            self._url, local_addr=(self._address, 0), open_timeout=PATIENCE, ping_interval=None
        ) as client:
            for number, (kind, fields) in enumerate(self._requests()):
                await client.send(json.dumps({"id": number, "type": kind, **fields}))
                while json.loads(await client.recv())["id"] != number:
                    pass
                self.answers += 1

    @staticmethod
    def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
        yield "open", {"model": "fresh", "snapshot": None}
        while True:
            yield "position", {"start": None, "moves": [4, 0, 8]}
            yield "solve", {}
            yield "position", {"start": None, "moves": []}
            yield "think", {"readouts": 100_000}

    def close(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def play_a_game(client: Client) -> int:
    """Play a game to its end against the model, and return its plies; any error raises."""
    random, moves = np.random.default_rng(1), list[int]()
    while True:
        position = client.place(*moves)
        assert position["type"] == "position", position
        if position["ended"]:
            return len(moves)
        if len(moves) % 2:
            found = client.think(50)
            assert found["type"] == "analysis", found
            moves.append(found["best"])
        else:
            moves.append(int(random.choice(position["legal"])))


@pytest.mark.parametrize("num_addresses", [pytest.param(1, marks=pytest.mark.slow), 200])
def test_a_player_is_served_whatever_others_do(serve: Serve, num_addresses: int) -> None:
    running = serve()
    silence = Silence(running.port, [f"127.0.1.{1 + number}" for number in range(num_addresses)], SILENT)
    greed = Greed(running.port, "127.0.0.2", GREEDY)
    try:
        until(lambda: silence.opened >= SILENT and greed.answers > GREEDY)
        assert running.health()["status"] == "ok"
        client = running.opened()
        assert 5 <= play_a_game(client) <= 9
        assert client.ask("solve")["message"].startswith("the game is over")
        client.place(0, 1)
        assert "actions" in client.ask("solve")
        client.close()
    finally:
        silence.close()
        greed.close()


# ---------------------------------------------------------------- silent connections


def test_a_connection_that_sends_no_request_is_closed(serve: Serve) -> None:
    running = serve(ServerLimits(silent_seconds=0.2))
    client = running.opened()
    for sent in (b"", b"GET /api/health HTTP/1.1\r\nHost: local", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", running.port), PATIENCE) as raw:
            raw.sendall(sent)
            while raw.recv(100_000):  # an answer, if a request was sent; then the end
                pass
    assert client.place(4)["type"] == "position"  # what was opened before is left alone
    client.close()


def test_a_request_whose_headers_never_end_is_closed(serve: Serve) -> None:
    running = serve(ServerLimits(silent_seconds=0.3))
    with socket.create_connection(("127.0.0.1", running.port), PATIENCE) as raw:
        raw.sendall(b"GET /api/health HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionError):  # which it may notice first when it sends
            while is_open(raw):
                raw.send(b"X-Slow: 1\r\n")
                time.sleep(0.02)


def test_a_long_request_does_not_count_as_silent(serve: Serve) -> None:
    running = serve(ServerLimits(silent_seconds=0.05))
    answer = running.http.post("api/analyze", json={"model": "fresh", "readouts": 20_000})
    assert answer.json()["readouts"] == 20_000
    assert answer.elapsed.total_seconds() > 0.05


def test_the_oldest_silent_connections_are_closed_when_there_are_too_many(serve: Serve) -> None:
    running = serve(ServerLimits(silent=6))

    def connected(address: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", running.port), PATIENCE, (address, 0))

    other = connected("127.0.0.3")
    own = [connected("127.0.0.2") for _ in range(5)]
    until(lambda: [is_open(each) for each in own] == [False, False, True, True, True])  # half of them
    assert is_open(other)
    more = [connected(f"127.0.0.{4 + number}") for number in range(3)]
    until(lambda: not is_open(other))  # the oldest of all
    assert all(is_open(each) for each in (*more, *own[2:]))
    for each in (other, *own, *more):
        each.close()


def test_a_proxy_may_have_all_silent_connections(serve: Serve) -> None:
    running = serve(ServerLimits(silent=6), access=Access(proxies=("127.0.0.8/30",)))
    kept = [
        socket.create_connection(("127.0.0.1", running.port), PATIENCE, (f"127.0.0.{address}", 0))
        for address in (9, 9, 9, 9, 9, 2)
    ]
    assert running.health()["status"] == "ok"
    assert all(is_open(each) for each in kept[1:])
    for each in kept:
        each.close()


def test_a_client_that_does_not_read_its_answers_is_disconnected(serve: Serve) -> None:
    running = serve(ServerLimits(silent_seconds=0.2))
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", running.port))
        sender = threading.Thread(
            target=send_all, args=(raw, b"GET /explorer/explorer.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500)
        )
        sender.start()
        connections = running.server.server.server_state.connections
        until(lambda: connections)
        until(lambda: not connections)
        sender.join(PATIENCE)


def send_all(raw: socket.socket, content: bytes) -> None:
    with contextlib.suppress(OSError):  # the server has closed it
        raw.sendall(content)


# ---------------------------------------------------------------- places


def test_one_address_has_at_most_half_of_the_places() -> None:
    quota = Quota(4, "chairs")
    for _ in range(2):
        quota.take("greedy")
    with pytest.raises(QuotaError, match=r"too many chairs from your address \(limit 2\)"):
        quota.take("greedy")
    with quota.hold("modest"), quota.hold("other"):
        with pytest.raises(CapacityError, match=r"server at capacity \(4 chairs\)") as refused:
            quota.take("late")
        assert not isinstance(refused.value, QuotaError)
    assert quota.taken == 2
    quota.give_back("greedy")
    quota.take("greedy")


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("", "unknown"),
        ("x" * 10_000, "unknown"),
    ],
)
def test_a_client_is_an_address_or_a_network(address: str, client: str) -> None:
    assert to_client(address) == client


def test_calls_of_different_clients_take_turns() -> None:
    order, begun, go_on = list[str](), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    async def ask() -> None:
        thread = FairThread("test")
        calls = [asyncio.create_task(thread.run("greedy", wait))]
        await asyncio.to_thread(begun.wait, PATIENCE)
        calls += [asyncio.create_task(thread.run("greedy", lambda: order.append("greedy"))) for _ in range(5)]
        calls += [asyncio.create_task(thread.run(name, lambda name=name: order.append(name))) for name in ("a", "b")]
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*calls)
        thread.close()

    asyncio.run(ask())
    assert sorted(order[:3]) == ["a", "b", "greedy"]
    assert order[3:] == ["greedy"] * 4


def test_one_address_has_at_most_half_of_the_sessions(serve: Serve) -> None:
    running = serve(ServerLimits(sessions=4))
    own = [running.opened("127.0.0.2") for _ in range(2)]
    refused = running.client("127.0.0.2")
    assert "too many sessions from your address (limit 2)" in refused.receive()["message"]
    with pytest.raises(ConnectionClosed) as closed:
        refused.receive()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1013
    with httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.2"), timeout=PATIENCE) as http:
        answer = http.post(f"{running.server.url}api/analyze", json={"model": "fresh"})
    assert answer.status_code == 429
    assert "too many sessions from your address (limit 2)" in sentence(answer.text)
    other = running.opened("127.0.0.3")
    assert other.place(4)["type"] == "position"
    for client in (*own, other):
        client.close()


def test_one_address_has_at_most_half_of_the_connections(serve: Serve, capfd: pytest.CaptureFixture[str]) -> None:
    running = serve(ServerLimits(requests=RequestLimits(under_way=4)))
    own = [running.opened("127.0.0.2") for _ in range(2)]
    with pytest.raises(InvalidStatus) as refused:
        running.client("127.0.0.2")
    assert refused.value.response.status_code == 429
    assert not capfd.readouterr().err  # or whoever asks too often would fill the log
    other = running.opened("127.0.0.3")
    assert running.health()["sessions"] == 3
    for client in (*own, other):
        client.close()


# ---------------------------------------------------------------- idle clients


def test_an_idle_client_releases_its_session_and_continues_later(serve: Serve) -> None:
    running = serve(ServerLimits(sessions=2, session_idle=1.0))
    client = running.opened()
    client.place(4)
    first = client.think(60)
    (loaded,) = running.host.loaded
    until(lambda: running.health()["sessions"] == 0 and loaded.searcher.num_sessions == 0)
    others = [running.opened("127.0.0.2")]
    assert client.think(60)["candidates"] == first["candidates"]  # of the same position, without another word
    assert running.health()["sessions"] >= 1
    for each in (client, *others):
        each.close()


def test_a_searching_client_is_not_idle(serve: Serve) -> None:
    running = serve(ServerLimits(session_idle=0.02))
    client = running.opened()
    client.place()
    assert client.think(20_000)["readouts"] == 20_000
    client.close()


def test_a_message_without_a_free_session_is_answered_and_can_be_repeated(serve: Serve) -> None:
    running = serve(ServerLimits(sessions=2, session_idle=0.5))
    client = running.opened()
    client.place(4)
    until(lambda: running.health()["sessions"] == 0)
    others = [running.opened(f"127.0.0.{number}") for number in (2, 3)]
    assert "server at capacity (2 sessions)" in client.think(10)["message"]
    for each in others:
        each.close()
    until(lambda: running.health()["sessions"] == 0)
    assert client.think(10)["readouts"] == 10
    client.close()


def test_a_connection_idle_for_long_is_closed(serve: Serve) -> None:
    running = serve(ServerLimits(session_idle=0.02, connection_idle=0.1))
    client = running.opened()
    with pytest.raises(ConnectionClosed) as closed:
        client.receive_until_closed()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 4000
    until(lambda: running.health()["sessions"] == 0)


# ---------------------------------------------------------------- models


@pytest.fixture
def many(fresh_root: Path, tmp_path: Path) -> ModelFolder:
    """Return the folder of a model with four snapshots older than the champion, beside a model `second`."""
    shutil.copytree(fresh_root, tmp_path / "data", symlinks=True)
    folder = ModelFolder(tmp_path / "data", "fresh")
    for number in range(4):
        shutil.copytree(folder.champion().path, folder.path / f"0000000{number}-20200101T00000{number}Z")
    shutil.copytree(folder.path, tmp_path / "data" / "models" / "second", symlinks=True)
    return folder


def names_of(folder: ModelFolder) -> list[str]:
    champion = folder.champion().name
    return [snapshot.name for snapshot in folder.snapshots() if snapshot.name != champion]


def test_old_snapshots_in_use_do_not_block_a_champion(serve: Serve, many: ModelFolder) -> None:
    running = serve(root=many.path.parents[1], max_loaded=4)
    greedy = [running.client("127.0.0.2") for _ in range(4)]
    answers = [
        client.ask("open", model="fresh", snapshot=name) for client, name in zip(greedy, names_of(many), strict=True)
    ]
    assert [answer["type"] for answer in answers] == ["opened", "opened", "opened", "error"]
    assert "server at capacity" in answers[3]["message"]
    for model in ("fresh", "second"):
        player = running.client()
        assert player.ask("open", model=model, snapshot=None)["type"] == "opened"
        assert play_a_game(player) >= 5
    assert greedy[2].place(4)["type"] == "position"
    assert greedy[2].think(10)["readouts"] == 10
    # Whose snapshot was put away opens it again, where there is room.
    assert greedy[0].place(4)["type"] == "position"
    assert "server at capacity" in greedy[0].think(10)["message"]
    greedy[2].close()
    until(lambda: greedy[0].think(10).get("readouts") == 10)


def test_unloading_a_snapshot_ends_its_searches(many: ModelFolder) -> None:
    host = ModelHost(many.path.parents[1], max_loaded=1)
    first = host.load("fresh", names_of(many)[0]).result(PATIENCE)
    session = first.searcher.attach()
    updates, last = list[Any](), threading.Event()

    def receive(update: Any, is_last: bool) -> None:
        updates.append(update)
        if is_last:
            last.set()

    first.searcher.search(session, Line(None, (), GAME.initial(1)[0]), 10**6, receive)
    champion = host.load("fresh").result(PATIENCE)
    assert last.wait(PATIENCE)
    assert updates[-1].readouts < 10**6
    assert not first.searcher.is_open
    assert host.loaded == [champion]
    champion.searcher.attach()
    with pytest.raises(CapacityError, match="1 models in use"):
        host.load("fresh", names_of(many)[0])
    host.close()


def test_a_server_whose_models_are_all_in_use_is_unavailable(serve: Serve, many: ModelFolder) -> None:
    running = serve(root=many.path.parents[1], max_loaded=1)
    client = running.opened()
    refused = running.http.post("api/analyze", json={"model": "second"})
    assert refused.status_code == 503
    assert sentence(refused.text) == "server at capacity (1 models in use): try again later"
    client.close()


def test_an_idle_page_does_not_keep_a_model_loaded(serve: Serve, many: ModelFolder) -> None:
    running = serve(ServerLimits(session_idle=0.1), root=many.path.parents[1], max_loaded=1)
    forgotten = running.opened()
    forgotten.place(4)
    other = running.client()
    assert other.ask("open", model="second", snapshot=None)["type"] in ("opened", "error")
    until(lambda: other.ask("open", model="second", snapshot=None)["type"] == "opened")
    assert [hosted.model for hosted in running.host.loaded] == ["second"]
    until(lambda: forgotten.think(10).get("readouts") == 10)
    for client in (forgotten, other):
        client.close()


# ---------------------------------------------------------------- proxies


def test_clients_behind_a_proxy_are_counted_by_their_forwarded_address(serve: Serve) -> None:
    limits = ServerLimits(requests=RequestLimits(rate=0.001, burst=2))
    running = serve(limits, access=Access(proxies=("127.0.0.9",)))

    def statuses(source: str, forwarded: str) -> list[int]:
        with httpx.Client(transport=httpx.HTTPTransport(local_address=source), timeout=PATIENCE) as http:
            url = f"{running.server.url}api/health"
            return [http.get(url, headers={"x-forwarded-for": forwarded}).status_code for _ in range(3)]

    assert statuses("127.0.0.9", "192.0.2.1") == [200, 200, 429]
    assert statuses("127.0.0.9", "192.0.2.2") == [200, 200, 429]
    assert statuses("127.0.0.9", "192.0.2.1") == [429] * 3
    assert statuses("127.0.0.9", "192.0.2.3, 192.0.2.2") == [429] * 3  # the last one is who the proxy saw
    assert statuses("127.0.0.5", "192.0.2.4") == [200, 200, 429]  # no proxy: its word counts for nothing
    assert statuses("127.0.0.5", "192.0.2.5") == [429] * 3


@pytest.mark.parametrize("proxy", ["example.org", "10.0.0.1/8", "*", ""])
def test_a_proxy_must_be_an_address(fresh_root: Path, proxy: str) -> None:
    with pytest.raises(SettingsError, match="--proxy must be addresses or networks"):
        bind(ModelHost(fresh_root, "fresh"), "127.0.0.1", 0, Access(proxies=(proxy,)))


# ---------------------------------------------------------------- files of pages


def test_files_of_pages_are_not_counted_as_requests(serve: Serve) -> None:
    running = serve(ServerLimits(requests=RequestLimits(rate=0.001, burst=2)))
    for _ in range(5):
        for path in ("explorer/explorer.js", "static/shared/base.css", "config.js", "nowhere.js"):
            assert running.http.get(path).status_code == (404 if path == "nowhere.js" else 200)
    assert [running.http.get("api/health").status_code for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize("path", ["", "index.html", "history", "history.html"])
def test_pages_are_counted_as_requests(serve: Serve, path: str) -> None:
    running = serve(ServerLimits(requests=RequestLimits(rate=0.001, burst=2)))
    assert [running.http.get(path).status_code for _ in range(3)] == [200, 200, 429]


def test_files_are_cached_by_version(serve: Serve) -> None:
    running = serve()
    for page in ("", "history", "index.html", "history.html"):
        answer = running.http.get(page)
        assert answer.headers["cache-control"] == "no-cache"
        found = re.findall(r'(?:src|href)="([^"]+\.(?:js|css|svg))"', answer.text)
        assert len(found) >= 6
        for path in found:
            file = running.http.get(path)
            assert file.status_code == 200
            kept = path != "config.js"
            assert ("immutable" in file.headers["cache-control"]) == kept
            assert file.headers.get_list("cache-control") == [file.headers["cache-control"]]
    name = re.sub("^static/[0-9a-f]{16}/", "", path)
    for other in (name, f"static/{name}", f"static/{'0' * 16}/{name}"):
        file = running.http.get(other)
        assert (file.status_code, file.headers["cache-control"]) == (200, "no-cache")
    assert running.http.get(f"static/{'0' * 16}/nowhere.js").status_code == 404


def test_a_changed_file_changes_the_version(tmp_path: Path) -> None:
    folder = tmp_path / "web"
    shutil.copytree(WEB, folder)
    files = WebFiles(folder)
    before = files.page("index.html")
    version = files.version
    assert files.page("index.html") == before
    changed = folder / "engine" / "search.js"
    changed.write_text(changed.read_text().replace("0", "1", 1))  # as long as before
    assert files.page("index.html") != before
    assert files.split(f"{version}/shared/base.css") == ("shared/base.css", False)
    assert files.split(f"{files.version}/shared/base.css") == ("shared/base.css", True)
