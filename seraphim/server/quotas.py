"""What each address may take of what all clients of a server share: places, and turns at a thread.

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

_NETWORK_BITS = 64  # of an IPv6 address: one household, often one machine, has all addresses of such a network
_NO_ADDRESS = "unknown"

Result = TypeVar("Result")


def to_client(address: str) -> str:
    """Return whom an address stands for: itself, or of IPv6 its /64 network; one name for all that is no address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return _NO_ADDRESS
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed) >> _NETWORK_BITS << _NETWORK_BITS, _NETWORK_BITS)))


class Quota:
    """Places that all clients share; one client may hold half of them."""

    def __init__(self, most: int, what: str) -> None:
        """Prepare.

        Args:
            most: places in all.
            what: they are called in errors, in the plural.
        """
        self._most, self._what = most, what
        self._most_of_client = max(1, most // 2)
        self._held: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """Return how many places are taken."""
        return self._held.total()

    def take(self, client: str) -> None:
        """Take a place for a client.

        Raises:
            QuotaError: the client holds half of the places.
            CapacityError: all places are taken.
        """
        if self._held[client] >= self._most_of_client:
            raise QuotaError(f"your address has {self._most_of_client} {self._what}, its limit: try again later")
        if self.taken >= self._most:
            raise CapacityError(f"server at capacity ({self._most} {self._what}): try again later")
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
    """A thread that works for the clients in turn: one with many calls does not keep the others waiting."""

    def __init__(self, name: str) -> None:
        """Prepare; the thread starts with the first call."""
        self._executor = ThreadPoolExecutor(1, name)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, client: str, function: Callable[[], Result]) -> Result:
        """Return what a function returns that is called in the thread, after the client's earlier calls."""
        turn = self._turns.setdefault(client, asyncio.Lock())
        async with turn:  # so the queue of the thread has one call of each client at most
            return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    def close(self) -> None:
        """Call no more functions."""
        self._executor.shutdown(wait=False, cancel_futures=True)
