"""The table of `benchmarks/ablations.py`: standard errors are over seeds, not over positions."""

from typing import Any

import pytest

from benchmarks.ablations import BASELINE, spread, table


def run(errors: int) -> dict[str, Any]:
    """A run whose search makes `errors` errors in 1,000 positions."""
    took = {"seconds": 60.0, "generations": 3, "games": 3000}
    return {"took": took, "network": [0] * 1000, "search": [1] * errors + [0] * (1000 - errors)}


def difference(*seeds: tuple[int, int]) -> str:
    """The cell of a variant beside the baseline, each with its errors by seed."""
    results = {BASELINE: [run(base) for base, _ in seeds], "other": [run(errors) for _, errors in seeds]}
    return table("tictactoe", results).splitlines()[-1].split("|")[-2].strip()


def test_the_standard_error_is_over_seeds() -> None:
    assert difference((50, 60), (50, 80)) == "+2.00 ± 1.00 (+1.00, +3.00)"
    # Paired by seed: common variation cancels out.
    assert difference((10, 20), (90, 100), (40, 50)) == "+1.00 ± 0.00 (+1.00, +1.00, +1.00)"


def test_one_seed_has_no_standard_error() -> None:
    assert difference((50, 60)) == "+1.00 (+1.00)"


def test_the_spread_is_pooled_over_all_variants() -> None:
    results = {BASELINE: [run(50), run(50)], "a": [run(50), run(50)], "b": [run(60), run(80)]}
    found = spread(results)
    assert "pooled over 2 variants: 1.00;" in found  # √((0² + 2² / 2) / 2)
    assert "of the mean of 2 seeds: 0.71." in found
    assert "difference of 1.98 is found in four of five" in found
    assert "nothing" in spread({BASELINE: [run(50)], "a": [run(60)]})


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_baseline_has_no_difference(seeds: int) -> None:
    (*_, line) = table("tictactoe", {BASELINE: [run(50)] * seeds}).splitlines()
    assert line.endswith("|  |")
