"""What pages ask of an engine, and the checks of it that depend on no game.

Requests are JSON objects with an int `id`, which every answer repeats, and a `type`:

    open      model, snapshot (a name, or null for the champion)
    position  start (the state's words in decimal, or null for the initial one), moves (actions)
    think     readouts
    stop
    load      text (moves, or a drawn board)
    truth

The answers are `seraphim.server.engine.messages`. Who says nothing for some minutes loses the place at the
engine, and takes it again with the next message, whatever that is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seraphim.errors import SettingsError

MOST_BYTES = 64 * 1024  # of a message
MOST_READOUTS = 100_000  # of one thought
MOST_MOVES = 100_000  # of a position, however long games may be
LARGEST_ID = 2**53  # that JavaScript counts to

_WORD = 20  # characters of an int64
_MOST_SHOWN = 40  # characters of a wrong value

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "open": ("model", "snapshot"),
    "position": ("start", "moves"),
    "think": ("readouts",),
    "stop": (),
    "load": ("text",),
    "truth": (),
}


@dataclass(frozen=True)
class Request:
    """A message of a client, checked but for what depends on its game."""

    id: int
    type: str
    model: str = ""
    snapshot: str | None = None
    start: tuple[int, ...] | None = None
    moves: tuple[int, ...] = ()
    readouts: int = 0
    text: str = ""


class RequestError(SettingsError):
    """A message is none of those that are expected."""

    def __init__(self, sentence: str, identity: int | None = None) -> None:
        super().__init__(sentence)
        self.id = identity


def read_request(text: str) -> Request:
    """Read a message.

    Raises:
        RequestError: it is none; with its id, if it has one.
    """
    size = len(text.encode(errors="replace"))
    if size > MOST_BYTES:
        raise RequestError(f"a message may have {MOST_BYTES:,} bytes, not {size:,}")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"a message must be a JSON object: {shown(text)}") from error
    if not isinstance(message, dict):
        raise RequestError(f"a message must be a JSON object, not {shown(message)}")
    identity = message.get("id")
    if type(identity) is not int or not -LARGEST_ID <= identity <= LARGEST_ID:
        raise RequestError(f"a message must have an int id, not {shown(identity)}")
    try:
        return Request(identity, **_checked(message))
    except SettingsError as error:
        raise RequestError(str(error), identity) from error


def _checked(message: dict[str, Any]) -> dict[str, Any]:
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise SettingsError(f"type must be one of {', '.join(_FIELDS)}, not {shown(kind)}")
    checked: dict[str, Any] = {"type": kind}
    for name, value in message.items():
        if name in ("id", "type"):
            continue
        if name not in _FIELDS[kind]:
            known = ", ".join(("id", "type", *_FIELDS[kind]))
            raise SettingsError(f"{shown(name)} is no part of a message {kind}: expected {known}")
        checked[name] = _CHECKS[name](value)
    for name in _FIELDS[kind]:
        if name not in checked and name not in ("snapshot", "start"):
            raise SettingsError(f"a message {kind} must have {name}")
    return checked


def _check_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{name} must be text, not {shown(value)}")
    return value


def check_readouts(value: Any) -> int:
    """Return a number of readouts if it is one.

    Raises:
        SettingsError: it is not.
    """
    if type(value) is not int or not 1 <= value <= MOST_READOUTS:
        raise SettingsError(f"readouts must be an int from 1 to {MOST_READOUTS:,}, not {shown(value)}")
    return value


def check_start(value: Any) -> tuple[int, ...] | None:
    """Return a state's words if these are such, in decimal.

    Raises:
        SettingsError: they are not.
    """
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(word, str) and len(word) <= _WORD for word in value):
        raise SettingsError(f"start must be null or a list of words in decimal, each as text, not {shown(value)}")
    try:
        words = tuple(int(word) for word in value)
    except ValueError as error:
        raise SettingsError(f"start must be words in decimal, not {shown(value)}") from error
    if not all(-(2**63) <= word < 2**63 for word in words):
        raise SettingsError(f"start must be words of 64 bits, not {shown(value)}")
    return words


def check_moves(value: Any) -> tuple[int, ...]:
    """Return actions if these are such.

    Raises:
        SettingsError: they are not.
    """
    if not isinstance(value, list) or len(value) > MOST_MOVES or not all(type(action) is int for action in value):
        raise SettingsError(f"moves must be a list of actions, each an int, not {shown(value)}")
    return tuple(value)


_CHECKS: Mapping[str, Any] = {
    "model": lambda value: _check_text("model", value),
    "snapshot": lambda value: None if value is None else _check_text("snapshot", value),
    "start": check_start,
    "moves": check_moves,
    "readouts": check_readouts,
    "text": lambda value: _check_text("text", value),
}


def shown(value: Any) -> str:
    """Return a wrong value as an error quotes it."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…")
