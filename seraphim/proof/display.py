"""The search for a proof, for people: a line that changes while it runs, and how it ended."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from seraphim.proof.claims import Claim
from seraphim.proof.prover import Counts
from seraphim.proof.proving import Decision, OnProgress


class Proof(NamedTuple):
    """What was proven about a position; prints as `seraphim prove` does."""

    claims: tuple[Claim, ...]  # that are true
    decisions: tuple[Decision, ...]  # how the search for each went; nothing for claims that a file held already
    file: Path | None  # the certificate, which `seraphim check-proof` checks

    @property
    def value(self) -> int | None:
        """The result for the first player if both play best: 1, 0 or -1; None if the claims leave it open."""
        for claim in self.claims:
            if claim.wins:
                return 1 - 2 * claim.player
        return 0 if {claim.player for claim in self.claims} == {0, 1} else None

    @property
    def evaluations(self) -> int:
        """Positions that the network evaluated."""
        return sum(decision.counts.evaluations for decision in self.decisions)

    def __str__(self) -> str:
        """Return a line for each decision, or for each claim that was known before."""
        known = [f"{claim}: proven in {self.file}" for claim in self.claims]
        return "\n".join(map(summarize, self.decisions)) or "\n".join(known)


@contextlib.contextmanager
def show() -> Iterator[OnProgress]:
    """Show how far a search is, on a terminal; yields what `prove` reports to."""
    from rich.console import Console  # which draws a random number when it is imported
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

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
        f"{counts.positions:,} in memory, {decision.proof_positions:,} in the proof"
    )


def _describe(counts: Counts) -> str:
    open_ = counts.positions - counts.proven - counts.refuted
    numbers = (
        f"{counts.proven:,} proven",
        f"{counts.refuted:,} refuted",
        f"{open_:,} open",
        f"{counts.estimated_remaining:,.0f} to go",
    )
    return ", ".join(numbers)
