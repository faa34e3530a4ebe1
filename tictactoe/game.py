"""The rules of tic-tac-toe, batched, and the options that learn it well.

An action is a cell, numbered

    0 1 2
    3 4 5
    6 7 8

and named by row (a-c) and column (1-3): `a1` is cell 0, `b2` cell 4. A state is two words, the stones of player 0
(X) and of player 1 (O) as bit sets of cells; X moves first, so the counts decide the player to move.
"""

from typing import Any

import numpy as np

from seraphim.errors import GameError
from seraphim.game import EMPTY, Array, Board, Symmetries, cells_from_drawing
from seraphim.jit import kernel

CELLS = 9
FEWEST_PLIES = 5  # of a game that is won
MARKS = ("X", "O")
FULL = 0b111_111_111
# Rows, columns, diagonals, as bit sets of cells.
LINES = np.array([0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124], np.int64)

# Options that differ from the defaults, by section. A game this small should be known completely, also where good play
# never goes: games begin with up to six random moves, and moves are sampled to the end.
SETTINGS: dict[str, Any] = {
    "network": {"kind": "mlp", "width": 256, "activation": "relu", "l2": 1e-5},
    # Self-play makes the searches of play: in so small a game, 100 readouts by PUCT are quick, and soon exact.
    "search": {"readouts": 100, "tempering_point": 9, "dirichlet_alpha": 1.0, "solver": False},
    "self_play_search": {"root": "puct", "readouts": 100},
    "self_play": {
        "concurrent_games": 512,
        "games_per_generation": 2000,
        "readouts_growth_steps": 0,
        "random_plies": 6,
    },
    "training": {
        "learning_rate": 0.02,
        "learning_rate_decay_steps": 0,
        "samples_per_position": 16.0,
        "batch_size": 1024,
        "root_value_share": 0.0,
    },
}


@kernel
def _has_line(stones: int) -> bool:
    for line in LINES:
        if stones & line == line:
            return True
    return False


@kernel
def _second_to_move(crosses: int, noughts: int) -> bool:
    # Stones are removed from both sides in turn, so the loop ends with the surplus cross, if there is one.
    while noughts:
        crosses &= crosses - 1
        noughts &= noughts - 1
    return crosses != 0


@kernel
def _step(states: Array, actions: Array) -> Array:
    successors = states.copy()
    for row in range(len(states)):
        player = 1 if _second_to_move(states[row, 0], states[row, 1]) else 0
        successors[row, player] |= np.int64(1) << np.int64(actions[row])
    return successors


@kernel
def _legal(states: Array) -> Array:
    legal = np.zeros((len(states), CELLS), np.bool_)
    for row in range(len(states)):
        crosses, noughts = states[row]
        if not (_has_line(crosses) or _has_line(noughts)):
            for cell in range(CELLS):
                legal[row, cell] = not ((crosses | noughts) >> cell) & 1
    return legal


@kernel
def _to_play(states: Array) -> Array:
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = _second_to_move(states[row, 0], states[row, 1])
    return players


@kernel
def _outcome(states: Array) -> tuple[Array, Array]:
    ended = np.zeros(len(states), np.bool_)
    results = np.zeros(len(states), np.float32)
    for row in range(len(states)):
        crosses, noughts = states[row]
        if _has_line(crosses):
            results[row] = 1.0
        elif _has_line(noughts):
            results[row] = -1.0
        ended[row] = results[row] != 0.0 or crosses | noughts == FULL
    return ended, results


