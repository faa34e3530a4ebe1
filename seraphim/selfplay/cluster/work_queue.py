"""The numbers of games, lent to players who may vanish: each game is played, and none counts twice.

Knows neither games nor players: a holder is any key.
"""

import heapq
from collections.abc import Hashable, Iterable, Set

MOST_AHEAD = 1 << 20
"""How many more numbers than are lent may lie between a number that is lent and the lowest that is not settled."""


class Leases:
    """Numbers `first` … `end - 1`, each of which is free, lent to somebody, or settled."""

    def __init__(self, first: int, end: int, skip: Set[int] = frozenset()) -> None:
        """Make all numbers free but those in `skip`, which do not exist."""
        self._next = first  # from here on, numbers have never been lent
        self._end = end
        self._skip = {number for number in skip if first <= number < end}  # those to come
        self._returned: list[int] = []  # a heap: numbers that somebody had, and did not settle
        self._lent: dict[Hashable, set[int]] = {}
        self._lowest = first  # no number below is free or lent

    @property
    def free(self) -> int:
        """Return how many numbers are free."""
        return len(self._returned) + max(0, self._end - self._next - len(self._skip))

    @property
    def lent(self) -> int:
        """Return how many numbers are lent."""
        return sum(len(numbers) for numbers in self._lent.values())

    @property
    def ended(self) -> bool:
        """Return whether all numbers are settled."""
        return not self.lent and not self.free

    def lend(self, holder: Hashable, count: int) -> list[int]:
        """Lend the lowest free numbers, at most `count`, to a holder, and return them.

        They are fewer where one of them would be too far ahead, so that what is settled can be remembered in little.
        """
        taken: list[int] = []
        while len(taken) < count and self._returned:
            taken.append(heapq.heappop(self._returned))
        end = min(self._end, self._furthest())
        while len(taken) < count and self._next < end:
            if self._next in self._skip:
                self._skip.remove(self._next)
            else:
                taken.append(self._next)
            self._next += 1
        self._lent.setdefault(holder, set()).update(taken)
        return taken

    def _furthest(self) -> int:
        # Up to where numbers are lent.
        most = MOST_AHEAD + self.lent
        if self._next >= self._lowest + most:
            unsettled = [*self._returned[:1], *(min(numbers) for numbers in self._lent.values() if numbers)]
            self._lowest = min(unsettled, default=self._next)
        return self._lowest + most

    def held(self, holder: Hashable) -> int:
        """Return how many numbers a holder has."""
        return len(self._lent.get(holder, ()))

    def settle(self, holder: Hashable, numbers: Iterable[int]) -> None:
        """Take note that a holder has played these games.

        Raises:
            ValueError: the holder does not have one of the numbers.
        """
        for number in numbers:
            if number not in self._lent.get(holder, ()):
                raise ValueError(f"{number} is not lent to {holder!r}")
            self._lent[holder].remove(number)

    def forfeit(self, holder: Hashable) -> int:
        """Make what a holder has free again, for others to play; return how many numbers those are."""
        numbers = self._lent.pop(holder, set())
        for number in numbers:
            heapq.heappush(self._returned, number)
        return len(numbers)

    def finish(self) -> None:
        """Make an end before the first number that was never lent."""
        self._end = min(self._end, self._next)
