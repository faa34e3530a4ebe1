"""The exact values that the explorer shows are those of an exhaustive search."""

import contextlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from games import NIM

from seraphim.errors import GameError
from seraphim.game import Game, PlainRules
from seraphim.game.exhaustive import solve
from seraphim.inference import Uniform
from seraphim.proof import certificate, proving
from seraphim.proof.knowledge import Knowledge
from seraphim.proof.proving import Limits, prove
from tictactoe.game import GAME as TICTACTOE


@pytest.mark.parametrize("game", [TICTACTOE, PlainRules(NIM)], ids=["tictactoe", "nim"])
def test_values_are_exact_wherever_a_proof_leads(game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (proving, certificate):
        monkeypatch.setattr(module, "load_game", lambda _: game)
    start, out = game.initial(1)[0], tmp_path / "proof"
    for _ in prove(game.name, start, "result", [Uniform(game)], Limits(60, 8), out, lambda *_: None):
        pass
    knowledge = Knowledge(ModuleType("game"), game, [out])
    assert knowledge.is_there
    solution, known = solve(game), 0
    unfinished = ~np.isnan(solution.action_values).all(axis=1)
    for state, values in zip(solution.states[unfinished], solution.action_values[unfinished], strict=True):
        found = {}
        with contextlib.suppress(GameError):  # the proof does not lead there
            found = knowledge.solve(state, 1.0)
        if not found:
            continue
        known += 1
        assert {action: value.result for action, value in found.items()}.items() <= dict(enumerate(values)).items()
        assert np.nanmax(values) == max(value.result for value in found.values() if value.result is not None)
        assert all(value.result == np.nanmax(values) for value in found.values() if value.best)
        assert any(value.best for value in found.values())
    assert known > 10
    assert knowledge.solve(start, 1.0)


def test_without_a_proof_there_is_the_solver_or_nothing() -> None:
    knowledge = Knowledge(ModuleType("game"), TICTACTOE, [])
    assert not knowledge.is_there
    with pytest.raises(GameError, match="the proof does not lead to this position"):
        knowledge.solve(TICTACTOE.initial(1)[0], 1.0)
