"""The numbers of the games to play, leased to workers that may vanish: each game is played, and none counts twice.

Knows neither games nor workers: a worker is any key.
"""

import heapq
from collections.abc import Hashable, Iterable, Set

MAX_AHEAD = 1 << 20
"""How far a leased number may be ahead of the lowest unfinished one, beyond the count of leased numbers."""


class WorkQueue:
    """The numbers `first` … `end - 1`, each of which is available, leased to a worker, or done."""

    def __init__(self, first: int, end: int, skip: Set[int] = frozenset()) -> None:
        """Make all numbers available but those in `skip`."""
        self._next = first  # from here on, numbers have never been leased
        self._end = end
        self._skip = {number for number in skip if first <= number < end}  # those from `_next` on
        self._returned: list[int] = []  # a heap of numbers that lost workers did not finish
        self._leased: dict[Hashable, set[int]] = {}
        self._lowest = first  # no number below is available or leased

    @property
    def num_available(self) -> int:
        """Return how many numbers are available."""
        return len(self._returned) + max(0, self._end - self._next - len(self._skip))

    @property
    def num_leased(self) -> int:
        """Return how many numbers are leased."""
        return sum(len(numbers) for numbers in self._leased.values())

    @property
    def is_done(self) -> bool:
        """Return whether all numbers are done."""
        return not self.num_leased and not self.num_available

    def lease(self, worker: Hashable, count: int) -> list[int]:
        """Lease the lowest available numbers to a worker, and return them.

        They are fewer than `count` if one of them would be too far ahead, so that little memory holds what is done.
        """
        taken: list[int] = []
        while len(taken) < count and self._returned:
            taken.append(heapq.heappop(self._returned))
        end = min(self._end, self._limit())
        while len(taken) < count and self._next < end:
            if self._next in self._skip:
                self._skip.remove(self._next)
            else:
                taken.append(self._next)
            self._next += 1
        self._leased.setdefault(worker, set()).update(taken)
        return taken

    def _limit(self) -> int:
        # The number from which on none is leased yet.
        ahead = MAX_AHEAD + self.num_leased
        if self._next >= self._lowest + ahead:
            unfinished = [*self._returned[:1], *(min(numbers) for numbers in self._leased.values() if numbers)]
            self._lowest = min(unfinished, default=self._next)
        return self._lowest + ahead

    def num_leased_to(self, worker: Hashable) -> int:
        """Return how many numbers a worker has."""
        return len(self._leased.get(worker, ()))

    def complete(self, worker: Hashable, numbers: Iterable[int]) -> None:
        """Mark numbers of a worker as done.

        Raises:
            ValueError: one of the numbers is not leased to the worker.
        """
        for number in numbers:
            if number not in self._leased.get(worker, ()):
                raise ValueError(f"{number} is not leased to {worker!r}")
            self._leased[worker].remove(number)

    def release(self, worker: Hashable) -> int:
        """Make a worker's numbers available again, and return how many there were."""
        numbers = self._leased.pop(worker, set())
        for number in numbers:
            heapq.heappush(self._returned, number)
        return len(numbers)

    def close(self) -> None:
        """End before the first number that was never leased."""
        self._end = min(self._end, self._next)
