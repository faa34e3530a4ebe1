"""Connect four as people see it, and the options that learn it well; the rules themselves are in `connectfour.rules`.

A column is named by its digit from 1 to 7; games are written as digits, `4453`.
"""

from typing import Any

import numpy as np

from connectfour import rules
from connectfour.lines import cells_of_lines, has_line
from connectfour.rules import COLUMNS, PLANES, ROWS, STRIDE, mover
from seraphim.errors import GameError
from seraphim.game import EMPTY, Array, Board, Symmetries
from seraphim.game.grid import Grid, bits_of, move_cells
from seraphim.game.solved_files import play_games
from seraphim.jit import kernel

DIGITS = "123456789"  # the names of the columns
MIN_SIDE = 4
FEWEST_PLIES = 7  # of a game that is won
_BITS = 63  # of a word that are used

# Options that differ from the defaults, by section.
SETTINGS: dict[str, Any] = {
    "search": {"tempering_point": 12, "dirichlet_alpha": 1.0},
    "self_play_search": {"readouts": 16},
    # Many random moves: good play everywhere requires having seen bad positions too.
    "self_play": {"games_per_generation": 4000, "readouts_growth_steps": 2000, "random_plies": 20},
}


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


class ConnectFour(Grid):
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
    goal = "Connect four of your discs in a row: across, down or diagonally."

    def __init__(self, rows: int = ROWS, columns: int = COLUMNS) -> None:
        if not (rows >= MIN_SIDE and MIN_SIDE <= columns <= len(DIGITS) and (rows + 1) * columns < _BITS):
            raise GameError(
                f"a board of {rows}x{columns} is not possible: expected {MIN_SIDE} rows and columns or more, at most "
                f"{len(DIGITS)} columns, and fewer than {_BITS} cells with an empty row above"
            )
        self._rows, self._columns = rows, columns
        self.name = "connectfour" if (rows, columns) == (ROWS, COLUMNS) else f"connectfour:{rows}x{columns}"
        self.num_actions = columns
        self.column_names = tuple(DIGITS[:columns])
        self.observation_shape = (rows, columns, PLANES)
        self.max_plies = rows * columns

    def step(self, states: Array, actions: Array) -> Array:
        return rules.step(states, actions, self._rows)

    def legal(self, states: Array) -> Array:
        return rules.legal(states, self._rows, self._columns)

    def to_play(self, states: Array) -> Array:
        return rules.to_play(states)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        return rules.outcome(states, self._rows, self._columns)

    def observe(self, states: Array) -> Array:
        return rules.observe(states, self._rows, self._columns)

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, 2), np.int64)

    def progress(self, states: Array) -> Array:
        """Return how far games have got, float64 [B]: 0 at 7 plies, the fewest that end a game, and 1 at 42."""
        plies = np.bitwise_count(states).sum(axis=1, dtype=np.int64)
        return (plies - FEWEST_PLIES) / (self.max_plies - FEWEST_PLIES)

    def symmetries(self) -> Symmetries:
        """Return the identity, and the mirror image in the middle column."""
        cells = np.arange(self.max_plies, dtype=np.int32).reshape(self._rows, self._columns)
        columns = cells[0]
        observations = move_cells(np.stack([cells.ravel(), cells[:, ::-1].ravel()]), PLANES).observations
        return Symmetries(observations, np.stack([columns, columns[::-1]]))

    def is_position(self, state: Array) -> bool:
        """Return whether play leads to a state."""
        first, second = (int(word) for word in state)
        columns = range(0, (self._rows + 1) * self._columns, self._rows + 1)
        board = sum((1 << self._rows) - 1 << shift for shift in columns)
        taken = first | second
        floating = taken & board & ~sum(1 << shift for shift in columns) & ~(taken << 1)
        if first & second or taken & ~board or floating or first.bit_count() - second.bit_count() not in (0, 1):
            return False
        before = (first, second)[mover(first, second)]  # the stones of the player who did not move last
        return not has_line(before, self._rows) and _can_be_played(first, second, self._rows, self._columns)

    def board(self, state: Array) -> Board:
        """Return the cells, where any cell of a column plays it, and the stones of four in a row."""
        board, rows = super().board(state), self._rows
        lines = [cells_of_lines(stones, rows) for stones in state.tolist()]
        line = tuple(
            (row, column)
            for row, column in np.ndindex(board.cells.shape)
            if (lines[0] | lines[1]) >> (rows + 1) * column + rows - 1 - row & 1
        )
        targets = {}
        for column in np.flatnonzero(self.legal(state[None])[0]).tolist():
            landing = int((board.cells[:, column] == EMPTY).sum()) - 1
            targets[column] = [(landing, column), *((row, column) for row in range(rows) if row != landing)]
        return board._replace(targets=targets, line=line)

    def action_label(self, action: int) -> str:
        return self.column_names[action]


GAME = ConnectFour()


def position_from_moves(moves: str) -> Array:
    """Return the state int64 [2] after a game that is written as digits from 1 to 7: `4453`.

    Raises:
        GameError: a character is not such a digit, a column is full, or the game is over before its last move.
    """
    return play_games(GAME, [moves])[1][0]


def state_from_board(text: str) -> Array:
    """Return the state int64 [2] that a drawing shows, written as `GAME.render` does; `.` is an empty cell as well.

    Raises:
        GameError: the drawing does not have six rows of seven cells, or play cannot lead to the position.
    """
    cells = GAME.read_stones(text)
    floating = (cells[:-1] != EMPTY) & (cells[1:] == EMPTY)
    if floating.any():
        row, column = np.argwhere(floating)[0]
        raise GameError(f"the stone in row {row + 1} of column {DIGITS[column]} floats: below it is an empty cell")
    columns = np.pad(cells[::-1].T, ((0, 0), (0, STRIDE - ROWS)), constant_values=EMPTY)  # in the order of bits
    first, second = (bits_of(columns, player) for player in (0, 1))
    if has_line((first, second)[mover(first, second)], ROWS):
        raise GameError("four in a row of the player who did not move last: the game was over before")
    return np.array([first, second], np.int64)
