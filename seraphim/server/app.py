"""The routes of the server: pages, models and games over HTTP.

Limits that concern no model are `seraphim.server.middleware`; connections, the port and signals are
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
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import Scope

from seraphim.errors import CapacityError, ModelError, RecordError, SeraphimError, version
from seraphim.search.analysis import PositionAnalysis
from seraphim.server import history
from seraphim.server.middleware import Access, Guard, client_of, status_of
from seraphim.server.searcher import messages
from seraphim.server.searcher.client import INTERNAL_ERROR
from seraphim.server.searcher.engine_host import EngineHost
from seraphim.server.searcher.messages import Message
from seraphim.server.searcher.model_host import ModelHost
from seraphim.server.searcher.requests import Analyze, explain
from seraphim.server.searcher.shared import Shared, open_model, search
from seraphim.server.searcher.shared_search import Line
from seraphim.server.service import ServerLimits, Service
from seraphim.server.sockets import serve_client, service_of
from seraphim.server.webfiles import WEB, WebFiles
from seraphim.storage.snapshots import MAX_NAME

_FOREVER = "public, max-age=31536000, immutable"


class Problem(BaseModel):
    """Why a request was refused."""

    error: str


Name = Annotated[str, Path(max_length=MAX_NAME)]
NonNegative = Annotated[int, Query(ge=0, le=2**53)]

_REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 404, 405, 408, 413, 422, 429, 503)
}
router = APIRouter(responses=_REFUSALS)
pages = APIRouter(include_in_schema=False)


def create_app(
    host: ModelHost, limits: ServerLimits | None = None, access: Access | None = None, engines: EngineHost | None = None
) -> FastAPI:
    """Return the application, which closes the host and the engines when it ends."""
    limits = limits or ServerLimits()
    service = Service(limits, Shared(host, limits.sessions, engines), WebFiles())

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with contextlib.suppress(SeraphimError):  # which the first client gets that opens the model
            host.load(host.models()[0].name)
        yield
        service.shared.close()

    app = FastAPI(
        title="Seraphim",
        version=version(),
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    app.add_middleware(Guard, limits=limits.requests, access=access or Access())
    app.add_exception_handler(SeraphimError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    app.add_exception_handler(HTTPException, _refuse_unknown)
    app.add_exception_handler(Exception, _report_failure)
    app.include_router(router)
    app.add_api_websocket_route("/api/engine", serve_client)
    app.include_router(pages)
    for path in ("/static", "/"):
        app.mount(path, _Files(service.files))
    return app


class _Files(StaticFiles):
    # The files of pages. Browsers keep those whose path contains their version, and ask again for the others.

    def __init__(self, files: WebFiles) -> None:
        super().__init__(directory=WEB, check_dir=False)
        self._files = files

    async def get_response(self, path: str, scope: Scope) -> Response:
        path, is_current = self._files.split(path)
        response = await super().get_response(path, scope)
        if is_current:
            response.headers["cache-control"] = _FOREVER
        return response


# ---------------------------------------------------------------- pages


@pages.get("/")
@pages.get("/index.html")
def explorer_page(request: Request) -> HTMLResponse:
    """Return the page to play and explore."""
    return HTMLResponse(service_of(request).files.page("index.html"))


@pages.get("/history")
@pages.get("/history.html")
def history_page(request: Request) -> HTMLResponse:
    """Return the page of a model's learning curves and self-play games."""
    return HTMLResponse(service_of(request).files.page("history.html"))


@pages.get("/config.js")
@pages.get("/static/config.js")
def empty_config() -> Response:
    """Return the configuration of pages that use this server: none."""
    return Response("", media_type="text/javascript")


# ---------------------------------------------------------------- models and games


