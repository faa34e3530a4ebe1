"""What pages are told: positions, analyses and games as JSON; and which position a page means.

Knows games and what a search found; knows nothing of connections.
"""

import json
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from seraphim.errors import GameError, SeraphimError
from seraphim.game import Array, Board, Game, board_of
from seraphim.game.features import module_features
from seraphim.game.notation import label_in, labels_along, labels_vary
from seraphim.search.analysis import Candidate
from seraphim.server.engine.requests import shown
from seraphim.server.engine.thoughts import Line, Thought

_SENTENCE = 500  # characters of an error, as it may quote what was sent

Message = dict[str, Any]


def to_line(
    module: ModuleType,
    game: Game,
    start: tuple[int, ...] | None,
    moves: Sequence[int],
    before: Line | None = None,
) -> Line:
    """Return the position that a client means; if it follows from the position `before`, only the rest is played.

    A start is taken for a position if it is what `state_from_board` reads from its own drawing: rules are for positions
    only, and may do anything with other words.

    Raises:
        GameError: the start is no position, a move is not legal, or the game is cut off before the last one.
    """
    if len(moves) > game.max_plies:
        raise GameError(f"a game of {game.name} has {game.max_plies} moves at most, not {len(moves)}")
    known = 0 if before is None else len(before.moves)
    if before is not None:
        states = before.state[None]
    else:
        states = game.initial(1) if start is None else _checked_start(module, game, start)[None]
    for place, action in enumerate(moves[known:], start=known + 1):
        if not 0 <= action < game.num_actions or not game.legal(states)[0, action]:
            label = game.action_label(action) if 0 <= action < game.num_actions else str(action)
            raise GameError(f"move {place}, {label}, is not legal in this game of {game.name}")
        states = game.step(states, np.array([action]))
    return Line(start, tuple(moves), states[0])


def _checked_start(module: ModuleType, game: Game, start: tuple[int, ...]) -> Array:
    read_board = module_features(module).state_from_board
    if read_board is None:
        raise GameError(f"games of {game.name} begin with the initial position: send start null")
    no_position = f"start is no position of {game.name}: {shown(' '.join(map(str, start)))}"
    if len(start) != game.state_words:
        raise GameError(f"{no_position}, as that has {game.state_words} words")
    state = np.array(start, np.int64)
    try:
        same = np.array_equal(read_board(game.render(state)), state)
    except SeraphimError as error:
        raise GameError(f"{no_position}: {error}") from error
    except Exception as error:  # rules may do anything with what is no position
        raise GameError(no_position) from error
    if not same:
        raise GameError(no_position)
    return state


def check_unfinished(game: Game, line: Line) -> None:
    """Check that somebody moves in a position.

    Raises:
        GameError: nobody does.
    """
    if game.outcome(line.state[None])[0][0] or _is_cut_off(game, line):
        raise GameError("the game is over here, so there is nothing to think about")


def _is_cut_off(game: Game, line: Line) -> bool:
    return len(line.moves) >= game.max_plies


def to_game_info(game: Game, *, solved: bool) -> Message:
    """Return what a page needs to know of a game."""
    return {
        "name": game.name,
        "num_actions": game.num_actions,
        "max_plies": game.max_plies,
        "labels": [game.action_label(action) for action in range(game.num_actions)],
        "labels_vary": labels_vary(game),  # what moves are called in a position is told with it
        "solved": solved,
    }


def to_words(state: Array) -> list[str]:
    """Return a state int64 [W] in decimal."""
    return [str(word) for word in state.tolist()]


def to_played(game: Game, line: Line, before: Line | None = None, played: list[str] | None = None) -> list[str]:
    """Return what the moves of a position are called; if it follows from `before`, whose are called `played`."""
    if before is None or played is None:
        return labels_along(game, _start(game, line), line.moves)
    return played + labels_along(game, before.state, line.moves[len(before.moves) :])


def to_position(game: Game, line: Line, played: list[str] | None = None) -> Message:
    """Return a position as a page shows it; `played` is what its moves are called, if that is known."""
    ended, results = game.outcome(line.state[None])
    is_over = bool(ended[0]) or _is_cut_off(game, line)
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
        "board": None if board is None else _to_board(board),
        "text": game.render(line.state),
        "last": line.moves[-1] if line.moves else None,
        "line": [] if board is None else _cells(board.line),
    }


def _start(game: Game, line: Line) -> Array:
    return game.initial(1)[0] if line.start is None else np.array(line.start, np.int64)


def to_board(game: Game, state: Array) -> Message | None:
    """Return the board of a state int64 [W] as a page shows it; None if the game has none."""
    board = board_of(game, state)
    return None if board is None else _to_board(board)


def _to_board(board: Board) -> Message:
    rows, columns = board.cells.shape
    names = {"row_names": list(board.row_names), "column_names": list(board.column_names)}
    return {
        "rows": rows,
        "columns": columns,
        "cells": board.cells.tolist(),
        "marks": list(board.marks),
        "targets": {str(action): _cells(cells) for action, cells in board.targets.items()},
        **(names if board.row_names and board.column_names else {}),
    }


def _cells(cells: Sequence[tuple[int, int]]) -> list[list[int]]:
    return [[int(row), int(column)] for row, column in cells]


def to_analysis(game: Game, thought: Thought) -> Message:
    """Return what was thought as a page shows it."""
    finding = thought.finding
    first_to_play = int(game.to_play(thought.line.state[None])[0]) == 0
    return {
        "readouts": finding.readouts,
        "value": finding.value,
        "value_first": finding.value if first_to_play else -finding.value,
        "best": finding.best,
        "seconds": round(thought.seconds, 4),
        "readouts_per_second": round(thought.readouts / max(thought.seconds, 1e-6)),
        "proven": finding.proven,
        "candidates": [_to_candidate(game, thought.line.state, candidate) for candidate in finding.candidates],
        "done": thought.done,
    }


def _to_candidate(game: Game, state: Array, candidate: Candidate) -> Message:
    return {
        "action": candidate.action,
        "label": label_in(game, state, candidate.action),
        "prior": candidate.prior,
        "searched_prior": candidate.searched_prior,
        "visits": candidate.visits,
        "share": candidate.share,
        "q": candidate.q,
        "u": candidate.u,
        "proven": candidate.proven,
        "variation": labels_along(game, state, candidate.variation),
        "actions": list(candidate.variation),
    }


def to_sentence(error: Exception) -> str:
    """Return what an error says, shortened if need be, as it may quote what was sent."""
    text = str(error)
    return text if len(text) <= _SENTENCE else f"{text[:_SENTENCE]}…"


def to_text(message: Any) -> str:
    """Return a message as JSON."""
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
