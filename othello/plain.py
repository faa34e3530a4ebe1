"""Othello one position at a time, in plain Python: the same rules as `othello.rules`, written independently."""

from collections.abc import Sequence

import numpy as np

from seraphim.game import Array, PlainGame

State = tuple[int, ...]  # 64 cells row by row from the top, 0 empty, 1 black, 2 white; then the player to move
PASS = 64


class PlainOthello(PlainGame):
    """Othello without bit sets."""

    name = "plain othello"
    num_actions = 65
    observation_shape = (8, 8, 4)
    state_words = 65
    max_plies = 120

    def initial(self) -> State:
        cells = [0] * 64
        cells[27] = cells[36] = 2
        cells[28] = cells[35] = 1
        return (*cells, 0)

    def step(self, state: State, action: int) -> State:
        mover = self.to_play(state)
        cells = list(state[:64])
        if action != PASS:
            for cell in [action, *self._flips(state, mover, action)]:
                cells[cell] = 1 + mover
        return (*cells, 1 - mover)

    def legal(self, state: State) -> Sequence[int]:
        return self._cells(state, self.to_play(state)) or [PASS]

    def to_play(self, state: State) -> int:
        return state[64]

    def outcome(self, state: State) -> float | None:
        if self._cells(state, 0) or self._cells(state, 1):
            return None
        black, white = state[:64].count(1), state[:64].count(2)
        return float((black > white) - (black < white))

    def _cells(self, state: State, player: int) -> list[int]:
        return [cell for cell in range(64) if self._flips(state, player, cell)]

    def _flips(self, state: State, player: int, cell: int) -> list[int]:
        # Walks from the cell in each direction over the opponent's stones, up to one of the player's.
        flips: list[int] = []
        if state[cell]:
            return flips
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                row, column, line = cell // 8 + down, cell % 8 + right, list[int]()
                while 0 <= row < 8 and 0 <= column < 8 and state[8 * row + column] == 2 - player:
                    line.append(8 * row + column)
                    row, column = row + down, column + right
                if 0 <= row < 8 and 0 <= column < 8 and state[8 * row + column] == 1 + player:
                    flips += line
        return flips

    def observe(self, state: State) -> Array:
        board = np.array(state[:64]).reshape(8, 8)
        mover = self.to_play(state)
        moves = [np.isin(np.arange(64), self._cells(state, player)).reshape(8, 8) for player in (mover, 1 - mover)]
        return np.stack([board == 1 + mover, board == 2 - mover, *moves], axis=2).astype(np.uint8)

    def action_label(self, action: int) -> str:
        return "pass" if action == PASS else f"{'abcdefgh'[action % 8]}{action // 8 + 1}"


GAME = PlainOthello()
