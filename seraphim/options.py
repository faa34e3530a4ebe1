"""Every option of a model: its range and default, its meaning, and the papers' values.

`AGZ` is AlphaGo Zero (Silver et al. 2017), which played Go; `AlphaZero` is Silver et al. (2018); `KataGo` is Wu (2019).
A game overrides some defaults in its `SETTINGS`; `seraphim.settings` reads and writes them.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from seraphim.errors import SettingsError, shown

MOST = 10**9
"""The largest number where a range says no other."""

LEAST = 1e-9
"""The smallest number above 0 in any range: what divides by a smaller one may overflow."""


class Range(NamedTuple):
    """The numbers from `low` to `high`; never an infinity, a NaN, or one between 0 and `LEAST`."""

    low: float
    high: float = MOST
    above: bool = False  # excludes `low`
    below: bool = False  # excludes `high`

    def has(self, number: float) -> bool:
        """Return whether a number lies in the range."""
        over = number > self.low if self.above else number >= self.low
        return over and not 0 < number < self._least() and (number < self.high if self.below else number <= self.high)

    def _least(self) -> float:
        return min(LEAST, self.low or LEAST)

    def expected(self, number: float) -> str:
        """Return what is expected in place of a number out of range."""
        if 0 < number < self._least():
            return f"at least {self._least():g}{'' if self.above or self.low else ', or 0'}"
        return f"at most {MOST:,}" if self.high == MOST < number else str(self)

    def __str__(self) -> str:
        if self.high == MOST:
            return f"above {self.low:,}" if self.above else f"at least {self.low:,}"
        return f"{'above' if self.above else 'from'} {self.low:,} {'to below' if self.below else 'to'} {self.high:,}"


Part = Literal[
    "creation",  # a new model gets its network and optimizer
    "self_play",
    "cycle",  # self-play and training in turns
    "training",
    "gate",  # the match after a training, unless the gate is off
    "checks",  # of a new champion against solved positions, where the game has any
    "evaluation",
    "analysis",  # of a person's game; a Gumbel root is replaced by PUCT
    "analysis_noise",
    "analysis_draws",  # moves drawn by ply, as in self-play
]
"""Something that a program does in a run."""


class ReadBy:
    """The parts of a run that read an option, in words too; without it, those of its section."""

    def __init__(self, words: str, *parts: Part) -> None:
        self.words, self.parts = words, frozenset(parts)


class Needs:
    """What an option needs of others of its section to have an effect: a value, one of several, or a `Range`."""

    def __init__(self, **needed: Any) -> None:
        self._needed = {name: each if isinstance(each, Range | tuple) else (each,) for name, each in needed.items()}

    def hold(self, section: "Options") -> bool:
        """Return whether the options of a section are as needed."""
        values = ((getattr(section, name), each) for name, each in self._needed.items())
        return all(each.has(value) if isinstance(each, Range) else value in each for value, each in values)

    def __str__(self) -> str:
        """Return what is needed in words, such as "root=puct and noise_coefficient above 0"."""
        return " and ".join(
            f"{name} {each}" if isinstance(each, Range) else f"{name}={' or '.join(map(str, each))}"
            for name, each in self._needed.items()
        )


_CREATION, _TRAINING = ReadBy("a new model", "creation"), ReadBy("training", "training")
_SELF_PLAY = ReadBy("self-play", "self_play")
_SELF_PLAY_AND_TRAINING = ReadBy("self-play, which removes older games, or training", "self_play", "training")
_CYCLE = ReadBy("self-play and training in turns, as in seraphim learn", "cycle")
_SEARCH = ReadBy("a search", "self_play", "gate", "checks", "evaluation", "analysis")
_GUMBEL = ReadBy("a search", "self_play", "gate", "checks", "evaluation")
_ROOT = ReadBy("a search other than seraphim play's, where `set root` changes it", *_GUMBEL.parts)
_READOUTS = ReadBy("a search (seraphim evaluate: --searches)", *_SEARCH.parts - {"evaluation"})
_NOISE = ReadBy("self-play, or noise in seraphim play,", "self_play", "analysis_noise")
_DRAWS = ReadBy("self-play, or --temperature=auto in seraphim play,", "self_play", "analysis_draws")
_POSITIVE = Range(0, above=True)
_MLP, _RESNET, _PUCT = Needs(kind="mlp"), Needs(kind="resnet"), Needs(root="puct")
_TREE = Needs(root=("puct", "gumbel"))
_MATCH = Needs(gate=("score", "sprt"))

Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
MatchGames = Annotated[int, Range(2, 1_000_000)]
Threads = Annotated[int, Range(1, 1024)]
Layers = Annotated[int, Range(1, 1000)]
Units = Annotated[int, Range(1, 16_384)]
MOST_SEED = 2**63 - 1
"""The largest seed that TensorFlow takes."""
Seed = Annotated[int, Range(0, MOST_SEED)]
Above0 = Annotated[float, Range(0, above=True)]
NotNegative = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]
PositiveShare = Annotated[float, Range(0, 1, above=True)]


class Options:
    """Options that check their values when they are made; an int where a float belongs becomes one."""

    read_by: ClassVar[ReadBy]

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            SettingsError: a value has the wrong type or is out of range, or two values do not go together.
        """
        hints = get_type_hints(type(self), include_extras=True)
        for field in fields(self):  # type: ignore[arg-type]
            value = converted(field.name, getattr(self, field.name), hints[field.name])
            object.__setattr__(self, field.name, value)  # as the class is frozen


