"""A shared search in a thread of its own: players take seats at it, and think at the same time.

The thread alone touches the search. Whatever a seat is told is done there, in turn.
"""

import threading
import time
from collections import deque
from collections.abc import Callable

from seraphim.errors import ModelError
from seraphim.thinking import SharedSearch
from seraphim.thoughts import Line, Player, Report, Task

_LOOK = 5.0  # seconds between two looks for trees that nobody has used for long


class Seat:
    """A place at an engine, of one player. Its methods return at once; reports come in the engine's thread."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._player = Player()

    def think(self, line: Line, readouts: int, report: Report) -> None:
        """Add readouts to what is known of an unfinished position; what is under way ends before."""
        task = Task(line, readouts, report, asked=time.monotonic())
        self._engine.tell(lambda search: search.begin(self._player, task))

    def stop(self) -> None:
        """End what is under way, if anything is: its last report comes soon."""
        self._engine.tell(lambda search: search.end(self._player))

    def leave(self) -> None:
        """Give the place back, without a further report."""
        self._engine.leave(self)
        self._engine.tell(lambda search: search.dismiss(self._player))


class Engine:
    """The thread."""

    def __init__(self, search: SharedSearch) -> None:
        """Start; nobody else touches the search from now on."""
        self._search = search
        self._seats: set[Seat] = set()
        self._commands: deque[Callable[[SharedSearch], None]] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def sit(self) -> Seat:
        """Return a new place.

        Raises:
            ModelError: the engine is closed.
        """
        with self._wake:
            if self._closed:
                raise ModelError("the model is being put away: open it again")
            seat = Seat(self)
            self._seats.add(seat)
            return seat

    @property
    def num_seats(self) -> int:
        """Return how many places are taken."""
        return len(self._seats)

    @property
    def num_trees(self) -> int:
        """Return how many trees are in use, thinking or at rest."""
        return self._search.load.trees

    @property
    def num_thinking(self) -> int:
        """Return how many players think now, or wait for it."""
        load = self._search.load
        return load.thinking + load.waiting

    def tell(self, command: Callable[[SharedSearch], None]) -> None:
        """Let something be done in the engine's thread soon."""
        with self._wake:
            self._commands.append(command)
            self._wake.notify()

    def leave(self, seat: Seat) -> None:
        """Count a place as free."""
        with self._wake:
            self._seats.discard(seat)

    def close_if_empty(self) -> bool:
        """End the thread unless a place is taken; return whether that was done."""
        with self._wake:
            self._closed = self._closed or not self._seats
            self._wake.notify()
            return self._closed

    def close(self) -> None:
        """End the thread, whatever is under way; there are no further reports."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed:
            with self._wake:
                if not (self._commands or self._closed or self._search.is_busy):
                    self._wake.wait(_LOOK)
                commands, self._commands = self._commands, deque()
            for command in commands:
                command(self._search)
            if self._search.is_busy:
                self._search.advance()
            else:
                self._search.tidy()
