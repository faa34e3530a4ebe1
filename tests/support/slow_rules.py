"""Tic-tac-toe with a clock of its own, by this name: its rules take no time, but say that they take much."""

from seraphim.game import Array
from tictactoe.game import TicTacToe

SECONDS_OF_A_MOVE = 0.02


class SlowRules(TicTacToe):
    """Moves the clock with every position that a move leads to."""

    clock = 0.0

    def step(self, states: Array, actions: Array) -> Array:
        self.clock += SECONDS_OF_A_MOVE * len(states)
        return super().step(states, actions)


GAME = SlowRules()
