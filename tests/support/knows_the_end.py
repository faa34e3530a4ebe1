"""A game that knows some results before its end; by this name, and without solved positions."""

import numpy as np

from seraphim.game import Array
from tictactoe.game import TicTacToe
from tictactoe.minimax import action_results


class KnowsTheEnd(TicTacToe):
    """Tic-tac-toe that knows the results of positions with at most three empty cells."""

    def known_results(self, states: Array) -> tuple[Array, Array]:
        known = np.bitwise_count(states).sum(axis=1) >= 6
        results = np.zeros(len(states), np.float32)
        for row in np.flatnonzero(known & ~self.outcome(states)[0]):
            best = np.nanmax(action_results(states[row], 0.0).results)
            results[row] = best if self.to_play(states[row : row + 1])[0] == 0 else -best
        return known, results


GAME = KnowsTheEnd()
