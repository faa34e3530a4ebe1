"""States of OpenSpiel that are kept, so that the rules need not replay games."""

import threading
from collections import OrderedDict
from typing import Any

# The memory of a state of OpenSpiel, measured for every game: up to 8,500 bytes in Go, and up to 100 for each ply of
# its history.
_STATE_BYTES, _PLY_BYTES = 9_000, 100


class StateCache:
    """States of OpenSpiel by the words of ours, up to a number of bytes; the least recently used go first.

    Threads can share it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._states: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()
        self._bytes, self._max_bytes = 0, max_bytes
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many states are kept."""
        return len(self._states)

    def find(self, key: bytes) -> Any:
        """Return the state, or None if it is not kept."""
        with self._lock:
            if key not in self._states:
                return None
            self._states.move_to_end(key)
            return self._states[key][0]

    def keep(self, key: bytes, state: Any, plies: int) -> None:
        """Keep a state after `plies` moves; one that is kept already stays."""
        size = _STATE_BYTES + _PLY_BYTES * plies + len(key)
        with self._lock:
            if key in self._states:
                return
            self._bytes += size
            self._states[key] = state, size
            while self._bytes > self._max_bytes:
                self._bytes -= self._states.popitem(last=False)[1][1]
