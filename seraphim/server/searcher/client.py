"""One client: its model, its position, its searches, and the answers to its messages.

The protocol is described in `seraphim.server.searcher.requests`. Knows nothing of other clients, or of the connection.
"""

import asyncio
import logging
from collections.abc import Callable

from seraphim.errors import GameError, ModelError, PlayerError, SeraphimError, SettingsError
from seraphim.game import saved_games
from seraphim.search.analysis import PositionAnalysis
from seraphim.server.quotas import call_in
from seraphim.server.searcher import messages, requests
from seraphim.server.searcher.engine_host import EngineHost, HostedEngine
from seraphim.server.searcher.messages import Message
from seraphim.server.searcher.model_host import LoadedModel
from seraphim.server.searcher.requests import Request
from seraphim.server.searcher.shared import Shared, open_model
from seraphim.server.searcher.shared_search import Line, OnUpdate, Session
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
        self._session: Session | None = None  # of the loaded model's searcher
        self._line: Line | None = None
        self._played: list[messages.LabeledMove] = []  # the line's moves
        self._search: asyncio.Future[None] | None = None  # until its last update
        self._solver: asyncio.Task[None] | None = None
        self._engine: HostedEngine | None = None  # external, that this client plays with
        self._engine_turn: asyncio.Task[None] | None = None
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
        work = (self._search, self._solver, self._engine_turn)
        is_busy = any(each is not None and not each.done() for each in work)
        if not is_busy:
            self._release()
        return not is_busy

    def close(self) -> None:
        """Cancel what is under way, and free the session."""
        for turn in (self._solver, self._engine_turn):
            if turn is not None:
                turn.cancel()
        self._release()

    def _release(self) -> None:
        self._detach()
        self._end_engine()
        if self._is_counted:
            self._shared.sessions.give_back(self._address)
        self._is_counted = False

    def _detach(self) -> None:
        if self._loaded is not None and self._session is not None:
            self._loaded.searcher.detach(self._session)
        self._session = None

    def _end_engine(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._engine = None

    async def _answer(self, request: Request) -> None:
        if isinstance(request, requests.Open):
            await self._open(request)
            return
        loaded, line = self._loaded, self._line
        if loaded is None or line is None:
            raise SettingsError(f"no model is open: send a message open before {request.type}")
        match request:
            case requests.SetPosition():
                await self._set_position(loaded, line, request)
            case requests.Think():
                messages.check_unfinished(loaded.game, line)
                await self._end_search()
                await self._start_search(loaded, line, request)
            case requests.Stop():
                await self._end_search()
                self._send({"id": request.id, "type": "stopped"})
            case requests.ReadText():
                await self._load(loaded, request)
            case requests.Solve():
                self._solve(loaded, line, request.id)
            case requests.GenerateMove():
                self._ask_engine(loaded, line, request.id)

    async def _open(self, request: requests.Open) -> None:
        loaded, session = await open_model(self._shared.host, request.model, request.snapshot)
        await self._end_search()
        self._detach()
        self._end_engine()
        self._loaded, self._session = loaded, session
        self._line, self._played = messages.to_line(loaded.game, None, ()), []
        engines = self._engines_of(loaded)
        self._send(
            {
                "id": request.id,
                "type": "opened",
                "model": loaded.model,
                "snapshot": loaded.snapshot,
                "game": loaded.info,
                "engine": loaded.description,
                "program": engines.title if engines else None,
            }
        )

    async def _set_position(self, loaded: LoadedModel, line: Line, request: requests.SetPosition) -> None:
        game, played = loaded.game, self._played
        follows = (request.start, request.moves[: len(line.moves)]) == (line.start, line.moves)
        before = line if follows else None

        def replay() -> tuple[Line, list[messages.LabeledMove], Message]:
            line = messages.to_line(game, request.start, request.moves, before)
            moves = messages.to_played(game, line, before, played)
            return line, moves, messages.to_position(game, line, moves)

        num_moves = len(request.moves) - (len(before.moves) if before else 0)
        line, moves, position = await self._shared.replay(self._address, game, num_moves, replay)
        await self._end_search()
        self._line, self._played = line, moves
        self._send({"id": request.id, "type": "position", **position})

    async def _start_search(self, loaded: LoadedModel, line: Line, request: requests.Think) -> None:
        while True:
            if self._session is None or not loaded.searcher.is_open:  # it was released, or the searcher has ended
                self._detach()
                loaded, self._session = await open_model(self._shared.host, loaded.model, loaded.snapshot)
                self._loaded = loaded
            self._search = asyncio.get_running_loop().create_future()
            on_update = self._to_on_update(request.id, self._search)
            try:
                loaded.searcher.search(self._session, line, request.readouts, on_update)
                return
            except ModelError:  # unloaded at this very moment
                self._search = None

    def _to_on_update(self, identity: int, ended: asyncio.Future[None]) -> OnUpdate:
        loop = asyncio.get_running_loop()

        def on_update(found: PositionAnalysis | Exception, is_last: bool) -> None:
            # In the searcher's thread, as messages that take long must not delay other clients.
            if isinstance(found, Exception):
                message = _to_error(identity, found)
            else:
                message = {"id": identity, "type": "analysis", **found.to_dict(), "done": is_last}
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
                self._loaded.searcher.stop(self._session)
            await self._search
            self._search = None

    async def _load(self, loaded: LoadedModel, request: requests.ReadText) -> None:
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
                self._send({"id": identity, "type": "solve", **found})
            except Exception as error:  # noqa: BLE001  # the client must get an answer
                self._send_error(identity, error)

        self._solver = asyncio.create_task(answer())

    def _engines_of(self, loaded: LoadedModel) -> EngineHost | None:
        engines = self._shared.engines
        return engines if engines and engines.game.name == loaded.game.name else None

    def _ask_engine(self, loaded: LoadedModel, line: Line, identity: int) -> None:
        engines = self._engines_of(loaded)
        if engines is None:
            raise PlayerError(f"this server has no program that plays {loaded.game.name}")
        messages.check_unfinished(loaded.game, line)
        if self._engine_turn is not None and not self._engine_turn.done():
            raise GameError(f"{engines.title} is still thinking about your last request: wait for its answer")
        engine = self._engine = self._engine or HostedEngine(engines, self._address)

        async def answer() -> None:
            try:
                self._send({"id": identity, "type": "move", "action": await engine.choose(line)})
            except Exception as error:  # noqa: BLE001  # the client must get an answer
                self._send_error(identity, error)

        self._engine_turn = asyncio.create_task(answer())

    def _send_error(self, identity: int | None, error: Exception) -> None:
        self._send(_to_error(identity, error))


def _to_error(identity: int | None, error: Exception) -> Message:
    # Unexpected errors are for the log.
    if not isinstance(error, SeraphimError):
        _LOG.error("a message could not be answered", exc_info=error)
        error = SeraphimError(INTERNAL_ERROR)
    return {"id": identity, "type": "error", "message": messages.error_text(error)}
