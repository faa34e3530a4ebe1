"""One client: its model, its position, its searches, and the answers to its messages.

The protocol is described in `seraphim.server.engine.requests`. Knows nothing of other clients, or of the connection.
"""

import asyncio
import logging
from collections.abc import Callable

from seraphim.errors import GameError, ModelError, PlayerError, SeraphimError, SettingsError
from seraphim.game import saved_games
from seraphim.server.engine import messages, requests
from seraphim.server.engine.messages import Message
from seraphim.server.engine.model_host import LoadedModel
from seraphim.server.engine.programs import Program, Programs
from seraphim.server.engine.requests import Request
from seraphim.server.engine.shared import Shared, open_model
from seraphim.server.engine.shared_search import Line, OnUpdate, Session, Update
from seraphim.server.quotas import call_in
from seraphim.terminal.sgf import from_sgf, is_sgf

INTERNAL_ERROR = "internal server error; see the server log"

_LOG = logging.getLogger(__name__)


class Client:
    """One client, from its first message to its last; used in the thread of one event loop."""

    def __init__(self, shared: Shared, address: str, send: Callable[[Message], None]) -> None:
        """Take one of the sessions of an address; `send` takes each answer, and must not wait.

        Raises:
            CapacityError: there are too many sessions.
        """
        self._shared = shared
        self._address = address
        self._send = send
        self._loaded: LoadedModel | None = None
        self._session: Session | None = None  # of the loaded model's engine
        self._line: Line | None = None
        self._played: list[str] = []  # the labels of the line's moves
        self._search: asyncio.Future[None] | None = None  # until its last update
        self._solver: asyncio.Task[None] | None = None
        self._program: Program | None = None  # of others, that this client plays with
        self._program_turn: asyncio.Task[None] | None = None
        shared.sessions.take(address)
        self._is_counted = True

    async def handle(self, text: str) -> None:
        """Answer a message; an error is an answer, too."""
        identity = None
        try:
            request = requests.read_request(text)
            identity = request.id
            if not self._is_counted:
                self._shared.sessions.take(self._address)
                self._is_counted = True
            await self._answer(request)
        except requests.RequestError as error:
            self._send_error(error.id, error)
        except Exception as error:  # noqa: BLE001  # the client must get an answer
            self._send_error(identity, error)

    def release_if_idle(self) -> bool:
        """Free the session until the next message, unless work is under way; return whether it is free."""
        work = (self._search, self._solver, self._program_turn)
        is_busy = any(each is not None and not each.done() for each in work)
        if not is_busy:
            self._release()
        return not is_busy

    def close(self) -> None:
        """Cancel what is under way, and free the session."""
        for turn in (self._solver, self._program_turn):
            if turn is not None:
                turn.cancel()
        self._release()

    def _release(self) -> None:
        self._detach()
        self._end_program()
        if self._is_counted:
            self._shared.sessions.give_back(self._address)
        self._is_counted = False

    def _detach(self) -> None:
        if self._loaded is not None and self._session is not None:
            self._loaded.engine.detach(self._session)
        self._session = None

    def _end_program(self) -> None:
        if self._program is not None:
            self._program.close()
        self._program = None

    async def _answer(self, request: Request) -> None:
        if isinstance(request, requests.Open):
            await self._open(request)
            return
        loaded, line = self._loaded, self._line
        if loaded is None or line is None:
            raise SettingsError(f"no model is open: send a message open before {request.type}")
        match request:
            case requests.Position():
                await self._set_position(loaded, line, request)
            case requests.Think():
                messages.check_unfinished(loaded.game, line)
                await self._end_search()
                await self._start_search(loaded, line, request)
            case requests.Stop():
                await self._end_search()
                self._send({"id": request.id, "type": "stopped"})
            case requests.Load():
                await self._load(loaded, request)
            case requests.Solve():
                self._solve(loaded, line, request.id)
            case requests.Move():
                self._ask_program(loaded, line, request.id)

    async def _open(self, request: requests.Open) -> None:
        loaded, session = await open_model(self._shared.host, request.model, request.snapshot)
        await self._end_search()
        self._detach()
        self._end_program()
        self._loaded, self._session = loaded, session
        self._line, self._played = messages.to_line(loaded.game, None, ()), []
        programs = self._programs_of(loaded)
        self._send(
            {
                "id": request.id,
                "type": "opened",
                "model": loaded.model,
                "snapshot": loaded.snapshot,
                "game": loaded.info,
                "engine": loaded.description,
                "program": programs.title if programs else None,
            }
        )

    async def _set_position(self, loaded: LoadedModel, line: Line, request: requests.Position) -> None:
        game, played = loaded.game, self._played
        follows = (request.start, request.moves[: len(line.moves)]) == (line.start, line.moves)
        before = line if follows else None

        def replay() -> tuple[Line, list[str], Message]:
            line = messages.to_line(game, request.start, request.moves, before)
            labels = messages.to_played(game, line, before, played)
            return line, labels, messages.to_position(game, line, labels)

        num_moves = len(request.moves) - (len(before.moves) if before else 0)
        line, labels, position = await self._shared.replay(self._address, game, num_moves, replay)
        await self._end_search()
        self._line, self._played = line, labels
        self._send({"id": request.id, "type": "position", **position})

    async def _start_search(self, loaded: LoadedModel, line: Line, request: requests.Think) -> None:
        while True:
            if self._session is None or not loaded.engine.is_open:  # it was released, or the engine has ended
                self._detach()
                loaded, self._session = await open_model(self._shared.host, loaded.model, loaded.snapshot)
                self._loaded = loaded
            self._search = asyncio.get_running_loop().create_future()
            on_update = self._to_on_update(loaded, self._session, request.id, self._search)
            try:
                loaded.engine.search(self._session, line, request.readouts, on_update)
                return
            except ModelError:  # unloaded at this very moment
                self._search = None

    def _to_on_update(
        self, loaded: LoadedModel, session: Session, identity: int, ended: asyncio.Future[None]
    ) -> OnUpdate:
        loop, has_failed = asyncio.get_running_loop(), False

        def on_update(update: Update | SeraphimError) -> None:
            # In the engine's thread, as messages that take long must not delay other clients.
            nonlocal has_failed
            try:
                if isinstance(update, SeraphimError):
                    raise update
                message, is_last = messages.to_analysis(loaded.game, update), update.done
                message |= {"id": identity, "type": "analysis"}
            except Exception as error:  # noqa: BLE001  # the client must get an answer
                if not isinstance(error, SeraphimError) and not has_failed:  # later, it may search something else
                    loaded.engine.stop(session)
                    has_failed = True
                message, is_last = _to_error(identity, error), True
            call_in(loop, lambda: send(message, is_last))

        def send(message: Message, is_last: bool) -> None:
            if not ended.done():
                self._send(message)
                if is_last:
                    ended.set_result(None)

        return on_update

    async def _end_search(self) -> None:
        if self._search is not None:
            if self._loaded is not None and self._session is not None:
                self._loaded.engine.stop(self._session)
            await self._search
            self._search = None

    async def _load(self, loaded: LoadedModel, request: requests.Load) -> None:
        def read() -> saved_games.Position:
            text = request.text
            if is_sgf(text):
                tree = from_sgf(loaded.game, text)
            elif saved_games.is_saved_game(text):
                tree = saved_games.from_text(loaded.game, text)
            else:
                return saved_games.read_position(loaded.module.__name__, text)
            return saved_games.Position(None if tree.starts_afresh else tree.root.state, tree.actions(), [])

        position = await self._shared.rules.run(self._address, read)
        start = None if position.start is None else [str(word) for word in position.start.tolist()]
        self._send({"id": request.id, "type": "loaded", "start": start, "moves": position.actions})

    def _solve(self, loaded: LoadedModel, line: Line, identity: int) -> None:
        if self._solver is not None and not self._solver.done():
            raise GameError("the solver is still working on your last request: wait for its answer")

        async def answer() -> None:
            try:
                found = await self._shared.solve(self._address, loaded, line)
                self._send({"id": identity, "type": "truth", **found})
            except Exception as error:  # noqa: BLE001  # the client must get an answer
                self._send_error(identity, error)

        self._solver = asyncio.create_task(answer())

    def _programs_of(self, loaded: LoadedModel) -> Programs | None:
        programs = self._shared.programs
        return programs if programs and programs.game.name == loaded.game.name else None

    def _ask_program(self, loaded: LoadedModel, line: Line, identity: int) -> None:
        programs = self._programs_of(loaded)
        if programs is None:
            raise PlayerError(f"this server has no program that plays {loaded.game.name}")
        messages.check_unfinished(loaded.game, line)
        if self._program_turn is not None and not self._program_turn.done():
            raise GameError(f"{programs.title} is still thinking about your last request: wait for its answer")
        program = self._program = self._program or Program(programs, self._address)

        async def answer() -> None:
            try:
                self._send({"id": identity, "type": "move", "action": await program.choose(line)})
            except Exception as error:  # noqa: BLE001  # the client must get an answer
                self._send_error(identity, error)

        self._program_turn = asyncio.create_task(answer())

    def _send_error(self, identity: int | None, error: Exception) -> None:
        self._send(_to_error(identity, error))


def _to_error(identity: int | None, error: Exception) -> Message:
    # Unexpected errors are for the log.
    if not isinstance(error, SeraphimError):
        _LOG.error("a message could not be answered", exc_info=error)
        error = SeraphimError(INTERNAL_ERROR)
    return {"id": identity, "type": "error", "message": messages.error_text(error)}
