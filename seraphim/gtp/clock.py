"""How long to think about a move, given a clock."""

from dataclasses import dataclass

MARGIN = 0.05  # seconds for everything but the search, such as the way of the answer to the other program
MOST_MARGIN = 0.2  # of the time for a move, if that is short
FEWEST_MOVES = 8  # that the time of a game is divided among, however near its end is


@dataclass(frozen=True)
class Clock:
    """What is left to a player: time for the rest of the game, or for a number of moves, or both."""

    main: float = 0.0
    """Seconds for the rest of the game, before any that follow."""
    period: float = 0.0
    """Seconds for each next `moves` moves, once the time for the game is used up; or more for each move, if `moves` is
    0."""
    moves: int = 0
    """Moves that must be made in a period."""

    def budget(self, own_moves: float) -> float:
        """Return the seconds to think about this move, when the game may last for `own_moves` more of this player."""
        seconds = self.main / max(FEWEST_MOVES, own_moves)
        if self.moves:
            seconds += self.period / self.moves
        else:
            seconds = min(seconds + self.period, self.main)
        return max(0.0, seconds - min(MARGIN, MOST_MARGIN * seconds))

    def after(self, seconds: float) -> "Clock":
        """Return the clock after a move that took some seconds, where nobody else says what is left."""
        return Clock(max(0.0, self.main - seconds), self.period, self.moves)
