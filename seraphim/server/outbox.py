"""Answers on their way to a client, however fast it reads them."""

import asyncio
from collections import deque

from seraphim.server.engine.messages import Message


class Outbox:
    """Answers on their way to a client. News that a slow client has not got yet are replaced by newer ones."""

    def __init__(self, room: int = 32) -> None:
        """Begin; more than so many answers let `has_room` wait."""
        self._room = room
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
        """Return the next answer, when there is one."""
        while not self._queue:
            self._changed.clear()
            await self._changed.wait()
        message = self._queue.popleft()
        self._changed.set()
        return message

    async def has_room(self) -> None:
        """Wait until few answers are on their way."""
        while len(self._queue) > self._room:
            self._changed.clear()
            await self._changed.wait()

    def close(self) -> None:
        """Forget all answers, as the client is gone."""
        self._closed = True
        self._queue.clear()
        self._changed.set()
