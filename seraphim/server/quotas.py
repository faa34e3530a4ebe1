"""Shares of what all clients of a server use: places, turns of a thread, and the thread of the event loop.

Knows nothing of what is shared. All in the thread of one event loop.
"""

import asyncio
import contextlib
import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

from seraphim.errors import CapacityError, QuotaError

_NETWORK_BITS = 64  # of an IPv6 address: a household, often one machine, has all addresses of such a network
_NO_ADDRESS = "unknown"

T = TypeVar("T")


def to_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an IP address; None if the text is not one."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def to_client(address: str) -> str:
    """Return the client of an address: the address itself, or the /64 network of an IPv6 address."""
    parsed = to_address(address)
    if parsed is None:
        return _NO_ADDRESS
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed) >> _NETWORK_BITS << _NETWORK_BITS, _NETWORK_BITS)))


class Quota:
    """Places that all clients share; one client may hold half of them."""

    def __init__(self, limit: int, what: str) -> None:
        """Set the number of places, and what errors call them, in the plural."""
        self._limit, self._what = limit, what
        self._limit_of_client = max(1, limit // 2)
        self._held: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """Return the number of places that are taken."""
        return self._held.total()

    def take(self, client: str) -> None:
        """Take a place for a client.

        Raises:
            QuotaError: the client holds half of the places.
            CapacityError: all places are taken.
        """
        if self._held[client] >= self._limit_of_client:
            raise QuotaError(
                f"too many {self._what} from your address (limit {self._limit_of_client}): try again later"
            )
        if self.taken >= self._limit:
            raise CapacityError(f"server at capacity ({self._limit} {self._what}): try again later")
        self._held[client] += 1

    def give_back(self, client: str) -> None:
        """Free a place of a client."""
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]

    @contextlib.contextmanager
    def hold(self, client: str) -> Iterator[None]:
        """Take a place for a client while the block runs.

        Raises:
            CapacityError: see `take`.
        """
        self.take(client)
        try:
            yield
        finally:
            self.give_back(client)


class FairThread:
    """A thread that serves the clients in turn: many calls of one do not delay the others."""

    def __init__(self, name: str) -> None:
        """Create the thread, which starts with the first call."""
        self._executor = ThreadPoolExecutor(1, name)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, client: str, function: Callable[[], T]) -> T:
        """Call a function in the thread, after the client's earlier calls, and return its result."""
        turn = self._turns.setdefault(client, asyncio.Lock())
        async with turn:  # so that the thread's queue holds at most one call of each client
            return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    def close(self) -> None:
        """Cancel the calls that wait."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call a function in the thread of an event loop soon, unless the loop is closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
