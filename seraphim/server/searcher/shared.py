"""What all clients of a server share: models, a bound on sessions, and threads for replays and solvers.

Knows nothing of the clients' messages.
"""

import asyncio
import contextlib
from collections.abc import Callable

from seraphim.errors import ModelError
from seraphim.game import Game
from seraphim.game.notation import labels_vary
from seraphim.search.analysis import PositionAnalysis
from seraphim.server.quotas import FairThread, Quota, T, call_in
from seraphim.server.searcher import messages
from seraphim.server.searcher.engine_host import EngineHost
from seraphim.server.searcher.messages import Message
from seraphim.server.searcher.model_host import LoadedModel, ModelHost
from seraphim.server.searcher.shared_search import Line, Session

SOLVER_SECONDS = 10.0  # for one position
MAX_SOLVER_REQUESTS = 16  # under way or waiting

_FEW_MOVES = 16  # which are replayed at once; more are replayed in a thread


class Shared:
    """What all clients share."""

    def __init__(self, host: ModelHost, max_sessions: int, engines: EngineHost | None = None) -> None:
        """Create the threads, which start when they are needed; `engines` are what clients can play with."""
        self.host, self.engines = host, engines
        self.sessions = Quota(max_sessions, "sessions")
        self.rules = FairThread("rules")
        """For work of the rules of a game that takes long."""
        self._solver = FairThread("solver")
        self._solver_requests = Quota(MAX_SOLVER_REQUESTS, "requests to the solver")

    def close(self) -> None:
        """End all threads and searchers."""
        self._solver.close()
        self.rules.close()
        if self.engines:
            self.engines.close()
        self.host.close()

    async def replay(self, client: str, game: Game, num_moves: int, work: Callable[[], T]) -> T:
        """Return the result of a function that replays moves; it is called in a thread if it may take long."""
        if num_moves <= _FEW_MOVES and not labels_vary(game):
            return work()
        return await self.rules.run(client, work)

    async def solve(self, client: str, loaded: LoadedModel, line: Line) -> Message:
        """Return the exact results of the actions in a position.

        Raises:
            GameError: the game is over, or see `ExactResults.solve`.
            CapacityError: too many requests are waiting, in total or of this client.
        """
        messages.check_unfinished(loaded.game, line)
        with self._solver_requests.hold(client):
            found = await self._solver.run(client, lambda: loaded.knowledge.solve(line.state, SOLVER_SECONDS))
        return {"actions": {str(action): each._asdict() for action, each in found.items()}}


async def open_model(host: ModelHost, model: str, snapshot: str | None) -> tuple[LoadedModel, Session]:
    """Return a model when it is loaded, and a session of its searcher.

    Raises:
        SeraphimError: see `ModelHost.load`, or the model cannot be loaded.
    """
    while True:
        # A client that stops waiting must not cancel the loading for the others.
        loaded = await asyncio.shield(asyncio.wrap_future(host.load(model, snapshot)))
        with contextlib.suppress(ModelError):  # it has been unloaded since
            return loaded, loaded.searcher.attach()


async def search(loaded: LoadedModel, session: Session, line: Line, readouts: int) -> PositionAnalysis:
    """Return the result of the search of an unfinished position.

    Raises:
        SeraphimError: the model or the game is broken.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[PositionAnalysis] = loop.create_future()

    def receive(found: PositionAnalysis | Exception, is_last: bool) -> None:
        if future.done():
            return
        if isinstance(found, Exception):
            future.set_exception(found)
        elif is_last:
            future.set_result(found)

    loaded.searcher.search(session, line, readouts, lambda *update: call_in(loop, lambda: receive(*update)))
    return await future
