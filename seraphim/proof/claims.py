"""What can be proven about a position."""

from typing import NamedTuple, Self

from seraphim.game import Array


class Claim(NamedTuple):
    """A player wins, or at least draws, whatever the other one plays."""

    player: int  # 0 or 1
    wins: bool  # or at least draws

    @property
    def opposite(self) -> Self:
        """What is true if this is not."""
        return type(self)(1 - self.player, not self.wins)

    def holds(self, results: Array) -> Array:
        """Return whether games with these results for player 0, float32 [B], end as claimed, bool [B]."""
        results = results * (1 - 2 * self.player)
        return results > 0 if self.wins else results >= 0

    def __str__(self) -> str:
        return f"the {('first', 'second')[self.player]} player {'wins' if self.wins else 'at least draws'}"
