"""AlphaZero-style play: a Keras network guides a tree search, which plays the games that the network learns from.

In dependency order (each folder or module imports only from those above it):

    errors         what can go wrong, one sentence each
    jit            how kernels are compiled
    machine        the processor cores that a process may use
    game           the rules of games
    options        every option
    search         tree search over many positions in lock step
    settings       the options of a model in one file
    effects        when an option has an effect
    storage        models and game data on disk
    network        dual-head Keras networks
    inference      a snapshot as a function: observations -> (logits, values)
    records        finished games as TFRecord files
    export         models and games for other programs and for browsers
    tracking       figures of a run for TensorBoard and MLflow
    proof          what a player can force, with certificates
    players        what chooses moves: models, searches, external engines
    evaluation     matches, ratings, error rates
    terminal       a game at the terminal
    gtp            Seraphim as an engine of other programs
    selfplay       many games at once, on every core and machine
    training       training, and the loop of self-play and training
    server         the server of the pages
    diagnostics    doctor and benchmark
    matches        players meet, part of the library
    api            Seraphim as a library; what it offers is offered here
    cli            what the commands share
    commands       the commands of `seraphim`, each a module

    >>> import seraphim
    >>> round(seraphim.load("tictactoe").analyze("b2 a2").value)  # X wins
    1
"""

from typing import TYPE_CHECKING, Any

from seraphim import errors as errors

if TYPE_CHECKING:
    from seraphim.api import evaluate, learn, match, new, play_alone, play_table, prove, read_games, self_play
    from seraphim.players.model import Model, load
    from seraphim.players.review import GameReview
    from seraphim.search.analysis import Move, PositionAnalysis

__all__ = [
    "GameReview",
    "Model",
    "Move",
    "PositionAnalysis",
    "evaluate",
    "learn",
    "load",
    "match",
    "new",
    "play_alone",
    "play_table",
    "prove",
    "read_games",
    "self_play",
]


def __getattr__(name: str) -> Any:
    # Everything is imported when it is first used, so that `import seraphim` takes no time.
    if name == "__version__":
        return errors.version()
    if name not in __all__:
        raise AttributeError(f"module 'seraphim' has no attribute {name!r}")
    from seraphim import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return __all__
