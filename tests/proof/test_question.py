"""Questions: a claim and its opposite in turns, in a bounded memory, with a file to go on from."""

import io
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from connectfour.game import ConnectFour
from seraphim.errors import RecordError
from seraphim.game.exhaustive import solve
from seraphim.game.saved_games import Position
from seraphim.proof.certificate import walk
from seraphim.proof.claims import Claim
from seraphim.proof.prover import Prover
from seraphim.proof.question import Question
from seraphim.search.evaluator import Uniform
from tictactoe.game import GAME as TICTACTOE

MEGABYTES = 16
ROOT = Path(__file__).parents[2]


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
            assert list(walk(TICTACTOE, Position(state, [], []), true_claim, True, question.choose))


@pytest.mark.parametrize("full", [Claim(0, wins=True), Claim(1, wins=False)])
def test_when_the_memory_of_one_search_is_full_the_other_decides(monkeypatch: pytest.MonkeyPatch, full: Claim) -> None:
    advance, game = Prover.advance, ConnectFour(4, 4)
    monkeypatch.setattr(Prover, "advance", lambda self: self.claim != full and advance(self))
    question = Question(game, [Uniform(game)], Claim(0, wins=True), game.initial(1)[0], MEGABYTES)
    assert decide(question) == Claim(1, wins=False)  # 4×4 is a draw
    assert list(walk(game, Position(game.initial(1)[0], [], []), Claim(1, wins=False), True, question.choose))


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
        (Claim(1, wins=True), MEGABYTES, 100, r"is damaged \(.*\): remove it"),
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


def columns_of(file: Path) -> dict[str, np.ndarray]:
    with np.load(file) as columns:
        return dict(columns)


@pytest.mark.parametrize("what", range(9))
def test_a_file_that_holds_no_search_is_refused(tmp_path: Path, what: int) -> None:
    """Its columns go to kernels, which would follow an edge anywhere."""
    game, file = ConnectFour(5, 5), tmp_path / "part"
    claim, start = Claim(1, wins=True), game.initial(1)[0]
    question = Question(game, [Uniform(game)], claim, start, MEGABYTES)
    for _ in range(4):
        question.advance()
    question.save(file)
    columns = columns_of(file)
    numbers, keys, states, first_edges, num_edges, children = (
        columns[f"arr_{1 + place}"] for place in (0, 1, 2, 6, 7, 9)
    )
    match what:
        case 0:
            children[3] = 1 << 30
        case 1:
            children[3] = -5
        case 2:
            num_edges[0] = 1 << 30
        case 3:
            first_edges[0] = -(1 << 40)
        case 4:
            numbers[0] = np.nan
        case 5:
            numbers[0] = 1e6
        case 6:
            columns["arr_2"] = keys.astype(np.float64)
        case 7:
            columns["arr_3"] = states[:-1]
        case _:
            del columns["arr_9"]
    with file.open("wb") as opened:
        np.savez(opened, *columns.values())
    with pytest.raises(RecordError, match="is damaged .*: remove it, and the proof begins anew"):
        Question(game, [Uniform(game)], claim, start, MEGABYTES).restore(file)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    game, file = ConnectFour(5, 5), tmp_path / "part"
    os.mkfifo(file)
    with pytest.raises(RecordError, match="part is damaged .*not a regular file.*: remove it"):
        Question(game, [Uniform(game)], Claim(1, wins=True), game.initial(1)[0], MEGABYTES).restore(file)


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    game, file = ConnectFour(5, 5), tmp_path / "part"
    question = Question(game, [Uniform(game)], Claim(1, wins=True), game.initial(1)[0], MEGABYTES)
    question.save(file)
    columns = columns_of(file)
    columns["arr_0"] = columns["arr_0"][1:]  # the facts of earlier versions had no format
    with file.open("wb") as opened:
        np.savez(opened, *columns.values())
    with pytest.raises(RecordError, match="is of another version of Seraphim: remove it, and the proof begins anew"):
        question.restore(file)


def test_the_size_of_a_file_is_known_before_it_is_read(tmp_path: Path) -> None:
    game, file = ConnectFour(5, 5), tmp_path / "part"
    question = Question(game, [Uniform(game)], Claim(1, wins=True), game.initial(1)[0], MEGABYTES)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        content = io.BytesIO()
        np.save(content, np.zeros(1 << 27, np.uint8))
        archive.writestr("arr_0.npy", content.getvalue())
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match="takes more memory: raise --megabytes"):
            question.restore(file)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


FULL = """
import resource, signal, sys
from pathlib import Path
from connectfour.game import ConnectFour
from seraphim.search.evaluator import Uniform
from seraphim.proof.claims import Claim
from seraphim.proof.question import Question

game = ConnectFour(5, 5)
question = Question(game, [Uniform(game)], Claim(0, wins=True), game.initial(1)[0], 64)
question.save(Path("part"))
for _ in range(20):
    question.advance()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.RLIM_INFINITY))
try:
    question.save(Path("part"))
except OSError as error:
    sys.exit(f"refused: {error}")
"""


def test_a_full_disk_keeps_the_file_and_nothing_half_written(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "refused: " in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["part"]
    game = ConnectFour(5, 5)
    question = Question(game, [Uniform(game)], Claim(0, wins=True), game.initial(1)[0], 64)
    question.restore(tmp_path / "part")
