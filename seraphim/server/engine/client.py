"""What one client says and is told: its model, its position, its thoughts.

The protocol is that of `seraphim.server.engine.requests`. Knows nothing of the other clients, nor of the connection
that its messages travel on.
"""

import asyncio
import logging
from collections.abc import Callable

from seraphim.errors import GameError, ModelError, SeraphimError, SettingsError
from seraphim.game import Game, saved_games
from seraphim.server.engine import messages, requests
from seraphim.server.engine.engine import Seat
from seraphim.server.engine.messages import Message
from seraphim.server.engine.model_host import Hosted
from seraphim.server.engine.requests import Request
from seraphim.server.engine.shared import Shared, call_in, is_quick, open_model
from seraphim.server.engine.thoughts import Line, Report, Thought

INTERNAL_ERROR = "internal server error; see the server log"

_LOG = logging.getLogger(__name__)

Send = Callable[[Message], None]


class Conversation:
    """One client, from its first message to its last; all in the thread of one event loop."""

    def __init__(self, shared: Shared, client: str, send: Send) -> None:
        """Begin a session.

        Args:
            shared: by all clients.
            client: whose places are taken.
            send: takes each answer; must not wait.

        Raises:
            CapacityError: there are too many sessions.
        """
        self._shared = shared
        self._client = client
        self._send = send
        self._hosted: Hosted | None = None
        self._seat: Seat | None = None
        self._line: Line | None = None
        self._played: list[str] = []  # what the moves of the line are called
        self._thinking: asyncio.Future[None] | None = None  # until the last answer of a thought
        self._question: asyncio.Task[None] | None = None  # for the truth
        shared.sessions.take(client)
        self._has_session = True

    async def hear(self, text: str) -> None:
        """Answer a message; what is wrong with it is answered with a sentence."""
        identity = None
        try:
            request = requests.read_request(text)
            identity = request.id
            if not self._has_session:
                self._shared.sessions.take(self._client)
                self._has_session = True
            await self._answer(request)
        except SeraphimError as error:
            identity = error.id if isinstance(error, requests.RequestError) else identity
            self._send(_to_error(identity, error))
        except Exception:  # noqa: BLE001  # the client has to hear of it, too
            _LOG.exception("a message could not be answered")
            self._send(_to_error(identity, SeraphimError(INTERNAL_ERROR)))

    def rest(self) -> bool:
        """Give the session and the place at the engine back, until the next message; not while work is under way.

        Returns:
            Whether it rests.
        """
        is_busy = any(work is not None and not work.done() for work in (self._thinking, self._question))
        if not is_busy:
            self._give_back()
        return not is_busy

    def close(self) -> None:
        """End what is under way, and give the places back."""
        if self._question is not None:
            self._question.cancel()
        self._give_back()

    def _give_back(self) -> None:
        if self._seat is not None:
            self._seat.leave()
        self._seat = None
        if self._has_session:
            self._shared.sessions.give_back(self._client)
        self._has_session = False

    async def _answer(self, request: Request) -> None:
        if request.type == "open":
            await self._open(request)
            return
        hosted, line = self._hosted, self._line
        if hosted is None or line is None:
            raise SettingsError(f"no model is open: send a message open before {request.type}")
        if request.type == "position":
            await self._place(hosted, line, request)
        elif request.type == "think":
            messages.check_unfinished(hosted.game, line)
            await self._end_thought()
            await self._think(line, request)
        elif request.type == "stop":
            await self._end_thought()
            self._send({"id": request.id, "type": "stopped"})
        elif request.type == "load":
            await self._load(hosted, request)
        else:
            self._ask(hosted, line, request.id)

    async def _open(self, request: Request) -> None:
        hosted, seat = await open_model(self._shared.host, request.model, request.snapshot)
        await self._end_thought()
        if self._seat is not None:
            self._seat.leave()
        self._hosted, self._seat = hosted, seat
        self._line, self._played = messages.to_line(hosted.module, hosted.game, None, ()), []
        self._send(
            {
                "id": request.id,
                "type": "opened",
                "model": hosted.model,
                "snapshot": hosted.snapshot,
                "game": hosted.info,
                "engine": hosted.description,
            }
        )

    async def _place(self, hosted: Hosted, line: Line, request: Request) -> None:
        game, played = hosted.game, self._played
        follows = (request.start, request.moves[: len(line.moves)]) == (line.start, line.moves)
        before = line if follows else None

        def replay() -> tuple[Line, list[str], Message]:
            line = messages.to_line(hosted.module, game, request.start, request.moves, before)
            labels = messages.to_played(game, line, before, played)
            return line, labels, messages.to_position(game, line, labels)

        num_moves = len(request.moves) - (len(before.moves) if before else 0)
        line, labels, position = await self._shared.replay(self._client, game, num_moves, replay)
        await self._end_thought()
        self._line, self._played = line, labels
        self._send({"id": request.id, "type": "position", **position})

    async def _think(self, line: Line, request: Request) -> None:
        while True:
            hosted, seat = await self._seated()
            self._thinking = asyncio.get_running_loop().create_future()
            try:
                seat.think(line, request.readouts, self._to_report(hosted.game, seat, request.id, self._thinking))
                return
            except ModelError:  # put away in this moment
                self._thinking = None

    async def _seated(self) -> tuple[Hosted, Seat]:
        # The place at the engine, taken anew if it was given back or the engine has ended.
        if self._hosted is None:
            raise SettingsError("no model is open")
        if self._seat is None or not self._seat.is_open:
            if self._seat is not None:
                self._seat.leave()
            self._hosted, self._seat = await open_model(self._shared.host, self._hosted.model, self._hosted.snapshot)
        return self._hosted, self._seat

    def _to_report(self, game: Game, seat: Seat, identity: int, thinking: asyncio.Future[None]) -> Report:
        loop, has_failed = asyncio.get_running_loop(), False

        def to_answer(thought: Thought | SeraphimError) -> tuple[Message, bool]:
            # The message, and whether it is the last one.
            nonlocal has_failed
            try:
                if isinstance(thought, SeraphimError):
                    raise thought
                return {"id": identity, "type": "analysis", **messages.to_analysis(game, thought)}, thought.done
            except SeraphimError as error:
                return _to_error(identity, error), True
            except Exception:  # noqa: BLE001  # somebody waits for an answer
                _LOG.exception("a thought could not be told")
                if not has_failed:  # later, the client may think of something else
                    seat.stop()
                has_failed = True
                return _to_error(identity, SeraphimError(INTERNAL_ERROR)), True

        def tell(answer: tuple[Message, bool]) -> None:
            message, is_last = answer
            if not thinking.done():
                self._send(message)
                if is_last:
                    thinking.set_result(None)

        def report(thought: Thought | SeraphimError) -> None:
            # In the engine's thread, where messages are made that take long: they must not hold up other clients.
            if is_quick(game):
                call_in(loop, lambda: None if thinking.done() else tell(to_answer(thought)))
            else:
                answer = to_answer(thought)
                call_in(loop, lambda: tell(answer))

        return report

    async def _end_thought(self) -> None:
        if self._thinking is not None:
            if self._seat is not None:
                self._seat.stop()
            await self._thinking
            self._thinking = None

    async def _load(self, hosted: Hosted, request: Request) -> None:
        name = hosted.module.__name__
        position = await self._shared.rules.run(self._client, lambda: saved_games.read_position(name, request.text))
        start = None if position.start is None else messages.to_words(position.start)
        self._send({"id": request.id, "type": "loaded", "start": start, "moves": position.actions})

    def _ask(self, hosted: Hosted, line: Line, identity: int) -> None:
        if self._question is not None and not self._question.done():
            raise GameError("the solver works on your last question: wait for its answer")

        async def answer() -> None:
            try:
                found = await self._shared.solver.solve(self._client, hosted, line)
                self._send({"id": identity, "type": "truth", **found})
            except SeraphimError as error:
                self._send(_to_error(identity, error))
            except Exception:  # noqa: BLE001  # somebody waits for an answer
                _LOG.exception("a question to the solver could not be answered")
                self._send(_to_error(identity, SeraphimError(INTERNAL_ERROR)))

        self._question = asyncio.create_task(answer())


def _to_error(identity: int | None, error: SeraphimError) -> Message:
    return {"id": identity, "type": "error", "message": messages.to_sentence(error)}
