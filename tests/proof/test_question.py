"""Questions: a claim and its opposite in turns, in a bounded memory, with a file to go on from."""

from pathlib import Path

import numpy as np
import pytest

from connectfour.game import ConnectFour
from seraphim.errors import RecordError
from seraphim.game.exhaustive import solve
from seraphim.inference import Uniform
from seraphim.proof.certificate import walk
from seraphim.proof.claims import Claim
from seraphim.proof.prover import Prover
from seraphim.proof.question import Question
from tictactoe.game import GAME as TICTACTOE

MEGABYTES = 16


def decide(question: Question) -> Claim:
    while question.true_claim is None:
        assert question.advance()
    return question.true_claim


def test_what_is_decided_is_true_and_proven() -> None:
    solution = solve(TICTACTOE)
    unfinished = np.flatnonzero(~np.isnan(solution.action_values).all(axis=1))
    for row in [unfinished[0], *np.random.default_rng(1).permutation(unfinished)[:60]]:
        for player in (0, 1):
            state, claim = solution.states[row], Claim(player, wins=True)
            question = Question(TICTACTOE, [Uniform(TICTACTOE)], claim, state, MEGABYTES)
            true_claim = decide(question)
            assert true_claim in (claim, claim.opposite)
            assert true_claim.holds(solution.results[row : row + 1])[0]
            assert list(walk(TICTACTOE, state, true_claim, True, question.choose))


@pytest.mark.parametrize("full", [Claim(0, wins=True), Claim(1, wins=False)])
def test_when_the_memory_of_one_search_is_full_the_other_decides(monkeypatch: pytest.MonkeyPatch, full: Claim) -> None:
    advance, game = Prover.advance, ConnectFour(4, 4)
    monkeypatch.setattr(Prover, "advance", lambda self: self.claim != full and advance(self))
    question = Question(game, [Uniform(game)], Claim(0, wins=True), game.initial(1)[0], MEGABYTES)
    assert decide(question) == Claim(1, wins=False)  # 4×4 is a draw
    assert list(walk(game, game.initial(1)[0], Claim(1, wins=False), True, question.choose))


def test_both_searches_are_given_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    advance, rounds = Prover.advance, {False: 0, True: 0}

    def counted(self: Prover) -> bool:
        rounds[self.claim.wins] += 1
        return advance(self)

    monkeypatch.setattr(Prover, "advance", counted)
    game = ConnectFour(5, 5)
    question = Question(game, [Uniform(game)], Claim(0, wins=True), game.initial(1)[0], MEGABYTES)
    for _ in range(30):
        assert question.advance()
    assert min(rounds.values()) > 2


def test_a_proof_goes_on_from_its_file(tmp_path: Path) -> None:
    game, file = ConnectFour(4, 4), tmp_path / "part"
    claim, start = Claim(1, wins=True), game.initial(1)[0]
    question = Question(game, [Uniform(game)], claim, start, MEGABYTES)
    for _ in range(5):
        question.advance()
    question.save(file)
    other = Question(game, [Uniform(game)], claim, start, MEGABYTES)
    other.restore(file)
    assert other.count() == question.count()
    assert decide(question) == decide(other) == Claim(0, wins=False)
    assert other.count() == question.count()


@pytest.mark.parametrize(
    ("claim", "megabytes", "damage", "message"),
    [
        (Claim(0, wins=True), MEGABYTES, 0, "is part of the proof of something else: remove it, or name another --out"),
        (Claim(1, wins=True), MEGABYTES, 100, "is damaged: remove it"),
        (Claim(1, wins=True), 1, 0, "takes more memory: raise --megabytes"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    tmp_path: Path, claim: Claim, megabytes: int, damage: int, message: str
) -> None:
    game, file = ConnectFour(5, 5), tmp_path / "part"
    question = Question(game, [Uniform(game)], Claim(1, wins=True), game.initial(1)[0], MEGABYTES)
    while question.count().positions < 20_000:
        question.advance()
    question.save(file)
    file.write_bytes(file.read_bytes()[: -damage or None])
    with pytest.raises(RecordError, match=message):
        Question(game, [Uniform(game)], claim, game.initial(1)[0], megabytes).restore(file)
