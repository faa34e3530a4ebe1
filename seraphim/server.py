"""The server: pages, what they ask of models and games over HTTP, and engines over WebSockets.

The only module that imports FastAPI and Pydantic. What is said over a WebSocket is `seraphim.conversation`; bounds and
refusals that concern no model are `seraphim.guards`; ports and signals are `seraphim.serving`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from seraphim import messages, requests
from seraphim.conversation import Conversation, Outbox, Solver, open_model, think
from seraphim.errors import ModelError, RecordError, SeraphimError, SettingsError
from seraphim.guards import Guard, RequestLimits, Throttle
from seraphim.hosting import Host
from seraphim.learnt import Learnt
from seraphim.messages import Message
from seraphim.requests import MOST_READOUTS
from seraphim.store import MAX_NAME
from seraphim.thoughts import Thought

WEB = str(resources.files("seraphim") / "web")
TRY_AGAIN_LATER = 1013  # the code of a WebSocket that is closed because there are too many


@dataclass(frozen=True)
class ServerLimits:
    """What a server may take."""

    sessions: int = 512
    """Clients that think at a time, pages and requests together."""
    games: int = 100
    """Games of one answer."""
    requests: RequestLimits = field(default_factory=RequestLimits)


class Service:
    """What all requests share."""

    def __init__(self, host: Host, limits: ServerLimits) -> None:
        self.host = host
        self.limits = limits
        self.learnt = Learnt()
        self.solver = Solver()
        self.sessions = 0

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Count a client while the block runs.

        Raises:
            SettingsError: there are too many.
        """
        if self.sessions >= self.limits.sessions:
            raise SettingsError(f"{self.sessions} clients are here, which is the most: try again later")
        self.sessions += 1
        try:
            yield
        finally:
            self.sessions -= 1

    def close(self) -> None:
        """End all that runs."""
        self.solver.close()
        self.host.close()


class Problem(BaseModel):
    """Why a request was refused, in a sentence."""

    error: str


class ToAnalyze(BaseModel):
    """A position, and how long to think about it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str = Field(max_length=MAX_NAME)
    snapshot: str | None = Field(None, max_length=MAX_NAME)
    start: list[str] | None = None
    moves: list[int] = []
    readouts: int = Field(400, ge=1, le=MOST_READOUTS)


Name = Annotated[str, Path(max_length=MAX_NAME)]
Place = Annotated[int, Query(ge=0, le=2**53)]
Count = Annotated[int, Query(ge=0, le=2**53)]

_REFUSALS: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 404, 405, 408, 413, 422, 429)}
router = APIRouter(responses=_REFUSALS)
pages = APIRouter(include_in_schema=False)


def create_app(host: Host, limits: ServerLimits | None = None, names: frozenset[str] | None = None) -> FastAPI:
    """Return the application.

    Args:
        host: of the models; ends with the application.
        limits: of all requests.
        names: by which requests may call this host; None for any.
    """
    limits = limits or ServerLimits()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with contextlib.suppress(SeraphimError):  # told to whoever opens it
            host.load(host.models()[0].name)
        yield
        app.state.service.close()

    app = FastAPI(title="Seraphim", openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service = Service(host, limits)
    app.add_middleware(Guard, limits=limits.requests, names=names)
    app.add_exception_handler(SeraphimError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    app.add_exception_handler(HTTPException, _refuse_unknown)
    app.add_exception_handler(Exception, _apologize)
    app.include_router(router)
    app.include_router(pages)
    for path in ("/static", "/"):
        app.mount(path, StaticFiles(directory=WEB, check_dir=False))
    return app


def _service(connection: Request | WebSocket) -> Service:
    service: Service = connection.app.state.service
    return service


# ---------------------------------------------------------------- pages


@pages.get("/")
@pages.head("/")
def explorer_page() -> FileResponse:
    """Return the page to play and explore."""
    return FileResponse(f"{WEB}/index.html", headers={"cache-control": "no-cache"})


@pages.get("/learnt")
@pages.head("/learnt")
def learnt_page() -> FileResponse:
    """Return the page of what a model learnt from."""
    return FileResponse(f"{WEB}/learnt.html", headers={"cache-control": "no-cache"})


@pages.get("/config.js")
@pages.get("/static/config.js")
def no_config() -> Response:
    """Return the configuration of pages that use this server, which is none."""
    return Response("", media_type="text/javascript")


# ---------------------------------------------------------------- models and games


@router.get("/api/health")
def health(request: Request) -> Message:
    """Return that the server is there, and how busy it is."""
    engines = _service(request).host.engines
    return {
        "status": "ok",
        "sessions": _service(request).sessions,
        "engines": len(engines),
        "thinking": sum(engine.num_thinking for engine in engines),
        "trees": sum(engine.num_trees for engine in engines),
    }


@router.get("/api/models")
def list_models(request: Request) -> list[Message]:
    """Return the models that can be opened, the first one first."""
    return [asdict(model) for model in _service(request).host.models()]


@router.get("/api/models/{name}/games")
def list_games(request: Request, name: Name, offset: Place = 0, limit: Count = 20) -> Message:
    """Return some of the games that a model played against itself, newest first."""
    service = _service(request)
    return service.learnt.games(service.host.folder(name), offset, min(limit, service.limits.games))


@router.get("/api/models/{name}/games/{game_id}")
def show_game(request: Request, name: Name, game_id: Annotated[str, Path(max_length=128)]) -> Message:
    """Return a game, position by position."""
    service = _service(request)
    return service.learnt.game(service.host.folder(name), game_id)


@router.get("/api/models/{name}/curves")
def show_curves(request: Request, name: Name) -> Message:
    """Return the figures of a model's learning, over its steps."""
    service = _service(request)
    return service.learnt.curves(service.host.folder(name))


