"""The table of `benchmarks/ablations.py` tells how sure a difference is by its seeds, not by its positions."""

from typing import Any

import pytest

from benchmarks.ablations import BASELINE, spread, table


def run(errors: int) -> dict[str, Any]:
    """A run whose search errs so often in 1,000 positions."""
    took = {"seconds": 60.0, "generations": 3, "games": 3000}
    return {"took": took, "network": [0] * 1000, "search": [1] * errors + [0] * (1000 - errors)}


def difference(*seeds: tuple[int, int]) -> str:
    """The cell of a variant beside the baseline, each with its errors by seed."""
    results = {BASELINE: [run(base) for base, _ in seeds], "other": [run(errors) for _, errors in seeds]}
    return table("tictactoe", results).splitlines()[-1].split("|")[-2].strip()


def test_the_standard_error_is_over_seeds() -> None:
    assert difference((50, 60), (50, 80)) == "+2.00 ± 1.00 (+1.00, +3.00)"
    # Pairs of one seed: what both have in common cancels out.
    assert difference((10, 20), (90, 100), (40, 50)) == "+1.00 ± 0.00 (+1.00, +1.00, +1.00)"


def test_one_seed_has_no_standard_error() -> None:
    assert difference((50, 60)) == "+1.00 (+1.00)"


def test_the_spread_is_that_of_all_variants_together() -> None:
    results = {BASELINE: [run(50), run(50)], "a": [run(50), run(50)], "b": [run(60), run(80)]}
    found = spread(results)
    assert "all 2 variants together: 1.00;" in found  # √((0² + 2² / 2) / 2)
    assert found.endswith("of the mean of 2 seeds by that: 0.71")
    assert "nothing" in spread({BASELINE: [run(50)], "a": [run(60)]})


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_baseline_is_compared_with_nothing(seeds: int) -> None:
    (*_, line) = table("tictactoe", {BASELINE: [run(50)] * seeds}).splitlines()
    assert line.endswith("|  |")
