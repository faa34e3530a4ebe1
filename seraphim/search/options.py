"""The options of the search. Knows no game and no network."""

from dataclasses import dataclass
from typing import Literal

from seraphim.errors import SettingsError

Leaf = Literal["value", "playout"]


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search; `AGZ` is AlphaGo Zero (Silver et al. 2017), whose game was Go."""

    readouts: int = 200
    """Simulations a move (AGZ: 1600)."""
    cpuct: float = 1.5
    """Weight c of exploration in U(s,a) = c·P(s,a)·√N(s)/(1+N(s,a)) (AGZ: 0.25 in units of a value in [0, 1])."""
    tempering_point: int = 30
    """Ply from which the most visited action is played; before it, in proportion to visits (AGZ: 30)."""
    dirichlet_alpha: float = 0.3
    """Concentration of the noise on the root's priors, about 10 / legal moves (AGZ: 0.03)."""
    noise_coefficient: float = 0.25
    """Share of noise in the root's priors, 0 to 1; evaluation and play against a person use none (AGZ: 0.25)."""
    leaf: Leaf = "value"
    """How a leaf is valued: by the network's `value` head (AGZ), or by a `playout` that reads on to the end."""

    cache_megabytes: int = 128
    """Memory for evaluations that the search has seen, in each worker; 0 asks the network again each time."""

    def __post_init__(self) -> None:
        """Validate.

        Raises:
            SettingsError: a value is out of range.
        """
        for name, holds, expected in (
            ("readouts", self.readouts >= 1, "at least 1"),
            ("cpuct", self.cpuct > 0, "above 0"),
            ("tempering_point", self.tempering_point >= 0, "0 or more"),
            ("dirichlet_alpha", self.dirichlet_alpha > 0, "above 0"),
            ("noise_coefficient", 0 <= self.noise_coefficient <= 1, "from 0 to 1"),
            ("cache_megabytes", self.cache_megabytes >= 0, "0 or more"),
            ("leaf", self.leaf in ("value", "playout"), "value or playout"),
        ):
            if not holds:
                raise SettingsError(f"{name} must be {expected}, not {getattr(self, name)}")
