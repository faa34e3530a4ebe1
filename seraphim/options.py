"""Every option of a model: its meaning, its range, and what the papers use.

`AGZ` is AlphaGo Zero (Silver et al. 2017), whose game was Go; `KataGo` is Wu (2019). A game changes some of the
defaults in its `SETTINGS`; `seraphim.settings` reads and writes them.
"""

import math
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from seraphim.errors import SettingsError


class Range(NamedTuple):
    """The numbers from `low` to `high`, both included unless `above` or `below` is set."""

    low: float
    high: float = math.inf
    above: bool = False  # without `low` itself
    below: bool = False  # without `high` itself

    def has(self, number: float) -> bool:
        """Return whether a number lies in the range; NaN does not."""
        over = number > self.low if self.above else number >= self.low
        return over and (number < self.high if self.below else number <= self.high)

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"above {self.low:g}" if self.above else f"at least {self.low:g}"
        return f"{'above' if self.above else 'from'} {self.low:g} {'to below' if self.below else 'to'} {self.high:g}"


Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
Above0 = Annotated[float, Range(0, above=True)]
NotNegative = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]
PositiveShare = Annotated[float, Range(0, 1, above=True)]


def checked(option: str, value: Any, expected: Any) -> Any:
    """Return the value of an option, checked against its annotation; an int where a float belongs becomes one.

    Raises:
        SettingsError: it has another type, is not one of the choices, or is out of range.
    """
    kind, *constraints = get_args(expected) if hasattr(expected, "__metadata__") else (expected,)
    choices = get_args(kind)
    if choices:
        if value not in choices:
            raise SettingsError(f"{option} must be one of {', '.join(choices)}, not {value!r}")
    elif kind is float and type(value) is int:
        value = float(value)
    elif type(value) is not kind:
        raise SettingsError(f"{option} must be {kind.__name__}, not {value!r}")
    for allowed in constraints:
        if not allowed.has(value):
            raise SettingsError(f"{option} must be {allowed}, not {value}")
    return value


class Options:
    """Options that check their values when they are made."""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            SettingsError: a value has the wrong type or is out of range, or two values do not go together.
        """
        hints = get_type_hints(type(self), include_extras=True)
        for field in fields(self):  # type: ignore[arg-type]
            checked(field.name, getattr(self, field.name), hints[field.name])


NetworkKind = Literal["mlp", "resnet"]
Activation = Literal["relu", "leaky_relu"]
Leaf = Literal["value", "playout"]
Root = Literal["puct", "gumbel"]
FirstPlayUrgency = Literal["zero", "parent", "reduction"]
TrainingPrecision = Literal["float32", "bfloat16"]
Optimizer = Literal["adam", "sgd"]
Gate = Literal["off", "score", "sprt"]


@dataclass(frozen=True)
class NetworkOptions(Options):
    """Options of the network, fixed when a model is made."""

    kind: NetworkKind = "resnet"
    """Architecture: `mlp`, for an observation of any shape, or `resnet`, for one of rows, columns and planes (AGZ)."""
    depth: Count = 3
    """Hidden layers of an mlp."""
    width: Count = 128
    """Units in each hidden layer of an mlp."""
    blocks: Natural = 5
    """Residual blocks of a resnet (AGZ: 19 or 39)."""
    filters: Count = 64
    """Filters of each convolution of a resnet (AGZ: 256)."""
    kernel_size: Count = 3
    """Rows and columns that a filter of a resnet sees (AGZ: 3)."""
    policy_filters: Count = 32
    """Filters of the 1×1 convolution before a resnet's policy (AGZ: 2, on a board of 361 points)."""
    value_filters: Count = 32
    """Filters of the 1×1 convolution before a resnet's value (AGZ: 1, on a board of 361 points)."""
    activation: Activation = "relu"
    """What follows each hidden layer: `relu` (AGZ), or `leaky_relu`, which keeps 0.3 of what is below 0."""
    value_width: Count = 64
    """Units in the hidden layer of the value head (AGZ: 256)."""
    l2: NotNegative = 1e-4
    """Weight c of the penalty c·‖θ‖² on kernels in the loss (AGZ: 0.0001)."""


