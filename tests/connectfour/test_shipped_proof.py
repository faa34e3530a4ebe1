"""The proof that comes with the connect-four model, that the first player wins: by rules, by play, by the solver."""

from pathlib import Path

import numpy as np
import pytest

from connectfour.game import GAME
from connectfour.solver import Solver
from seraphim.commands import check_proof
from seraphim.proof.certificate import Level, read_certificate
from seraphim.proof.claims import Claim
from seraphim.proof.known_moves import KnownMoves

ROOT = Path(__file__).parents[2]
FILE = ROOT / "models" / "connectfour" / "start.proof"
FEWEST_STONES = 10  # with which the solver needs less than a second, mostly


@pytest.fixture(scope="module")
def layers() -> list[Level]:
    certificate = read_certificate(FILE)
    assert certificate.start == ()
    ((claim, found),) = certificate.walk(GAME)
    assert claim == Claim(0, wins=True)
    return found


@pytest.mark.slow
def test_the_rules_alone_confirm_it() -> None:
    *_, last = check_proof.check(FILE.read_bytes(), "connectfour")
    assert last.startswith("the first player wins: ")


@pytest.mark.slow
def test_the_solver_agrees_in_a_sample_of_positions(layers: list[Level]) -> None:
    random, solver = np.random.default_rng(0), Solver()
    checked = 0
    for layer in layers[FEWEST_STONES:]:
        for state in random.choice(layer.states, min(200, len(layer.states)), replace=False):
            score = solver.solve(state)
            assert score is not None
            assert score.result == (1 if GAME.to_play(state[None])[0] == 0 else -1), GAME.render(state)
            checked += 1
    assert checked > 4000


@pytest.mark.slow
def test_it_wins_against_random_play_within_the_plies_it_promises() -> None:
    random, games = np.random.default_rng(0), 100
    known = KnownMoves(GAME, read_certificate(FILE))
    for _ in range(games):
        (state,), plies = GAME.initial(1), 0
        while not GAME.outcome(state[None])[0][0]:
            (move,) = known.find(state)
            assert move.plies <= 41 - plies
            if plies % 2:
                action = int(random.choice(np.flatnonzero(GAME.legal(state[None])[0])))
            else:
                action = move.action
            (state,) = GAME.step(state[None], np.array([action]))
            plies += 1
        assert GAME.outcome(state[None])[1][0] == 1
