"""A shared search in a thread of its own: players take seats at it, and think at the same time.

The thread alone touches the search. Whatever a seat is told is done there, in turn. Every thought gets a last report:
when it is done, when the engine is put away, and when the engine fails.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from seraphim.errors import ModelError, SeraphimError
from seraphim.server.engine.shared_search import SharedSearch
from seraphim.server.engine.thoughts import Line, Player, Report, Task, Thought

_LOOK = 5.0  # seconds between two looks for trees that nobody has used for long
_LOG = logging.getLogger(__name__)


class Seat:
    """A place at an engine, of one player. Its methods return at once; reports come in the engine's thread."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self.player = Player()

    @property
    def is_open(self) -> bool:
        """Return whether the engine runs: if not, it was put away or failed, and the seat is worth nothing."""
        return self._engine.is_open

    def think(self, line: Line, readouts: int, report: Report) -> None:
        """Add readouts to what is known of an unfinished position; what is under way ends before.

        Raises:
            ModelError: the engine has ended.
        """
        self._engine.begin(self, line, readouts, report)

    def stop(self) -> None:
        """End what is under way, if anything is: its last report comes soon."""
        self._engine.tell(lambda search: search.end(self.player))

    def leave(self) -> None:
        """Give the place back, without a further report."""
        self._engine.leave(self)


class Engine:
    """The thread."""

    def __init__(self, search: SharedSearch) -> None:
        """Start; nobody else touches the search from now on."""
        self._search: SharedSearch | None = search  # None once the thread has ended
        self._seats: set[Seat] = set()
        self._unanswered: dict[Task, Seat] = {}  # without their last report
        self._commands: deque[Callable[[SharedSearch], None]] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._failed = False
        self._thread = threading.Thread(target=self._run, args=(search,), name="engine", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """Return whether places can be taken."""
        return not self._closed

    @property
    def has_failed(self) -> bool:
        """Return whether an exception has ended the thread."""
        return self._failed

    def sit(self) -> Seat:
        """Return a new place.

        Raises:
            ModelError: the engine has ended.
        """
        with self._wake:
            self._check_open()
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
        search = self._search
        return search.load.trees if search else 0

    @property
    def num_thinking(self) -> int:
        """Return how many players think now, or wait for it."""
        search = self._search
        return search.load.thinking + search.load.waiting if search else 0

    def begin(self, seat: Seat, line: Line, readouts: int, report: Report) -> None:
        """Let a player think; see `Seat.think`."""

        def hear(thought: Thought | SeraphimError) -> None:
            if not isinstance(thought, Thought) or thought.done:
                with self._wake:
                    self._unanswered.pop(task, None)
            report(thought)

        task = Task(line, readouts, hear, asked=time.monotonic())
        with self._wake:
            self._check_open()
            self._unanswered[task] = seat
            self._commands.append(lambda search: search.begin(seat.player, task))
            self._wake.notify()

    def tell(self, command: Callable[[SharedSearch], None]) -> None:
        """Let something be done in the engine's thread soon; nothing, if the engine has ended."""
        with self._wake:
            if not self._closed:
                self._commands.append(command)
                self._wake.notify()

    def leave(self, seat: Seat) -> None:
        """Count a place as free, and forget what is thought there."""
        with self._wake:
            self._seats.discard(seat)
            self._unanswered = {task: other for task, other in self._unanswered.items() if other is not seat}
        self.tell(lambda search: search.dismiss(seat.player))

    def close_if_empty(self) -> bool:
        """End the thread unless a place is taken; return whether that was done."""
        with self._wake:
            self._closed = self._closed or not self._seats
            self._wake.notify()
            return self._closed

    def retire(self) -> None:
        """Let the thread end soon, though places are taken: what is under way ends with its last report."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    def close(self) -> None:
        """End the thread, whatever is under way; there are no further reports."""
        with self._wake:
            self._closed = True
            self._unanswered = {}
            self._wake.notify()
        self._thread.join()

    def _check_open(self) -> None:
        if self._closed:
            raise ModelError("the model was put away: open it again")

    def _run(self, search: SharedSearch) -> None:
        error = ModelError("the model was put away while it was thinking: ask again")
        try:
            self._serve(search)
        except Exception:  # noqa: BLE001  # whatever it is, nobody may wait for an answer that does not come
            _LOG.exception("an engine failed; its model is loaded anew for whoever asks next")
            error = ModelError("the engine failed while it was thinking: ask again; the server's log says why")
            self._failed = True
        with self._wake:
            self._closed = True
            unanswered = list(self._unanswered)
        self._search = None
        for task in unanswered:
            try:
                task.report(error)
            except Exception:  # noqa: BLE001  # the others are told, too
                _LOG.exception("the end of a thought could not be reported")

    def _serve(self, search: SharedSearch) -> None:
        closed = False
        while not closed:
            with self._wake:
                if not (self._commands or self._closed or search.is_busy):
                    self._wake.wait(_LOOK)
                commands, self._commands = self._commands, deque()
                closed, seats = self._closed, list(self._seats)
            for command in commands:
                command(search)
            if closed:
                break
            if search.is_busy:
                search.advance()
            else:
                search.tidy()
        for seat in seats:
            search.end(seat.player)
        while self._unanswered and search.is_busy:
            search.advance()
