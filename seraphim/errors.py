"""The errors that a user can cause; each message is one sentence that says how to fix it.

    SeraphimError
    ├── SettingsError      an option is unknown, out of range or of the wrong type
    ├── GameError          a game is unknown or breaks the contract of `seraphim.game`
    ├── ModelError         a model or snapshot is missing, damaged, or made for another game
    ├── RecordError        game data is missing, damaged, or of another schema
    ├── FileError          a file or folder that was named cannot be read or written
    ├── NotInstalledError  a package or a program is needed that is not installed
    ├── PlayerError        a player cannot play this game, or not from here
    ├── WorkerError        a worker process ended before its work was done
    └── CapacityError      the server has no room at the moment
        └── QuotaError     one address has reached its limit of the server's resources

Programs print the message and exit with 1; only errors outside this tree show a traceback.
"""

import configparser
from importlib import metadata
from pathlib import Path

_LONGEST = 60  # characters of a value in a message

DISTRIBUTION = "seraphim-zero"
"""The name by which pip knows Seraphim."""

_BESIDE = Path(__file__).parents[1]
CLONE = _BESIDE if (_BESIDE / "setup.cfg").is_file() else None
"""The folder of the clone that this runs from; None if it is installed."""


def read_setup() -> configparser.ConfigParser:
    """Return setup.cfg of the clone; nothing if Seraphim is installed."""
    setup = configparser.ConfigParser()
    setup.read(_BESIDE / "setup.cfg")
    return setup


def version() -> str:
    """Return the version of Seraphim; in a clone that of setup.cfg, as the installed metadata may be older."""
    if CLONE:
        return read_setup()["metadata"]["version"]
    return metadata.version(DISTRIBUTION)


def how_to_install(extra: str = "") -> str:
    """Return the command that installs what Seraphim needs, and the packages of an extra, such as `train,gpu`."""
    what = f"'{'.' if CLONE else DISTRIBUTION}[{extra}]'" if extra else "." if CLONE else DISTRIBUTION
    return f"pip install -e {what}" if CLONE else f"pip install {what}"


def shown(value: object) -> str:
    """Return any value as a message shows it: on one line, and not longer than that."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - an int of thousands of digits, or a __repr__ that fails
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class SeraphimError(Exception):
    """Base of every error that a user can cause and fix."""


class SettingsError(SeraphimError):
    """An option is unknown, out of range or of the wrong type."""


class GameError(SeraphimError):
    """A game is unknown, or breaks the contract of `seraphim.game`."""


class ModelError(SeraphimError):
    """A model or snapshot is missing, damaged, or was made for another game."""


class RecordError(SeraphimError):
    """Game data is missing, damaged, or of another schema."""


class FileError(SeraphimError):
    """A file or folder that was named cannot be read or written: damaged, in the way, or nowhere."""


class NotInstalledError(SeraphimError):
    """A package or a program is needed that is not installed."""


class PlayerError(SeraphimError):
    """A player cannot play this game, or not from here: it lacks the moves that led to a position, for example."""


class WorkerError(SeraphimError):
    """A worker process ended before its work was done."""


class CapacityError(SeraphimError):
    """The server has no room at the moment: a later attempt may succeed."""


class QuotaError(CapacityError):
    """One address has reached its limit of the server's resources."""
