"""Products of parameters of which `make test` runs a few and `make test-all` the rest."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest


def one_of_each(*values: Sequence[Any]) -> list[Any]:
    """Return all combinations of some lists of parameters; those beyond one of each value are marked slow."""
    return first_of(max(map(len, values)), *values)


def first_of(number: int, *values: Sequence[Any]) -> list[Any]:
    """Return every combination of the values; all are marked slow but `number`, which differ in every value."""
    quick = [tuple(each[index % len(each)] for each in values) for index in range(number)]
    return [
        pytest.param(*combination, marks=() if combination in quick else pytest.mark.slow)
        for combination in itertools.product(*values)
    ]
