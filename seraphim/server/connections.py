"""Connections with no request under way: each may be silent for a while, and so many may be at a time.

Knows nothing of what is said over a connection. All in the thread of one event loop.
"""

import asyncio
import ipaddress
from typing import NamedTuple

from seraphim.server.quotas import to_client

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class _Silent(NamedTuple):
    client: str
    timer: asyncio.TimerHandle


class SilentConnections:
    """Closes connections that are silent for too long, and the oldest of them where there are too many."""

    def __init__(self, most: int, seconds: float, proxies: tuple[Network, ...] = ()) -> None:
        """Prepare.

        Args:
            most: connections that may be silent at a time; one client may have half of them.
            seconds: after which one is closed.
            proxies: which speak for many clients, and may have all of them.
        """
        self.seconds = seconds
        self._most, self._most_of_client = most, max(1, most // 2)
        self._proxies = proxies
        self._all: dict[asyncio.Transport, _Silent] = {}  # the oldest first
        self._of_client: dict[str, dict[asyncio.Transport, None]] = {}  # of each that is no proxy, the oldest first

    def add(self, connection: asyncio.Transport) -> None:
        """Count a connection as silent from now on, unless it was before."""
        if connection in self._all:
            return
        timer = asyncio.get_running_loop().call_later(self.seconds, self._close, connection)
        address = str((connection.get_extra_info("peername") or [""])[0])
        client = "" if self._is_proxy(address) else to_client(address)
        self._all[connection] = _Silent(client, timer)
        if client:
            own = self._of_client.setdefault(client, {})
            own[connection] = None
            if len(own) > self._most_of_client:
                self._close(next(iter(own)))
        if len(self._all) > self._most:
            self._close(next(iter(self._all)))

    def discard(self, connection: asyncio.Transport) -> None:
        """Count a connection no longer, as a request came or it is closed."""
        found = self._all.pop(connection, None)
        if found is None:
            return
        found.timer.cancel()
        own = self._of_client.get(found.client, {})
        own.pop(connection, None)
        if not own:
            self._of_client.pop(found.client, None)

    def _close(self, connection: asyncio.Transport) -> None:
        self.discard(connection)
        connection.abort()

    def _is_proxy(self, address: str) -> bool:
        try:
            return any(ipaddress.ip_address(address) in network for network in self._proxies)
        except ValueError:
            return False
