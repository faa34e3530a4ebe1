"""Measures connect four's solver on its own sets of positions: nodes/s, and milliseconds per position.

    python benchmarks/solver.py

solves 100 positions of each set, in one thread. It measures processor time, so that other load matters little. The
table is cleared before each position, which is not measured, so that positions do not help each other. Three tasks are
measured: the result; the result with the number of plies; and both for every move.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from connectfour.positions import FILES, NAMES
from connectfour.solver import Solver
from seraphim.game import Array

POSITIONS = 100  # of each set
TABLE_MEGABYTES = 64


class Figures(NamedTuple):
    """Figures of one task in the positions of one set."""

    nodes_a_second: float
    median: float  # milliseconds of processor time per position
    slow: float  # milliseconds, 95 % quantile
    slowest: float  # milliseconds


def measure(solver: Solver, states: Array, ask: Callable[[Array], Any]) -> Figures:
    """Solve states int64 [P, 2], one by one."""
    milliseconds, nodes = [], solver.nodes
    for state in states:
        solver.clear()
        began = time.process_time()
        ask(state)
        milliseconds.append(1000 * (time.process_time() - began))
    return Figures(
        nodes_a_second=1000 * (solver.nodes - nodes) / sum(milliseconds),
        median=statistics.median(milliseconds),
        slow=float(np.quantile(milliseconds, 0.95)),
        slowest=max(milliseconds),
    )


def main() -> None:
    """Measure, and print a table."""
    solver = Solver(TABLE_MEGABYTES)
    solver.solve_within(FILES.read("end-easy").states[0], 1)  # compiles
    print(f"{'set':14} {'asked':14} {'nodes/s':>11} {'ms: median':>12} {'95 %':>9} {'slowest':>9}")
    for name in sys.argv[1:] or NAMES:
        states = FILES.read(name).states[:POSITIONS]
        for asked, ask in (
            ("result", solver.solve_weakly),
            ("with plies", solver.solve),
            ("of every move", solver.solve_moves),
        ):
            figures = measure(solver, states, ask)
            print(
                f"{name:14} {asked:14} {figures.nodes_a_second:11,.0f} "
                f"{figures.median:12,.3f} {figures.slow:9,.3f} {figures.slowest:9,.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