# ---------------------------------------------------------------- thinking


@router.post("/api/analyze")
async def analyze(request: Request, wanted: ToAnalyze) -> Response:
    """Return what a model thinks of a position."""
    service = _service(request)
    with service.session():
        start, moves = requests.check_start(wanted.start), requests.check_moves(wanted.moves)
        hosted, seat = await open_model(service.host, wanted.model, wanted.snapshot)
        try:
            line = messages.to_line(hosted.module, hosted.game, start, moves)
            messages.check_unfinished(hosted.game, line)
            thought = await _unless_gone(request, think(seat, line, wanted.readouts))
        finally:
            seat.leave()
        found = messages.to_position(hosted.game, line) | messages.to_analysis(hosted.game, thought)
        content = messages.to_text(found | {"snapshot": hosted.snapshot, "engine": hosted.description})
        return Response(content, media_type="application/json")


async def _unless_gone(request: Request, work: Coroutine[Any, Any, Thought]) -> Thought:
    # Gives work up if the client goes away.
    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, waiting = asyncio.create_task(work), asyncio.create_task(gone())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise SettingsError("the client went away")
        return working.result()
    finally:
        working.cancel()
        waiting.cancel()


@router.websocket("/api/engine")
async def converse(websocket: WebSocket) -> None:
    """Let a page talk to an engine."""
    await websocket.accept()
    service = _service(websocket)
    try:
        with service.session():
            await _converse(websocket, service)
    except SettingsError as error:
        refusal = {"id": None, "type": "error", "message": str(error)}
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await websocket.send_text(messages.to_text(refusal))
            await websocket.close(TRY_AGAIN_LATER, str(error))


async def _converse(websocket: WebSocket, service: Service) -> None:
    limits, outbox = service.limits.requests, Outbox()
    conversation = Conversation(service.host, service.solver, outbox.put)
    throttle = Throttle(limits.message_rate, limits.message_burst)
    writing = asyncio.create_task(_write(websocket, outbox))
    try:
        while (event := await websocket.receive())["type"] != "websocket.disconnect":
            while wait := throttle.take():
                await asyncio.sleep(wait)
            await outbox.has_room()
            await conversation.hear(event.get("text") or "")
    finally:
        conversation.close()
        writing.cancel()


async def _write(websocket: WebSocket, outbox: Outbox) -> None:
    try:
        while True:
            await websocket.send_text(messages.to_text(await outbox.get()))
    except (WebSocketDisconnect, RuntimeError, OSError):  # the client is gone
        outbox.close()


# ---------------------------------------------------------------- refusals


def _problem(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": sentence}, status, headers=headers)


async def _refuse(_: Request, error: Exception) -> Response:
    missing = isinstance(error, ModelError | RecordError)
    return _problem(404 if missing else 400, messages.to_sentence(error))


async def _refuse_invalid(_: Request, error: Exception) -> Response:
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": (), "msg": str(error)}
    where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return _problem(422, messages.to_sentence(SettingsError(f"{where} is not valid: {first['msg']}")))


async def _refuse_unknown(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return await _apologize(request, error)
    known = {404: f"there is no {request.url.path[:80]} here", 405: f"{request.method} is not possible here"}
    return _problem(error.status_code, known.get(error.status_code, str(error.detail)), dict(error.headers or {}))


async def _apologize(_: Request, __: Exception) -> Response:
    return _problem(500, "the server failed here: its log says why")
