import pytest

from seraphim.diagnostics.benchmark import compare_rules
from seraphim.game import load_game
from seraphim.settings import default_settings


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("connectfour", "hex", "othello")), "tictactoe"]
)
def test_compiled_rules_are_compared_with_plain_ones(name: str) -> None:
    figures = compare_rules(load_game(name), load_game(f"{name}.plain"), default_settings(name), 1, 0.01)
    assert figures["plain-Python rules: readouts/s"] > 0
