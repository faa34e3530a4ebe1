"""ASGI middleware that bounds requests, and adds headers that restrict what browsers do with pages.

It refuses requests with a host that is not allowed (DNS rebinding), from pages of other origins, that are too large or
too slow, and too many requests of one address, in total or at a time. Requests for pages are counted, but not those for
their files: these are small, and browsers keep them. Knows nothing of models and games.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seraphim.errors import CapacityError, QuotaError
from seraphim.server.quotas import Quota, to_address, to_client

HEADERS = {
    # Only files of this server; WebAssembly and workers, which run networks in the browser.
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

_MAX_ADDRESSES = 4096  # whose rates are remembered
_LINGER_SECONDS = 1.0  # most that a refused request may take to send its body
_OF_BODIES = (408, 413)  # refusals of a body that is too slow or too large, of which nothing more is read
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class RequestLimits:
    """Bounds of one address, and of one request."""

    body_bytes: int = 64 * 1024
    """Most bytes of a request's body."""
    body_seconds: float = 10.0
    """Most seconds until a request's body has arrived."""
    rate: float = 100.0
    """Requests per second of an address."""
    burst: float = 400.0
    """Requests of an address at once."""
    under_way: int = 1024
    """Requests and WebSockets at a time; one address may have half of them."""
    message_rate: float = 50.0
    """Messages per second of a connection; further ones wait."""
    message_burst: float = 100.0
    """Messages of a connection at once."""


@dataclass(frozen=True)
class Access:
    """Who may use the server."""

    allowed_hosts: frozenset[str] | None = None
    """Names of this host that requests may contain, beside IP addresses; None for any."""
    origins: frozenset[str] = frozenset()
    """Other origins whose pages may use the server, such as `https://play.example.org:8443`."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies whose `X-Forwarded-For` is trusted."""


class Throttle:
    """A token bucket: `rate` events per second, and up to `burst` at once after a pause."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._last = burst, time.monotonic()

    def take(self) -> float:
        """Count an event and return 0, or return the seconds until the next one is allowed."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + self._rate * (now - self._last))
        self._last = now
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= 1
        return 0.0


class Guard:
    """The middleware."""

    def __init__(self, app: ASGIApp, limits: RequestLimits, access: Access) -> None:
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

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        with contextlib.ExitStack() as held:
            try:
                receive = await self._admit(scope, receive, held)
            except HTTPException as error:
                if scope["type"] == "websocket":
                    await receive()  # the request to connect
                elif error.status_code not in _OF_BODIES:
                    await self._discard_body(receive)
                # The connection is closed, as the rest of a body must not be taken for a request.
                headers = {"connection": "close"} if scope["type"] == "http" else {}
                refusal = JSONResponse({"error": error.detail}, error.status_code, headers)
                await refusal(scope, receive, send_with_headers)
                return
            if scope.get("method") == "HEAD":
                scope = {**scope, "method": "GET"}  # Uvicorn, which has the other one, leaves out the body
            await self._app(scope, receive, send_with_headers)

    async def _admit(self, scope: Scope, receive: Receive, held: contextlib.ExitStack) -> Receive:
        # Returns the function by which the application receives the request; raises an HTTPException to refuse it.
        self._check_names(scope)
        is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if is_read and _is_file(scope["path"]):
            return receive
        client = client_of(scope)
        self._check_rate(client)
        try:
            held.enter_context(self._under_way.hold(client))
        except CapacityError as error:
            raise HTTPException(status_of(error), str(error)) from error
        return await self._with_body(receive) if scope["type"] == "http" else receive

    def _check_names(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host, origin, allowed = headers.get("host", ""), headers.get("origin"), self._access.allowed_hosts
        name = _host_of(f"//{host}")
        # A page from elsewhere can make its own name lead here, but not be at an address of ours.
        if allowed is not None and name not in allowed and to_address(name) is None:
            raise HTTPException(400, f"host {name[:80]!r} is not allowed: name it with --allowed_hosts")
        is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if origin is not None and not is_read and not self._is_allowed(origin, host):
            raise HTTPException(403, f"pages of {origin[:80]!r} may not use this server: name them with --origins")

    def _is_allowed(self, origin: str, host: str) -> bool:
        # Behind a proxy, only the page knows whether it uses HTTPS, whose default port differs.
        found = _origin_of(origin)
        return found is not None and (found in self._origins or found == _origin_of(f"{found[0]}://{host}"))

    def _check_rate(self, client: str) -> None:
        if client not in self._throttles:
            self._throttles[client] = Throttle(self._limits.rate, self._limits.burst)
            if len(self._throttles) > _MAX_ADDRESSES:
                self._throttles.popitem(last=False)
        self._throttles.move_to_end(client)
        if wait := self._throttles[client].take():
            raise HTTPException(429, f"too many requests: wait {wait:.2f} s")

    async def _discard_body(self, receive: Receive) -> None:
        # A connection that is closed with unread data is reset, which may cost the client the answer.
        with contextlib.suppress(HTTPException, TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await self._with_body(receive)

    async def _with_body(self, receive: Receive) -> Receive:
        # Reads the body, and returns the function by which the application receives it.
        limits, body, more = self._limits, b"", True
        try:
            async with asyncio.timeout(limits.body_seconds):
                while more:
                    part = await receive()
                    body += part.get("body", b"")
                    more = part.get("more_body", False)
                    if len(body) > limits.body_bytes:
                        raise HTTPException(413, f"a request may have {limits.body_bytes:,} bytes")
        except TimeoutError:
            raise HTTPException(408, f"a request must arrive within {limits.body_seconds:g} s") from None
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_body() -> Message:
            return parts.pop() if parts else await receive()

        return receive_body


def _is_file(path: str) -> bool:
    # Pages are no files: to name the version of its files, a page reads them all.
    return not path.startswith("/api/") and PurePosixPath(path).suffix not in ("", ".html")


def _host_of(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


def _origin_of(address: str) -> tuple[str, str, int] | None:
    # The scheme, the host and the port.
    try:
        parts = urlsplit(address)
        return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None


def client_of(scope: Scope) -> str:
    """Return the client of a request, for quotas."""
    return to_client(scope["client"][0] if scope.get("client") else "")


def status_of(error: CapacityError) -> int:
    """Return the HTTP status for an error of capacity: 429 if the client causes it, else 503."""
    return 429 if isinstance(error, QuotaError) else 503
