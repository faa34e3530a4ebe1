"""The optional members of a game, all looked up here.

Members of the `GAME` object are in `GameFeatures`, functions and names of its module in `ModuleFeatures`. A missing
member is None, or empty.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, Protocol

from seraphim.game.interface import Array, Board, Game

Split = Literal["validation", "test"]
"""Which solved positions: those to choose models and options by, or others for the figures that are reported."""

# ---------------------------------------------------------------- of the GAME object


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
    score: Callable[[Array], float] | None
    """`score(state)`: the points by which player 0 is ahead in a finished state int64 [W], where a game counts them."""


def features_of(game: object) -> GameFeatures:
    """Return the optional members of a game, batched or plain."""
    return GameFeatures(**{field.name: getattr(game, field.name, None) for field in fields(GameFeatures)})


def board_of(game: Game, state: Array) -> Board | None:
    """Return a state int64 [W] as a board, or None if the game offers no `board`."""
    board = features_of(game).board
    return None if board is None else board(state)


# ---------------------------------------------------------------- of its module


class PositionSet(NamedTuple):
    """Unfinished positions, solved.

    A mistake is a move that gives the result away (the weak error), and where `plies` are known, a slower win or a
    faster loss as well (the strong error).
    """

    name: str
    states: Array  # int64 [P, W]
    action_values: Array  # float32 [P, A]: exact, for the player to move; NaN where illegal
    lines: Sequence[Sequence[int]] | None = None  # P: the actions from the initial position, if known
    sampled: bool = True  # whether they are drawn at random; else they are all there are, and shares of them are exact
    plies: Array | None = None  # float32 [P, A]: to the end under best play, the move included; NaN where illegal


class MoveResults(NamedTuple):
    """Results of moves under best play, for the player who makes the move."""

    results: Array  # float32 [..., A]: 1 a win, 0 a draw, -1 a loss; NaN where the move is illegal, or unknown
    plies: Array  # float32 [..., A]: plies to the end of the game, this move included; NaN where illegal, or unknown


class PerfectActions(Protocol):
    """The signature of `perfect_actions`."""

    def __call__(self, states: Array, seconds: float | None = None, /) -> Array:
        """Return which actions keep the exact result of unfinished states int64 [P, W], bool [P, A].

        A game that knows how long wins take may leave out slower wins and faster losses. `seconds` limits the time for
        each position; the answer is then the best that is known.
        """


@dataclass(frozen=True)
class ModuleFeatures:
    """The optional functions and names of a game's module."""

    position_sets: Callable[[Split], list[PositionSet]] | None
    """`position_sets(split)`: solved positions. Those of "validation" are to choose by: learning checks every champion
    on them. Where they are samples, those of "test" are others, for the figures that are reported; else there are none,
    an empty list. Learning never sees them; `seraphim.evaluation.position_lists` alone reads them."""
    perfect_actions: PerfectActions | None
    """`perfect_actions(states, seconds)`: a solver that returns the best actions; a player in matches."""
    action_results: Callable[[Array, float], MoveResults] | None
    """`action_results(state, seconds)`: results of the actions [A] in an unfinished state int64 [W], as far as they are
    found in the time; the explorer shows them."""
    state_from_board: Callable[[str], Array] | None
    """`state_from_board(text)`: the state int64 [W] that a drawing shows, written as `GAME.render` does; raises a
    GameError if it shows none."""
    settings: Mapping[str, Any]
    """`SETTINGS`: by section, the options whose defaults do not suit the game."""
    presets: Mapping[str, Mapping[str, Any]]
    """`PRESETS`: settings by name that stand in place of `SETTINGS`."""
    rules_js: Path | None
    """`rules.js` beside the module: where the rules in JavaScript are, or would be. For pages without a server."""


def module_features(module: ModuleType) -> ModuleFeatures:
    """Return the optional members of a game's module."""
    file = getattr(module, "__file__", None)
    return ModuleFeatures(
        position_sets=getattr(module, "position_sets", None),
        perfect_actions=getattr(module, "perfect_actions", None),
        action_results=getattr(module, "action_results", None),
        state_from_board=getattr(module, "state_from_board", None),
        settings=getattr(module, "SETTINGS", {}),
        presets=getattr(module, "PRESETS", {}),
        rules_js=None if file is None else Path(file).with_name("rules.js"),
    )
