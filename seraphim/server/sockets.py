"""Engines over WebSockets: each connection is a client, for as long as it is used.

What is said over one is `seraphim.server.engine.client`.
"""

import asyncio
import contextlib

from fastapi import WebSocket, WebSocketDisconnect
from fastapi.requests import HTTPConnection

from seraphim.errors import CapacityError
from seraphim.server.engine import messages
from seraphim.server.engine.client import Conversation
from seraphim.server.middleware import Throttle, client_of
from seraphim.server.outbox import Outbox
from seraphim.server.service import ServerLimits, Service

TRY_AGAIN_LATER = 1013  # the code of a WebSocket that is closed because there are too many
IDLE = 4000  # of one that is closed because it was not used for long: pages open it again when they need it


def service_of(connection: HTTPConnection) -> Service:
    """Return what a request shares with the others."""
    service: Service = connection.app.state.service
    return service


async def converse(websocket: WebSocket) -> None:
    """Let a page talk to an engine, until it goes away or was silent for long."""
    await websocket.accept()
    service, outbox = service_of(websocket), Outbox()
    try:
        conversation = Conversation(service.shared, client_of(websocket.scope), outbox.put)
    except CapacityError as error:
        refusal = {"id": None, "type": "error", "message": str(error)}
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await websocket.send_text(messages.to_text(refusal))
            await websocket.close(TRY_AGAIN_LATER, str(error))
        return
    writing = asyncio.create_task(_write(websocket, outbox))
    try:
        await _listen(websocket, service.limits, conversation, outbox)
    finally:
        conversation.close()
        writing.cancel()


async def _listen(websocket: WebSocket, limits: ServerLimits, conversation: Conversation, outbox: Outbox) -> None:
    throttle = Throttle(limits.requests.message_rate, limits.requests.message_burst)
    idle = _IdleWatch(websocket, limits, conversation)
    try:
        while (event := await websocket.receive())["type"] != "websocket.disconnect":
            idle.pause()
            while wait := throttle.take():
                await asyncio.sleep(wait)
            await outbox.has_room()
            await conversation.hear(event.get("text") or "")
            idle.resume()
    finally:
        idle.close()


class _IdleWatch:
    """Lets a conversation rest while nothing is said, and closes the connection after long.

    It looks from time to time, as a timer for each message would cost more than many a message.
    """

    def __init__(self, websocket: WebSocket, limits: ServerLimits, conversation: Conversation) -> None:
        self._websocket, self._limits, self._conversation = websocket, limits, conversation
        self._loop = asyncio.get_running_loop()
        self._is_idle, self._since = True, self._loop.time()
        self._timer = self._loop.call_later(limits.session_idle, self._look)
        self._closing: asyncio.Task[None] | None = None

    def pause(self) -> None:
        """Count the connection as used until `resume`."""
        self._is_idle = False

    def resume(self) -> None:
        """Count the connection as idle from now on."""
        self._is_idle, self._since = True, self._loop.time()

    def close(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        seconds = self._loop.time() - self._since if self._is_idle else 0.0
        if (
            seconds >= self._limits.session_idle
            and self._conversation.rest()
            and seconds >= self._limits.connection_idle
        ):
            self._closing = asyncio.create_task(self._websocket.close(IDLE, "not used for long"))
            return
        self._timer = self._loop.call_later(self._limits.session_idle, self._look)


async def _write(websocket: WebSocket, outbox: Outbox) -> None:
    try:
        while True:
            await websocket.send_text(messages.to_text(await outbox.get()))
    except (WebSocketDisconnect, RuntimeError, OSError):  # the client is gone
        outbox.close()
