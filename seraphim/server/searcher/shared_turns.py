"""The turns of a model that plays by afterstates, for many sessions: each position is answered at once, as a whole."""

from collections import deque

from seraphim.errors import GameError, SeraphimError
from seraphim.game import Game
from seraphim.game.notation import first_position
from seraphim.options import SearchOptions
from seraphim.search.analysis import TurnAnalysis
from seraphim.search.evaluator import Inference
from seraphim.server.searcher.limits import SearchLimits
from seraphim.server.searcher.shared_search import Load, Session, SharedSearch, Task


class SharedTurns:
    """Used as a `SharedSearch` is; not thread-safe."""

    def __init__(self, game: Game, inference: Inference, options: SearchOptions) -> None:
        """Compile everything; arguments and errors as `TurnAnalysis`."""
        self._game, self._analysis = game, TurnAnalysis(game, inference, options)
        self._waiting: deque[tuple[Session, Task]] = deque()
        self._analysis.start(first_position(game)[0])
        self._analysis.more(1)

    @property
    def load(self) -> Load:
        """Return how busy it is."""
        return Load(0, 0, len(self._waiting))

    @property
    def is_busy(self) -> bool:
        """Return whether `advance` has something to do."""
        return bool(self._waiting)

    def submit(self, session: Session, task: Task) -> None:
        """Value the turns from an unfinished position."""
        if not session.removed:
            self._waiting.append((session, task))

    def stop(self, session: Session) -> None:
        """Do nothing: the last update comes soon."""

    def remove(self, session: Session) -> None:
        """End the session's tasks without further updates."""
        session.removed = True
        self._waiting = deque(each for each in self._waiting if each[0] is not session)

    def clear_cache(self) -> None:
        """Forget the position that is known."""
        self._analysis.start(self._analysis.state)

    def advance(self) -> None:
        """Answer one task."""
        _, task = self._waiting.popleft()
        if (task.line.state != self._analysis.state).any():
            self._analysis.start(task.line.state)
        try:
            task.on_update(self._analysis.result(), True)
        except SeraphimError as error:
            task.on_update(error, True)
        except Exception as error:  # noqa: BLE001  # the rules of a game may raise anything
            task.on_update(GameError(f"{self._game.name} failed while it was searched: {error!r}"), True)

    def clean_up(self) -> None:
        """Do nothing, as no tree is kept."""


AnySearch = SharedSearch | SharedTurns


def share(game: Game, inference: Inference, options: SearchOptions, limits: SearchLimits) -> AnySearch:
    """Return what `options.root` asks for, for many sessions; errors as both."""
    if options.by_turns:
        return SharedTurns(game, inference, options)
    return SharedSearch(game, inference, options, limits)
