"""What one client says and is told: its model, its position, its thoughts. The protocol is that of `seraphim.requests`.

Knows nothing of the other clients, nor of the connection that its messages travel on.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from seraphim import messages, notation, requests, truth
from seraphim.engine import Seat
from seraphim.errors import GameError, SeraphimError, SettingsError
from seraphim.hosting import Host, Hosted
from seraphim.messages import Message
from seraphim.requests import Request
from seraphim.thoughts import Line, Thought

TRUTH_SECONDS = 10.0
MOST_QUESTIONS = 16  # for the truth that wait

Send = Callable[[Message], None]


class Solver:
    """Finds the truth in a thread of its own, one position after the other."""

    def __init__(self, seconds: float = TRUTH_SECONDS) -> None:
        """Prepare, for so many seconds a position at most."""
        self._seconds = seconds
        self._executor = ThreadPoolExecutor(1, "solver")
        self._waiting = 0

    async def solve(self, hosted: Hosted, line: Line) -> Message:
        """Return the exact results of the actions in a position.

        Raises:
            GameError: the game is over, or see `seraphim.truth.solve`; or too many others ask.
        """
        messages.check_unfinished(hosted.game, line)
        if self._waiting >= MOST_QUESTIONS:
            raise GameError(f"{self._waiting} others wait for the solver: ask again later")
        self._waiting += 1
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                self._executor, truth.solve, hosted.module, hosted.game, line.state, self._seconds
            )
        finally:
            self._waiting -= 1
        return {"actions": {str(action): each._asdict() for action, each in found.items()}}

    def close(self) -> None:
        """Answer no more questions."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class Conversation:
    """One client, from its first message to its last; all in the thread of one event loop."""

    def __init__(self, host: Host, solver: Solver, send: Send) -> None:
        """Begin.

        Args:
            host: of the models.
            solver: shared by all clients.
            send: takes each answer; must not wait.
        """
        self._host = host
        self._solver = solver
        self._send = send
        self._hosted: Hosted | None = None
        self._seat: Seat | None = None
        self._line: Line | None = None
        self._thinking: asyncio.Future[None] | None = None  # until the last answer of a thought
        self._question: asyncio.Task[None] | None = None  # for the truth

    async def hear(self, text: str) -> None:
        """Answer a message; what is wrong with it is answered with a sentence."""
        identity = None
        try:
            request = requests.read_request(text)
            identity = request.id
            await self._answer(request)
        except SeraphimError as error:
            identity = error.id if isinstance(error, requests.RequestError) else identity
            self._send({"id": identity, "type": "error", "message": messages.to_sentence(error)})

    def close(self) -> None:
        """End what is under way, and give the place back."""
        if self._question is not None:
            self._question.cancel()
        if self._seat is not None:
            self._seat.leave()
        self._seat = None

    async def _answer(self, request: Request) -> None:
        if request.type == "open":
            await self._open(request)
            return
        hosted, seat, line = self._hosted, self._seat, self._line
        if hosted is None or seat is None or line is None:
            raise SettingsError(f"no model is open: send a message open before {request.type}")
        if request.type == "position":
            line = messages.to_line(hosted.module, hosted.game, request.start, request.moves)
            await self._end_thought(seat)
            self._line = line
            self._send({"id": request.id, "type": "position", **messages.to_position(hosted.game, line)})
        elif request.type == "think":
            messages.check_unfinished(hosted.game, line)
            await self._end_thought(seat)
            self._think(hosted, seat, line, request)
        elif request.type == "stop":
            await self._end_thought(seat)
            self._send({"id": request.id, "type": "stopped"})
        elif request.type == "load":
            self._load(hosted, request)
        else:
            self._ask(hosted, line, request.id)

    async def _open(self, request: Request) -> None:
        hosted, seat = await open_model(self._host, request.model, request.snapshot)
        before, self._hosted, self._seat = self._seat, hosted, seat
        if before is not None:
            await self._end_thought(before)
            before.leave()
        self._line = messages.to_line(hosted.module, hosted.game, None, ())
        self._send(
            {
                "id": request.id,
                "type": "opened",
                "model": hosted.model,
                "snapshot": hosted.snapshot,
                "game": messages.to_game_info(hosted.game, solved=truth.is_solved(hosted.module)),
                "engine": hosted.description,
            }
        )

    def _think(self, hosted: Hosted, seat: Seat, line: Line, request: Request) -> None:
        loop = asyncio.get_running_loop()
        self._thinking = thinking = loop.create_future()

        def hear(thought: Thought | SeraphimError) -> None:
            if isinstance(thought, SeraphimError):
                self._send({"id": request.id, "type": "error", "message": messages.to_sentence(thought)})
            else:
                self._send({"id": request.id, "type": "analysis", **messages.to_analysis(hosted.game, thought)})
            if (isinstance(thought, SeraphimError) or thought.done) and not thinking.done():
                thinking.set_result(None)

        seat.think(line, request.readouts, in_loop(loop, hear))

    async def _end_thought(self, seat: Seat) -> None:
        if self._thinking is not None:
            seat.stop()
            await self._thinking
            self._thinking = None

    def _load(self, hosted: Hosted, request: Request) -> None:
        position = notation.read_position(hosted.module.__name__, request.text)
        start = None if position.start is None else messages.to_words(position.start)
        self._send({"id": request.id, "type": "loaded", "start": start, "moves": position.actions})

    def _ask(self, hosted: Hosted, line: Line, identity: int) -> None:
        if self._question is not None and not self._question.done():
            raise GameError("the solver works on your last question: wait for its answer")

        async def answer() -> None:
            try:
                self._send({"id": identity, "type": "truth", **await self._solver.solve(hosted, line)})
            except SeraphimError as error:
                self._send({"id": identity, "type": "error", "message": messages.to_sentence(error)})

        self._question = asyncio.create_task(answer())


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

    seat.think(line, readouts, in_loop(loop, hear))
    return await future


def in_loop(
    loop: asyncio.AbstractEventLoop, hear: Callable[[Thought | SeraphimError], None]
) -> Callable[[Thought | SeraphimError], None]:
    """Return a function for another thread that lets `hear` be called in a loop; nothing, once that is closed."""

    def report(thought: Thought | SeraphimError) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(hear, thought)

    return report


class Outbox:
    """Answers on their way to a client. News that a slow client has not got yet are replaced by newer ones."""

    def __init__(self, room: int = 32) -> None:
        """Begin; more than so many answers let `has_room` wait."""
        self._room = room
        self._queue: deque[Message] = deque()
        self._changed = asyncio.Event()
        self._closed = False

    def put(self, message: Message) -> None:
        """Add an answer."""
        if self._closed:
            return
        last = self._queue[-1] if self._queue else {}
        if last.get("done") is False and last["id"] == message["id"] and message["type"] == "analysis":
            self._queue.pop()
        self._queue.append(message)
        self._changed.set()

    async def get(self) -> Message:
        """Return the next answer, when there is one."""
        while not self._queue:
            self._changed.clear()
            await self._changed.wait()
        message = self._queue.popleft()
        self._changed.set()
        return message

    async def has_room(self) -> None:
        """Wait until few answers are on their way."""
        while len(self._queue) > self._room:
            self._changed.clear()
            await self._changed.wait()

    def close(self) -> None:
        """Forget all answers, as the client is gone."""
        self._closed = True
        self._queue.clear()
        self._changed.set()
