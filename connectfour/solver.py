"""The exact solver: the result of every move under best play, and the plies to the end of the game.

Knows states, moves and limits of nodes and time; the search itself is `connectfour.alphabeta`. A value that is not
proven within the limits is unknown, never guessed.
"""

import threading
import time
from typing import NamedTuple

import numpy as np

from connectfour import alphabeta
from connectfour.bitsets import BOTTOM, CELLS
from connectfour.game import GAME
from connectfour.rules import COLUMNS, FULL
from seraphim.errors import GameError, SettingsError
from seraphim.game import Array
from seraphim.game.loading import MoveResults

SLICE = 500_000  # nodes between two readings of the clock: less than a tenth of a second
ENDLESS = 1 << 62
DECISIVE = alphabeta.BEST - 1  # the value of the fastest win


class Score(NamedTuple):
    """The value of a position, or a move, under best play."""

    result: int  # for the player to move: 1 a win, 0 a draw, -1 a loss
    plies: int  # to the end of the game: the fastest win, the slowest loss


class Solver:
    """Solves positions of connect four, and remembers what it found from one to the next; one at a time.

    A thread that asks while another one is served waits. Limits of time and nodes begin after that.

    Args:
        table_megabytes: size of the transposition table. 64 are enough for positions with ten stones or more; openings
            gain from more, but late positions are slower where the processor's cache holds less of it.

    Raises:
        SettingsError: the table would be too small.
    """

    def __init__(self, table_megabytes: int = 64) -> None:
        if table_megabytes < 2:
            raise SettingsError(f"a solver's table needs 2 megabytes or more, not {table_megabytes}")
        # A pair of entries is 16 bytes; the pairs beside those for late positions, rounded down to a power of two.
        bits = (table_megabytes * 2**20 // 16 - (1 << alphabeta.LATE_BITS)).bit_length() - 1
        self._table = np.zeros((2 << bits) + (2 << alphabeta.LATE_BITS), np.int64)
        self._frames = np.zeros((CELLS + 2) * alphabeta.FRAME, np.int64)
        self._control = np.zeros(alphabeta.CONTROL, np.int64)
        self._control[alphabeta.BITS] = bits
        self._lock = threading.Lock()

    @property
    def nodes(self) -> int:
        """Return how many positions all calls together have searched."""
        return int(self._control[alphabeta.NODES])

    def clear(self) -> None:
        """Empty the transposition table."""
        self._table[:] = 0

    def solve(self, state: Array, max_nodes: int | None = None, max_seconds: float | None = None) -> Score | None:
        """Return the value of an unfinished position for the player to move, None if it is unknown within the limits.

        Args:
            state: int64 [2], see `connectfour.rules`.
            max_nodes: positions to search at most; the same limit gives the same answer in a new solver.
            max_seconds: time at most; the clock is read about every tenth of a second.

        Raises:
            GameError: play cannot lead to this state, or the game is over in it.
        """
        mover, mask = _checked(state)
        with self._lock:
            low, high = self._between(mover, mask, (-DECISIVE, DECISIVE), _Budget(self, max_nodes, max_seconds))
        return _score(low, mask.bit_count()) if low == high else None

    def solve_within(self, state: Array, plies: int) -> Score | None:
        """Return the value of an unfinished position if best play ends the game within some plies, else None.

        Faster than `solve`, with the same errors; the fewer plies, the faster.
        """
        mover, mask = _checked(state)
        stones = mask.bit_count()
        if plies >= CELLS - stones:
            return self.solve(state)
        # The values of the slowest win and of the slowest loss that are fast enough.
        win = alphabeta.BEST - stones // 2 - (plies + 1) // 2
        loss = (stones + 1) // 2 + plies // 2 - alphabeta.BEST
        for low, high, fails in ((win - 1, DECISIVE, win - 1), (-DECISIVE, loss + 1, loss + 1)):
            with self._lock:
                value, _ = self._between(mover, mask, (low, high), _Budget(self, None, None))
            if value != fails:
                return _score(value, stones)
        return None

    def solve_weakly(self, state: Array, max_nodes: int | None = None, max_seconds: float | None = None) -> int | None:
        """Return 1 if the player to move wins, 0 for a draw, -1 for a loss, None if it is unknown within the limits.

        Faster than `solve`, with the same arguments and errors.
        """
        mover, mask = _checked(state)
        with self._lock:
            low, high = self._between(mover, mask, (-1, 1), _Budget(self, max_nodes, max_seconds))
        return low if low == high else None

    def solve_moves(
        self, state: Array, max_nodes: int | None = None, max_seconds: float | None = None, *, weak: bool = False
    ) -> MoveResults:
        """Return the results and plies of each move of an unfinished position, both [A].

        The limits are for all moves together, each of which gets an equal share of what is left. A result may be known
        where the plies are not.

        Args:
            state: int64 [2], see `connectfour.rules`.
            max_nodes: positions to search at most.
            max_seconds: time at most.
            weak: find results only, which is faster: all plies are NaN.

        Raises:
            GameError: play cannot lead to this state, or the game is over in it.
        """
        _checked(state)
        scores = MoveResults(np.full(COLUMNS, np.nan, np.float32), np.full(COLUMNS, np.nan, np.float32))
        actions = np.flatnonzero(GAME.legal(state[None])[0])
        successors = GAME.step(np.repeat(state[None], len(actions), axis=0), actions)
        ended, results = GAME.outcome(successors)
        scores.results[actions[ended]] = np.abs(results[ended])  # a move never loses at once
        scores.plies[actions[ended]] = np.nan if weak else 1
        window = (-1, 1) if weak else (-DECISIVE, DECISIVE)
        with self._lock:
            budget = _Budget(self, max_nodes, max_seconds)
            for done, (action, successor) in enumerate(zip(actions[~ended], successors[~ended], strict=True)):
                mover, mask = _words(successor)
                share = budget.share(int((~ended).sum()) - done)
                low, high = self._between(mover, mask, window, share)
                if np.sign(low) == np.sign(high):
                    scores.results[action] = -np.sign(low)
                if low == high and not weak:
                    scores.plies[action] = _score(low, mask.bit_count()).plies + 1
        return scores

    def _between(self, mover: int, mask: int, window: tuple[int, int], budget: "_Budget") -> tuple[int, int]:
        # Bounds of a value, clipped to the window; equal if it is known.
        alphabeta.begin(self._frames, self._control, mover, mask, *window)
        while not alphabeta.run(self._table, self._frames, self._control, budget.stop()) and not budget.spent():
            pass
        return int(self._control[alphabeta.LOW]), int(self._control[alphabeta.HIGH])


class _Budget:
    """The limits of a search: a count of nodes, and a point in time."""

    def __init__(self, solver: Solver, max_nodes: int | None, max_seconds: float | None) -> None:
        self._solver = solver
        self._last_node = ENDLESS if max_nodes is None else solver.nodes + max_nodes
        self._last_moment = None if max_seconds is None else time.monotonic() + max_seconds

    def share(self, parts: int) -> "_Budget":
        """Return one of several equal parts of what is left."""
        nodes = max(0, self._last_node - self._solver.nodes) // parts
        seconds = None if self._last_moment is None else max(0.0, self._last_moment - time.monotonic()) / parts
        return _Budget(self._solver, nodes, seconds)

    def stop(self) -> int:
        """Return the count of nodes at which the kernels should return."""
        return self._last_node if self._last_moment is None else min(self._last_node, self._solver.nodes + SLICE)

    def spent(self) -> bool:
        """Return whether nothing is left."""
        late = self._last_moment is not None and time.monotonic() >= self._last_moment
        return late or self._solver.nodes >= self._last_node


def _checked(state: Array) -> tuple[int, int]:
    # The mover's stones and all stones.
    if np.shape(state) != (2,):
        raise GameError(f"a state of connectfour has 2 words, not the shape {np.shape(state)}")
    first, second = (int(word) for word in state)
    taken = first | second
    surplus = first.bit_count() - second.bit_count()
    gaps = taken & ~FULL or taken + BOTTOM & taken
    if first & second or surplus not in (0, 1) or gaps:
        raise GameError(f"play cannot lead to the state {first}, {second}: stones overlap, float, or are not in turn")
    if GAME.outcome(state[None])[0][0]:
        raise GameError(f"there is nothing to solve, the game is over:\n{GAME.render(state)}")
    return _words(state)


def _words(state: Array) -> tuple[int, int]:
    first, second = (int(word) for word in state)
    return (second if (first | second).bit_count() & 1 else first), first | second


def _score(value: int, stones: int) -> Score:
    if value == 0:
        return Score(0, CELLS - stones)
    # How many more stones the winner needs; the mover's next one is the first ply, the opponent's the second.
    own = (stones if value > 0 else stones + 1) // 2
    needed = alphabeta.BEST - abs(value) - own
    return Score(1, 2 * needed - 1) if value > 0 else Score(-1, 2 * needed)
