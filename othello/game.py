"""Othello: compiled rules on sets of bits, without a loop over cells.

Black moves first and is player 0. A player who can flip nothing passes, which is an action like others; the game ends
when neither can flip anything. For states and cells see `othello.bits`.
"""

from typing import Any

import numpy as np

from othello.alphabeta import late_results
from othello.bits import CELLS, D4, NONE, ONE, SIZE, TURN, count, flips_of, mover_of, moves_of, stones_of
from seraphim.errors import GameError
from seraphim.game import EMPTY, Array, Board, Symmetries, cells_from_drawing
from seraphim.jit import kernel

PASS = CELLS
LETTERS = "abcdefgh"  # the names of the columns
MARKS = ("X", "O")
PLANES = 4  # of an observation
MOST_PLIES = 120  # sixty stones are placed, and two passes in a row would end the game
LATE = 8  # empty cells at most, of a position whose result an exact search finds sooner than a network values it

_E4, _D5, _E5 = 1 << 28, 1 << 35, 1 << 36
_FIRST_COLUMN = sum(1 << SIZE * row for row in range(SIZE))
_LAST_COLUMN = _FIRST_COLUMN << SIZE - 1
_START = np.array([_E4 | _D5, _E5], np.int64)

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "search": {"tempering_point": 16, "dirichlet_alpha": 0.5},
    "self_play": {"random_plies": 12},
}


@kernel
def _step(states: Array, actions: Array) -> Array:
    successors = states.copy()
    for row in range(len(states)):
        mover = mover_of(states[row])
        own, other = stones_of(states[row], mover), stones_of(states[row], 1 - mover)
        if actions[row] < CELLS:
            stone = ONE << np.uint64(actions[row])
            flips = flips_of(own, other, stone)
            own, other = own | stone | flips, other & ~flips
        black, white = (own, other) if mover == 0 else (other, own)
        successors[row, 0] = black
        successors[row, 1] = white & ~TURN | ~states[row, 1] & TURN
    return successors


@kernel
def _legal(states: Array) -> Array:
    legal = np.empty((len(states), CELLS + 1), np.bool_)
    for row in range(len(states)):
        mover = mover_of(states[row])
        own, other = stones_of(states[row], mover), stones_of(states[row], 1 - mover)
        cells = moves_of(own, other)
        for cell in range(CELLS):
            legal[row, cell] = (cells >> np.uint64(cell) & ONE) != NONE
        legal[row, PASS] = cells == NONE and moves_of(other, own) != NONE
    return legal


@kernel
def _to_play(states: Array) -> Array:
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = mover_of(states[row])
    return players


@kernel
def _outcome(states: Array) -> tuple[Array, Array]:
    ended = np.empty(len(states), np.bool_)
    results = np.zeros(len(states), np.float32)
    for row in range(len(states)):
        black, white = stones_of(states[row], 0), stones_of(states[row], 1)
        ended[row] = moves_of(black, white) == NONE and moves_of(white, black) == NONE
        if ended[row]:
            results[row] = np.sign(count(black) - count(white))
    return ended, results


