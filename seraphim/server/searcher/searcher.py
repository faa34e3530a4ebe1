"""A shared search in a thread of its own, for many sessions at the same time.

Only this thread touches the search; commands from other threads are queued for it. Every task gets a last update: when
it is done, when the searcher is retired, and when the searcher fails.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from seraphim.errors import ModelError
from seraphim.search.analysis import PositionAnalysis
from seraphim.server.searcher.shared_search import Line, Load, OnUpdate, Session, Task
from seraphim.server.searcher.shared_turns import AnySearch

_CLEAN_UP_SECONDS = 5.0  # between two clean-ups while the search is idle
_LOG = logging.getLogger(__name__)


class Searcher:
    """The thread. All methods return at once; updates come from the thread."""

    def __init__(self, search: AnySearch) -> None:
        """Start; nothing else may touch the search from now on."""
        self._search: AnySearch | None = search  # None once the thread has ended
        self._sessions: set[Session] = set()
        self._pending: dict[Task, Session] = {}  # without their last update
        self._commands: deque[Callable[[AnySearch], None]] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self.has_failed = False  # whether an exception has ended the thread
        self._thread = threading.Thread(target=self._run, args=(search,), name="searcher", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """Return whether the searcher accepts sessions and tasks."""
        return not self._closed

    @property
    def num_sessions(self) -> int:
        """Return the number of sessions."""
        return len(self._sessions)

    @property
    def load(self) -> Load:
        """Return how busy the search is."""
        search = self._search
        return search.load if search else Load(0, 0, 0)

    def attach(self) -> Session:
        """Return a new session.

        Raises:
            ModelError: the searcher has ended.
        """
        with self._wake:
            self._check_open()
            session = Session()
            self._sessions.add(session)
            return session

    def detach(self, session: Session) -> None:
        """End a session; its tasks get no further updates."""
        with self._wake:
            self._sessions.discard(session)
            self._pending = {task: other for task, other in self._pending.items() if other is not session}
        self.post(lambda search: search.remove(session))

    def search(self, session: Session, line: Line, readouts: int, on_update: OnUpdate) -> None:
        """Add readouts to the search of an unfinished position; the session's current task ends first.

        Raises:
            ModelError: the searcher has ended.
        """

        def forward(found: PositionAnalysis | Exception, is_last: bool) -> None:
            if is_last:
                with self._wake:
                    self._pending.pop(task, None)
            on_update(found, is_last)

        task = Task(line, readouts, forward, submitted=time.monotonic())
        with self._wake:
            self._check_open()
            self._pending[task] = session
            self._commands.append(lambda search: search.submit(session, task))
            self._wake.notify()

    def stop(self, session: Session) -> None:
        """End the session's current task, if any: its last update comes soon."""
        self.post(lambda search: search.stop(session))

    def post(self, command: Callable[[AnySearch], None]) -> None:
        """Run a command in the searcher's thread soon; ignore it if the searcher has ended."""
        with self._wake:
            if not self._closed:
                self._commands.append(command)
                self._wake.notify()

    def close_if_unused(self) -> bool:
        """End the thread unless there is a session; return whether the searcher is closed."""
        with self._wake:
            self._closed = self._closed or not self._sessions
            self._wake.notify()
            return self._closed

    def retire(self) -> None:
        """Let the thread end soon, even with sessions: current tasks end with their last update."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    def close(self) -> None:
        """End the thread now, without further updates."""
        with self._wake:
            self._closed = True
            self._pending = {}
            self._wake.notify()
        self._thread.join()

    def _check_open(self) -> None:
        if self._closed:
            raise ModelError("the model was unloaded: open it again")

    def _run(self, search: AnySearch) -> None:
        error = ModelError("the model was unloaded during the search: try again")
        try:
            self._serve(search)
        except Exception:  # noqa: BLE001  # no client may wait for an answer that never comes
            _LOG.exception("a searcher failed; its model is loaded again for the next request")
            error = ModelError("the search failed: try again; see the server log")
            self.has_failed = True
        with self._wake:
            self._closed = True
            pending = list(self._pending)
        self._search = None
        for task in pending:
            try:
                task.on_update(error, True)
            except Exception:  # noqa: BLE001  # the other tasks need their update, too
                _LOG.exception("the end of a search could not be reported")

    def _serve(self, search: AnySearch) -> None:
        closed = False
        while not closed:
            with self._wake:
                if not (self._commands or self._closed or search.is_busy):
                    self._wake.wait(_CLEAN_UP_SECONDS)
                commands, self._commands = self._commands, deque()
                closed, sessions = self._closed, list(self._sessions)
            for command in commands:
                command(search)
            if closed:
                break
            if search.is_busy:
                search.advance()
            else:
                search.clean_up()
        for session in sessions:
            search.stop(session)
        while self._pending and search.is_busy:
            search.advance()
