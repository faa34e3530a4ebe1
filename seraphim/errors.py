"""The errors that a user can cause, each with one sentence that says what to do.

    SeraphimError
    ├── SettingsError      an option is unknown, out of range or of the wrong type
    ├── GameError          a game is unknown or breaks the contract of `seraphim.game`
    ├── ModelError         a model or snapshot is missing, damaged, or made for another game
    ├── RecordError        game data is missing, damaged, or of another schema
    ├── WorkerError        a worker process ended before its work was done
    └── CapacityError      the server has no room at the moment
        └── QuotaError     one address uses its full share of the server

Programs print the sentence and exit with 1; only other errors show a traceback.
"""


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


class WorkerError(SeraphimError):
    """A worker process ended before its work was done."""


class CapacityError(SeraphimError):
    """The server has no room at the moment: a later attempt may succeed."""


class QuotaError(CapacityError):
    """One address uses its full share of the server."""