@kernel
def _observe(states: Array) -> Array:
    observations = np.empty((len(states), 3, 3, 2), np.uint8)
    for row in range(len(states)):
        mover = 1 if _second_to_move(states[row, 0], states[row, 1]) else 0
        for cell in range(CELLS):
            observations[row, cell // 3, cell % 3, 0] = (states[row, mover] >> cell) & 1
            observations[row, cell // 3, cell % 3, 1] = (states[row, 1 - mover] >> cell) & 1
    return observations


class TicTacToe:
    """Tic-tac-toe; the observation is the mover's stones, then the opponent's, as two planes of the 3×3 board."""

    name = "tictactoe"
    num_actions = CELLS
    observation_shape = (3, 3, 2)
    state_words = 2
    max_plies = CELLS

    step, legal, to_play = staticmethod(_step), staticmethod(_legal), staticmethod(_to_play)
    outcome, observe = staticmethod(_outcome), staticmethod(_observe)

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, 2), np.int64)

    def progress(self, states: Array) -> Array:
        """Return how far games have got, float64 [B]: 0 at 5 plies, the fewest that end a game, and 1 at 9."""
        plies = np.bitwise_count(states).sum(axis=1, dtype=np.int64)
        return (plies - FEWEST_PLIES) / (self.max_plies - FEWEST_PLIES)

    def symmetries(self) -> Symmetries:
        """Return the eight symmetries of the square: four rotations, and their mirror images."""
        board = np.arange(CELLS, dtype=np.int32).reshape(3, 3)
        boards = [np.rot90(side, turns) for side in (board, board.T) for turns in range(4)]
        actions = np.stack([board.ravel() for board in boards])
        # Cell c of plane p stands at index 2c + p of the flat observation.
        planes = np.arange(2, dtype=np.int32)
        return Symmetries((2 * actions[:, :, None] + planes).reshape(len(actions), 2 * CELLS), actions)

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state."""
        crosses, noughts = (int(word) for word in state)
        if crosses & noughts or not 0 <= crosses | noughts <= FULL:
            return False
        surplus = crosses.bit_count() - noughts.bit_count()
        before = noughts if surplus else crosses  # of the player who did not move last
        return surplus in (0, 1) and not _has_line(before)

    def render(self, state: Array) -> str:
        crosses, noughts = (int(word) for word in state)
        marks = ["X" if crosses >> cell & 1 else "O" if noughts >> cell & 1 else "·" for cell in range(CELLS)]
        rows = [f"{'abc'[row]} {' '.join(marks[3 * row : 3 * row + 3])}" for row in range(3)]
        return "\n".join(["  1 2 3", *rows])

    def board(self, state: Array) -> Board:
        crosses, noughts = (int(word) for word in state)
        cells = [0 if crosses >> cell & 1 else 1 if noughts >> cell & 1 else EMPTY for cell in range(CELLS)]
        legal = np.flatnonzero(self.legal(state[None])[0])
        full = [line for line in LINES.tolist() for stones in (crosses, noughts) if stones & line == line]
        return Board(
            cells=np.array(cells, np.int8).reshape(3, 3),
            marks=MARKS,
            targets={int(cell): [divmod(int(cell), 3)] for cell in legal},
            line=tuple(divmod(cell, 3) for cell in range(CELLS) if any(line >> cell & 1 for line in full)),
        )

    def action_label(self, action: int) -> str:
        return "abc"[action // 3] + "123"[action % 3]

    def parse_action(self, text: str) -> int:
        labels = [self.action_label(action) for action in range(CELLS)]
        if text.strip().lower() not in labels:
            raise GameError(f"{text.strip()!r} is not a cell: expected a row a-c and a column 1-3, such as b2")
        return labels.index(text.strip().lower())


GAME = TicTacToe()


def state_from_board(text: str) -> Array:
    """Return the state int64 [2] that a drawing shows, written as `GAME.render` does; `.` is an empty cell as well.

    Raises:
        GameError: the drawing does not have three rows of three cells, or play cannot lead to the position.
    """
    cells = cells_from_drawing(text, 3, 3, "".join(MARKS), "abc123").ravel()
    crosses, noughts = (sum(1 << int(cell) for cell in np.flatnonzero(cells == player)) for player in (0, 1))
    surplus = crosses.bit_count() - noughts.bit_count()
    if surplus not in (0, 1):
        raise GameError(
            f"{crosses.bit_count()} X and {noughts.bit_count()} O: X moves first and the sides alternate, "
            "so there must be as many X as O, or one more"
        )
    if (_has_line(crosses) and not surplus) or (_has_line(noughts) and surplus):
        raise GameError("three in a row of the player who did not move last: the game was over before")
    return np.array([crosses, noughts], np.int64)
