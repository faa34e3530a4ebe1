"""The server's port, and its start and end. Requests are handled by `seraphim.server.app`."""

import contextlib
import ipaddress
import socket
from dataclasses import dataclass, replace

import uvicorn

from seraphim.errors import SettingsError
from seraphim.server.app import create_app
from seraphim.server.connections import Network, SilentConnections, http_protocol, websocket_protocol
from seraphim.server.engine.model_host import ModelHost
from seraphim.server.engine.programs import Programs
from seraphim.server.middleware import LOOPBACK, Access
from seraphim.server.service import ServerLimits

try:
    import resource
except ModuleNotFoundError:  # on Windows
    resource = None  # type: ignore[assignment]

_MAX_FRAME = 2**20  # bytes; a larger one ends its WebSocket. One above requests.MAX_BYTES gets an answer
_SHUTDOWN_SECONDS = 3  # for requests under way when the server ends
_OPEN_FILES = 4096  # that the server may need, most of them connections


@dataclass(frozen=True)
class BoundServer:
    """A server that has its port."""

    server: uvicorn.Server
    sockets: list[socket.socket]
    url: str

    def run(self) -> None:
        """Serve until a signal ends it."""
        with contextlib.suppress(KeyboardInterrupt):  # Uvicorn raises the signal again when it has ended
            self.server.run(self.sockets)


def bind(
    host: ModelHost,
    address: str,
    port: int,
    access: Access | None = None,
    limits: ServerLimits | None = None,
    programs: Programs | None = None,
) -> BoundServer:
    """Open a port for the server, or any free one for port 0; clients can play with `programs`.

    At a loopback address, requests may also use the usual names of this machine; at other addresses, no `allowed_hosts`
    means any.

    Raises:
        SettingsError: the address is not one of this machine, the port is in use, or a proxy is not an address.
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
        allowed = (access.allowed_hosts or frozenset()) | {*LOOPBACK, address.lower()}
        access = replace(access, allowed_hosts=allowed)
    config = uvicorn.Config(
        create_app(host, limits, access, programs),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(access.proxies),
        forwarded_allow_ips=list(access.proxies),
        http=http_protocol(silent),
        ws=websocket_protocol(silent),
        ws_max_size=_MAX_FRAME,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    _allow_open_files()
    shown = f"[{address}]" if ":" in address else address
    return BoundServer(uvicorn.Server(config), [listener], f"http://{shown}:{listener.getsockname()[1]}/")


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach one of its addresses."""
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
    # Many systems start a program with a limit of 256 or 1,024, which it may raise. Windows has none.
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