@kernel
def _observe(states: Array) -> Array:
    observations = np.empty((len(states), SIZE, SIZE, PLANES), np.uint8)
    for row in range(len(states)):
        mover = mover_of(states[row])
        own, other = stones_of(states[row], mover), stones_of(states[row], 1 - mover)
        planes = (own, other, moves_of(own, other), moves_of(other, own))
        for cell in range(CELLS):
            for plane in range(PLANES):
                observations[row, cell // SIZE, cell % SIZE, plane] = planes[plane] >> np.uint64(cell) & ONE
    return observations


class Othello:
    """Othello; the observation is four planes: the stones of the mover and of the opponent, and the moves of both."""

    name = "othello"
    num_actions = CELLS + 1
    observation_shape = (SIZE, SIZE, PLANES)
    state_words = 2
    max_plies = MOST_PLIES

    def initial(self, batch: int) -> Array:
        return np.repeat(_START[None], batch, axis=0)

    def step(self, states: Array, actions: Array) -> Array:
        successors: Array = _step(states.view(np.uint64), actions).view(np.int64)
        return successors

    def legal(self, states: Array) -> Array:
        return _legal(states.view(np.uint64))

    def to_play(self, states: Array) -> Array:
        return _to_play(states.view(np.uint64))

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return _outcome(states.view(np.uint64))

    def known_results(self, states: Array) -> tuple[Array, Array]:
        """Return in which states int64 [B, 2] at most LATE cells are empty, bool [B], and their exact results.

        The results are for black under best play, float32 [B], 0 in other states.
        """
        return late_results(states.view(np.uint64), LATE)

    def score(self, state: Array) -> float:
        """Return how many stones more black has."""
        black, white = (self._cells(state) == player for player in (0, 1))
        return float(black.sum() - white.sum())

    def observe(self, states: Array) -> Array:
        return _observe(states.view(np.uint64))

    def symmetries(self) -> Symmetries:
        """Return the eight of a square; passing stays passing."""
        square = np.arange(CELLS, dtype=np.int32).reshape(SIZE, SIZE)
        boards = [np.rot90(each, turns).ravel() for each in (square, square.T) for turns in range(4)]
        planes = np.arange(PLANES, dtype=np.int32)
        return Symmetries(
            np.stack([(PLANES * board[:, None] + planes).ravel() for board in boards]),
            np.stack([np.append(board, np.int32(PASS)) for board in boards]),
        )

    def _cells(self, state: Array) -> Array:
        planes = self.observe(state[None])[0]
        mover = int(self.to_play(state[None])[0])
        return np.select([planes[..., mover] == 1, planes[..., 1 - mover] == 1], [0, 1], EMPTY).astype(np.int8)

    def is_position(self, state: Array) -> bool:
        """Return whether a state has each stone once, four in the center, and the others in touch with these.

        Play leads to no other states, though not to all of these.
        """
        black, white = (int(word) for word in state.view(np.uint64))
        center = D4 | _E4 | _D5 | _E5
        taken, reached, before = black | white | D4, center, 0
        while reached != before:
            before = reached
            beside = reached | (reached & ~_LAST_COLUMN) << 1 | (reached & ~_FIRST_COLUMN) >> 1
            reached = taken & (beside | beside << SIZE | beside >> SIZE)
        return not black & white & ~D4 and taken & center == center and reached == taken

    def render(self, state: Array) -> str:
        rows = [
            f"{row + 1} {' '.join('·' if cell == EMPTY else MARKS[cell] for cell in cells)}"
            for row, cells in enumerate(self._cells(state))
        ]
        mover = MARKS[self.to_play(state[None])[0]]
        return "\n".join([f"  {' '.join(LETTERS)}", *rows, f"{mover} to move"])

    def board(self, state: Array) -> Board:
        cells = np.flatnonzero(self.legal(state[None])[0][:CELLS]).tolist()
        return Board(
            self._cells(state),
            MARKS,
            {cell: [divmod(cell, SIZE)] for cell in cells},
            row_names=tuple(str(row + 1) for row in range(SIZE)),
            column_names=tuple(LETTERS),
            look="stones",
        )

    def action_label(self, action: int) -> str:
        return "pass" if action == PASS else f"{LETTERS[action % SIZE]}{action // SIZE + 1}"

    def parse_action(self, text: str) -> int:
        name = text.strip().lower()
        if name == "pass":
            return PASS
        column, row = LETTERS.find(name[:1] or "?"), name[1:]
        if column < 0 or row not in list("12345678"):
            raise GameError(f"{text.strip()!r} is not a move: expected a letter and a digit, from a1 to h8, or pass")
        return SIZE * (int(row) - 1) + column


GAME = Othello()


def count_empty(states: Array) -> Array:
    """Return the number of empty cells of each position of `states` int64 [B, 2], int64 [B]."""
    taken = states[:, 0] | states[:, 1] | np.int64(D4)  # the owner of d4 is in the first word alone
    return CELLS - np.bitwise_count(taken.view(np.uint64)).astype(np.int64)


def state_from_board(text: str) -> Array:
    """Return the state int64 [2] that a drawing shows, written as `GAME.render` does; `.` is an empty cell as well.

    Without a last line `X to move` or `O to move`, X moves if the number of stones is even.

    Raises:
        GameError: the drawing does not have eight rows of eight cells, or d4 is empty.
    """
    head, _, last = text.strip().rpartition("\n")
    words = last.lower().split()
    told = words[1:] == ["to", "move"] and words[0] in ("x", "o")
    cells = cells_from_drawing(head if told else text, SIZE, SIZE, "".join(MARKS), LETTERS + "12345678").ravel()
    if cells[D4.bit_length() - 1] == EMPTY:
        raise GameError("the cell d4 is empty: the game begins with a stone there, and none is ever removed")
    mover = MARKS.index(words[0].upper()) if told else int((cells != EMPTY).sum() % 2)
    black, white = (sum(1 << cell for cell in np.flatnonzero(cells == player).tolist()) for player in (0, 1))
    return np.array([black, white & ~D4 | D4 * mover], np.uint64).view(np.int64)
