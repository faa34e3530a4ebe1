"""Searchers over WebSockets: each connection is a client. What they say is `seraphim.server.searcher.client`."""

import asyncio
import contextlib
from collections import deque

from fastapi import WebSocket, WebSocketDisconnect
from fastapi.requests import HTTPConnection

from seraphim.errors import CapacityError
from seraphim.server.middleware import Throttle, client_of
from seraphim.server.searcher.client import Client
from seraphim.server.searcher.messages import Message, to_json
from seraphim.server.service import ServerLimits, Service

TRY_AGAIN_LATER = 1013  # closes a WebSocket because there are too many
IDLE = 4000  # closes one that was not used for long; pages open it again when they need it

_MAX_QUEUED = 32  # answers on their way to a client, above which its next message waits


def service_of(connection: HTTPConnection) -> Service:
    """Return what a request shares with the others."""
    service: Service = connection.app.state.service
    return service


async def serve_client(websocket: WebSocket) -> None:
    """Connect a page to a searcher, until the page goes away or has been idle for long."""
    await websocket.accept()
    service, outbox = service_of(websocket), Outbox()
    try:
        client = Client(service.shared, client_of(websocket.scope), outbox.put)
    except CapacityError as error:
        refusal = {"id": None, "type": "error", "message": str(error)}
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await websocket.send_text(to_json(refusal))
            await websocket.close(TRY_AGAIN_LATER, str(error))
        return
    try:
        async with asyncio.TaskGroup() as tasks:  # an answer that cannot be sent is a bug, and ends the connection
            writing = tasks.create_task(_write(websocket, outbox))
            await _read(websocket, service.limits, client, outbox)
            writing.cancel()
    finally:
        client.close()


async def _read(websocket: WebSocket, limits: ServerLimits, client: Client, outbox: "Outbox") -> None:
    # Passes messages on. The session of an idle client is released, and its connection is closed later.
    throttle, idle_seconds = Throttle(limits.requests.message_rate, limits.requests.message_burst), 0.0
    while True:
        try:
            async with asyncio.timeout(limits.session_idle):
                event = await websocket.receive()
        except TimeoutError:
            idle_seconds += limits.session_idle
            if client.release_if_idle() and idle_seconds >= limits.connection_idle:
                await websocket.close(IDLE, "not used for long")
                return
            continue
        if event["type"] == "websocket.disconnect":
            return
        idle_seconds = 0.0
        while wait := throttle.take():
            await asyncio.sleep(wait)
        await outbox.has_room()
        await client.handle(event.get("text") or "")


async def _write(websocket: WebSocket, outbox: "Outbox") -> None:
    try:
        while True:
            await websocket.send_text(to_json(await outbox.get()))
    except (WebSocketDisconnect, RuntimeError, OSError):  # the client is gone
        pass
    finally:
        outbox.close()


class Outbox:
    """Answers on their way to a client. A newer update of a search replaces one that a slow client has not got yet."""

    def __init__(self) -> None:
        self._queue: deque[Message] = deque()
        self._changed = asyncio.Event()
        self._closed = False

    def put(self, message: Message) -> None:
        """Add an answer."""
        if self._closed:
            return
        last = self._queue[-1] if self._queue else {}
        if last.get("done") is False and last["id"] == message["id"] and message["type"] == "analysis":
            self._queue.pop()
        self._queue.append(message)
        self._changed.set()

    async def get(self) -> Message:
        """Return the next answer when there is one."""
        while not self._queue:
            self._changed.clear()
            await self._changed.wait()
        message = self._queue.popleft()
        self._changed.set()
        return message

    async def has_room(self) -> None:
        """Wait until few answers are on their way."""
        while len(self._queue) > _MAX_QUEUED:
            self._changed.clear()
            await self._changed.wait()

    def close(self) -> None:
        """Drop all answers."""
        self._closed = True
        self._queue.clear()
        self._changed.set()
