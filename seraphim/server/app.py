"""The server: pages, and what they ask of models and games over HTTP.

The only module that imports Pydantic, and, but for `seraphim.server.sockets`, which is for WebSockets, FastAPI. Bounds
and refusals that concern no model are `seraphim.server.middleware`; connections, ports and signals are
`seraphim.server.run`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import Scope

from seraphim.errors import CapacityError, ModelError, RecordError, SeraphimError, SettingsError
from seraphim.server.engine import messages, requests
from seraphim.server.engine.client import INTERNAL_ERROR
from seraphim.server.engine.messages import Message
from seraphim.server.engine.model_host import Host
from seraphim.server.engine.requests import MOST_READOUTS
from seraphim.server.engine.shared import open_model, think
from seraphim.server.engine.thoughts import Line, Thought
from seraphim.server.middleware import Access, Guard, client_of, status_of
from seraphim.server.service import ServerLimits, Service
from seraphim.server.sockets import converse, service_of
from seraphim.server.webfiles import WEB, WebFiles
from seraphim.storage.snapshots import MAX_NAME

_FOR_GOOD = "public, max-age=31536000, immutable"


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

_REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 404, 405, 408, 413, 422, 429, 503)
}
router = APIRouter(responses=_REFUSALS)
pages = APIRouter(include_in_schema=False)


def create_app(host: Host, limits: ServerLimits | None = None, access: Access | None = None) -> FastAPI:
    """Return the application.

    Args:
        host: of the models; ends with the application.
        limits: of all requests.
        access: who may use it.
    """
    limits = limits or ServerLimits()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with contextlib.suppress(SeraphimError):  # told to whoever opens it
            host.load(host.models()[0].name)
        yield
        app.state.service.shared.close()

    app = FastAPI(title="Seraphim", openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service = service = Service(host, limits)
    app.add_middleware(Guard, limits=limits.requests, access=access or Access())
    app.add_exception_handler(SeraphimError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    app.add_exception_handler(HTTPException, _refuse_unknown)
    app.add_exception_handler(Exception, _apologize)
    app.include_router(router)
    app.add_api_websocket_route("/api/engine", converse)
    app.include_router(pages)
    for path in ("/static", "/"):
        app.mount(path, _Files(service.files))
    return app


class _Files(StaticFiles):
    """The files of pages. A browser keeps one whose address names its version, and asks again for any other."""

    def __init__(self, files: WebFiles) -> None:
        super().__init__(directory=WEB, check_dir=False)
        self._files = files

    async def get_response(self, path: str, scope: Scope) -> Response:
        path, is_current = self._files.split(path)
        response = await super().get_response(path, scope)
        if is_current:
            response.headers["cache-control"] = _FOR_GOOD
        return response


# ---------------------------------------------------------------- pages


@pages.get("/")
@pages.head("/")
@pages.get("/index.html")
def explorer_page(request: Request) -> HTMLResponse:
    """Return the page to play and explore."""
    return HTMLResponse(service_of(request).files.page("index.html"))


@pages.get("/learnt")
@pages.head("/learnt")
@pages.get("/learnt.html")
def learnt_page(request: Request) -> HTMLResponse:
    """Return the page of what a model learnt from."""
    return HTMLResponse(service_of(request).files.page("learnt.html"))


@pages.get("/config.js")
@pages.get("/static/config.js")
def no_config() -> Response:
    """Return the configuration of pages that use this server, which is none."""
    return Response("", media_type="text/javascript")


# ---------------------------------------------------------------- models and games


@router.get("/api/health")
def health(request: Request) -> Message:
    """Return whether all is well, and how busy the server is; `failed` engines are replaced when they are needed."""
    shared = service_of(request).shared
    loaded = shared.host.loaded
    failed = [f"{hosted.model}/{hosted.snapshot}" for hosted in loaded if hosted.engine.has_failed]
    return {
        "status": "failed" if failed else "ok",
        "failed": failed,
        "sessions": shared.sessions.taken,
        "engines": sum(hosted.engine.is_open for hosted in loaded),
        "thinking": sum(hosted.engine.num_thinking for hosted in loaded),
        "trees": sum(hosted.engine.num_trees for hosted in loaded),
    }


@router.get("/api/models")
def list_models(request: Request) -> list[Message]:
    """Return the models that can be opened, the first one first."""
    return [asdict(model) for model in service_of(request).host.models()]


@router.get("/api/models/{name}/games")
def list_games(request: Request, name: Name, offset: Place = 0, limit: Count = 20) -> Message:
    """Return some of the games that a model played against itself, newest first."""
    service = service_of(request)
    return service.learnt.games(service.host.folder(name), offset, min(limit, service.limits.games))


@router.get("/api/models/{name}/games/{game_id}")
def show_game(request: Request, name: Name, game_id: Annotated[str, Path(max_length=128)]) -> Message:
    """Return a game, position by position."""
    service = service_of(request)
    return service.learnt.game(service.host.folder(name), game_id)


@router.get("/api/models/{name}/curves")
def show_curves(request: Request, name: Name) -> Message:
    """Return the figures of a model's learning, over its steps."""
    service = service_of(request)
    return service.learnt.curves(service.host.folder(name))


# ---------------------------------------------------------------- thinking


@router.post("/api/analyze")
async def analyze(request: Request, wanted: ToAnalyze) -> Response:
    """Return what a model thinks of a position."""
    shared, client = service_of(request).shared, client_of(request.scope)
    start, moves = requests.check_start(wanted.start), requests.check_moves(wanted.moves)
    with shared.sessions.hold(client):
        hosted, seat = await open_model(shared.host, wanted.model, wanted.snapshot)
        module, game = hosted.module, hosted.game

        def to_line() -> Line:
            line = messages.to_line(module, game, start, moves)
            messages.check_unfinished(game, line)
            return line

        try:
            line = await shared.replay(client, game, len(moves), to_line)
            thought = await _unless_gone(request, think(seat, line, wanted.readouts))
        finally:
            seat.leave()

        def to_content() -> str:
            found = messages.to_position(game, line) | messages.to_analysis(game, thought)
            return messages.to_text(found | {"snapshot": hosted.snapshot, "engine": hosted.description})

        content = await shared.replay(client, game, len(moves), to_content)
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


# ---------------------------------------------------------------- refusals


def _problem(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": sentence}, status, headers=headers)


async def _refuse(_: Request, error: Exception) -> Response:
    if isinstance(error, CapacityError):
        return _problem(status_of(error), str(error))
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
    return _problem(500, INTERNAL_ERROR)
