"""One search shared by many sessions: each has its own tree, and the network evaluates the leaves of all as one batch.

A session keeps its tree until another session needs the place, and continues with it if the next position follows from
its root. Sessions affect each other only by the time that they take.

Knows the search; knows nothing of threads (`seraphim.server.searcher.searcher`) or messages
(`seraphim.server.searcher.messages`).
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from seraphim.errors import GameError, SeraphimError
from seraphim.game import Array, Game
from seraphim.game.notation import first_position, label_in
from seraphim.options import SearchOptions
from seraphim.search.analysis import LEAVES, PositionAnalysis, analysis_of, root_visits
from seraphim.search.evaluator import Inference
from seraphim.search.search import Search
from seraphim.server.searcher.limits import SearchLimits, TreeMemory

_ROUNDS = 64  # that trees may run without the network before commands are handled: some milliseconds
_UPDATE_SHARE = 10  # updates take at most one part in ten of the time


class Line(NamedTuple):
    """A position, and the moves that led to it."""

    start: tuple[int, ...] | None  # W words of the first position, None for the initial one
    moves: tuple[int, ...]
    state: Array  # int64 [W]

    def follows(self, other: "Line") -> bool:
        """Return whether this position is reached by way of another one, or is the same."""
        return self.start == other.start and self.moves[: len(other.moves)] == other.moves


OnUpdate = Callable[[PositionAnalysis | Exception, bool], None]
"""Receives what a search has found so far, or the error that ended it, and whether this is the last update. Must not
raise."""


@dataclass(eq=False)
class Task:
    """A position to search."""

    line: Line
    readouts: int
    on_update: OnUpdate
    submitted: float = field(default_factory=time.monotonic)
    """Moment."""
    priority: int = 0
    """Among those that wait for a tree: the highest is next, then the first."""
    has_updates: bool = True
    """Whether there are any before the last one."""
    visits_before: int = 0
    """Of the root of its tree."""
    started: float = 0.0
    """Moment; 0 while it waits for a tree."""


@dataclass(eq=False)
class Session:
    """A client of a shared search, which searches one position at a time."""

    tree: int | None = None
    """Index of its tree in the search."""
    line: Line | None = None
    """Of the tree's root."""
    task: Task | None = None
    """Under way, or waiting for a tree."""
    next: Task | None = None
    """To be started when that one has ended."""
    last_used: float = 0.0
    """Moment."""
    removed: bool = False


class Load(NamedTuple):
    """How busy a shared search is."""

    trees: int  # in use, searching or idle
    searching: int
    waiting: int  # for a tree


