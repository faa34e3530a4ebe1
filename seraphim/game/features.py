"""The optional members of a game's `GAME` object; those of its module are in `seraphim.game.loading`."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from seraphim.game.interface import Array, Board, Game


@dataclass(frozen=True)
class GameFeatures:
    """The optional members of a game's `GAME`.

    A `PlainGame` takes one of its own states in place of an array. For one state, its `progress` returns a number, and
    its `known_results` the result for player 0 or None.
    """

    board: Callable[[Any], Board] | None
    """`board(state)`: a state int64 [W] as a grid of cells; without it, people see the text of `render`."""
    label_in: Callable[[Any, int], str] | None
    """`label_in(state, action)`: the name of a legal action where that depends on the position; no spaces or commas."""
    uci_in: Callable[[Any, int], str] | None
    """`uci_in(state, action)`: a legal action as the Universal Chess Interface writes it."""
    uci_variant: str | None
    """`uci_variant`: the game's name for engines of that interface."""
    progress: Callable[[Array], Array] | None
    """`progress(states)`: how far games have got, float64 [B]: 0 at the earliest end of a game, 1 at the latest. The
    option `fast_wins` needs it."""
    known_results: Callable[[Array], tuple[Array, Array]] | None
    """`known_results(states)`: in which unfinished positions the game can tell the exact result at once, for example by
    an endgame table, bool [B], and the results for player 0, float32 [B], 0 elsewhere. In finished games both may be
    anything. The option `known_results` needs it."""
    is_position: Callable[[Any], bool] | None
    """`is_position(state)`: whether any words int64 [W] are a state that play can lead to, as far as the game can tell.
    Without it, positions that are given as words or as drawings are refused."""
    goal: str | None
    """`goal`: the rules and how one wins, in a sentence for people who see the game for the first time."""
    score: Callable[[Array], float] | None
    """`score(state)`: the points by which player 0 is ahead in a finished state int64 [W], where a game counts them."""


def features_of(game: object) -> GameFeatures:
    """Return the optional members of a game, batched or plain."""
    offered = {field.name: getattr(game, field.name, None) for field in fields(GameFeatures)}
    if not isinstance(offered["goal"], str):  # something of the game's own
        offered["goal"] = None
    return GameFeatures(**offered)


def board_of(game: Game, state: Array) -> Board | None:
    """Return a state int64 [W] as a board, or None if the game offers no `board`."""
    board = features_of(game).board
    return None if board is None else board(state)