@dataclass(frozen=True)
class SearchOptions(Options):
    """Options of the search."""

    readouts: Count = 200
    """Simulations a move (AGZ: 1600)."""
    cpuct: Above0 = 1.5
    """Weight c of exploration in U(s,a) = c·P(s,a)·√N(s)/(1+N(s,a)) (AGZ: 0.25 in units of a value in [0, 1])."""
    tempering_point: Natural = 30
    """Ply from which the most visited action is played; before it, in proportion to visits (AGZ: 30)."""
    dirichlet_alpha: Above0 = 0.3
    """Concentration of the noise on the root's priors, about 10 / legal moves (AGZ: 0.03)."""
    noise_coefficient: Share = 0.25
    """Share of noise in the root's priors, 0 to 1; evaluation and play against a person use none (AGZ: 0.25)."""
    leaf: Leaf = "value"
    """How a leaf is valued: by the network's `value` head (AGZ), or by a `playout` that reads on to the end."""

    root: Root = "puct"
    """How the root is searched: by `puct`, or by `gumbel` with sequential halving, without noise or temperature."""
    gumbel_actions: Count = 16
    """Most actions that a Gumbel root considers (Danihelka et al. 2022: 16)."""
    cpuct_base: NotNegative = 0.0
    """Visits about which c begins to grow, as c + ln((1 + N + base) / base) (AlphaZero: 19652); 0 keeps c."""
    fpu: FirstPlayUrgency = "zero"
    """Q of actions without a visit: `zero`, the mean of their `parent`, or that less a `reduction`."""
    fpu_reduction: NotNegative = 0.2
    """What the reduction is at most, r in r·√(share of the prior that has been visited) (KataGo: 0.2)."""
    root_temperature: Above0 = 1.0
    """Softmax temperature of the root's priors where there is noise: P^(1/T) (KataGo: 1.25 to 1.1)."""
    solver: bool = False
    """Whether proven results go up the tree (Winands et al. 2008): a proven root stops, and its policy is exact."""
    fast_wins: Share = 0.0
    """What the slowest win is worth less than the fastest one, 0 to 1, and likewise a loss: it makes the fast ones
    preferred, in the search and in what the value learns (DeepFour: 0.9). 0: a win is a win (AGZ)."""
    cache_megabytes: Natural = 128
    """Memory for evaluations that the search has seen, in each worker; 0 asks the network again each time."""

    def __post_init__(self) -> None:
        """Check the values; see `Options`."""
        super().__post_init__()
        if self.fast_wins and self.solver:
            raise SettingsError(f"fast_wins must be 0 with solver, which proves results, not {self.fast_wins}")


@dataclass(frozen=True)
class SelfPlayOptions(Options):
    """Options of self-play."""

    concurrent_games: Count = 256
    """Games under way at a time in each worker process: the batch of the network."""
    games_per_generation: Count = 1000
    """Games that a champion plays before it is trained, where bin/learn.py does both."""
    random_plies: Natural = 0
    """Most random moves, 0 to so many, that a game begins with; they are not recorded, and bring games into positions
    that good play does not reach."""
    random_share: PositiveShare = 1.0
    """Share of games that begin with random moves."""


@dataclass(frozen=True)
class RecordOptions(Options):
    """Options of the files that hold finished games."""

    games_per_file: Count = 100
    """Most games in a file; files are removed when training can no longer draw from them (max_window)."""


@dataclass(frozen=True)
class TrainingOptions(Options):
    """Options of the training."""

    learning_rate: Above0 = 1e-3
    """Step size of the optimizer (AGZ: 0.01, 0.001 and 0.0001 in turn)."""
    optimizer: Optimizer = "adam"
    """How steps are made of gradients: by `adam`, or by `sgd` with momentum (AGZ); fixed when a model is made."""
    momentum: Annotated[float, Range(0, 1, below=True)] = 0.9
    """Share of sgd's last step in the next one (AGZ: 0.9); fixed when a model is made."""
    learning_rate_half_life: Natural = 0
    """Steps in which the step size is halved, again and again; 0: never (AGZ: tenths at 400,000 and 600,000 steps)."""
    batch_size: Count = 512
    """Positions in a batch (AGZ: 2048)."""
    steps: Count = 1000
    """Batches trained on before the next snapshot is published (AGZ: 1000)."""
    precision: TrainingPrecision = "float32"
    """Arithmetic of convolutions and products: float32, or bfloat16, which is faster on processors that have it."""
    value_loss_weight: NotNegative = 1.0
    """Weight of the value's loss against the policy's cross-entropy (AGZ: 1)."""
    root_value_share: Share = 0.0
    """Share of the search's value in what the value is to learn; the rest is how the game ended (AGZ: 0)."""
    average_positions: bool = False
    """Whether equal positions of the window become one, with the mean of what they teach and a weight that grows with
    the logarithm of their number (AlphaZero.jl)."""
    window_start: Count = 25_000
    """Positions c up to which all game data is trained on; from there the window grows slower (KataGo: 250,000)."""
    window_exponent: PositiveShare = 0.75
    """Exponent alpha of the window's growth (KataGo: 0.75)."""
    window_growth: PositiveShare = 0.4
    """Growth beta of the window per new position, where it begins to grow slower (KataGo: 0.4)."""
    max_window: Count = 1_000_000
    """Most positions in the window, which is held in memory."""
    max_snapshots: Count = 10
    """Newest snapshots kept on disk; the champion is kept in any case."""


@dataclass(frozen=True)
class GateOptions(Options):
    """Options of the gate."""

    gate: Gate = "off"
    """Which snapshots become champion: all with `off`; those that make more than `gate_score` of the points in
    `gate_games` against the champion with `score` (AGZ: in 400); `sprt` plays only until that is certain enough."""
    gate_games: Annotated[int, Range(2)] = 40
    """Games of the match, or the most with `sprt`, which then decides by what is more likely; `sprt` needs hundreds."""
    gate_score: Annotated[float, Range(0.5, 1, below=True)] = 0.55
    """Share of points, where a draw counts half (AGZ: 0.55)."""

    def __post_init__(self) -> None:
        """Check the values; see `Options`."""
        super().__post_init__()
        if self.gate == "sprt" and self.gate_score == 0.5:
            raise SettingsError(f"gate_score must be above 0.5 for sprt, not {self.gate_score}")
