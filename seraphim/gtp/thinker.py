"""A game, and a search of its current position that ends by readouts, by the clock, or by a new command.

Commands come from a stream that a thread reads, so that they are noticed while the search runs.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import IO

from seraphim.game import Game
from seraphim.game.tree import GameTree
from seraphim.players.opponent import Opponent
from seraphim.search.analysis import PositionAnalysis
from seraphim.terminal.session import MOST_READOUTS

_FORGETTING = 0.8  # of the longest step, with each move

WAIT_SECONDS = 0.02  # between two looks for a command, once nothing is left to search


class Thinker:
    """Follows a game, and searches its current position."""

    def __init__(self, game: Game, opponent: Opponent, commands: IO[str]) -> None:
        """Begin a game.

        Args:
            game: the rules.
            opponent: the search.
            commands: what the other program sends.
        """
        self.game, self.tree = game, GameTree(game)
        self._opponent = opponent
        self._longest_step = 0.0  # seconds, between two looks at the clock; the machine may be busy
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, args=(commands,), daemon=True).start()

    def _read(self, commands: IO[str]) -> None:
        with contextlib.suppress(OSError, UnicodeError):  # where a line cannot be read, the commands end
            for line in commands:
                self._lines.put(line)
        self._lines.put(None)

    def next_line(self) -> str | None:
        """Return the next line that was sent, as soon as there is one; None once there are no more."""
        return self._lines.get()

    @property
    def has_line(self) -> bool:
        """Return whether a line was sent, or no more will be."""
        return not self._lines.empty()

    def new(self) -> None:
        """Begin another game."""
        self.tree = GameTree(self.game)

    @property
    def mover(self) -> int:
        """Return the player to move, 0 or 1."""
        return int(self.game.to_play(self.tree.node.state[None])[0])

    @property
    def own_moves(self) -> float:
        """Return how many more moves a player may make: half of the most that are possible, if players alternate."""
        return max(1.0, (self.game.max_plies - self.tree.node.ply) / 4)

    def choose(
        self,
        readouts: int | None = None,
        seconds: float | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        show: Callable[[PositionAnalysis], None] = lambda _: None,
    ) -> int:
        """Return the action to play in the current, unfinished position.

        Args:
            readouts: how many the search adds at most; by default the model's own number, or, given `seconds`, as many
                as there is time for.
            seconds: time for the search.
            is_stopped: ends the search early; it is asked after each batch.
            show: is called with the result.

        Raises:
            ModelError: the model gave a NaN or an infinity.
        """
        last = time.monotonic()
        deadline = None if seconds is None else last + seconds
        if len(self.tree.legal()) == 1:
            readouts = 0  # there is nothing to choose
        elif readouts is None:
            readouts = self._opponent.search.readouts if seconds is None else MOST_READOUTS

        def is_over(_: Callable[[], PositionAnalysis]) -> bool:
            # Also where the next step of the search may end too late, if it takes as long as the longest one so far.
            nonlocal last
            now = time.monotonic()
            self._longest_step, last = max(self._longest_step, now - last), now
            return is_stopped() or (deadline is not None and now + self._longest_step >= deadline)

        self._longest_step *= _FORGETTING
        show(self._opponent.read(self.tree, readouts, is_over))
        return self._opponent.choose(self.tree)

    def analyze(self, seconds: float, show: Callable[[PositionAnalysis], None], is_stopped: Callable[[], bool]) -> None:
        """Search the current, unfinished position until it is stopped.

        Args:
            seconds: between two results.
            show: is called with each result.
            is_stopped: ends the search; it is asked after each batch.

        Raises:
            ModelError: the model gave a NaN or an infinity.
        """
        shown = time.monotonic()

        def watch(found: Callable[[], PositionAnalysis]) -> bool:
            nonlocal shown
            if time.monotonic() - shown >= seconds:
                shown = time.monotonic()
                show(found())
            return is_stopped()

        show(self._opponent.read(self.tree, MOST_READOUTS, watch))
        while not is_stopped():
            time.sleep(WAIT_SECONDS)
