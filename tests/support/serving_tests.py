"""A server in a thread of the tests, and clients of it that come from addresses of their own."""

import contextlib
import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from seraphim.server.middleware import Access
from seraphim.server.run import BoundServer, bind
from seraphim.server.searcher.engine_host import EngineHost
from seraphim.server.searcher.limits import SearchLimits
from seraphim.server.searcher.model_host import ModelHost
from seraphim.server.service import ServerLimits

Message = dict[str, Any]

PATIENCE = 60  # seconds; everything here takes a fraction of one
UPDATE_SECONDS = 0.01


class Running:
    """A server in a thread, and ways to talk to it."""

    def __init__(
        self,
        root: Path,
        limits: ServerLimits | None = None,
        search: SearchLimits | None = None,
        access: Access | None = None,
        max_loaded: int = 4,
        engines: EngineHost | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        self.root = root
        self.host = ModelHost(root, "fresh", search or SearchLimits(update_seconds=UPDATE_SECONDS), max_loaded)
        self.server: BoundServer = bind(self.host, address, 0, access, limits, engines)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        self.context = contextlib.ExitStack()
        self.http = self.context.enter_context(httpx.Client(base_url=self.server.url, timeout=PATIENCE))
        until(lambda: self.server.server.started)

    @property
    def port(self) -> int:
        return int(self.http.base_url.port or 0)

    def close(self) -> None:
        self.context.close()
        self.server.server.should_exit = True
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    def client(self, address: str = "127.0.0.1", **options: Any) -> "Client":
        """A client that comes from this address."""
        client = Client(f"ws://127.0.0.1:{self.port}/api/engine", source_address=(address, 0), **options)
        self.context.callback(client.close)
        return client

    def opened(self, address: str = "127.0.0.1") -> "Client":
        client = self.client(address)
        client.ask("open", model="fresh", snapshot=None)
        return client

    def health(self) -> Message:
        health: Message = self.http.get("api/health").json()
        return health

    def raw(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        """A request with exactly this path."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found


class Client:
    """One page."""

    def __init__(self, url: str, **options: Any) -> None:
        self.context = contextlib.ExitStack()
        self.socket: ClientConnection = self.context.enter_context(connect(url, **options))
        self.last_id = 0

    def send(self, kind: str, **fields: Any) -> int:
        self.last_id += 1
        self.socket.send(json.dumps({"id": self.last_id, "type": kind, **fields}))
        return self.last_id

    def receive(self) -> Message:
        message: Message = json.loads(self.socket.recv(PATIENCE))
        return message

    def ask(self, kind: str, **fields: Any) -> Message:
        """What is answered to a message, other messages left out."""
        identity = self.send(kind, **fields)
        return self.answer(identity)

    def answer(self, identity: int) -> Message:
        while (message := self.receive())["id"] != identity or message.get("done") is False:
            pass
        return message

    def place(self, *moves: int) -> Message:
        return self.ask("position", start=None, moves=list(moves))

    def think(self, readouts: int) -> Message:
        return self.ask("think", readouts=readouts)

    def begin(self, readouts: int = 100_000) -> int:
        """Begin to think, and wait until it thinks."""
        identity = self.send("think", readouts=readouts)
        while (message := self.receive())["id"] != identity or not message["readouts"]:
            pass
        assert message["done"] is False
        return identity

    def vanish(self) -> None:
        """Go away without a word."""
        raw = self.socket.socket
        with contextlib.suppress(OSError):  # the server was faster
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.shutdown(socket.SHUT_RDWR)
        raw.close()

    def receive_until_closed(self) -> None:
        """Receive until the server closes the connection."""
        while True:
            self.socket.recv(PATIENCE)

    def close(self) -> None:
        self.context.close()


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def sentence(text: str) -> str:
    """The one sentence of an HTTP error."""
    content = json.loads(text)
    assert list(content) == ["error"]
    assert isinstance(content["error"], str) and content["error"]
    assert "Traceback" not in content["error"]
    return content["error"]
