"""The options of the search. Knows no game and no network."""

from dataclasses import dataclass
from typing import Literal

from seraphim.errors import SettingsError

Leaf = Literal["value", "playout"]
Root = Literal["puct", "gumbel"]
FirstPlayUrgency = Literal["zero", "parent", "reduction"]


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

    root: Root = "puct"
    """How the root is searched: by `puct`, or by `gumbel` with sequential halving, without noise or temperature."""
    gumbel_actions: int = 16
    """Most actions that a Gumbel root considers (Danihelka et al. 2022: 16)."""
    cpuct_base: float = 0.0
    """Visits about which c begins to grow, as c + ln((1 + N + base) / base) (AlphaZero: 19652); 0 keeps c."""
    fpu: FirstPlayUrgency = "zero"
    """Q of actions without a visit: `zero`, the mean of their `parent`, or that less a `reduction`."""
    fpu_reduction: float = 0.2
    """What the reduction is at most, r in r·√(share of the prior that has been visited) (KataGo: 0.2)."""
    root_temperature: float = 1.0
    """Softmax temperature of the root's priors where there is noise: P^(1/T) (KataGo: 1.25 to 1.1)."""
    solver: bool = False
    """Whether proven results go up the tree (Winands et al. 2008): a proven root stops, and its policy is exact."""
    fast_wins: float = 0.0
    """What the slowest win is worth less than the fastest one, 0 to 1, and likewise a loss: it makes the fast ones
    preferred, in the search and in what the value learns (DeepFour: 0.9). 0: a win is a win (AGZ)."""
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
            ("root", self.root in ("puct", "gumbel"), "puct or gumbel"),
            ("gumbel_actions", self.gumbel_actions >= 1, "at least 1"),
            ("cpuct_base", self.cpuct_base >= 0, "0 or more"),
            ("fpu", self.fpu in ("zero", "parent", "reduction"), "zero, parent or reduction"),
            ("fpu_reduction", self.fpu_reduction >= 0, "0 or more"),
            ("root_temperature", self.root_temperature > 0, "above 0"),
            ("fast_wins", 0 <= self.fast_wins <= 1, "from 0 to 1"),
            ("fast_wins", not (self.fast_wins and self.solver), "0 with solver, which proves results"),
            ("cache_megabytes", self.cache_megabytes >= 0, "0 or more"),
            ("leaf", self.leaf in ("value", "playout"), "value or playout"),
        ):
            if not holds:
                raise SettingsError(f"{name} must be {expected}, not {getattr(self, name)}")
