"""Hex one position at a time, in plain Python: the same rules as `hex.rules`, written independently."""

from collections.abc import Sequence

import numpy as np

from seraphim.game import Array, PlainGame
from seraphim.game.grid import Cells


class PlainHex(PlainGame):
    """Hex without bit sets."""

    def __init__(self, size: int = 7) -> None:
        self._size = size
        self.name = "plain hex"
        self.num_actions = self.state_words = self.max_plies = size * size
        self.observation_shape = (size, size, 3)

    def initial(self) -> Cells:
        return (0,) * self.state_words

    def step(self, state: Cells, action: int) -> Cells:
        return (*state[:action], 1 + self.to_play(state), *state[action + 1 :])

    def legal(self, state: Cells) -> Sequence[int]:
        return [cell for cell in range(self.num_actions) if state[cell] == 0]

    def to_play(self, state: Cells) -> int:
        return (self.num_actions - state.count(0)) % 2

    def outcome(self, state: Cells) -> float | None:
        if self._connects(state, 1):
            return 1.0
        return -1.0 if self._connects(state, 2) else None

    def _connects(self, state: Cells, stone: int) -> bool:
        # Along rows for player 0, from the top to the bottom; along columns for player 1, from the left to the right.
        n = self._size
        along = 0 if stone == 1 else 1
        todo = [place for place in np.ndindex(n, n) if place[along] == 0 and state[n * place[0] + place[1]] == stone]
        seen = set(todo)
        while todo:
            row, column = todo.pop()
            if (row, column)[along] == n - 1:
                return True
            for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1)):
                place = row + down, column + right
                is_on_board = 0 <= place[0] < n and 0 <= place[1] < n
                if is_on_board and place not in seen and state[n * place[0] + place[1]] == stone:
                    seen.add(place)
                    todo.append(place)
        return False

    def observe(self, state: Cells) -> Array:
        mover = self.to_play(state)
        board = np.array(state).reshape(self._size, self._size)
        planes = [board == 1 + mover, board == 2 - mover, np.full_like(board, mover)]
        return np.stack(planes, axis=2).astype(np.uint8)

    def action_label(self, action: int) -> str:
        return f"{'abcdefghijk'[action % self._size]}{action // self._size + 1}"


GAME = PlainHex()
