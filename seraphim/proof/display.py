"""The search for a proof, for people: a line that changes while it runs, and how it ended."""

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from seraphim.proof.prover import Counts
from seraphim.proof.proving import Decision, Report


@contextlib.contextmanager
def show() -> Iterator[Report]:
    """Show how far a search is, on a terminal; yields what `prove` reports to."""
    console = Console()
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("searching")

        def report(counts: Counts, rate: float) -> None:
            progress.update(task, description=f"{_describe(counts)}, {rate:,.0f} evaluations/s")

        yield report


def summarize(decision: Decision) -> str:
    """Return how the search for a claim ended."""
    counts, seconds = decision.counts, f"{decision.seconds:,.1f} s"
    if decision.true_claim is None:
        return f"undecided after {seconds}: whether {decision.claim}; {_describe(counts)}"
    return (
        f"{decision.true_claim}: proven in {seconds}, {counts.evaluations:,} positions evaluated, "
        f"{counts.positions:,} seen, {decision.proof_positions:,} in the proof"
    )


def _describe(counts: Counts) -> str:
    open_ = counts.positions - counts.proven - counts.refuted
    numbers = (
        f"{counts.proven:,} proven",
        f"{counts.refuted:,} refuted",
        f"{open_:,} open",
        f"{counts.left:,.0f} to go",
    )
    return ", ".join(numbers)
