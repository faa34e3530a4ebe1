"""Connect four one position at a time, in plain Python: the same rules as `connectfour.rules`, written independently.

An example of the simplest form of a game, the oracle of the tests, and the baseline of the compiled rules in
seraphim benchmark.
"""

from collections.abc import Sequence

import numpy as np

from seraphim.game import Array, PlainGame
from seraphim.game.grid import Cells


class PlainConnectFour(PlainGame):
    """Connect four without bit sets."""

    def __init__(self, rows: int = 6, columns: int = 7) -> None:
        self._rows, self._columns = rows, columns
        self.name = "plain connectfour"
        self.num_actions = columns
        self.observation_shape = (rows, columns, 6)
        self.state_words = self.max_plies = rows * columns
        self._lines = [  # of four cells: from each cell to the right, down, and down to either side
            [columns * (row + step * down) + column + step * right for step in range(4)]
            for row in range(rows)
            for column in range(columns)
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
            if row + 3 * down < rows and 0 <= column + 3 * right < columns
        ]

    def initial(self) -> Cells:
        return (0,) * self.state_words

    def step(self, state: Cells, action: int) -> Cells:
        cells = list(state)
        lowest = max(row for row in range(self._rows) if cells[self._columns * row + action] == 0)
        cells[self._columns * lowest + action] = 1 + self.to_play(state)
        return tuple(cells)

    def legal(self, state: Cells) -> Sequence[int]:
        return [column for column in range(self._columns) if state[column] == 0]

    def to_play(self, state: Cells) -> int:
        return (self.state_words - state.count(0)) % 2

    def outcome(self, state: Cells) -> float | None:
        for a, b, c, d in self._lines:
            if 0 != state[a] == state[b] == state[c] == state[d]:
                return 1.0 if state[a] == 1 else -1.0
        return None if 0 in state else 0.0

    def observe(self, state: Cells) -> Array:
        players = (1, 2) if self.to_play(state) == 0 else (2, 1)
        board = np.array(state)
        stones = [board == player for player in players]
        completing = [self._completing(state, player) for player in players]
        below = np.append(board[self._columns :], [1] * self._columns)  # of each cell; the ground of the lowest
        landing = (board == 0) & (below != 0)
        heights = self._rows - np.arange(len(board)) // self._columns
        planes = np.stack([*stones, *completing, landing, heights % 2 != self.to_play(state)], axis=1)
        return planes.reshape(self.observation_shape).astype(np.uint8)

    def _completing(self, state: Cells, player: int) -> Array:
        completing = np.zeros(self.state_words, bool)
        for line in self._lines:
            marks = [state[cell] for cell in line]
            if marks.count(player) == 3 and 0 in marks:
                completing[line[marks.index(0)]] = True
        return completing

    def action_label(self, action: int) -> str:
        return str(action + 1)


GAME = PlainConnectFour()