@router.get("/api/health")
def health(request: Request) -> Message:
    """Return whether the searchers work, and how busy the server is; `failed` ones are replaced on demand."""
    shared = service_of(request).shared
    models = shared.host.loaded
    loads = [model.searcher.load for model in models]
    failed = [f"{model.model}/{model.snapshot}" for model in models if model.searcher.has_failed]
    return {
        "status": "failed" if failed else "ok",
        "failed": failed,
        "sessions": shared.sessions.taken,
        "engines": sum(model.searcher.is_open for model in models),
        "thinking": sum(load.searching + load.waiting for load in loads),
        "trees": sum(load.trees for load in loads),
    }


@router.get("/api/models")
def list_models(request: Request) -> list[Message]:
    """Return the models that can be opened, the first one first."""
    return [asdict(model) for model in service_of(request).shared.host.models()]


@router.get("/api/models/{name}/games")
def list_games(request: Request, name: Name, offset: NonNegative = 0, limit: NonNegative = 20) -> Message:
    """Return some of the games that a model played against itself, newest first."""
    service = service_of(request)
    return history.list_games(service.shared.host.folder(name), offset, min(limit, service.limits.games))


@router.get("/api/models/{name}/games/{game_id}")
def show_game(request: Request, name: Name, game_id: Annotated[str, Path(max_length=128)]) -> Message:
    """Return a game, position by position."""
    return history.show_game(service_of(request).shared.host.folder(name), game_id)


@router.get("/api/models/{name}/curves")
def show_curves(request: Request, name: Name) -> Message:
    """Return a model's learning curves."""
    return history.show_curves(service_of(request).shared.host.folder(name))


# ---------------------------------------------------------------- search


@router.post("/api/analyze")
async def analyze(request: Request, wanted: Analyze) -> Response:
    """Search a position and return what was found."""
    shared, client = service_of(request).shared, client_of(request.scope)
    with shared.sessions.hold(client):
        loaded, session = await open_model(shared.host, wanted.model, wanted.snapshot)
        game, num_moves = loaded.game, len(wanted.moves)

        def to_line() -> Line:
            line = messages.to_line(game, wanted.start, wanted.moves)
            messages.check_unfinished(game, line)
            return line

        try:
            line = await shared.replay(client, game, num_moves, to_line)
            found = await _until_disconnect(request, search(loaded, session, line, wanted.readouts))
        finally:
            loaded.searcher.detach(session)

        def to_content() -> str:
            content = messages.to_position(game, line) | found.to_dict() | {"done": True}
            return messages.to_json(content | {"snapshot": loaded.snapshot, "engine": loaded.description})

        content = await shared.replay(client, game, num_moves, to_content)
        return Response(content, media_type="application/json")


async def _until_disconnect(request: Request, work: Coroutine[Any, Any, PositionAnalysis]) -> PositionAnalysis:
    # Cancels the work if the client disconnects.
    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, waiting = asyncio.create_task(work), asyncio.create_task(disconnected())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise SeraphimError("the client has disconnected")
        return working.result()
    finally:
        working.cancel()
        waiting.cancel()


# ---------------------------------------------------------------- errors


def _problem(status: int, reason: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": reason}, status, headers=headers)


async def _refuse(_: Request, error: Exception) -> Response:
    if isinstance(error, CapacityError):
        return _problem(status_of(error), str(error))
    return _problem(404 if isinstance(error, ModelError | RecordError) else 400, messages.error_text(error))


async def _refuse_invalid(_: Request, error: Exception) -> Response:
    errors = error.errors() if isinstance(error, RequestValidationError) else [{"loc": (), "msg": str(error)}]
    return _problem(422, messages.error_text(ValueError(explain(errors))))


async def _refuse_unknown(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return await _report_failure(request, error)
    known = {404: f"no such page: {request.url.path[:80]}", 405: f"{request.method} is not possible here"}
    return _problem(error.status_code, known.get(error.status_code, str(error.detail)), dict(error.headers or {}))


async def _report_failure(_: Request, __: Exception) -> Response:
    return _problem(500, INTERNAL_ERROR)
