"""The exact solver of endgames: the result of every move under best play.

Knows states, moves and time; the search itself is `othello.alphabeta`.
"""

import threading
import time

import numpy as np

from othello import alphabeta
from othello.bits import CELLS, Bits, mover_of, stones_of
from othello.game import GAME
from seraphim.errors import GameError, SettingsError
from seraphim.game import Array
from seraphim.game.loading import MoveResults

SLICE = 1_000_000  # nodes of the first try; the next one may search twice as many, and knows what this one found


class EndgameSolver:
    """Solves positions of Othello, and remembers what it found from one to the next; one at a time.

    A thread that asks while another one is served waits. Limits of time begin after that.

    Args:
        table_megabytes: size of the transposition table, rounded down to a power of two.

    Raises:
        SettingsError: the table would be too small.
    """

    def __init__(self, table_megabytes: int = 64) -> None:
        if table_megabytes < 1:
            raise SettingsError(f"a solver's table needs 1 megabyte or more, not {table_megabytes}")
        slots = 1 << (table_megabytes * 2**20 // (8 * alphabeta.ENTRY)).bit_length() - 1
        self._table = np.zeros((slots, alphabeta.ENTRY), np.uint64)
        self._moves_at = np.zeros((CELLS + 1, CELLS), np.int64)
        self._words = np.zeros((CELLS + 1, 3), np.uint64)
        self._control = np.zeros(2, np.int64)
        self._lock = threading.Lock()

    @property
    def nodes(self) -> int:
        """Return how many positions all calls together have searched."""
        return int(self._control[alphabeta.NODES])

    def solve(self, state: Array, max_seconds: float | None = None) -> int | None:
        """Return the difference of stones under best play for the player to move, None if the time is not enough.

        Empty cells at the end belong to the winner.

        Args:
            state: int64 [2], see `othello.game`.
            max_seconds: time at most, read about every tenth of a second at first, later less often.
        """
        with self._lock:
            return self._search(*_words(state), -CELLS, CELLS, _deadline(max_seconds))

    def solve_weakly(self, state: Array, max_seconds: float | None = None) -> int | None:
        """Return 1 if the player to move wins, 0 for a draw, -1 for a loss, None if the time is not enough.

        Faster than `solve`.
        """
        with self._lock:
            value = self._search(*_words(state), -1, 1, _deadline(max_seconds))
        return None if value is None else int(np.sign(value))

    def solve_moves(self, state: Array, max_seconds: float | None = None) -> MoveResults:
        """Return the result of each move of an unfinished position, float32 [A]; the plies are unknown.

        The time is for all moves together, each of which gets an equal share of what is left.

        Raises:
            GameError: the game is over in this state.
        """
        actions = np.flatnonzero(GAME.legal(state[None])[0])
        if not len(actions):
            raise GameError(f"there is nothing to solve, the game is over:\n{GAME.render(state)}")
        results = np.full(GAME.num_actions, np.nan, np.float32)
        successors = GAME.step(np.repeat(state[None], len(actions), axis=0), actions)
        with self._lock:
            deadline = _deadline(max_seconds)
            for place, (action, successor) in enumerate(zip(actions, successors, strict=True)):
                left = None if deadline is None else (deadline - time.monotonic()) / (len(actions) - place)
                value = self._search(*_words(successor), -1, 1, _deadline(left))
                if value is not None:
                    results[action] = -np.sign(value)
        return MoveResults(results, np.full(GAME.num_actions, np.nan, np.float32))

    def _search(self, own: Bits, other: Bits, alpha: int, beta: int, deadline: float | None) -> int | None:
        empty, budget = CELLS - int(own).bit_count() - int(other).bit_count(), SLICE
        while deadline is None or time.monotonic() < deadline:
            self._control[alphabeta.LIMIT] = self._control[alphabeta.NODES] + budget
            value = alphabeta.search(
                own, other, alpha, beta, empty, self._table, self._words, self._moves_at, self._control
            )
            if value != alphabeta.STOPPED:
                return int(value)
            budget *= 2
        return None


def _deadline(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds


def _words(state: Array) -> tuple[Bits, Bits]:
    # The stones of the player to move, and those of the opponent.
    words = state.view(np.uint64)
    mover = mover_of(words)
    return Bits(stones_of(words, mover)), Bits(stones_of(words, 1 - mover))  # kernels return Python's ints
