"""The rules of connect four, batched, the usual notation of games, and the options that learn it well.

An action is a column, 0 to 6, named by its digit from 1 to 7; games are written as digits, `4453`. A state is two
words, the stones of player 0 (X) and of player 1 (O) as bit sets of cells, numbered column by column from the bottom:

     6 13 20 27 34 41 48        always empty, so that no line continues from one column into the next
     5 12 19 26 33 40 47
     4 11 18 25 32 39 46
     3 10 17 24 31 38 45
     2  9 16 23 30 37 44
     1  8 15 22 29 36 43
     0  7 14 21 28 35 42

X moves first and the sides alternate, so the number of stones decides the player to move. `ConnectFour` takes other
numbers of rows and columns as well, as far as all cells and the empty ones above them fit a word.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from connectfour.lines import cells_of_lines, completing, has_line
from seraphim.errors import GameError
from seraphim.game import EMPTY, Array, Board, Symmetries, cells_from_drawing
from seraphim.jit import kernel

ROWS = 6
COLUMNS = 7
STRIDE = ROWS + 1  # cells of a column, with the one above it that is always empty
COLUMN = (1 << ROWS) - 1  # the cells of the first column, as a bit set
FULL = sum(COLUMN << STRIDE * column for column in range(COLUMNS))
DIGITS = "123456789"  # the names of the columns
MIN_SIDE = 4
MARKS = ("X", "O")
PLANES = 6  # of an observation
FEWEST_PLIES = 7  # of a game that is won
_BITS = 63  # of a word that are used

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "search": {"tempering_point": 12, "dirichlet_alpha": 1.0},
    "self_play_search": {"readouts": 16},
    # Many random moves: good play everywhere requires having seen bad positions too.
    "self_play": {"games_per_generation": 4000, "readouts_growth_steps": 2000, "random_plies": 20},
}


# Kernels take the rows of the board, and its columns.


@kernel
def _mover(first: int, second: int) -> int:
    # The parity of the number of stones, folded into the lowest bit.
    stones = first | second
    stones ^= stones >> 32
    stones ^= stones >> 16
    stones ^= stones >> 8
    stones ^= stones >> 4
    stones ^= stones >> 2
    stones ^= stones >> 1
    return stones & 1


@kernel
def _step(states: Array, actions: Array, rows: int) -> Array:
    successors = states.copy()
    for row in range(len(states)):
        shift = np.int64(rows + 1) * np.int64(actions[row])
        # A carry runs through the stones of the column, and stops at the lowest free cell.
        raised = (states[row, 0] | states[row, 1]) + (np.int64(1) << shift)
        stone = raised & ~(states[row, 0] | states[row, 1])
        successors[row, _mover(states[row, 0], states[row, 1])] |= stone
    return successors


@kernel
def _legal(states: Array, rows: int, columns: int) -> Array:
    legal = np.empty((len(states), columns), np.bool_)
    for row in range(len(states)):
        first, second = states[row, 0], states[row, 1]
        ended = has_line(first, rows) or has_line(second, rows)
        for column in range(columns):
            legal[row, column] = not (ended or ((first | second) >> (rows + 1) * column + rows - 1) & 1)
    return legal


@kernel
def _to_play(states: Array) -> Array:
    players = np.empty(len(states), np.int8)
    for row in range(len(states)):
        players[row] = _mover(states[row, 0], states[row, 1])
    return players


@kernel
def _outcome(states: Array, rows: int, columns: int) -> tuple[Array, Array]:
    ended = np.empty(len(states), np.bool_)
    results = np.zeros(len(states), np.float32)
    full = 0
    for column in range(columns):
        full |= ((1 << rows) - 1) << (rows + 1) * column
    for row in range(len(states)):
        first, second = states[row, 0], states[row, 1]
        if has_line(first, rows):
            results[row] = 1.0
        elif has_line(second, rows):
            results[row] = -1.0
        ended[row] = results[row] != 0.0 or first | second == full
    return ended, results


@kernel
def _observe(states: Array, rows: int, columns: int) -> Array:
    observations = np.empty((len(states), rows, columns, PLANES), np.uint8)
    bottom = 0
    odd = 0  # the first row from the bottom, the third and so on
    for column in range(columns):
        bottom |= 1 << (rows + 1) * column
    for height in range(0, rows, 2):
        odd |= bottom << height
    for row in range(len(states)):
        mover = _mover(states[row, 0], states[row, 1])
        own, other = states[row, mover], states[row, 1 - mover]
        taken = own | other
        threats, threats_of_other = completing(own, rows) & ~taken, completing(other, rows) & ~taken
        # The lowest free cell of a column; of a full one, the cell above the board.
        landing = taken + bottom
        planes = (own, other, threats, threats_of_other, landing, odd if mover == 0 else ~odd)
        for height in range(rows):
            for column in range(columns):
                cell = (rows + 1) * column + height
                for plane in range(PLANES):
                    observations[row, rows - 1 - height, column, plane] = (planes[plane] >> cell) & 1
    return observations


@kernel
def _can_be_played(first: int, second: int, rows: int, columns: int) -> bool:
    # Takes stones off the columns, the last player's first, until the board is empty: whether some order does it.
    # Only the last stone can complete a line, so no line may be left without it.
    steps, size = np.empty(columns, np.int64), 1  # an index of all heights: sum of height times step
    heights = np.zeros(columns, np.int64)
    for column in range(columns):
        while ((first | second) >> ((rows + 1) * column + heights[column])) & 1:
            heights[column] += 1
        steps[column], size = size, size * (heights[column] + 1)
    sizes = heights + 1
    seen = np.zeros(size, np.bool_)
    pending = [size - 1]  # the index of the position itself
    while len(pending):
        index = pending.pop()
        if index == 0:
            return True
        stones = 0
        for column in range(columns):
            heights[column] = index // steps[column] % sizes[column]
            stones += heights[column]
        own = second if stones % 2 == 0 else first
        for column in range(columns):
            cell = (rows + 1) * column + heights[column] - 1
            before = index - steps[column]
            if heights[column] == 0 or not (own >> cell) & 1 or seen[before]:
                continue
            if index < size - 1 or not has_line(own & ~(np.int64(1) << cell), rows):
                seen[before] = True
                pending.append(before)
    return False


class ConnectFour:
    """Connect four; the observation is six planes of the board, the top row first.

    They are the mover's stones; the opponent's; the empty cells that would complete four in a row for the mover, and
    for the opponent, whether or not a stone can be dropped there yet; the cells where a stone can be dropped; and the
    mover's rows: from the bottom, the odd ones for X, the even ones for O. On six rows, once all other columns are
    full, these are the cells of the last one that X and O get, which decides many endgames (Allis 1988, "A
    Knowledge-Based Approach of Connect-Four", on zugzwang).

    Raises:
        GameError: there is no room for four in a row, or the board is too large.
    """

    state_words = 2

    def __init__(self, rows: int = ROWS, columns: int = COLUMNS) -> None:
        if not (rows >= MIN_SIDE and MIN_SIDE <= columns <= len(DIGITS) and (rows + 1) * columns < _BITS):
            raise GameError(
                f"a board of {rows}x{columns} is not possible: expected {MIN_SIDE} rows and columns or more, at most "
                f"{len(DIGITS)} columns, and fewer than {_BITS} cells with an empty row above"
            )
        self._rows, self._columns = rows, columns
        self.name = "connectfour" if (rows, columns) == (ROWS, COLUMNS) else f"connectfour:{rows}x{columns}"
        self.num_actions = columns
        self.observation_shape = (rows, columns, PLANES)
        self.max_plies = rows * columns

    def step(self, states: Array, actions: Array) -> Array:
        return _step(states, actions, self._rows)

    def legal(self, states: Array) -> Array:
        return _legal(states, self._rows, self._columns)

    def to_play(self, states: Array) -> Array:
        return _to_play(states)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return _outcome(states, self._rows, self._columns)

    def observe(self, states: Array) -> Array:
        return _observe(states, self._rows, self._columns)

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, 2), np.int64)

    def progress(self, states: Array) -> Array:
        """Return how far games have got, float64 [B]: 0 at 7 plies, the fewest that end a game, and 1 at 42."""
        plies = np.bitwise_count(states).sum(axis=1, dtype=np.int64)
        return (plies - FEWEST_PLIES) / (self.max_plies - FEWEST_PLIES)

    def symmetries(self) -> Symmetries:
        """Return the identity, and the mirror image in the middle column."""
        shape = self.observation_shape
        cells, columns = np.arange(np.prod(shape), dtype=np.int32).reshape(shape), np.arange(shape[1], dtype=np.int32)
        return Symmetries(np.stack([cells.ravel(), cells[:, ::-1].ravel()]), np.stack([columns, columns[::-1]]))

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state."""
        first, second = (int(word) for word in state)
        columns = range(0, (self._rows + 1) * self._columns, self._rows + 1)
        board = sum((1 << self._rows) - 1 << shift for shift in columns)
        taken = first | second
        floating = taken & board & ~sum(1 << shift for shift in columns) & ~(taken << 1)
        if first & second or taken & ~board or floating or first.bit_count() - second.bit_count() not in (0, 1):
            return False
        before = (first, second)[_mover(first, second)]  # the stones of the player who did not move last
        return not has_line(before, self._rows) and _can_be_played(first, second, self._rows, self._columns)

    def render(self, state: Array) -> str:
        first, second = (int(word) for word in state)
        stride = self._rows + 1
        marks = ["X" if first >> cell & 1 else "O" if second >> cell & 1 else "·" for cell in range(_BITS)]
        rows = [" ".join(marks[height : stride * self._columns : stride]) for height in reversed(range(self._rows))]
        return "\n".join([" ".join(DIGITS[: self._columns]), *rows])

    def board(self, state: Array) -> Board:
        rows, columns = self._rows, self._columns
        first, second = (int(word) for word in state)
        lines = cells_of_lines(first, rows) | cells_of_lines(second, rows)
        cells = np.full((rows, columns), EMPTY, np.int8)
        places = []
        for row, column in np.ndindex(rows, columns):
            cell = (rows + 1) * column + rows - 1 - row
            cells[row, column] = 0 if first >> cell & 1 else 1 if second >> cell & 1 else EMPTY
            if lines >> cell & 1:
                places.append((row, column))
        targets = {}
        for column in np.flatnonzero(self.legal(state[None])[0]).tolist():
            landing = rows - 1 - int((cells[:, column] != EMPTY).sum())
            targets[column] = [(landing, column), *((row, column) for row in range(rows) if row != landing)]
        return Board(cells, MARKS, targets, tuple(places))

    def action_label(self, action: int) -> str:
        return DIGITS[action]

    def parse_action(self, text: str) -> int:
        if text.strip() not in list(DIGITS[: self._columns]):
            raise GameError(f"{text.strip()!r} is not a column: expected a digit from 1 to {self._columns}")
        return DIGITS.index(text.strip())


GAME = ConnectFour()


def position_from_moves(moves: str) -> Array:
    """Return the state int64 [2] after a game that is written as digits from 1 to 7: `4453`; errors as below."""
    return states_from_moves([moves])[0]


def states_from_moves(games: Sequence[str]) -> Array:
    """Return the states int64 [P, 2] after P games, each written as digits from 1 to 7: `4453`.

    Raises:
        GameError: a character is not such a digit, a column is full, or a game is over before its last move.
    """
    for moves in games:
        for place, digit in enumerate(moves, start=1):
            if digit not in DIGITS[:COLUMNS]:
                raise GameError(f"{moves!r} is not a game: move {place} is {digit!r}, not a digit from 1 to 7")
    states = GAME.initial(len(games))
    for ply in range(max(map(len, games), default=0)):
        rows = np.array([row for row, moves in enumerate(games) if len(moves) > ply])
        actions = np.array([DIGITS.index(games[row][ply]) for row in rows])
        illegal = ~GAME.legal(states[rows])[np.arange(len(rows)), actions]
        if illegal.any():
            place = int(illegal.argmax())
            over = GAME.outcome(states[rows])[0][place]
            reason = "comes after its end" if over else f"is in column {DIGITS[actions[place]]}, which is full"
            raise GameError(f"{games[rows[place]]!r} is not a game: move {ply + 1} {reason}")
        states[rows] = GAME.step(states[rows], actions)
    return states


def state_from_board(text: str) -> Array:
    """Return the state int64 [2] that a drawing shows, written as `GAME.render` does; `.` is an empty cell as well.

    Raises:
        GameError: the drawing does not have six rows of seven cells, or play cannot lead to the position.
    """
    cells = cells_from_drawing(text, ROWS, COLUMNS, "".join(MARKS), DIGITS[:COLUMNS])
    floating = (cells[:-1] != EMPTY) & (cells[1:] == EMPTY)
    if floating.any():
        row, column = np.argwhere(floating)[0]
        raise GameError(f"the stone in row {row + 1} of column {DIGITS[column]} floats: below it is an empty cell")
    places = [np.argwhere(cells == player).tolist() for player in (0, 1)]
    first, second = (sum(1 << STRIDE * column + ROWS - 1 - row for row, column in stones) for stones in places)
    if len(places[0]) - len(places[1]) not in (0, 1):
        raise GameError(
            f"{len(places[0])} X and {len(places[1])} O: X moves first and the sides alternate, "
            "so there must be as many X as O, or one more"
        )
    if has_line((first, second)[_mover(first, second)], ROWS):
        raise GameError("four in a row of the player who did not move last: the game was over before")
    return np.array([first, second], np.int64)
