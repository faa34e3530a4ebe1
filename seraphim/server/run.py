"""The server's port, its connections, and its beginning and end. The only module that imports Uvicorn.

What a connection asks for is `seraphim.server.app`; one that asks for nothing is dealt with here: it is closed after a
while, and earlier where there are many.
"""

import asyncio
import contextlib
import ipaddress
import resource
import socket
from dataclasses import dataclass, replace
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from seraphim.errors import SettingsError
from seraphim.server.app import create_app
from seraphim.server.engine.model_host import Host
from seraphim.server.connections import Network, SilentConnections
from seraphim.server.middleware import LOOPBACK, Access
from seraphim.server.service import ServerLimits

_LARGEST_FRAME = 2**20  # bytes, which end a WebSocket; fewer, but more than requests.MOST_BYTES, get an answer
_GRACE = 3  # seconds that requests under way have when the server ends
_OPEN_FILES = 4096  # that the server may need: connections above all


@dataclass(frozen=True)
class Listening:
    """A server that has its port."""

    server: uvicorn.Server
    sockets: list[socket.socket]
    url: str

    def run(self) -> None:
        """Serve until a signal ends it."""
        with contextlib.suppress(KeyboardInterrupt):  # as Uvicorn passes signals on when it has ended
            self.server.run(self.sockets)


def listen(
    host: Host, address: str, port: int, access: Access | None = None, limits: ServerLimits | None = None
) -> Listening:
    """Take a port, at which `run` serves.

    Args:
        host: of the models.
        address: of this machine, or a name of it.
        port: 0 for any that is free.
        access: who may use the server. At an address of this machine alone, its usual names are added to those named;
            at addresses that others can reach, none means any.
        limits: of the server.

    Raises:
        SettingsError: there is no such address here, its port is taken, or a proxy is no address.
    """
    limits, access = limits or ServerLimits(), access or Access()
    silent = SilentConnections(limits.silent, limits.silent_seconds, _networks(access.proxies))
    try:
        family, _, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server((str(where[0]), port), family=family, backlog=1024)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsError(
            f"cannot serve at {address}, port {port} ({reason}): choose others with --host and --port"
        ) from error
    if is_loopback(address):
        access = replace(access, names=(access.names or frozenset()) | {*LOOPBACK, address.lower()})
    config = uvicorn.Config(
        create_app(host, limits, access),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(access.proxies),
        forwarded_allow_ips=list(access.proxies),
        http=_http_protocol(silent),
        ws=_websocket_protocol(silent),
        ws_max_size=_LARGEST_FRAME,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=_GRACE,
    )
    _allow_open_files()
    shown = f"[{address}]" if ":" in address else address
    return Listening(uvicorn.Server(config), [listener], f"http://{shown}:{listener.getsockname()[1]}/")


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach an address of its own."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def _networks(proxies: tuple[str, ...]) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(proxy) for proxy in proxies)
    except ValueError as error:
        raise SettingsError(f"--proxy must be addresses or networks such as 10.0.0.0/8: {error}") from error


def _allow_open_files() -> None:
    # Many systems begin with 256 or 1,024, and let a program have more.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Reading(asyncio.Protocol):
    """A connection that ends if its client reads too little of an answer."""

    transport: asyncio.Transport
    seconds: float
    """Within which the client must read so much that more can be written."""
    _timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._timer = asyncio.get_running_loop().call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._timer is not None:
            self._timer.cancel()


def _http_protocol(silent: SilentConnections) -> type[asyncio.Protocol]:
    # Uvicorn's, but connections without a request under way are counted.

    class HttpProtocol(_Reading, H11Protocol):
        seconds = silent.seconds

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            silent.add(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            silent.discard(self.transport)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._count()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._count()

        def handle_websocket_upgrade(self, event: Any) -> None:
            silent.discard(self.transport)
            super().handle_websocket_upgrade(event)

        def _count(self) -> None:
            if self.transport.get_protocol() is not self:  # it is a WebSocket now
                return
            if self.cycle is None or self.cycle.response_complete:
                silent.add(self.transport)
            else:
                silent.discard(self.transport)

    return HttpProtocol


def _websocket_protocol(silent: SilentConnections) -> type[asyncio.Protocol]:
    # Uvicorn's, but connections are counted that are to be closed and whose client does not read what it still gets.

    class WebSocketProtocol(_Reading, WebSocketsSansIOProtocol):
        seconds = silent.seconds

        async def send(self, message: Any) -> None:
            await super().send(message)
            if message["type"] == "websocket.http.response.body":  # a refusal, of which Uvicorn would log an error
                self.handshake_complete = True

        def on_task_complete(self, task: asyncio.Task[None]) -> None:
            super().on_task_complete(task)
            if not self.disconnected:
                silent.add(self.transport)

        def connection_lost(self, exc: Exception | None) -> None:
            silent.discard(self.transport)
            super().connection_lost(exc)

    return WebSocketProtocol
