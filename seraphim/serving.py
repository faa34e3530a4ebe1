"""The server's port, and its beginning and end. The only module that imports Uvicorn; the rest is `seraphim.server`."""

import contextlib
import ipaddress
import socket
from dataclasses import dataclass

import uvicorn

from seraphim.errors import SettingsError
from seraphim.guards import LOOPBACK
from seraphim.hosting import Host
from seraphim.server import ServerLimits, create_app

_LARGEST_FRAME = 2**20  # bytes, which end a WebSocket; fewer, but more than requests.MOST_BYTES, get an answer
_GRACE = 3  # seconds that requests under way have when the server ends
_SPARE_CONNECTIONS = 256  # beyond those of sessions


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
    host: Host, address: str, port: int, names: frozenset[str] = frozenset(), limits: ServerLimits | None = None
) -> Listening:
    """Take a port, at which `run` serves.

    Args:
        host: of the models.
        address: of this machine, or a name of it.
        port: 0 for any that is free.
        names: by which requests may call this host, beside the address; at addresses that others can reach, none
            means any.
        limits: of the server.

    Raises:
        SettingsError: there is no such address here, or its port is taken.
    """
    try:
        family, _, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server((str(where[0]), port), family=family, backlog=1024)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsError(
            f"cannot serve at {address}, port {port} ({reason}): choose others with --host and --port"
        ) from error
    limits = limits or ServerLimits()
    if is_loopback(address):
        names |= {*LOOPBACK, address.lower()}
    config = uvicorn.Config(
        create_app(host, limits, names or None),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="websockets-sansio",
        ws_max_size=_LARGEST_FRAME,
        ws_per_message_deflate=False,
        limit_concurrency=limits.sessions + _SPARE_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
    )
    shown = f"[{address}]" if ":" in address else address
    return Listening(uvicorn.Server(config), [listener], f"http://{shown}:{listener.getsockname()[1]}/")


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach an address of its own."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"
