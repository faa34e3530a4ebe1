"""Hex one position at a time, in plain Python: the same rules as `hex.rules`, written independently."""

from collections.abc import Sequence

import numpy as np

from seraphim.game import Array, PlainGame
from seraphim.game.grid import Cells


class PlainHex(PlainGame):
    """Hex without bit sets. A state is the cells, and with `swap` the number of plies behind them."""

    def __init__(self, size: int = 7, swap: bool = False) -> None:
        self._size, self._swap, self._num_cells = size, swap, size * size
        self.name = "plain hex"
        self.num_actions = self.state_words = self.max_plies = size * size + swap
        self.observation_shape = (size, size, 3)

    def initial(self) -> Cells:
        return (0,) * self.state_words

    def step(self, state: Cells, action: int) -> Cells:
        plies = (state[-1] + 1,) if self._swap else ()
        if action == self._num_cells:
            taken = state.index(1)
            mirrored = self._size * (taken % self._size) + taken // self._size
            return (*(2 if cell == mirrored else 0 for cell in range(self._num_cells)), *plies)
        return (*state[:action], 1 + self.to_play(state), *state[action + 1 : self._num_cells], *plies)

    def legal(self, state: Cells) -> Sequence[int]:
        cells = [cell for cell in range(self._num_cells) if state[cell] == 0]
        return [*cells, self._num_cells] if self._swap and state[-1] == 1 else cells

    def to_play(self, state: Cells) -> int:
        return (state[-1] if self._swap else self._num_cells - state.count(0)) % 2

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
        board = np.array(state[: self._num_cells]).reshape(self._size, self._size)
        planes = [board == 1 + mover, board == 2 - mover, np.full_like(board, mover)]
        return np.stack(planes, axis=2).astype(np.uint8)

    def action_label(self, action: int) -> str:
        if action == self._num_cells:
            return "swap-pieces"
        return f"{'abcdefghijk'[action % self._size]}{action // self._size + 1}"


GAME = PlainHex()