def converted(option: str, value: Any, expected: Any) -> Any:
    """Return a value as the kind that is expected, such as `Count`; raise a SettingsError unless it is of that kind."""
    kind, *ranges = get_args(expected) if hasattr(expected, "__metadata__") else (expected,)
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # a scalar of NumPy; times are no numbers
        value = value.item()
    if not any(_is(value, each) for each in kinds):
        raise SettingsError(f"{option} must be {' or '.join(map(_described, kinds))}, not {shown(value)}")
    for allowed in ranges:
        if isinstance(allowed, Range) and not allowed.has(value):
            raise SettingsError(f"{option} must be {allowed.expected(value)}, not {shown(value)}")
    return float(value) if kind is float else value


def _is(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if get_origin(kind) is Callable:
        return callable(value)
    if kind in (bool, int, float):
        return type(value) is kind or (kind is float and type(value) is int)
    if kind is Path:
        return isinstance(value, PathLike)
    # What more there is, such as protocols and lists, is checked where it is used.
    return not isinstance(kind, type) or getattr(kind, "_is_protocol", False) or isinstance(value, kind)


def _described(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    return "a function" if get_origin(kind) is Callable else "None" if kind is NoneType else kind.__name__


def check(kind: Any, **given: object) -> None:
    """Raise a SettingsError, which has its name, unless each value is of that kind, such as `Count`."""
    for name, value in given.items():
        converted(name, value, kind)


def check_optional(kind: Any, **given: object) -> None:
    """Raise a SettingsError, which has its name, unless each value is None or of that kind."""
    check(kind, **{name: value for name, value in given.items() if value is not None})


NetworkKind = Literal["mlp", "resnet"]
Activation = Literal["relu", "leaky_relu", "silu"]
Normalization = Literal["none", "batch"]
Leaf = Literal["value", "playout"]
Root = Literal["puct", "gumbel", "afterstates"]
TrainingPrecision = Literal["float32", "bfloat16"]
Optimizer = Literal["muon", "adam", "sgd"]
Gate = Literal["off", "score", "sprt"]


@dataclass(frozen=True)
class NetworkOptions(Options):
    """Options of the network, fixed when a model is made."""

    read_by = _CREATION

    kind: NetworkKind = "resnet"
    """Architecture: `mlp`, for observations of any shape, or `resnet`, for rows, columns and planes (AGZ)."""
    depth: Annotated[Layers, _MLP] = 3
    """Hidden layers of an mlp."""
    width: Annotated[Units, _MLP] = 128
    """Units in each hidden layer of an mlp."""
    blocks: Annotated[int, Range(0, 1000), _RESNET] = 3
    """Residual blocks of a resnet (AGZ: 19 or 39)."""
    filters: Annotated[Units, _RESNET] = 32
    """Filters of each convolution of a resnet (AGZ: 256)."""
    kernel_size: Annotated[Units, _RESNET] = 3
    """Rows and columns of a filter of a resnet (AGZ: 3)."""
    normalization: Annotated[Normalization, _RESNET] = "none"
    """What follows a resnet's convolutions: `none`, but biases and initial weights like Fixup's (Zhang et al. 2019),
    or `batch` normalization (AGZ)."""
    policy_filters: Annotated[Units, _RESNET] = 32
    """Filters of the 1×1 convolution before a resnet's policy (AGZ: 2, on a board of 361 points)."""
    value_filters: Annotated[Units, _RESNET] = 32
    """Filters of the 1×1 convolution before a resnet's value (AGZ: 1, on a board of 361 points)."""
    activation: Activation = "silu"
    """Activation of the hidden layers: `relu` (AGZ), `leaky_relu`, which multiplies what is below 0 by 0.3, or `silu`.

    SiLU, also called swish, is x / (1 + exp(-x)) (Elfwing et al. 2017, section 2). It learns below 0 as well, so its
    units do not die.
    """
    value_width: Units = 64
    """Units in the hidden layer of the value head (AGZ: 256)."""
    l2: NotNegative = 1e-4
    """Weight c of the penalty c·‖θ‖² on kernels in the loss (AGZ: 0.0001)."""

    def __post_init__(self) -> None:
        """Check the values; see `Options`."""
        super().__post_init__()
        if self.kind == "mlp":
            names, weights = "width or depth", self.depth * self.width**2
        else:
            names, weights = "filters, blocks or kernel_size", 2 * self.blocks * (self.filters * self.kernel_size) ** 2
        if weights > MOST:
            raise SettingsError(f"the network would have {weights:,} weights, but the most are {MOST:,}: lower {names}")


@dataclass(frozen=True)
class SearchOptions(Options):
    """Options of the search."""

    read_by = _SEARCH

    readouts: Annotated[Count, _READOUTS, _TREE] = 200
    """Simulations per move (AGZ: 1600; AlphaZero: 800)."""
    cpuct: Annotated[Above0, _PUCT] = 1.5
    """Weight c of exploration in U(s,a) = c·P(s,a)·√N(s)/(1+N(s,a)) (AGZ: 0.25 in units of a value in [0, 1])."""
    tempering_point: Annotated[Natural, _DRAWS, _PUCT] = 30
    """Ply from which the best action is played; before it, actions are drawn by their visits (AGZ: 30)."""
    dirichlet_alpha: Annotated[Above0, _NOISE, Needs(root="puct", noise_coefficient=_POSITIVE)] = 0.3
    """Concentration of the Dirichlet noise on the root's priors, about 10 / legal moves (AGZ: 0.03)."""
    noise_coefficient: Annotated[Share, _NOISE, _PUCT] = 0.25
    """Share of noise in the root's priors, 0 to 1; evaluation and play against a person use none (AGZ: 0.25)."""
    leaf: Annotated[Leaf, _TREE] = "value"
    """How a leaf is evaluated: by the network's `value` (AGZ), or by a `playout`, which searches on to the end."""
    root: Annotated[Root, _ROOT] = "puct"
    """How the root is searched: by `puct` (AGZ); by `gumbel`, with sequential halving, without noise or temperature
    (Danihelka et al. 2022); or without a tree, by all `afterstates`, in which the turn can end (Tesauro 1995)."""
    turns: Annotated[int, Range(1, 2), Needs(root="afterstates")] = 1
    """Turns that afterstates are looked ahead: one's own; or with 2, also the answers to the best of them."""
    gumbel_actions: Annotated[Count, _GUMBEL, Needs(root="gumbel")] = 16
    """Most actions that a Gumbel root considers (Danihelka et al. 2022: 16)."""
    solver: Annotated[bool, _TREE] = True
    """Whether results are proven up the tree (Winands et al. 2008); a proven root stops, and its policy is exact."""
    fast_wins: Share = 0.0
    """How much less the slowest win counts than the fastest, and likewise a loss, so that the search and the value
    prefer fast wins (DeepFour: 0.9); 0: all wins count the same (AGZ)."""
    known_results: bool = False
    """Whether a line ends where the game can tell the exact result, as an endgame table does; some games offer it."""
    cache_megabytes: Annotated[Natural, _TREE] = 128
    """Megabytes for the cache of evaluations in each worker; 0: no cache."""

    @property
    def by_turns(self) -> bool:
        """Return whether whole turns are valued, each at once, in place of readouts."""
        return self.root == "afterstates"

    @property
    def effort(self) -> str:
        """Return what is spent on a move, such as 100 readouts."""
        return f"{self.turns}-turn search" if self.by_turns else f"{self.readouts:,} readouts"

    def __post_init__(self) -> None:
        """Check the values; see `Options`."""
        super().__post_init__()
        if self.fast_wins and self.solver:
            raise SettingsError(f"fast_wins must be 0 with solver, which proves results, not {self.fast_wins}")
        if self.fast_wins and self.known_results:
            raise SettingsError(
                f"fast_wins must be 0 with known_results, which do not tell when a game ends, not {self.fast_wins}"
            )


@dataclass(frozen=True)
class SelfPlayOptions(Options):
    """Options of self-play."""

    read_by = _SELF_PLAY

    concurrent_games: Count = 256
    """Games played at a time in each worker process; they fill the network's batches."""
    games_per_generation: Annotated[Count, _CYCLE] = 1000
    """Games between two trainings in seraphim learn (AGZ: 25,000)."""
    readouts_growth_steps: Natural = 4000
    """Steps T of training after which self-play has twice the readouts that are set for it, as readouts·(1 + step / T);
    0: they stay the same."""
    random_plies: Natural = 8
    """Most random moves at the beginning of a game; they are not recorded, and lead to positions that good play never
    reaches."""
    random_share: Annotated[PositiveShare, Needs(random_plies=_POSITIVE)] = 1.0
    """Share of games that begin with random moves."""


@dataclass(frozen=True)
class RecordOptions(Options):
    """Options of the files that hold finished games."""

    read_by = _SELF_PLAY

    games_per_file: Count = 100
    """Most games per file; files are removed when training can no longer draw from them (max_window)."""


@dataclass(frozen=True)
class TrainingOptions(Options):
    """Options of the training."""

    read_by = _TRAINING

    learning_rate: Annotated[float, Range(1e-30, 1e30)] = 1e-2
    """Step size of the optimizer (AGZ: 0.01, 0.001 and 0.0001 in turn)."""
    optimizer: Annotated[Optimizer, _CREATION] = "muon"
    """Optimizer: `muon` (Jordan et al. 2024), `adam`, or `sgd` with a momentum of 0.9 (AGZ); fixed when a model is
    made."""
    average_decay: Annotated[float, Range(0, 1, below=True)] = 0.98
    """Decay per step of the mean of the weights that plays; 0: the last weights play (AGZ), as is fixed when a model
    is made."""
    learning_rate_decay_steps: Annotated[Natural, Needs(learning_rate_cycle=0)] = 4000
    """Steps T after which the learning rate is halved, as learning_rate / (1 + step / T); 0: it is constant (AGZ: a
    tenth at 400,000 and 600,000)."""
    learning_rate_cycle: Natural = 0
    """Steps in which the learning rate falls to 0 along half a cosine, to begin anew after them (Loshchilov and Hutter
    2017); 0: it never reaches 0."""
    batch_size: Count = 512
    """Positions per batch (AGZ: 2048)."""
    samples_per_position: Annotated[Above0, Needs(steps=0)] = 4.0
    """How often a position is drawn, on average, while it is in the window (KataGo: 4). A training makes as many
    batches as its new positions are worth."""
    steps: Natural = 0
    """Batches per training, which ends with a new snapshot (AGZ: 1000); 0: as many as samples_per_position says."""
    precision: TrainingPrecision = "bfloat16"
    """Arithmetic of convolutions and products: `float32`, or `bfloat16` where a GPU or the processor has it, which is
    faster; other processors compute in float32."""
    root_value_share: Share = 0.5
    """Share of the search's root value in the target of the value; the rest is the result of the game, or what
    td_lambda makes of it (AGZ: 0)."""
    policy_loss_weight: NotNegative = 1.0
    """Weight of the policy's loss beside that of the value's (AGZ: 1)."""
    td_lambda: Annotated[Share, Needs(root_value_share=Range(0, 1, below=True))] = 1.0
    """Lambda of TD(λ): a position learns from the root values of those that follow, the nth with a weight of
    (1 - λ)·λ^(n - 1), and from the result with the rest; without the luck in between, if self-play by afterstates has
    recorded it. 1: the result alone (AGZ)."""
    average_positions: bool = True
    """Whether equal positions of the window are merged into one with the mean of their targets and a weight that grows
    with the logarithm of their number (AlphaZero.jl)."""
    window_start: Count = 100_000
    """Number of positions c up to which training uses all; beyond it the window grows slower (KataGo: 250,000)."""
    max_window: Annotated[Count, _SELF_PLAY_AND_TRAINING] = 1_000_000
    """Most positions in the window, which is held in memory (AGZ: 500,000 games)."""
    max_snapshots: Count = 10
    """Newest snapshots kept on disk; the champion is always kept."""


@dataclass(frozen=True)
class GateOptions(Options):
    """Options of the gate."""

    read_by = _TRAINING

    gate: Gate = "off"
    """Which snapshots become champion: `off`: all (AlphaZero); `score`: those with more than `gate_score` of the points
    in `gate_games` against the champion (AGZ); `sprt`: the same, decided as soon as it is certain enough."""
    gate_games: Annotated[MatchGames, _MATCH] = 40
    """Games of the match (AGZ: 400); with `sprt` the most, usually hundreds, after which the likelier side wins."""
    gate_score: Annotated[float, Range(0.5, 1, below=True), _MATCH] = 0.55
    """Share of the points that a new champion needs; a draw counts half (AGZ: 0.55)."""

    def __post_init__(self) -> None:
        """Check the values; see `Options`."""
        super().__post_init__()
        if self.gate == "sprt" and self.gate_score == 0.5:
            raise SettingsError(f"gate_score must be above 0.5 for sprt, not {self.gate_score}")
