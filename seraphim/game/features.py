"""The optional members of a game's `GAME` object; those of its module are in `seraphim.game.loading`."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from seraphim.errors import GameError
from seraphim.game.interface import Array, Board, Game

MOST_PLAYERS = 8


@dataclass(frozen=True)
class GameFeatures:
    """The optional members of a game's `GAME`.

    A `PlainGame` takes one of its own states in place of an array. For one state, its `progress` returns a number, its
    `known_results` the result for player 0 or None, its `chances` a list of `K`, and its `banked` a number for player
    0 (of two players, the other has its negative); for more than two players `P` numbers, as its `outcome`.

    Where chance moves, `legal` is all False although the game has not ended, `step` takes an outcome in place of an
    action, and `observe` is not asked. What happened before the first move of a player, such as who begins, are such
    states as well. A move of chance counts as a ply.
    """

    board: Callable[[Any], Board] | None
    """`board(state)`: a state int64 [W] as a grid of cells; without it, people see the text of `render`."""
    label_in: Callable[[Any, int], str] | None
    """`label_in(state, action)`: the name of a legal action where that depends on the position; no spaces or commas."""
    uci_in: Callable[[Any, int], str] | None
    """`uci_in(state, action)`: a legal action as the Universal Chess Interface writes it."""
    uci_variant: str | None
    """`uci_variant`: the game's name for engines of that interface."""
    fibs_board: Callable[[Any], str] | None
    """`fibs_board(state)`: a position of backgammon as FIBS writes it, with dice where a whole roll is to be played."""
    progress: Callable[[Array], Array] | None
    """`progress(states)`: how far games have got, float64 [B]: 0 at the earliest end of a game, 1 at the latest. The
    option `fast_wins` needs it."""
    known_results: Callable[[Array], tuple[Array, Array]] | None
    """`known_results(states)`: in which unfinished positions the game can tell the exact result at once, for example by
    an endgame table, bool [B], and the results for player 0, float32 [B], 0 elsewhere. In finished games both may be
    anything. The option `known_results` needs it. For one or two players."""
    is_position: Callable[[Any], bool] | None
    """`is_position(state)`: whether any words int64 [W] are a state that play can lead to, as far as the game can tell.
    Without it, positions that are given as words or as drawings are refused."""
    goal: str | None
    """`goal`: the rules and how one wins, in a sentence for people who see the game for the first time."""
    score: Callable[[Array], float] | None
    """`score(state)`: the points by which player 0 is ahead in a finished state int64 [W], where a game counts them."""
    num_players: int | None
    """`num_players`: `P`, 1 to MOST_PLAYERS; without it 2. Unless it is 2, `outcome` gives results float32 [B, P], one
    for each player, in [-1, 1]; their sum may be anything."""
    num_chance_outcomes: int | None
    """`num_chance_outcomes`: `K`, how many outcomes chance has at most; nothing to do with the number of actions."""
    chances: Callable[[Array], Array] | None
    """`chances(states)`: the probability of each outcome, float64 [B, K]: rows sum to 1 where chance moves, else 0."""
    chance_label: Callable[[Any, int], str] | None
    """`chance_label(state, outcome)`: the name of an outcome of a state int64 [W], without spaces or commas; without
    it, its number."""
    banked: Callable[[Array], Array] | None
    """`banked(states)`: what each player already has of the result, such as the score so far, float32 [B, P]; what
    two players have adds up to 0."""
    bank_words: int | None
    """`bank_words`: how many words at the end of a state are read only by `banked` and `outcome`: positions that differ
    in nothing else are the same but for what is banked. Without it 0."""
    value_scale: float | None
    """`value_scale`: a result is what is banked plus this times the network's value; without it 1."""
    points: float | None
    """`points`: how many points a result of 1 is for people; without it 1."""


def features_of(game: object) -> GameFeatures:
    """Return the optional members of a game, batched or plain."""
    offered = {field.name: getattr(game, field.name, None) for field in fields(GameFeatures)}
    if not isinstance(offered["goal"], str):  # something of the game's own
        offered["goal"] = None
    return GameFeatures(**offered)


def has_chance(game: object) -> bool:
    """Return whether chance moves in a game."""
    return features_of(game).chances is not None


_MANY_POINTS = 100  # of which a hundredth tells nothing


def value_text(value: float, points: float | None) -> str:
    """Return a value as people read it; in points, where a result of 1 is some."""
    return f"{value:+.2f}" if points is None else f"{points * value:+,.{2 if points < _MANY_POINTS else 1}f}"


def still_to_come(game: Game, states: Array, results: Array) -> Array:
    """Return what the network's value stands for: the part of results that is not banked, by the game's `value_scale`.

    States int64 [B, W] are positions in which a player moves; `results` and what is returned are float32 [B] for that
    player, or [B, P] for each of more than two, the one to move first.
    """
    features = features_of(game)
    if features.banked is not None:
        gained = mover_first(features.banked(states), game.to_play(states))
        results = results - (gained if results.ndim > 1 else gained[:, 0])
    return results if features.value_scale is None else (results / features.value_scale).astype(np.float32)


def num_players(game: object) -> int:
    """Return `P`, how many players a game is for."""
    return features_of(game).num_players or 2


def num_columns(game: object) -> int:
    """Return `V`, how many values a position has: one for each player, but one for two, whose results add up to 0."""
    players = num_players(game)
    return 1 if players == 2 else players


def mover_first(values: Array, to_play: Array) -> Array:
    """Return the values of each player [B, P], the one to move first, then in the order of their seats."""
    seats = (to_play.astype(np.int64)[:, None] + np.arange(values.shape[1])) % values.shape[1]
    columns: Array = np.take_along_axis(values, seats, axis=1)
    return columns


def is_result(value: Any, players: int) -> bool:
    """Return whether a value that a plain game returned is the number, or the numbers, of a result."""
    try:
        return np.asarray(value, np.float64).shape == ((players,) if players > 2 else ())
    except (TypeError, ValueError):
        return False


def result_kind(players: int) -> str:
    """Return what a result of a plain game is, for messages."""
    return f"{players} numbers, one for each player" if players > 2 else "a number"


def is_for_one(game: object) -> bool:
    """Return whether a game is for one player."""
    return num_players(game) == 1


def is_combinatorial(game: object) -> bool:
    """Return whether a game is combinatorial: of two players, without chance."""
    return num_players(game) == 2 and not has_chance(game)


def check_two_players(game: Game) -> None:
    """Raise a GameError for a game of chance, of one player, or of more than two, where only others are played."""
    kind = {1: "one player", 2: ""}.get(num_players(game), "more than two players")
    kind = "chance" if has_chance(game) else kind
    if kind:
        raise GameError(
            f"{game.name} is a game of {kind}, which is not played here: learn, evaluate, play and arena take it"
        )


def board_of(game: Game, state: Array) -> Board | None:
    """Return a state int64 [W] as a board, or None if the game offers no `board`."""
    board = features_of(game).board
    return None if board is None else board(state)
