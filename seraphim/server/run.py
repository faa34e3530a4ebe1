"""The server's port, and its start and end. Requests are handled by `seraphim.server.app`."""

import contextlib
import copy
import ipaddress
import logging
import socket
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import uvicorn

from seraphim.errors import SettingsError
from seraphim.server.app import create_app
from seraphim.server.connections import Network, SilentConnections, http_protocol, websocket_protocol
from seraphim.server.middleware import LOOPBACK, Access, Throttle
from seraphim.server.quotas import to_address
from seraphim.server.searcher.engine_host import EngineHost
from seraphim.server.searcher.model_host import ModelHost
from seraphim.server.searcher.requests import MAX_BYTES
from seraphim.server.service import ServerLimits

try:
    import resource
except ModuleNotFoundError:  # on Windows
    resource = None  # type: ignore[assignment]

_MAX_MESSAGE = MAX_BYTES + 4096  # a larger one ends its WebSocket; one above MAX_BYTES gets an answer
_LOG_RATE, _LOG_BURST = 1 / 60, 10  # lines a second, and at once, of each kind
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
    engines: EngineHost | None = None,
) -> BoundServer:
    """Open a port for the server, or any free one for port 0; clients can play with `engines`.

    Requests may name this machine by an IP address or one of `allowed_hosts`; at a loopback address, and without
    `allowed_hosts`, by its own names, too.

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
    if is_loopback(address) or not access.allowed_hosts:
        access = replace(access, allowed_hosts=(access.allowed_hosts or frozenset()) | _own_names(address))
    config = uvicorn.Config(
        create_app(host, limits, access, engines),
        log_config=_log_config(),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(access.proxies),
        forwarded_allow_ips=list(access.proxies),
        http=http_protocol(silent),
        ws=websocket_protocol(silent),
        ws_max_size=_MAX_MESSAGE,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    _allow_open_files()
    shown = f"[{address}]" if ":" in address else address
    return BoundServer(uvicorn.Server(config), [listener], f"http://{shown}:{listener.getsockname()[1]}/")


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach one of its addresses."""
    parsed = to_address(address)
    return address.lower() == "localhost" if parsed is None else parsed.is_loopback


def _own_names(address: str) -> frozenset[str]:
    names = {*LOOPBACK, address.lower()}
    if not is_loopback(address):
        name = socket.gethostname().lower()
        names |= {name, f"{name}.local", name.partition(".")[0]}
    return frozenset(names)


def _log_config() -> dict[str, Any]:
    config = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    config["filters"] = {"rate": {"()": _LogRate}}
    config["handlers"]["default"]["filters"] = ["rate"]
    config["loggers"]["seraphim.server"] = {"handlers": ["default"]}
    return config


class _LogRate(logging.Filter):
    # Clients can cause messages: of each kind, some pass, and the next one tells how many did not.

    def __init__(self) -> None:
        super().__init__()
        self._throttles: dict[tuple[str, int], Throttle] = {}
        self._left_out = Counter[tuple[str, int]]()

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.pathname, record.lineno
        if self._throttles.setdefault(kind, Throttle(_LOG_RATE, _LOG_BURST)).take():
            self._left_out[kind] += 1
            return False
        if count := self._left_out.pop(kind, 0):
            record.msg = f"{record.msg} ({count:,} more like this were left out)"
        return True


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
