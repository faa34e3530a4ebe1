"""Connections without a request under way, which are closed after a while, and earlier when there are many.

The limits hold in Uvicorn's protocols, of which this module makes variants. All in the thread of one event loop.
"""

import asyncio
import ipaddress
from typing import Any, NamedTuple

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from seraphim.server.quotas import to_address, to_client

_MAX_FRAGMENTS = 1024  # of a message; empty ones would fill the memory without filling a message

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class _Silent(NamedTuple):
    client: str
    timer: asyncio.TimerHandle


class SilentConnections:
    """Closes connections that are silent for too long, and the oldest ones when there are too many."""

    def __init__(self, limit: int, seconds: float, proxies: tuple[Network, ...] = ()) -> None:
        """Allow `limit` silent connections for some seconds each, half of them for one client, all for a proxy."""
        self.seconds = seconds
        self._limit, self._limit_of_client = limit, max(1, limit // 2)
        self._proxies = proxies
        self._all: dict[asyncio.Transport, _Silent] = {}  # the oldest first

    def add(self, connection: asyncio.Transport) -> None:
        """Count a connection as silent from now on, unless it was before."""
        if connection in self._all:
            return
        timer = asyncio.get_running_loop().call_later(self.seconds, self._close, connection)
        address = str((connection.get_extra_info("peername") or [""])[0])
        client = "" if self._is_proxy(address) else to_client(address)
        self._all[connection] = _Silent(client, timer)
        own = [each for each, silent in self._all.items() if silent.client == client]
        if client and len(own) > self._limit_of_client:
            self._close(own[0])
        if len(self._all) > self._limit:
            self._close(next(iter(self._all)))

    def discard(self, connection: asyncio.Transport) -> None:
        """Count a connection no longer, as a request came or it is closed."""
        if connection in self._all:
            self._all.pop(connection).timer.cancel()

    def _close(self, connection: asyncio.Transport) -> None:
        self.discard(connection)
        connection.abort()

    def _is_proxy(self, address: str) -> bool:
        parsed = to_address(address)
        return parsed is not None and any(parsed in network for network in self._proxies)


class _Watched(asyncio.Protocol):
    # Closes a connection whose client reads too little of an answer for more to be written; forgets one that ends.

    transport: asyncio.Transport
    _silent: SilentConnections
    _timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._timer = asyncio.get_running_loop().call_later(self._silent.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._timer is not None:
            self._timer.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._silent.discard(self.transport)
        super().connection_lost(exc)


def http_protocol(silent: SilentConnections) -> type[asyncio.Protocol]:
    """Return Uvicorn's protocol, with a count of connections that have no request under way."""

    class HttpProtocol(_Watched, H11Protocol):
        _silent = silent

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            silent.add(transport)

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


def websocket_protocol(silent: SilentConnections) -> type[asyncio.Protocol]:
    """Return Uvicorn's protocol, with a bound on fragments, and a count of connections that clients are to close."""

    class WebSocketProtocol(_Watched, WebSocketsSansIOProtocol):
        _silent = silent

        async def send(self, message: Any) -> None:
            await super().send(message)
            if message["type"] == "websocket.http.response.body":  # a refusal, which Uvicorn would log as an error
                self.handshake_complete = True

        def handle_cont(self, event: Any) -> None:
            super().handle_cont(event)
            if len(self.frames) > _MAX_FRAGMENTS:
                self.transport.abort()

        def on_task_complete(self, task: asyncio.Task[None]) -> None:
            super().on_task_complete(task)
            if not self.disconnected:
                silent.add(self.transport)

    return WebSocketProtocol
