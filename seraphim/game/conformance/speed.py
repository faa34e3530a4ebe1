"""The time that each rule of a game takes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from seraphim.game import CHANCE, Array, Game, random_actions
from seraphim.game.notation import followers

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
        """Return the microseconds of all rules together in large batches: a readout takes each of them once."""
        return sum(figures[-1] for figures in self.microseconds.values())


def measure_speed(game: Game, seed: int = 0) -> Speed:
    """Measure the rules of a game, which keep the contract, in positions of random play."""
    states, actions = _positions(game, np.random.default_rng(seed))
    figures = {}
    players = np.flatnonzero(game.to_play(states) != CHANCE)
    observed = states[np.resize(players, len(states) * bool(len(players)))]  # nobody observes where chance moves
    given = dict.fromkeys(RULES, (states,)) | {"step": (states, actions), "observe": (observed,)}
    for rule, inputs in given.items():
        figures[rule] = tuple(_microseconds(getattr(game, rule), inputs, batch) for batch in BATCHES)
    return Speed(figures)


def draw_speeds(speeds: dict[str, Speed]) -> str:
    """Return the speeds of games by name as a table, with a sentence about each below it."""
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
            f"alone bound self-play to {float(f'{1e6 / speed.readout:.2g}'):,.0f} readouts/s a core"
        )
    return "\n".join(lines)


def _positions(game: Game, generator: np.random.Generator) -> tuple[Array, Array]:
    # Unfinished states of random play at all ages, as many as the largest batch, and what may follow each.
    start = states = game.initial(max(BATCHES))
    for ply in range(min(game.max_plies, 100)):
        successors = game.step(states, random_actions(followers(game, states), generator))
        # Each row starts again from time to time, and rows not together, so that there are positions of all ages.
        restarted = game.outcome(successors)[0] | ((np.arange(len(states)) + ply) % 64 == 0)
        states = np.where(restarted[:, None], start, successors)
    return states, random_actions(followers(game, states), generator)


def _microseconds(rule: Callable[..., object], inputs: Sequence[Array], batch: int) -> float:
    # The fastest of five rounds, in processor time, so that other work on the machine counts as little as possible.
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