class SharedSearch:
    """A search with many trees, for even more sessions; not thread-safe."""

    def __init__(
        self, game: Game, inference: Inference, options: SearchOptions, limits: SearchLimits, leaves: int = LEAVES
    ) -> None:
        """Compile everything that a search needs; `leaves` of each tree are evaluated at a time.

        The root is searched by PUCT whatever the options say, as only PUCT can always continue.

        Raises:
            SettingsError: the game has too many actions for this number of trees.
            ModelError: the model returned NaN or infinity.
        """
        options = replace(options, root="puct")
        self._game = game
        self._limits = limits
        self._search = Search(game, inference, options, limits.trees, leaves)
        self._memory = TreeMemory(game, limits, leaves)
        self._by_tree: list[Session | None] = [None] * limits.trees
        self._waiting: deque[Session] = deque()  # without a tree
        self._next_update = 0.0
        self._warm_up()

    def _warm_up(self) -> None:
        tree = np.array([0])
        self._search.begin(tree, first_position(self._game), None, 2 * LEAVES)
        self._search.run()
        analysis_of(self._search, 0, 0, 0.0)
        self._search.move(tree, self._search.result(tree).best)
        self._search.reset(tree)

    @property
    def load(self) -> Load:
        """Return how busy it is."""
        taken = [session for session in list(self._by_tree) if session is not None]
        return Load(len(taken), sum(session.task is not None for session in taken), len(self._waiting))

    @property
    def is_busy(self) -> bool:
        """Return whether `advance` has something to do."""
        return bool(self._waiting or any(self._searching()))

    def submit(self, session: Session, task: Task) -> None:
        """Search an unfinished position; the session's current task ends first."""
        if session.removed:
            return
        self.stop(session)
        if session.task is not None:
            session.next = task
            return
        session.task = task
        if session.tree is None:
            self._waiting.append(session)
        else:
            self._start(session, task, session.tree)

    def stop(self, session: Session) -> None:
        """End the session's tasks; each gets its last update now or soon."""
        if session.next is not None:
            skipped, session.next = session.next, None
            self._report(session, skipped, is_last=True)
        if session.task is None:
            return
        if session.task.started:
            self._search.halt(np.array([session.tree]))
            return
        self._waiting.remove(session)
        task, session.task = session.task, None
        self._report(session, task, is_last=True)

    def remove(self, session: Session) -> None:
        """End the session's tasks without further updates, and free its tree."""
        session.removed = True
        self.stop(session)
        if session.task is None:
            self._free_tree(session)

    def clear_cache(self) -> None:
        """Forget the network's evaluations."""
        self._search.cache.keys[:, 0] = 0  # all slots are empty

    def advance(self) -> None:
        """Give trees to waiting sessions, advance the search by a step, and send updates."""
        self._assign_trees()
        rounds = self._memory.rounds_left(self._search.trees.progress)
        if rounds < 1:
            self._search.halt(self._memory.full_trees(self._search.trees.progress))
        try:
            done = self._search.advance(max(1, min(_ROUNDS, rounds)))
        except SeraphimError as error:
            self._fail(error)
            return
        except Exception as error:  # noqa: BLE001  # the rules of a game may raise anything
            self._fail(GameError(f"{self._game.name} failed while it was searched: {error!r}"))
            return
        for tree in done:
            self._finish(self._by_tree[tree])
        now = time.monotonic()
        if now >= self._next_update:
            for session in list(self._searching()):
                if session.task and session.task.has_updates and self._has_root(session):
                    self._report(session, session.task, is_last=False)
            self.clean_up()
            took = time.monotonic() - now
            self._next_update = now + max(self._limits.update_seconds, took * _UPDATE_SHARE)

    def clean_up(self) -> None:
        """Free trees that were idle for long, and memory if there is too little."""
        earliest = time.monotonic() - self._limits.idle_seconds
        for session in self._idle():
            if session.last_used < earliest:
                self._free_tree(session)
        progress, memory = self._search.trees.progress, self._memory
        if not memory.is_over(progress):
            return
        for session in self._idle():
            if memory.is_half_empty(progress):
                break
            self._free_tree(session)
        self._search.compact()
        if memory.is_over(progress, compacted=True):
            largest = max(self._searching(), key=lambda session: int(progress["num_nodes"][session.tree]))
            self._search.halt(np.array([largest.tree]))

    # ------------------------------------------------------------ trees

    def _searching(self) -> Iterator[Session]:
        return (session for session in self._by_tree if session is not None and session.task is not None)

    def _idle(self) -> list[Session]:
        # Sessions with an idle tree, the least recently used first.
        idle = [session for session in self._by_tree if session is not None and session.task is None]
        return sorted(idle, key=lambda session: session.last_used)

    def _assign_trees(self) -> None:
        while self._waiting:
            session = max(self._waiting, key=lambda each: each.task.priority if each.task else 0)
            if None not in self._by_tree:
                idle = self._idle()
                if not idle:
                    self._preempt(session)
                    return
                self._free_tree(idle[0])
            self._waiting.remove(session)
            session.tree = self._by_tree.index(None)
            self._by_tree[session.tree] = session
            if session.task:
                self._start(session, session.task, session.tree)

    def _preempt(self, waiting: Session) -> None:
        # If a session has waited for long and all trees are searching, the longest search ends.
        latest = time.monotonic() - self._limits.max_wait
        longest = min(self._searching(), key=lambda session: session.task.started if session.task else latest)
        if waiting.task and waiting.task.submitted < latest and longest.task and longest.task.started < latest:
            self._search.halt(np.array([longest.tree]))

    def _free_tree(self, session: Session) -> None:
        if session.tree is not None:
            self._search.reset(np.array([session.tree]))
            self._by_tree[session.tree] = None
            session.tree = session.line = None

    def _has_root(self, session: Session) -> bool:
        return bool(session.tree is not None and self._search.trees.progress[session.tree]["num_nodes"])

    # ------------------------------------------------------------ tasks

    def _start(self, session: Session, task: Task, tree: int) -> None:
        trees = np.array([tree])
        if session.line is not None and task.line.follows(session.line):
            for action in task.line.moves[len(session.line.moves) :]:
                self._search.move(trees, np.array([action]))
        else:
            self._search.reset(trees)
        session.line = task.line
        task.visits_before = root_visits(self._search, tree)
        task.started = time.monotonic()
        room = self._memory.max_nodes - int(self._search.trees.progress[tree]["num_nodes"])
        self._search.begin(trees, task.line.state[None], None, max(0, min(task.readouts, room)))

    def _finish(self, session: Session | None) -> None:
        if session is None or session.task is None:
            return
        task, session.task = session.task, None
        session.last_used = time.monotonic()
        self._report(session, task, is_last=True)
        self._start_next(session)

    def _start_next(self, session: Session) -> None:
        if session.removed:
            self._free_tree(session)
        elif session.next is not None:
            following, session.next = session.next, None
            self.submit(session, following)

    def _fail(self, error: SeraphimError) -> None:
        # All tasks and trees are lost; idle sessions only lose their trees.
        failed = [(session, session.task) for session in self._searching()]
        self._search.abandon()
        for idle in self._idle():
            idle.line = None
        for session, task in failed:
            session.line = session.task = None
            if task and not session.removed:
                task.on_update(error, True)
            self._start_next(session)

    def _report(self, session: Session, task: Task, *, is_last: bool) -> None:
        if session.removed:
            return
        try:
            found = self._found(session, task)
        except Exception as error:  # noqa: BLE001  # the rules of a game may raise anything
            on_update, task.on_update = task.on_update, lambda *_: None
            on_update(error, True)
            if not is_last:
                self._search.halt(np.array([session.tree]))
        else:
            task.on_update(found, is_last)

    def _found(self, session: Session, task: Task) -> PositionAnalysis:
        if task.started and session.tree is not None:
            seconds = time.monotonic() - task.started
            return analysis_of(self._search, session.tree, task.visits_before, seconds, self._limits.variation)
        game, state = self._game, task.line.state  # stopped before it had a tree
        best, to_play = int(game.legal(state[None])[0].argmax()), int(game.to_play(state[None])[0])
        return PositionAnalysis(
            game.render(state), 0.0, False, label_in(game, state, best), 0, (), best, to_play, 0, 0.0
        )
