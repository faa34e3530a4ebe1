"""Messages to pages: positions and games as JSON; and which position a request means.

Knows games; knows nothing of searches or connections.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Board, Game, board_of, load_features
from seraphim.game.features import features_of
from seraphim.game.notation import label_in, labels_along, labels_vary
from seraphim.game.saved_games import check_position
from seraphim.server.searcher.shared_search import Line

_MAX_ERROR = 500  # characters of an error, which may quote what a client sent

Message = dict[str, Any]


def to_line(
    game: Game,
    start: tuple[int, ...] | None,
    moves: Sequence[int],
    before: Line | None = None,
) -> Line:
    """Return the position that a client means; if it follows from the position `before`, only the rest is played.

    Raises:
        GameError: the start is not a position, a move is illegal, or the game is cut off before the last move.
    """
    if len(moves) > game.max_plies:
        raise GameError(f"a game of {game.name} has {game.max_plies} moves at most, not {len(moves)}")
    known = 0 if before is None else len(before.moves)
    if before is not None:
        states = before.state[None]
    else:
        states = game.initial(1) if start is None else _checked_start(game, start)[None]
    for place, action in enumerate(moves[known:], start=known + 1):
        if not 0 <= action < game.num_actions or not game.legal(states)[0, action]:
            label = game.action_label(action) if 0 <= action < game.num_actions else str(action)
            raise GameError(f"move {place}, {label}, is not legal in this game of {game.name}")
        states = game.step(states, np.array([action]))
    return Line(start, tuple(moves), states[0])


def _checked_start(game: Game, start: tuple[int, ...]) -> Array:
    state = np.array(start, np.int64)
    check_position(game, state)
    return state


def check_unfinished(game: Game, line: Line) -> None:
    """Raise a GameError if the game is over in a position."""
    if _is_over(game, line):
        raise GameError("the game is over: there is nothing to search")


def _is_over(game: Game, line: Line) -> bool:
    return len(line.moves) >= game.max_plies or bool(game.outcome(line.state[None])[0][0])


def to_game_info(game: Game, *, solved: bool) -> Message:
    """Return what a page needs to know about a game."""
    return {
        "name": game.name,
        "goal": features_of(game).goal or "",
        "num_actions": game.num_actions,
        "max_plies": game.max_plies,
        "labels": [game.action_label(action) for action in range(game.num_actions)],
        "reads_drawings": load_features(game).state_from_board is not None,
        "labels_vary": labels_vary(game),  # if they do, each position comes with its own
        "solved": solved,
    }


def to_played(game: Game, line: Line, before: Line | None = None, played: Sequence[str] = ()) -> list[str]:
    """Return the labels of a line's moves; if the line follows from `before`, `played` are the labels of that."""
    if before is not None:
        return [*played, *labels_along(game, before.state, line.moves[len(before.moves) :])]
    start = game.initial(1)[0] if line.start is None else np.array(line.start, np.int64)
    return labels_along(game, start, line.moves)


def to_position(game: Game, line: Line, played: list[str] | None = None) -> Message:
    """Return a position as a page shows it; `played` are the labels of its moves, if they are known."""
    ended, results = game.outcome(line.state[None])
    is_over = _is_over(game, line)
    legal = [] if is_over else np.flatnonzero(game.legal(line.state[None])[0]).tolist()
    board = board_of(game, line.state)
    return {
        "start": None if line.start is None else [str(word) for word in line.start],
        "moves": list(line.moves),
        "to_play": int(game.to_play(line.state[None])[0]),
        "ended": is_over,
        "result": float(results[0]) if ended[0] else None,
        "legal": legal,
        "labels": {str(action): label_in(game, line.state, action) for action in legal},
        "played": to_played(game, line) if played is None else played,
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
