"""95 % intervals of shares: Wilson, "Probable inference, the law of succession, and statistical inference", 1927."""

import math
from typing import NamedTuple

Z_95 = 1.959964
"""Standard deviations of a 95 % interval."""


def wilson_interval(share: float, size: float) -> tuple[float, float]:
    """Return the 95 % interval of a share that was observed in `size` independent trials."""
    center = share + Z_95**2 / (2 * size)
    spread = Z_95 * math.sqrt(share * (1 - share) / size + Z_95**2 / (4 * size**2))
    low, high = (center - spread) / (1 + Z_95**2 / size), (center + spread) / (1 + Z_95**2 / size)
    # Rounding must not exclude a share of 0 or 1 that was observed.
    return (max(0.0, low) if share > 0 else 0.0), (min(1.0, high) if share < 1 else 1.0)


class Rate(NamedTuple):
    """How often something happened."""

    events: int
    trials: int

    @property
    def share(self) -> float:
        """Return the observed share."""
        return self.events / max(1, self.trials)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the share."""
        return wilson_interval(self.share, self.trials) if self.trials else (0.0, 1.0)
