"""Messages from pages to a searcher, and those of their checks that depend on no game.

Requests are JSON objects with an int `id`, which every answer repeats, and a `type`:

    open      model, snapshot (a name, or null for the champion)
    position  start (the state's words in decimal, or null for the initial one), moves (actions)
    think     readouts
    stop
    load      text (moves, or a drawn board)
    solve
    move      (of the external engine, `serve --engine`, in the position)

The answers are in `seraphim.server.searcher.messages` and `PositionAnalysis.to_dict`. A client that sends nothing for
some minutes loses its session, and gets another one with its next message.
"""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError

from seraphim.errors import SettingsError
from seraphim.storage.snapshots import MAX_NAME

MAX_BYTES = 64 * 1024  # of a message
MAX_READOUTS = 100_000  # of one search
MAX_MOVES = 100_000  # of a position, however long games may be
MAX_ID = 2**53  # the largest number to which JavaScript can count

_WORD = re.compile("-?[0-9]{1,19}")


def _to_word(text: object) -> int:
    if not (isinstance(text, str) and _WORD.fullmatch(text) and -(2**63) <= int(text) < 2**63):
        raise PydanticCustomError("word", "Input should be a string with an integer of 64 bits in decimal")
    return int(text)


Word = Annotated[
    int, BeforeValidator(_to_word), WithJsonSchema({"type": "string", "pattern": f"^{_WORD.pattern}$", "maxLength": 20})
]
Start = Annotated[tuple[Word, ...], Field(strict=False)] | None
Actions = Annotated[tuple[int, ...], Field(strict=False, max_length=MAX_MOVES)]
Readouts = Annotated[int, Field(ge=1, le=MAX_READOUTS)]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Analyze(_Checked):
    """A position, and how long to search it: a request over HTTP."""

    model: str = Field(max_length=MAX_NAME)
    snapshot: str | None = Field(None, max_length=MAX_NAME)
    start: Start = None
    moves: Actions = ()
    readouts: Readouts = 400


class _Request(_Checked):
    id: int = Field(ge=-MAX_ID, le=MAX_ID)


class Open(_Request):  # noqa: D101  # the module's docstring describes this message and the following ones
    type: Literal["open"]
    model: str
    snapshot: str | None = None


class SetPosition(_Request):  # noqa: D101
    type: Literal["position"]
    start: Start = None
    moves: Actions


class Think(_Request):  # noqa: D101
    type: Literal["think"]
    readouts: Readouts


class Stop(_Request):  # noqa: D101
    type: Literal["stop"]


class ReadText(_Request):  # noqa: D101
    type: Literal["load"]
    text: str


class Solve(_Request):  # noqa: D101
    type: Literal["solve"]


class GenerateMove(_Request):  # noqa: D101
    type: Literal["move"]


Request = Open | SetPosition | Think | Stop | ReadText | Solve | GenerateMove
_REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="type")])


class RequestError(SettingsError):
    """A message is not a valid request; `id` is its id if it has one."""

    def __init__(self, reason: str, identity: int | None = None) -> None:
        super().__init__(reason)
        self.id = identity


def read_request(text: str) -> Request:
    """Return the request in a message.

    Raises:
        RequestError: the message is not a valid request.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    identity = message.get("id") if isinstance(message, dict) else None
    identity = identity if type(identity) is int and abs(identity) <= MAX_ID else None
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        raise RequestError(f"a message may have {MAX_BYTES:,} bytes, not {size:,}", identity)
    if not isinstance(message, dict):
        raise RequestError("a message must be a JSON object")
    try:
        return _REQUEST.validate_python(message)
    except ValidationError as error:
        raise RequestError(explain(error.errors()), identity) from error


def explain(errors: Sequence[Any]) -> str:
    """Return the first of Pydantic's errors as a sentence."""
    where = ".".join(str(part) for part in errors[0]["loc"][1:]) or "the request"
    return f"{where} is not valid: {errors[0]['msg']}"
