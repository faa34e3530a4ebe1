"""What all clients of a server share: models, sessions, a solver, and a thread for what takes long.

Knows nothing of what clients say.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from seraphim.errors import SeraphimError
from seraphim.game import Game, solved
from seraphim.game.notation import labels_vary
from seraphim.server.engine import messages
from seraphim.server.engine.engine import Seat
from seraphim.server.engine.messages import Message
from seraphim.server.engine.model_host import Host, Hosted
from seraphim.server.engine.thoughts import Line, Thought
from seraphim.server.quotas import FairThread, Quota, Result

TRUTH_SECONDS = 10.0
MOST_QUESTIONS = 16  # for the truth that wait

_FEW_MOVES = 16  # which are replayed at once; more are replayed in a thread


class Solver:
    """Finds the truth in a thread of its own, for one client after the other."""

    def __init__(self, seconds: float = TRUTH_SECONDS) -> None:
        """Prepare, for so many seconds a position at most."""
        self._seconds = seconds
        self._thread = FairThread("solver")
        self._questions = Quota(MOST_QUESTIONS, "questions to the solver")

    async def solve(self, client: str, hosted: Hosted, line: Line) -> Message:
        """Return the exact results of the actions in a position.

        Raises:
            GameError: the game is over, or see `seraphim.game.solved.solve`.
            CapacityError: too many questions wait, all in all or of this client.
        """
        messages.check_unfinished(hosted.game, line)
        with self._questions.hold(client):
            found = await self._thread.run(
                client, lambda: solved.solve(hosted.module, hosted.game, line.state, self._seconds)
            )
        return {"actions": {str(action): each._asdict() for action, each in found.items()}}

    def close(self) -> None:
        """Answer no more questions."""
        self._thread.close()


@dataclass(frozen=True)
class Shared:
    """What all clients share."""

    host: Host
    """Of the models."""
    sessions: Quota
    """Clients that think now and then."""
    solver: Solver
    rules: FairThread
    """Replays moves where that takes long."""

    def close(self) -> None:
        """End all that runs."""
        self.solver.close()
        self.rules.close()
        self.host.close()

    async def replay(self, client: str, game: Game, num_moves: int, work: Callable[[], Result]) -> Result:
        """Return what a function returns that replays moves: called at once, or in a thread if that takes long."""
        if num_moves <= _FEW_MOVES and is_quick(game):
            return work()
        return await self.rules.run(client, work)


def is_quick(game: Game) -> bool:
    """Return whether moves have their names at once; one that has others in each position looks at all of its moves."""
    return not labels_vary(game)


async def open_model(host: Host, model: str, snapshot: str | None) -> tuple[Hosted, Seat]:
    """Return a model when it is loaded, and a place at its engine.

    Raises:
        SeraphimError: as `Host.load`, or the model cannot be loaded.
    """
    while True:
        # Who stops waiting must not stop the others.
        hosted = await asyncio.shield(asyncio.wrap_future(host.load(model, snapshot)))
        seat = host.sit(hosted)
        if seat is not None:
            return hosted, seat


async def think(seat: Seat, line: Line, readouts: int) -> Thought:
    """Return what is thought of an unfinished position in the end.

    Raises:
        SeraphimError: the model or the game is broken.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Thought] = loop.create_future()

    def hear(thought: Thought | SeraphimError) -> None:
        if future.done():
            return
        if isinstance(thought, SeraphimError):
            future.set_exception(thought)
        elif thought.done:
            future.set_result(thought)

    seat.think(line, readouts, lambda thought: call_in(loop, lambda: hear(thought)))
    return await future


def call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Let a function be called in the thread of a loop soon; not, once that is closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
