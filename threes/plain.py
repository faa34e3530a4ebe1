"""Tic-tac-toe for three, one position at a time, in plain Python: the rules of `threes.rules`, written on their own.

An example of a game for more than two players in its simplest form, and the oracle of the tests.
"""

from collections.abc import Sequence

import numpy as np

from seraphim.game import Array, PlainGame
from seraphim.game.grid import Cells

PLAYERS = 3


class PlainThrees(PlainGame):
    """Tic-tac-toe for three without bit sets; a cell is 0 while it is empty, and else the player and 1."""

    num_players = PLAYERS

    def __init__(self, rows: int = 3, columns: int = 4) -> None:
        self.rows, self.columns = rows, columns
        self.name = "plain threes" if (rows, columns) == (3, 4) else f"plain threes on {rows}×{columns} cells"
        self.num_actions = self.state_words = self.max_plies = rows * columns
        self.observation_shape = (rows, columns, PLAYERS)

    def initial(self) -> Cells:
        return (0,) * self.num_actions

    def step(self, state: Cells, action: int) -> Cells:
        return (*state[:action], 1 + self.to_play(state), *state[action + 1 :])

    def legal(self, state: Cells) -> Sequence[int]:
        return [cell for cell in range(self.num_actions) if state[cell] == 0]

    def to_play(self, state: Cells) -> int:
        return (self.num_actions - state.count(0)) % PLAYERS

    def outcome(self, state: Cells) -> tuple[float, ...] | None:
        board = np.array(state).reshape(self.rows, self.columns)
        for player in range(PLAYERS):
            own = board == player + 1
            for side in (own, own.T):  # rows, then columns
                if (side[:, :-2] & side[:, 1:-1] & side[:, 2:]).any():
                    return self._won_by(player)
            for side in (own, own[:, ::-1]):  # both diagonals
                if (side[:-2, :-2] & side[1:-1, 1:-1] & side[2:, 2:]).any():
                    return self._won_by(player)
        return None if 0 in state else (0.0,) * PLAYERS

    def _won_by(self, winner: int) -> tuple[float, ...]:
        return tuple(1.0 if player == winner else -0.5 for player in range(PLAYERS))

    def observe(self, state: Cells) -> Array:
        mover, board = self.to_play(state), np.array(state).reshape(self.rows, self.columns)
        return np.stack([board == 1 + (mover + seat) % PLAYERS for seat in range(PLAYERS)], axis=2)

    def action_label(self, action: int) -> str:
        return "abcdefghi"[action % self.columns] + str(action // self.columns + 1)


GAME = PlainThrees()
