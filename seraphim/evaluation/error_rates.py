"""How strong a model is, by solved positions: its error rates by set and by readouts, and how true its values are.

The weak error is the share of positions in which the move chosen loses the result (a win becomes a draw or a loss, a
draw a loss); the strong error counts slower wins and faster losses too. Intervals are 95 % of Wilson, "Probable
inference, the law of succession, and statistical inference", 1927.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from seraphim.evaluation.mistakes import mistakes
from seraphim.game import Array, Game
from seraphim.game.solved import PositionSet
from seraphim.inference import Inference
from seraphim.options import SearchOptions
from seraphim.search.roots import Result
from seraphim.search.search import Search

NETWORK = 0  # readouts of the network's move without search
_TREES = 256
_Z = 1.959964  # of a 95 % interval
_BINS = 10


class Rate(NamedTuple):
    """How often something happened."""

    times: int
    of: int

    @property
    def share(self) -> float:
        """Return the observed share."""
        return self.times / max(1, self.of)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of Wilson."""
        if not self.of:
            return 0.0, 1.0
        centre = self.share + _Z**2 / (2 * self.of)
        spread = _Z * math.sqrt(self.share * (1 - self.share) / self.of + _Z**2 / (4 * self.of**2))
        low, high = (centre - spread) / (1 + _Z**2 / self.of), (centre + spread) / (1 + _Z**2 / self.of)
        # At the ends rounding must not make an interval that excludes what was observed.
        return (0.0 if self.times == 0 else low), (1.0 if self.times == self.of else high)


@dataclass(frozen=True)
class Errors:
    """The errors of one way to choose moves, in one set."""

    positions: str
    """Name of the set."""
    readouts: int
    """Of the search; NETWORK for the network's move without search."""
    weak: Rate
    """Moves that lose the result."""
    strong: Rate | None
    """Moves that lose the result, win slower or lose faster; None where the game does not tell."""


class Calibration(NamedTuple):
    """The network's values against exact ones, in bins of the predicted value from -1 to 1."""

    counts: Array  # int64 [bins]
    predicted: Array  # float64 [bins]: mean; NaN in an empty bin
    exact: Array  # float64 [bins]: mean; NaN in an empty bin
    squared_error: float  # mean


def search_positions(game: Game, inferences: Sequence[Inference], options: SearchOptions, states: Array) -> Result:
    """Search unfinished positions int64 [P, W], without noise; one thread for each of the inferences.

    Returns:
        What was found, one row for each position.
    """

    def search(inference: Inference, states: Array) -> Result:
        found = []
        trees = Search(game, inference, options, min(max(1, len(states)), _TREES))
        for start in range(0, len(states), _TREES):
            chunk = states[start : start + _TREES]
            trees.abandon()
            trees.begin(np.arange(len(chunk)), chunk)
            trees.run()
            found.append(trees.result(np.arange(len(chunk))))
        return joined(found)

    parts = np.array_split(states, len(inferences))
    pairs = [(inference, part) for inference, part in zip(inferences, parts, strict=True) if len(part)]
    with ThreadPoolExecutor(max(1, len(pairs))) as pool:
        return joined(list(pool.map(lambda pair: search(*pair), pairs)))


def joined(results: Sequence[Result]) -> Result:
    """Return several results as one."""
    return Result(*(np.concatenate(columns) for columns in zip(*results, strict=True)))


def measure_errors(
    game: Game,
    inferences: Sequence[Inference],
    options: SearchOptions,
    sets: Sequence[tuple[PositionSet, PositionSet | None]],
    readouts: Sequence[int],
) -> list[Errors]:
    """Return the errors in each set, for each number of readouts.

    Args:
        game: the rules.
        inferences: the model, once for each thread.
        options: of the search, but for its readouts.
        sets: each with the values that tell the weak error, and, if there are any, those that tell the strong one.
        readouts: NETWORK, or the readouts of a search.
    """
    found = []
    for weak, strong in sets:
        for number in readouts:
            if number == NETWORK:
                actions = network_moves(game, inferences[0], weak.states)
            else:
                actions = search_positions(game, inferences, replace(options, readouts=number), weak.states).best
            rates = [
                Rate(int(mistakes(positions, actions).sum()), len(actions)) if positions is not None else None
                for positions in (weak, strong)
            ]
            if rates[0] is not None:
                found.append(Errors(weak.name, number, rates[0], rates[1]))
    return found


def network_moves(game: Game, inference: Inference, states: Array) -> Array:
    """Return the action of the highest prior in each state int64 [P, W], the first of equals, int [P]."""
    logits, _ = inference.infer(game.observe(states))
    return np.where(game.legal(states), logits, -np.inf).argmax(axis=1)


def calibrate(game: Game, inference: Inference, sets: Sequence[PositionSet]) -> Calibration:
    """Compare the network's values with the exact ones of all positions in some sets."""
    states = np.concatenate([positions.states for positions in sets])
    exact = np.concatenate([np.nanmax(positions.action_values, axis=1) for positions in sets]).astype(np.float64)
    predicted = inference.infer(game.observe(states))[1].astype(np.float64)
    bins = np.clip(((predicted + 1) / 2 * _BINS).astype(np.int64), 0, _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(bins, weights, _BINS) / counts for weights in (predicted, exact)]
    return Calibration(counts, means[0], means[1], float(np.mean((predicted - exact) ** 2)))


def errors_table(errors: Sequence[Errors]) -> str:
    """Return the errors as a table: a line for each set, a column for each number of readouts, in percent."""
    columns = sorted({one.readouts for one in errors})
    names = list(dict.fromkeys(one.positions for one in errors))
    cells = {(one.positions, one.readouts): one for one in errors}
    lines = [f"{'weak error % [95 %], strong':28}" + "".join(f"{_title(number):>26}" for number in columns)]
    for name in names:
        row = [cells[name, number] for number in columns]
        lines.append(f"{f'{name} ({row[0].weak.of:,})':28}" + "".join(f"{_cell(one):>26}" for one in row))
    return "\n".join(lines)


def calibration_table(calibration: Calibration) -> str:
    """Return the calibration as a table."""
    lines = [f"value head: mean squared error {calibration.squared_error:.3f}", "  predicted   exact   positions"]
    for count, predicted, exact in zip(*calibration[:3], strict=True):
        if count:
            lines.append(f"  {predicted:9.2f} {exact:7.2f} {count:11,}")
    return "\n".join(lines)


def figures(errors: Sequence[Errors]) -> dict[str, float]:
    """Return the shares by name, for logs."""
    named = {}
    for one in errors:
        name = f"{one.positions}/{_title(one.readouts).replace(' ', '_')}"
        named[f"{name}/weak_error"] = one.weak.share
        if one.strong is not None:
            named[f"{name}/strong_error"] = one.strong.share
    return named


def _title(readouts: int) -> str:
    return "network" if readouts == NETWORK else f"{readouts:,} readouts"


def _cell(one: Errors) -> str:
    low, high = one.weak.interval
    strong = f", {100 * one.strong.share:.1f}" if one.strong is not None else ""
    return f"{100 * one.weak.share:.2f} [{100 * low:.1f}, {100 * high:.1f}]{strong}"
