"""Proofs against exact solutions: whatever the network says, what is proven is true, and everything is decided."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from games import ENDLESS, MOVES_TWICE, NIM, Results

from connectfour.game import ConnectFour
from seraphim.errors import GameError, ModelError
from seraphim.game import Array, Game, PlainRules, load_game
from seraphim.game.exhaustive import Solution, solve
from seraphim.game.saved_games import Position
from seraphim.proof import prover as provers
from seraphim.proof.certificate import walk
from seraphim.proof.claims import Claim
from seraphim.proof.graph import PROVEN, REFUTED, UNDECIDED
from seraphim.proof.prover import Prover
from seraphim.search.evaluator import Inference, Uniform
from tictactoe.game import GAME as TICTACTOE

CLAIMS = [Claim(player, wins) for player in (0, 1) for wins in (True, False)]
MEGABYTES = 8


class Noise(Uniform):
    """A network that says something else about each position, and is often very sure."""

    def infer(self, observations: Array) -> tuple[Array, Array]:
        flat = observations.reshape(len(observations), -1).astype(float)
        waves = np.sin(flat @ np.arange(1, flat.shape[1] + 1)[:, None] * np.arange(1, self._num_actions + 2))
        return (9 * waves[:, 1:]).astype(np.float32), np.clip(2 * waves[:, 0], -1, 1).astype(np.float32)


class Broken(Uniform):
    def infer(self, observations: Array) -> tuple[Array, Array]:
        logits, values = super().infer(observations)
        return logits, values + np.nan


def decide(game: Game, networks: Sequence[Inference], claim: Claim, state: Array, megabytes: int = MEGABYTES) -> Prover:
    prover = Prover(game, networks, claim, state, megabytes)
    while prover.verdict == UNDECIDED:
        assert prover.advance()
    return prover


def exact(solution: Solution) -> tuple[Array, Array]:
    """Unfinished positions, and the results for player 0."""
    unfinished = ~np.isnan(solution.action_values).all(axis=1)
    return solution.states[unfinished], solution.results[unfinished]


LARGE = "connectfour:4x4"  # takes minutes where kernels are interpreted
GAMES: dict[str, Callable[[], Game]] = {
    "tictactoe": lambda: TICTACTOE,  # symmetries, draws
    LARGE: lambda: ConnectFour(4, 4),
    "nim": lambda: PlainRules(NIM),  # no symmetries
    "moves twice": lambda: PlainRules(MOVES_TWICE),  # neither do the players alternate
    "results": lambda: PlainRules(Results(-0.5, 0.0)),  # results between a loss and a win
}


@pytest.mark.parametrize("network", [Uniform, Noise])
@pytest.mark.parametrize(
    "name", [each if each == LARGE else pytest.param(each, marks=pytest.mark.kernels) for each in GAMES]
)
def test_verdicts_are_exact_and_proofs_hold(name: str, network: type[Uniform]) -> None:
    game = GAMES[name]()
    states, results = exact(solve(game))
    chosen = np.random.default_rng(0).permutation(len(states))[:30]
    is_symmetric = len(game.symmetries().actions) > 1
    for state, result in zip(states[[0, *chosen]], results[[0, *chosen]], strict=True):
        for claim in CLAIMS:
            prover = decide(game, [network(game)] * 2, claim, state)
            assert (prover.verdict == PROVEN) == bool(claim.holds(np.array([result]))[0])
            true_claim = claim if prover.verdict == PROVEN else claim.opposite
            assert list(
                walk(game, Position(state, [], []), true_claim, is_symmetric, prover.choose)
            )  # raises an error for a hole


def test_opposite_claims_exclude_each_other() -> None:
    results = np.array([-1.0, -0.3, 0.0, 0.3, 1.0])
    for claim in CLAIMS:
        np.testing.assert_array_equal(claim.holds(results), ~claim.opposite.holds(results))
        assert claim.opposite.opposite == claim


@pytest.mark.kernels
def test_a_full_memory_is_compacted_and_the_proof_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    game, compactions = ConnectFour(4, 4), 0
    compact = provers.graphs.compact

    def counted(*arguments: object) -> int:
        nonlocal compactions
        compactions += 1
        return compact(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(provers.graphs, "compact", counted)
    monkeypatch.setattr(provers, "_BATCH", 64)
    prover = decide(game, [Uniform(game)], Claim(0, wins=True), game.initial(1)[0], megabytes=1)
    assert prover.verdict == REFUTED  # 4×4 is a draw
    assert compactions
    assert list(walk(game, Position(game.initial(1)[0], [], []), Claim(1, wins=False), True, prover.choose))


@pytest.mark.parametrize("name", ["othello", pytest.param("connectfour", marks=pytest.mark.slow)])
def test_a_memory_that_is_too_small_is_reported(name: str) -> None:
    game = load_game(name)
    prover = Prover(game, [Uniform(game)], Claim(0, wins=True), game.initial(1)[0], megabytes=1)
    while prover.advance():
        assert prover.verdict == UNDECIDED


def test_a_game_that_repeats_positions_is_refused() -> None:
    game = PlainRules(ENDLESS)
    with pytest.raises(GameError, match="games of endless can repeat positions"):
        decide(game, [Uniform(game)], Claim(0, wins=True), game.initial(1)[0])


def test_a_model_that_returns_no_number_is_reported() -> None:
    with pytest.raises(ModelError, match="NaN or an infinity"):
        decide(TICTACTOE, [Broken(TICTACTOE)], Claim(0, wins=True), TICTACTOE.initial(1)[0])
