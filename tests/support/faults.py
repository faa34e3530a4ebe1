"""Fault injection: damages runs, prints a table of the results, and exits with 1 if anything was lost or skipped.

    python tests/support/faults.py [--kills=200 --flips=10000 --seed=0 --folder=DIR]

kills programs and workers at random moments of the cycle, and restarts them; truncates a file of games at every length,
changes every byte of it, and changes bytes at random; then runs the tests of single faults: a full disk, a read-only
disk, clock skew, two learners of one model, an unreachable tracking server. It takes long; --kills=20 takes less.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from damaging import every_byte, every_length, look_at, random_flips, write_games
from killing import SECONDS, Campaign

FOLDER = Path(__file__).parents[1]
TESTS = (
    FOLDER / "project" / "test_faults.py",
    FOLDER / "tracking" / "test_mlflow.py::test_a_lost_server_neither_stops_nor_slows_a_run_and_is_reported_once",
)
# A line of the table that is printed at the end: what was done, how often, and what went wrong.
Row = tuple[str, int, list[str]]


def say(line: str) -> None:
    """Print a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def kill_programs(root: Path, kills: int, seed: int) -> list[Row]:
    """Kill programs that many times, and compare the results with those of undisturbed runs."""
    say("creating the models that are trained during the kills")
    campaign = Campaign(root, seed, say)
    while campaign.kills.total() < kills:
        campaign.kill()
    campaign.finish()
    rows: list[Row] = [(f"kill -9 of {way}: {name}", count, []) for (name, way), count in campaign.kills.items()]
    finished, lost = len(campaign.finished | campaign.lost), [f"lost: {each}" for each in sorted(campaign.lost)]
    return [
        *sorted(rows),
        ("finished games, checked when their program was dead", finished, lost),
        (f"(others, finished less than {SECONDS:g} s before their worker was killed)", len(campaign.late), []),
        ("all games, snapshots and figures after that", kills, campaign.faults),
    ]


def damage_files(root: Path, flips: int, seed: int) -> list[Row]:
    """Damage a file of games in every way, and read it each time."""
    good, victim = write_games(root)
    rows: list[Row] = []
    for what, damages in (
        ("a file truncated at every length", every_length(victim.read_bytes())),
        ("each byte of it changed", every_byte(victim.read_bytes(), seed)),
        ("bytes of it changed at random", random_flips(victim.read_bytes(), flips, seed)),
    ):
        faults = [fault for damaged in damages if (fault := look_at(good, victim, damaged))]
        rows.append((what, len(damages), faults))
        say(f"{what}: {len(damages):,}, {len(faults)} faults")
    return rows


class Outcomes:
    """Records which tests pytest runs, and which it skips."""

    def __init__(self) -> None:
        self.run: list[str] = []
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self.skipped.append(f"{report.nodeid}: {report.longreprtext}")
        elif report.when == "call":
            self.run.append(report.nodeid)


def other_tests(tests: Sequence[Path]) -> list[Row]:
    """Run the tests of single faults; a skipped one counts as a fault, because nothing was tested."""
    outcomes = Outcomes()
    failed = int(pytest.main([*map(str, tests), "-q", "-p", "no:cacheprovider"], plugins=[outcomes]))
    return [
        ("tests of single faults", len(outcomes.run), [f"pytest ended with {failed}"] * (failed != 0)),
        ("tests of single faults that were skipped", len(outcomes.skipped), outcomes.skipped),
    ]


def main() -> int:
    """Inject the faults, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="an empty folder, which is kept; default: a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.folder or Path(temporary)
        rows = damage_files(root / "damaged", options.flips, options.seed)
        if options.kills:
            rows += kill_programs(root / "killed", options.kills, options.seed)
    rows += other_tests(TESTS)
    width = max(len(what) for what, *_ in rows)
    print(f"\n{'fault':{width}}  times   faults")
    for what, times, faults in rows:
        print(f"{what:{width}} {times:6,} {len(faults):8,}")
        print("".join(f"    {fault}\n" for fault in faults[:5]), end="")
    return int(any(faults for *_, faults in rows))


if __name__ == "__main__":
    sys.exit(main())
