"""The exact values that the explorer shows are those of an exhaustive search."""

import contextlib
import hashlib
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from games import NIM

from seraphim.errors import GameError, RecordError
from seraphim.game import Array, Game, PlainRules, load_game
from seraphim.game.exhaustive import solve
from seraphim.game.loading import MoveResults
from seraphim.game.saved_games import Position
from seraphim.proof import certificate, known_moves, proving
from seraphim.proof.knowledge import ExactResults
from seraphim.proof.proving import Limits, prove
from seraphim.search.evaluator import Uniform
from tictactoe.game import GAME as TICTACTOE
from tictactoe.minimax import action_results


@pytest.mark.parametrize("game", [TICTACTOE, PlainRules(NIM)], ids=["tictactoe", "nim"])
def test_values_are_exact_wherever_a_proof_leads(game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (proving, known_moves):
        monkeypatch.setattr(module, "load_game", lambda _: game)
    start, out = game.initial(1)[0], tmp_path / "proof"
    for _ in prove(game.name, Position(None, [], []), "result", [Uniform(game)], Limits(60, 8), out, lambda *_: None):
        pass
    knowledge = ExactResults(ModuleType(game.name), game, [out])
    assert knowledge.available
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
    knowledge = ExactResults(ModuleType("game"), TICTACTOE, [])
    assert not knowledge.available
    with pytest.raises(GameError, match="has no solver: exact results are unavailable"):
        knowledge.solve(TICTACTOE.initial(1)[0], 1.0)


@pytest.fixture(scope="module")
def win(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A proof that the first player wins tic-tac-toe after a1 a2 b1 b2."""
    out = tmp_path_factory.mktemp("proof") / "proof"
    networks = [Uniform(TICTACTOE)]
    for _ in prove("tictactoe", Position(None, FOUR, []), "first", networks, Limits(60, 8), out, lambda *_: None):
        pass
    return out


def after(*actions: int) -> Array:
    (state,) = TICTACTOE.initial(1)
    for action in actions:
        (state,) = TICTACTOE.step(state[None], np.array([action]))
    return state


FOUR = [0, 3, 1, 4]
AFTER_FOUR = after(*FOUR)  # the action 2 wins now


def test_words_are_compared_not_only_what_is_seen(tmp_path: Path) -> None:
    """Stones that no cell shows do not change what is observed, and the position is none of the proof."""
    out, name = tmp_path / "proof", "hex:3"
    game = load_game(name)
    for _ in prove(name, Position(None, [], []), "first", [Uniform(game)], Limits(60, 8), out, lambda *_: None):
        pass
    known, state = known_moves.read_moves(name, game, out), game.initial(1)[0]
    while not game.outcome(state[None])[0][0]:
        hidden = state.copy()
        hidden[0] |= 0b11 << 50
        assert np.array_equal(game.observe(hidden[None]), game.observe(state[None]))
        assert known.find(hidden) == []
        with pytest.raises(GameError, match="does not lead to this position"):
            ExactResults(ModuleType(name), game, [out]).solve(hidden, 1.0)
        (found,) = known.find(state)
        action = found.action
        if action == known_moves.NO_ACTION:
            action = int(np.flatnonzero(game.legal(state[None])[0])[0])
        (state,) = game.step(state[None], np.array([action]))


@pytest.mark.parametrize("name", ["tictactoe", "hex:3", "connectfour:4x4"])
def test_moves_are_known_in_every_symmetric_position(name: str, tmp_path: Path) -> None:
    """The player of a proof may be led into any of the positions that its file counts as one."""
    out, game, random = tmp_path / "proof", load_game(name), np.random.default_rng(0)
    for _ in prove(name, Position(None, [], []), "result", [Uniform(game)], Limits(60, 8), out, lambda *_: None):
        pass
    known = known_moves.read_moves(name, game, out)
    for claim in [found.claim for found in known.find(game.initial(1)[0])]:
        for _ in range(60):
            (state,) = game.initial(1)
            while not game.outcome(state[None])[0][0]:
                (found,) = (each for each in known.find(state) if each.claim == claim)
                action = found.action
                if action == known_moves.NO_ACTION:
                    action = int(random.choice(np.flatnonzero(game.legal(state[None])[0])))
                (state,) = game.step(state[None], np.array([action]))
            assert claim.holds(game.outcome(state[None])[1])[0]


def test_a_proof_of_another_game_is_not_read(win: Path) -> None:
    with pytest.raises(RecordError, match="is a proof of tictactoe, not of connectfour"):
        known_moves.read_moves("connectfour", load_game("connectfour"), win)


class Solver(ModuleType):
    """Knows exact results, but that of action 2 only with `needed` seconds."""

    def __init__(self, needed: float) -> None:
        super().__init__("tictactoe")
        self.calls: list[float] = []
        self._needed = needed

    def action_results(self, state: Array, seconds: float) -> MoveResults:
        self.calls.append(seconds)
        results, plies = (np.array(each) for each in action_results(state, seconds))
        if seconds < self._needed:
            results[2] = plies[2] = np.nan
        return MoveResults(results, plies)


def test_the_proof_adds_what_a_slow_solver_does_not_find(win: Path) -> None:
    quick, slow = Solver(0.0), Solver(100.0)
    exact = ExactResults(quick, TICTACTOE, []).solve(AFTER_FOUR, 10.0)
    found = ExactResults(slow, TICTACTOE, [win]).solve(AFTER_FOUR, 10.0)
    assert found == {**exact, 2: exact[2]._replace(proven=True)}
    assert slow.calls == [1.0]


def test_where_no_proof_leads_the_solver_gets_its_time(win: Path) -> None:
    solver = Solver(5.0)
    elsewhere = after(3, 4, 0)  # the action 2 is the threat to answer
    assert ExactResults(solver, TICTACTOE, [win]).solve(elsewhere, 10.0) == ExactResults(solver, TICTACTOE, []).solve(
        elsewhere, 10.0
    )
    assert solver.calls == [1.0, 10.0, 10.0]


def test_where_the_solver_is_quick_no_proof_is_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert ExactResults(Solver(0.0), TICTACTOE, [missing]).solve(AFTER_FOUR, 10.0)[2].best
    with pytest.raises(RecordError, match="cannot read the proof"):
        ExactResults(Solver(100.0), TICTACTOE, [missing]).solve(AFTER_FOUR, 10.0)


@pytest.mark.parametrize(
    "header",
    [
        b"{}",
        b"[]",
        b"no JSON",
        b'{"game": "tictactoe", "start": [], "symmetric": true, "bits": 24, "claims": []}',
        b'{"game": "tictactoe", "start": "?", "symmetric": true, "bits": 8, "claims": []}',
        b'{"game": "tictactoe", "start": [0.0], "symmetric": true, "bits": 8, "claims": []}',
        b'{"game": "tictactoe", "position": [0, 0], "symmetric": true, "bits": 8, "claims": []}',
        b'{"game": "tictactoe", "start": [], "symmetric": true, "bits": 8, "claims": [{"player": 2}]}',
    ],
)
def test_a_file_with_another_header_is_no_proof(header: bytes, tmp_path: Path) -> None:
    data, file = certificate.MAGIC + header + b"\n" + zlib.compress(b"\0"), tmp_path / "proof"
    file.write_bytes(data + hashlib.sha256(data).digest())
    with pytest.raises(RecordError, match="is no proof that seraphim prove wrote: it cannot be read"):
        certificate.read_certificate(file)
