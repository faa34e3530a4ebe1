"""Connect four one position at a time, in plain Python: the same rules as `connectfour.game`, written independently.

An example of the simplest form of a game, the oracle of the tests, and the baseline of the compiled rules in
bin/benchmark.py.
"""

from collections.abc import Sequence

import numpy as np

from seraphim.game import Array, PlainGame

Cells = tuple[int, ...]  # 42 cells, row by row from the top: 0 empty, 1 a stone of player 0, 2 one of player 1


def _lines() -> list[list[int]]:
    # All lines of four cells: from each cell to the right, down, and down to either side.
    lines = []
    for row in range(6):
        for column in range(7):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                if row + 3 * down < 6 and 0 <= column + 3 * right < 7:
                    lines.append([7 * (row + step * down) + column + step * right for step in range(4)])
    return lines


LINES = _lines()


class PlainConnectFour(PlainGame):
    """Connect four without bit sets."""

    name = "plain connectfour"
    num_actions = 7
    observation_shape = (6, 7, 2)
    state_words = 42
    max_plies = 42

    def initial(self) -> Cells:
        return (0,) * 42

    def step(self, state: Cells, action: int) -> Cells:
        cells = list(state)
        lowest = max(row for row in range(6) if cells[7 * row + action] == 0)
        cells[7 * lowest + action] = 1 + self.to_play(state)
        return tuple(cells)

    def legal(self, state: Cells) -> Sequence[int]:
        return [column for column in range(7) if state[column] == 0]

    def to_play(self, state: Cells) -> int:
        return (42 - state.count(0)) % 2

    def outcome(self, state: Cells) -> float | None:
        for a, b, c, d in LINES:
            if 0 != state[a] == state[b] == state[c] == state[d]:
                return 1.0 if state[a] == 1 else -1.0
        return None if 0 in state else 0.0

    def observe(self, state: Cells) -> Array:
        mine, other = (1, 2) if self.to_play(state) == 0 else (2, 1)
        board = np.array(state).reshape(6, 7)
        return np.stack([board == mine, board == other], axis=2).astype(np.uint8)

    def action_label(self, action: int) -> str:
        return str(action + 1)


GAME = PlainConnectFour()
