"""How fast the rules of a game are, by rule."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from seraphim.game import Array, Game

BATCHES = (1, 256)
RULES = ("step", "legal", "to_play", "outcome", "observe")
SECONDS = 0.05  # for each figure


@dataclass(frozen=True)
class Speed:
    """Microseconds that each rule of a game takes for a position."""

    microseconds: dict[str, tuple[float, ...]]
    """By rule, for each of BATCHES."""

    @property
    def readout(self) -> float:
        """Return the microseconds of all rules together in large batches: what a readout takes of each once."""
        return sum(figures[-1] for figures in self.microseconds.values())


def measure_speed(game: Game, seed: int = 0) -> Speed:
    """Measure the rules of a game in positions of random play.

    Args:
        game: the rules, which keep the contract.
        seed: of the random moves.
    """
    states, actions = _positions(game, np.random.default_rng(seed))
    figures = {}
    for rule in RULES:
        inputs = (states, actions) if rule == "step" else (states,)
        figures[rule] = tuple(_microseconds(getattr(game, rule), inputs, batch) for batch in BATCHES)
    return Speed(figures)


def draw_speeds(speeds: dict[str, Speed]) -> str:
    """Return the speeds of some games, by their names, as a table with a sentence about each below it."""
    widths = [max(9 * len(BATCHES), len(name) + 2) for name in speeds]
    lines = ["µs a position" + "".join(f"{name:>{width}}" for name, width in zip(speeds, widths, strict=True))]
    lines.append("in batches of" + "".join(_cells(BATCHES, width) for width in widths))
    for rule in RULES:
        cells = [
            _cells([_short(figure) for figure in speed.microseconds[rule]], width)
            for speed, width in zip(speeds.values(), widths, strict=True)
        ]
        lines.append(f"{rule:13}" + "".join(cells))
    for name, speed in speeds.items():
        lines.append(
            f"{name}: a readout takes each of these once, {_short(speed.readout)} µs in large batches, so the rules "
            f"alone bound self-play to {_rounded(1e6 / speed.readout):,} readouts/s a core"
        )
    return "\n".join(lines)


def _positions(game: Game, generator: np.random.Generator) -> tuple[Array, Array]:
    # Unfinished states of random play at all ages, as many as the largest batch, and a legal action in each.
    fresh = states = game.initial(max(BATCHES))
    for ply in range(min(game.max_plies, 100)):
        actions = _random_actions(game, states, generator)
        successors = game.step(states, actions)
        # Each row begins anew every so often, and rows not together, so that there are positions of all ages.
        renewed = game.outcome(successors)[0] | ((np.arange(len(states)) + ply) % 64 == 0)
        states = np.where(renewed[:, None], fresh, successors)
    return states, _random_actions(game, states, generator)


def _random_actions(game: Game, states: Array, generator: np.random.Generator) -> Array:
    legal = game.legal(states)
    return (generator.random(legal.shape) * legal).argmax(axis=1)


def _microseconds(rule: Callable[..., object], inputs: Sequence[Array], batch: int) -> float:
    # The fastest of five rounds, in processor time: what else a machine does counts as little as can be.
    few = [array[:batch] for array in inputs]
    began = time.process_time()
    rule(*few)
    calls = max(1, int(SECONDS / 5 / max(1e-7, time.process_time() - began)))
    rounds = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(calls):
            rule(*few)
        rounds.append((time.process_time() - began) / calls)
    return 1e6 * min(rounds) / batch


def _cells(values: Sequence[object], width: int) -> str:
    return "".join(f"{value:>9}" for value in values).rjust(width)


def _short(figure: float) -> str:
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.2g}" if figure < 10 else f"{figure:.1f}"


def _rounded(number: float) -> int:
    # Two digits that mean something.
    digits = len(str(int(number)))
    return round(number, 2 - digits).__int__() if digits > 2 else int(number)
