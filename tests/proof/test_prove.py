"""bin/prove.py as a person uses it: results, limits, interruptions, mistakes; and files that claim what is not so."""

import hashlib
import json
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import programs
import pytest

import seraphim
from seraphim.errors import GameError, RecordError
from seraphim.proof.certificate import MAGIC

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, str(ROOT / "bin" / "prove.py")]


def prove(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return programs.run([*COMMAND, *arguments], cwd=folder)


def test_tic_tac_toe_is_a_draw(tmp_path: Path) -> None:
    done = prove(tmp_path, "--game=tictactoe")
    assert (done.returncode, done.stderr) == (0, "")
    first, second, last = done.stdout.splitlines()
    assert first.startswith("the second player at least draws: proven in ")
    assert second.startswith("the first player at least draws: proven in ")
    assert last == "tictactoe-start.proof: seraphim check-proof checks it"
    assert [path.name for path in tmp_path.iterdir()] == ["tictactoe-start.proof"]
    again = prove(tmp_path, "--game=tictactoe")
    assert again.stdout == "tictactoe-start.proof holds this proof already: seraphim check-proof checks it\n"
    check = [sys.executable, str(ROOT / "bin" / "check_proof.py"), "tictactoe-start.proof"]
    assert programs.run(check, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("goal", "moves", "verdict"),
    [
        ("first", "a1 a2 b1 b2", "the first player wins"),  # a row of three with the next move
        ("second", "a1 a2 b1 b2", "the first player at least draws"),
        ("result", "a1 a2 b1 b2", "the first player wins"),
        ("first", "a1 b2", "the second player at least draws"),
    ],
)
def test_goals_and_positions(tmp_path: Path, goal: str, moves: str, verdict: str) -> None:
    done = prove(tmp_path, "--game=tictactoe", f"--for={goal}", f"--position={moves}", "--out=out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith(verdict)
    assert (tmp_path / "out").exists()


def test_a_model_guides_the_search(root: Path) -> None:
    done = prove(root, "fresh")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fresh, 00000000-")
    assert (root / "models" / "fresh" / "start.proof").exists()


def test_a_limit_of_time_and_going_on(tmp_path: Path) -> None:
    arguments = "--game=connectfour:4x4", "--for=first"
    done = prove(tmp_path, *arguments, "--hours=0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("undecided after 0.0 s: whether the first player wins; 0 proven, 0 refuted, 2 open,")
    assert (tmp_path / "connectfour-4x4-start.proof.part").exists()
    assert prove(tmp_path, *arguments).stdout.startswith("the second player at least draws: proven in ")
    assert not (tmp_path / "connectfour-4x4-start.proof.part").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupt_keeps_what_was_found(tmp_path: Path, number: signal.Signals) -> None:
    arguments = "--game=connectfour:5x5", "--for=first"
    with subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
        while program.poll() is None and not list(tmp_path.iterdir()):  # until it holds the file
            time.sleep(0.1)
        time.sleep(1)
        program.send_signal(number)
        output = program.communicate()[0]
    assert program.returncode == 0
    assert "undecided after" in output or "proven in" in output
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--game=tictactoe", "fresh"], "--game is for a proof without a model: leave it out, or the name"),
        (["--game=tictactoe", "--runtime=openvino"], "--runtime changes nothing here: --game runs no network"),
        (["--game=tictactoe", "--hours=nan"], "--hours must be a number of at most 1,000,000,000, not nan"),
        (["--game=tictactoe", "--hours=inf"], "--hours must be a number of at most 1,000,000,000, not inf"),
        (["--game=tictactoe", "--position=a1 a1"], "move 2"),
        (["--game=tictactoe", "--position=X../.O./..."], "a proof names the moves that lead to its position"),
        (["--game=tictactoe", "--position=a1 b1 a2 b2 a3"], "the game is over in this position"),
        (["--game=connectfour:3x9"], "a board of 3x9 is not possible"),
        (["--game=connectfour:5"], "is no size of connect four: expected one such as connectfour:5x6"),
        ([], "model"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = prove(tmp_path, *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_file_of_another_position_is_kept(tmp_path: Path) -> None:
    assert prove(tmp_path, "--game=tictactoe").returncode == 0
    before = (tmp_path / "tictactoe-start.proof").read_bytes()
    done = prove(tmp_path, "--game=tictactoe", "--position=a1", "--out=tictactoe-start.proof")
    assert done.returncode == 1
    assert "tictactoe-start.proof holds proofs of another position: remove it, or name another --out" in done.stderr
    assert (tmp_path / "tictactoe-start.proof").read_bytes() == before


def claiming(**facts: Any) -> bytes:
    """A file of tic-tac-toe, from the initial position, with moves that do not prove what it claims."""
    header = {"game": "tictactoe", "start": [], "symmetric": True, "bits": 8, "claims": [], **facts}
    data = MAGIC + json.dumps(header).encode() + b"\n" + zlib.compress(bytes(4))
    return data + hashlib.sha256(data).digest()


FORGED = {
    "a claim without a move": ({"claims": [{"player": 1, "wins": True, "moves": 0}]}, "a move is missing or illegal"),
    "a claim with moves": ({"claims": [{"player": 0, "wins": True, "moves": 4}]}, "a move is missing or illegal"),
    "moves without a claim": ({}, "there are moves that belong to no claim"),
    "moves of another size": ({"bits": 32}, "holds proofs of another position"),
    "an illegal start": ({"start": [0, 0]}, "holds proofs of another position"),
    "a position beside the moves": ({"position": [0, 512]}, "it cannot be read"),
}


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize("goal", ["result", "first", "second", "draw"])
def test_a_file_is_not_believed(tmp_path: Path, what: str, goal: Any) -> None:
    facts, reason = FORGED[what]
    file = tmp_path / "forged.proof"
    file.write_bytes(claiming(**facts))
    with pytest.raises(RecordError, match=reason):
        seraphim.prove(game="tictactoe", goal=goal, out=file)
    assert file.read_bytes() == claiming(**facts)
    assert [path.name for path in tmp_path.iterdir()] == ["forged.proof"]


def test_a_file_begins_with_moves_and_a_search_without_one_with_any_position(tmp_path: Path) -> None:
    board = "XX./OO./..."
    assert seraphim.prove(board, game="tictactoe").value == 1
    with pytest.raises(GameError, match="a proof names the moves that lead to its position"):
        seraphim.prove(board, game="tictactoe", out=tmp_path / "proof")
    assert not list(tmp_path.iterdir())
    assert seraphim.prove("", game="tictactoe").file is None


def test_two_programs_do_not_prove_into_one_file(tmp_path: Path) -> None:
    arguments = "--game=connectfour:5x6", "--for=first"
    with subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL) as first:
        lock = tmp_path / ".connectfour-5x6-start.proof.lock"
        while not (lock.exists() and lock.read_text()):
            assert first.poll() is None
            time.sleep(0.1)
        second = prove(tmp_path, *arguments)
        first.send_signal(signal.SIGINT)
    assert (second.returncode, second.stdout) == (1, "")
    assert f"another program proves into connectfour-5x6-start.proof: process {first.pid} on " in second.stderr
    assert not lock.exists()
    assert prove(tmp_path, *arguments, "--hours=0").returncode == 0
