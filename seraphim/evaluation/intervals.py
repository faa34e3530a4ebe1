"""95 % intervals, for trials that are independent of each other.

Those of shares are those of Wilson, "Probable inference, the law of succession, and statistical inference", 1927; those
of means are normal ones.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seraphim.game import Array

Z_95 = 1.959964
"""Standard deviations of a 95 % interval."""

PAIR_POINTS = np.arange(5) / 2
"""Points of a player in the two games of an opening: 0 to 2, where a draw counts half."""

_EXTREMES = np.array([1, 0, 0, 0, 1])  # pseudo-counts, one opening of each extreme


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
    sampled: bool = True  # whether the trials are drawn at random; else they are all there are

    @property
    def share(self) -> float:
        """Return the observed share."""
        return self.events / max(1, self.trials)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the share in general; the share itself where it is exact."""
        if not self.sampled:
            return self.share, self.share
        return wilson_interval(self.share, self.trials) if self.trials else (0.0, 1.0)


@dataclass(frozen=True)
class Mean:
    """The mean of independent numbers."""

    count: int
    total: float
    squares: float  # the sum of them

    @staticmethod
    def of(numbers: Array) -> "Mean":
        """Return the mean of some numbers, float64 [N]."""
        return Mean(len(numbers), float(numbers.sum()), float((numbers**2).sum()))

    @property
    def value(self) -> float:
        """Return the observed mean."""
        return self.total / max(1, self.count)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the mean in general, without bounds if there are fewer than two numbers."""
        if self.count < 2:
            return -math.inf, math.inf
        variance = max(0.0, self.squares - self.count * self.value**2) / (self.count - 1)
        margin = Z_95 * math.sqrt(variance / self.count)
        return self.value - margin, self.value + margin

    def __add__(self, other: "Mean") -> "Mean":
        """Return the mean of both together."""
        return Mean(self.count + other.count, self.total + other.total, self.squares + other.squares)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:,.5g} [{low:,.5g}, {high:,.5g}]"


def pair_moments(pairs: tuple[int, ...]) -> tuple[float, float]:
    """Return the mean and the variance of an opening's score in [0, 1], with one opening of each extreme added.

    The two added openings keep identical results from making the next one a certainty, as in the interval of Agresti
    and Coull ("Approximate is better than 'exact'", 1998).
    """
    counts = np.array(pairs) + _EXTREMES
    mean = float(counts @ PAIR_POINTS) / 2 / counts.sum()
    return mean, float(counts @ (PAIR_POINTS / 2 - mean) ** 2) / counts.sum()


def score_interval(pairs: tuple[int, ...]) -> tuple[float, float]:
    """Return the 95 % interval of a score in [0, 1], where openings are independent but the games of one are not.

    It is the interval of Wilson for the number of independent wins and losses that are as informative: n openings with
    a variance of s² determine a score as well as n·p(1-p)/s² games determine a share p (effective sample size: Korn and
    Graubard, "Confidence intervals for proportions with small expected number of positive counts estimated from survey
    data", 1998). `pairs` are openings by points, as in `MatchResult`.
    """
    openings = sum(pairs)
    if not openings:
        return 0.0, 1.0
    score = float(np.array(pairs) @ PAIR_POINTS) / 2 / openings
    return wilson_interval(score, 2 * openings / dispersion(pairs))


def dispersion(pairs: tuple[int, ...]) -> float:
    """Return the variance of an opening's score, in units of that of two independent games without draws.

    It is 2 where a player tends to win both games of an opening or neither, and small where they balance.
    """
    mean, variance = pair_moments(pairs)
    return 2 * variance / (mean * (1 - mean))
