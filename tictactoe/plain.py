"""Tic-tac-toe one position at a time, in plain Python: the same rules as `tictactoe.rules`, written independently.

An example of the simplest form of a game, the oracle of the tests, and the baseline of the compiled rules in
seraphim benchmark.
"""

from collections.abc import Sequence

import numpy as np

from seraphim.game import Array, PlainGame
from seraphim.game.grid import Cells


class PlainTicTacToe(PlainGame):
    """Tic-tac-toe without bit sets."""

    name = "plain tictactoe"
    num_actions = 9
    observation_shape = (3, 3, 2)
    state_words = 9
    max_plies = 9

    def initial(self) -> Cells:
        return (0,) * 9

    def step(self, state: Cells, action: int) -> Cells:
        cells = list(state)
        cells[action] = 1 + self.to_play(state)
        return tuple(cells)

    def legal(self, state: Cells) -> Sequence[int]:
        return [cell for cell in range(9) if state[cell] == 0]

    def to_play(self, state: Cells) -> int:
        return (9 - state.count(0)) % 2

    def outcome(self, state: Cells) -> float | None:
        rows = [state[0:3], state[3:6], state[6:9]]
        columns = [state[0::3], state[1::3], state[2::3]]
        diagonals = [state[0::4], state[2:7:2]]
        for line in rows + columns + diagonals:
            if line in ((1, 1, 1), (2, 2, 2)):
                return 1.0 if line[0] == 1 else -1.0
        return None if 0 in state else 0.0

    def observe(self, state: Cells) -> Array:
        mine, other = (1, 2) if self.to_play(state) == 0 else (2, 1)
        board = np.array(state).reshape(3, 3)
        return np.stack([board == mine, board == other], axis=2).astype(np.uint8)

    def action_label(self, action: int) -> str:
        return "abc"[action % 3] + "123"[action // 3]


GAME = PlainTicTacToe()
