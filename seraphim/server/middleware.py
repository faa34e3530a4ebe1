"""What stands before the server's pages: bounds on requests, and headers that keep browsers to them. An ASGI layer.

Refuses, with a sentence and before anything else sees them: requests that name another host than the server has (by
which a page from elsewhere could pass for one of ours), that a page from elsewhere makes, that are too large or too
slow, or that come too often or too many at a time from one address. The files of pages count for none of that: they are
small, and browsers keep them. Knows nothing of models and games.
"""

import asyncio
import contextlib
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from seraphim.errors import CapacityError, QuotaError
from seraphim.server.quotas import Quota, to_client

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
    "cache-control": "no-cache",  # unless the answer says otherwise
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_MOST_ADDRESSES = 4096  # whose pace is remembered
_PORTS = {"http": 80, "https": 443}


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
    under_way: int = 1024
    """Requests and WebSockets at a time, of which an address may have half."""
    message_rate: float = 50.0
    """Messages a second of a connection; those beyond wait."""
    message_burst: float = 100.0
    """Messages of a connection at once."""


@dataclass(frozen=True)
class Access:
    """Who may use the server, and who says who that is."""

    names: frozenset[str] | None = None
    """Of this host, by which requests may call it; None for any."""
    origins: frozenset[str] = frozenset()
    """Of pages that may use it beside its own, such as `https://play.example.org:8443`."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies whose `X-Forwarded-For` is believed."""


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

    def __init__(self, app: App, limits: RequestLimits, access: Access) -> None:
        """Wrap an application."""
        self._app = app
        self._limits = limits
        self._access = access
        self._origins = {_origin_of(origin) for origin in access.origins}
        self._under_way = Quota(limits.under_way, "requests and connections")
        self._throttles: OrderedDict[str, Throttle] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        guarded = _with_headers(send)
        with contextlib.ExitStack() as held:
            try:
                receive = await self._admit(scope, receive, held)
            except Refusal as refusal:
                await _refuse(scope, receive, guarded, refusal)
                return
            await self._app(scope, receive, guarded)

    async def _admit(self, scope: Scope, receive: Receive, held: contextlib.ExitStack) -> Receive:
        # Returns what the application receives the request by.
        self._check_names(scope)
        if _is_for_file(scope):
            return receive
        client = client_of(scope)
        self._check_rate(client)
        try:
            held.enter_context(self._under_way.hold(client))
        except CapacityError as error:
            raise Refusal(status_of(error), str(error)) from error
        return await self._with_body(scope, receive) if scope["type"] == "http" else receive

    def _check_names(self, scope: Scope) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = _host_of(f"//{headers.get('host', '')}")
        names = self._access.names
        if names is not None and host not in names:
            raise Refusal(400, f"this server is not called {host[:80]!r}: use one of {', '.join(sorted(names))}")
        acts = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        if acts and "origin" in headers and not self._is_own(headers["origin"], headers.get("host", "")):
            raise Refusal(
                403, f"pages of {headers['origin'][:80]!r} may not use this server: allow them with --origins"
            )

    def _is_own(self, origin: str, host: str) -> bool:
        # Behind a proxy, only the page knows whether it speaks HTTPS, which has another port where none is named.
        found = _origin_of(origin)
        return found is not None and (found in self._origins or found == _origin_of(f"{found.scheme}://{host}"))

    def _check_rate(self, client: str) -> None:
        if client not in self._throttles:
            self._throttles[client] = Throttle(self._limits.rate, self._limits.burst)
            if len(self._throttles) > _MOST_ADDRESSES:
                self._throttles.popitem(last=False)
        self._throttles.move_to_end(client)
        wait = self._throttles[client].take()
        if wait:
            raise Refusal(429, f"too many requests: wait {wait:.2f} s")

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


class _Origin(NamedTuple):
    scheme: str
    host: str
    port: int


def _origin_of(address: str) -> _Origin | None:
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    return _Origin(parts.scheme, (parts.hostname or "").lower(), port)


def client_of(scope: Scope) -> str:
    """Return whose request it is, for quotas."""
    return to_client(scope["client"][0] if scope.get("client") else "")


def status_of(error: CapacityError) -> int:
    """Return the status of an answer to a request for which there is no room."""
    return 429 if isinstance(error, QuotaError) else 503


def _is_for_file(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/")


def _with_headers(send: Send) -> Send:
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def guarded(message: Scope) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            own = list(message.get("headers", []))
            names = {name for name, _ in own}
            message = {**message, "headers": own + [header for header in added if header[0] not in names]}
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
