"""Messages to pages: positions and games as JSON; and which position a request means.

Knows games; knows nothing of searches or connections.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, Board, Game, board_of, load_features
from seraphim.game.features import features_of, has_chance, num_players
from seraphim.game.notation import followers, label_in, labels_vary
from seraphim.game.saved_games import check_position
from seraphim.server.searcher.shared_search import Line

_MAX_ERROR = 500  # characters of an error, which may quote what a client sent

Message = dict[str, Any]


def to_line(game: Game, start: tuple[int, ...] | None, moves: Sequence[int], before: Line | None = None) -> Line:
    """Return the position that a client means; if it follows from the position `before`, only the rest is played.

    Raises:
        GameError: the start is not a position, a move is illegal, or the game is cut off before the last move.
    """
    if len(moves) > game.max_plies:
        raise GameError(f"a game of {game.name} has {game.max_plies} moves at most, not {len(moves)}")
    known = 0 if before is None else len(before.moves)
    states = _begin(game, start) if before is None else before.state[None]
    if before is None and start is not None:
        check_position(game, states[0])
    for place, action in enumerate(moves[known:], start=known + 1):
        possible = followers(game, states)[0]
        if not 0 <= action < len(possible) or not possible[action]:
            raise GameError(
                f"move {place}, {_any_label(game, states[0], action)}, is not legal in this game of {game.name}"
            )
        states = game.step(states, np.array([action]))
    return Line(start, tuple(moves), states[0])


def _any_label(game: Game, state: Array, action: int) -> str:
    # Of an action that may not be legal; where chance moves, its number, as only possible outcomes have a label.
    is_known = 0 <= action < game.num_actions and not _is_chance(game, state)
    return game.action_label(action) if is_known else str(action)


def _is_chance(game: Game, state: Array) -> bool:
    return int(game.to_play(state[None])[0]) == CHANCE


def _begin(game: Game, start: tuple[int, ...] | None) -> Array:
    return game.initial(1) if start is None else np.array([start], np.int64)


def check_unfinished(game: Game, line: Line) -> None:
    """Raise a GameError if no player moves in a position."""
    if _is_over(game, line):
        raise GameError("the game is over: there is nothing to search")
    if _is_chance(game, line.state):
        raise GameError("chance moves here: there is nothing to search before its outcome is known")


def _is_over(game: Game, line: Line) -> bool:
    return len(line.moves) >= game.max_plies or bool(game.outcome(line.state[None])[0][0])


def to_game_info(game: Game, *, solved: bool, by_turns: bool = False) -> Message:
    """Return what a page needs to know about a game, and whether its model values turns in place of readouts."""
    features = features_of(game)
    return {
        "name": game.name,
        "goal": features.goal or "",
        "num_players": features.num_players or 2,
        "chance": has_chance(game),
        "points": features.points,  # that a result of 1 is for people, if it is some
        "num_actions": game.num_actions,
        "max_plies": game.max_plies,
        "labels": [game.action_label(action) for action in range(game.num_actions)],
        "reads_drawings": load_features(game).state_from_board is not None,
        "labels_vary": labels_vary(game),  # if they do, each position comes with its own
        "solved": solved,
        "by_turns": by_turns,
    }


class LabeledMove(NamedTuple):
    """A move that was made."""

    label: str
    player: int | None
    """Or CHANCE; None where labels do not vary and at most two players move: positions tell."""


def to_played(
    game: Game, line: Line, before: Line | None = None, played: Sequence[LabeledMove] = ()
) -> list[LabeledMove]:
    """Return the moves of a line; if the line follows from `before`, `played` are the moves of that."""
    if not labels_vary(game) and num_players(game) <= 2:
        return [LabeledMove(game.action_label(action), None) for action in line.moves]
    found = [] if before is None else list(played)
    states = _begin(game, line.start) if before is None else before.state[None]
    for action in line.moves[len(found) :]:
        found.append(LabeledMove(label_in(game, states[0], action), int(game.to_play(states)[0])))
        states = game.step(states, np.array([action]))
    return found


def to_position(game: Game, line: Line, played: Sequence[LabeledMove] | None = None) -> Message:
    """Return a position as a page shows it; `played` are its moves, if they are known."""
    ended, results = game.outcome(line.state[None])
    is_over = _is_over(game, line)
    legal = [] if is_over else np.flatnonzero(followers(game, line.state[None])[0]).tolist()
    board, moves = board_of(game, line.state), to_played(game, line) if played is None else played
    features = features_of(game)
    tell, banked = features.chances if _is_chance(game, line.state) else None, features.banked
    chances = None if tell is None else tell(line.state[None])[0]
    return {
        "start": None if line.start is None else [str(word) for word in line.start],
        "moves": list(line.moves),
        "to_play": int(game.to_play(line.state[None])[0]),
        "ended": is_over,
        "result": float(results.reshape(-1)[0]) if ended[0] else None,
        **({"results": results[0].tolist() if ended[0] else None} if num_players(game) > 2 else {}),
        "legal": legal,  # actions; or where chance moves the possible outcomes
        "chances": None if chances is None else {str(outcome): float(chances[outcome]) for outcome in legal},
        "labels": {str(action): label_in(game, line.state, action) for action in legal},
        "banked": None if banked is None else banked(line.state[None])[0].tolist(),
        "played": [move.label for move in moves],
        "players": [move.player for move in moves],
        "board": to_board(board),
        "text": game.render(line.state),
        "last": line.moves[-1] if line.moves else None,
        "line": [] if board is None else _cells(board.line),
    }


def to_board(board: Board | None) -> Message | None:
    """Return a board as a page shows it; None if the game has none."""
    if board is None:
        return None
    rows, columns = board.cells.shape
    names = {"row_names": list(board.row_names), "column_names": list(board.column_names)}
    return {
        "rows": rows,
        "columns": columns,
        "cells": board.cells.tolist(),
        "marks": list(board.marks),
        "targets": {str(action): _cells(cells) for action, cells in board.targets.items()},
        **(names if board.row_names and board.column_names else {}),
        **({} if board.look == "marks" else {"look": board.look}),
        **({"players": list(board.players)} if board.players else {}),
        **({"tracks": [list(track) for track in board.tracks]} if board.tracks else {}),
    }


def _cells(cells: Sequence[tuple[int, int]]) -> list[list[int]]:
    return [[int(row), int(column)] for row, column in cells]


def error_text(error: Exception) -> str:
    """Return the text of an error, shortened if need be. It can be sent, though it may quote what cannot."""
    text = str(error).encode(errors="backslashreplace").decode()
    return text if len(text) <= _MAX_ERROR else f"{text[:_MAX_ERROR]}…"


def to_json(message: Any) -> str:
    """Return a message as JSON."""
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
