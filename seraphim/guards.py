"""What stands before the server's pages: bounds on requests, and headers that keep browsers to them. An ASGI layer.

Refuses, with a sentence and before anything else sees them: requests that name another host than the server has (by
which a page from elsewhere could pass for one of ours), that a page from elsewhere makes, that are too large or too
slow, or that come too often from one address. Knows nothing of models and games.
"""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    # Own files only; WebAssembly, as networks in the browser are run by it, and workers, which do that.
    "content-security-policy": (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-cache",  # ask again each time: after an upgrade no old module may meet a new one
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_MOST_ADDRESSES = 4096  # whose pace is remembered


@dataclass(frozen=True)
class RequestLimits:
    """What one address, and one request, may take."""

    body_bytes: int = 64 * 1024
    """Of a request."""
    body_seconds: float = 10.0
    """For a request's body to arrive."""
    rate: float = 100.0
    """Requests a second of an address."""
    burst: float = 400.0
    """Requests of an address at once."""
    message_rate: float = 50.0
    """Messages a second of a connection; those beyond wait."""
    message_burst: float = 100.0
    """Messages of a connection at once."""


class Throttle:
    """A bound on how often something happens: so many times a second, and some more at once after a pause."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._last = burst, time.monotonic()

    def take(self) -> float:
        """Return how many seconds too early this is; 0 if it is not, and then it counts."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + self._rate * (now - self._last))
        self._last = now
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= 1
        return 0.0


class Refusal(Exception):  # noqa: N818  # it is an answer
    """A request that is not served."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Guard:
    """The layer."""

    def __init__(self, app: App, limits: RequestLimits, names: frozenset[str] | None) -> None:
        """Wrap an application.

        Args:
            app: what is guarded.
            limits: of requests.
            names: of this host, by which requests may call it; None for any.
        """
        self._app = app
        self._limits = limits
        self._names = names
        self._throttles: OrderedDict[str, Throttle] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        guarded = _with_headers(send)
        try:
            self._check(scope)
            if scope["type"] == "http":
                receive = await self._with_body(scope, receive)
        except Refusal as refusal:
            await _refuse(scope, receive, guarded, refusal)
            return
        await self._app(scope, receive, guarded)

    def _check(self, scope: Scope) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = _host_of(f"//{headers.get('host', '')}")
        if self._names is not None and host not in self._names:
            raise Refusal(400, f"this server is not called {host[:80]!r}: use one of {', '.join(sorted(self._names))}")
        acts = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        if acts and "origin" in headers and _host_of(headers["origin"]) != host:
            raise Refusal(403, f"pages of {headers['origin'][:80]!r} may not use this server")
        wait = self._throttle(scope["client"][0] if scope.get("client") else "").take()
        if wait:
            raise Refusal(429, f"too many requests: wait {wait:.2f} s")

    def _throttle(self, address: str) -> Throttle:
        if address not in self._throttles:
            self._throttles[address] = Throttle(self._limits.rate, self._limits.burst)
            if len(self._throttles) > _MOST_ADDRESSES:
                self._throttles.popitem(last=False)
        self._throttles.move_to_end(address)
        return self._throttles[address]

    async def _with_body(self, scope: Scope, receive: Receive) -> Receive:
        # Reads the body, and returns what the application receives it by.
        most = self._limits.body_bytes
        too_large = Refusal(413, f"a request may have {most:,} bytes")
        for name, value in scope["headers"]:
            if name.lower() == b"content-length" and (not value.isdigit() or int(value[:20]) > most):
                raise too_large
        body, more = b"", True
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while more:
                    part = await receive()
                    body += part.get("body", b"")
                    more = part.get("more_body", False)
                    if len(body) > most:
                        raise too_large
        except TimeoutError:
            raise Refusal(408, f"a request must arrive within {self._limits.body_seconds:g} s") from None
        parts: list[Scope] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_whole() -> Scope:
            return parts.pop() if parts else await receive()

        return receive_whole


def _host_of(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


def _with_headers(send: Send) -> Send:
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def guarded(message: Scope) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return guarded


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    kind = "http.response"
    if scope["type"] == "websocket":
        kind = "websocket.http.response"
        await receive()  # the request to connect
    body = json.dumps({"error": str(refusal)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if scope["type"] == "http":
        headers.append((b"connection", b"close"))  # what was not read of the body must not be taken for a request
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
