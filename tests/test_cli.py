"""The command `seraphim`, and how programs end."""

import os
import re
import subprocess
import sys
from pathlib import Path

import programs
import pytest
from one_of_each import one_of_each

from seraphim.cli import PROGRAMS

ROOT = Path(__file__).parents[1]
SERAPHIM = [sys.executable, *programs.SERAPHIM]

RAISES = {
    "raise KeyboardInterrupt": "",
    "raise SystemError('in C code') from KeyboardInterrupt()": "",
    "raise SystemError('in C code') from RuntimeError()": "SystemError: in C code\n",
}


@pytest.mark.parametrize("statement", RAISES)
def test_ctrl_c_ends_a_program_without_a_traceback_even_inside_of_c_code(statement: str) -> None:
    program = f"from seraphim import cli\ndef main(arguments):\n    {statement}\ncli.run(main)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == ""
    assert done.stderr.endswith(RAISES[statement])
    assert (done.returncode, bool(done.stderr)) == ((1, True) if RAISES[statement] else (130, False))


def seraphim(*arguments: str) -> subprocess.CompletedProcess[str]:
    return programs.run([*SERAPHIM, *arguments], cwd=ROOT)


def test_every_program_is_a_command() -> None:
    assert sorted(PROGRAMS.values()) == sorted(path.stem for path in (ROOT / "bin").glob("[!_]*.py"))


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_alone_it_lists_its_commands(arguments: list[str]) -> None:
    done = seraphim(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^  ([a-z-]+)  +[A-Z]", done.stdout, re.MULTILINE) == list(PROGRAMS)


def test_it_tells_its_version() -> None:
    done = seraphim("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"version: {done.stdout.removeprefix('seraphim ')}" in (ROOT / "CITATION.cff").read_text()


def test_an_unknown_command_is_refused_in_one_line() -> None:
    done = seraphim("lern", "mine")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("seraphim: there is no command 'lern': expected one of learn, generate, ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["learn nobody --game=tictactoe", "train nobody --init --game=tictactoe"])
def test_a_seed_that_is_too_large_is_refused(command: str) -> None:
    done = seraphim(*command.split(), "--seed=9223372036854775808")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert "--seed=9223372036854775808: 9223372036854775808 is not an integer in the range [0, 92233720" in done.stderr


def test_a_command_is_its_program() -> None:
    file = [sys.executable, "bin/check_game.py"]
    for arguments in (["--help"], ["chess9000"], ["tictactoe", "--games=3", "--seed=5", "--solve=0"]):
        alone = programs.run([*file, *arguments], cwd=ROOT)
        done = seraphim("check-game", *arguments)
        assert done.returncode == alone.returncode
        assert done.stderr == alone.stderr.replace("check_game.py", "seraphim check-game")
        assert (
            done.stdout.partition("µs")[0]
            == alone.stdout.replace("bin/check_game.py", "seraphim check-game").partition("µs")[0]
        )


def test_a_command_names_itself_in_what_it_says() -> None:
    assert (
        seraphim("learn").stderr
        == "seraphim learn: which model? Try: seraphim learn NAME, or set SERAPHIM_MODEL_NAME\n"
    )
    assert seraphim("check-proof", "setup.cfg").stderr.startswith("seraphim check-proof: ['setup.cfg'] proves nothing")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("learn nobody --hours=inf", "--hours must be a number of at most 1,000,000,000, not inf"),
        ("learn nobody --hours=nan", "--hours must be a number of at most 1,000,000,000, not nan"),
        ("play tictactoe --cpuct=inf", "cpuct must be at most 1,000,000,000, not inf"),
        ("play tictactoe --cpuct=1e-310", "cpuct must be at least 1e-09, not 1e-310"),
        ("generate-positions --minutes=nan", "--minutes must be a number of at most 1,000,000,000, not nan"),
        ("benchmark --seconds=inf", "--seconds must be a number of at most 1,000,000,000, not inf"),
        ("generate-positions --table=99999999999", "--table must be a number of at most 1,000,000,000, not 99999"),
        ("evaluate tictactoe --searches=" + 5000 * "9", "--searches must be whole numbers separated by commas"),
        ("arena random mcts:" + 5000 * "9" + " --game=tictactoe", "is not a player: expected "),
        ("arena random random --game=tictactoe --opening_plies=9", "opening_plies must be below the 9 plies of tic"),
        ("check-game hex:" + 5000 * "9", "is no size of Hex"),
        ("learn nobody --game=tictactoe --random_plies=9", "random_plies must be below the 9 plies of tictactoe"),
        ("learn nobody --game=tictactoe --readouts=1000000000", "would be too large: lower readouts or concurrent_g"),
        ("learn nobody --game=tictactoe --known_results", "known_results needs a game that offers known_results"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_before_anything_is_made(
    command: str, message: str, tmp_path: Path
) -> None:
    done = programs.run([*SERAPHIM, *command.split()], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.rglob("settings.json"))


SAYS = [
    ["check-game", "tictactoe", "--games=3", "--solve=0"],
    ["play", "tictactoe", "--human=none", "--readouts=4"],
    ["view", "--summary", "gamedata"],
    ["engine", "tictactoe"],
    ["doctor", "tictactoe", "--quick"],
]


@pytest.mark.parametrize(("encoding", "command"), one_of_each(["ascii", "latin-1", "cp437"], SAYS), ids=str)
def test_a_terminal_gets_what_it_can_show(encoding: str, command: list[str], tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    arguments = {"capture_output": True, "cwd": tmp_path, "timeout": 300, "input": "board\nboàrd ✓\nq\nquit\n".encode()}
    done = subprocess.run([*SERAPHIM, *command], env=environment, **arguments)  # type: ignore[call-overload]
    assert b"Error" not in done.stderr
    assert done.returncode == (1 if command[0] == "view" else 0)
    assert done.stdout.decode("utf-8" if command[0] == "engine" else encoding) or command[0] == "view"


@pytest.mark.parametrize(("closed", "command"), one_of_each(["<&-", ">&-", "2>&-", "<&- >&- 2>&-"], SAYS[:2]), ids=str)
def test_closed_streams_are_like_empty_ones(closed: str, command: list[str], tmp_path: Path) -> None:
    script = f'exec "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *SERAPHIM, *command], capture_output=True, cwd=tmp_path, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_a_proof_is_checked_where_the_board_cannot_be_drawn(tmp_path: Path) -> None:
    prove = [*SERAPHIM, "prove", "--game=tictactoe", "--position=a1 b1 a2 b2", "--out=x.proof"]
    assert programs.run(prove, cwd=tmp_path).returncode == 0
    check = [sys.executable, ROOT / "bin" / "check_proof.py", "x.proof"]
    environment = os.environ | {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the first player wins" in done.stdout


@pytest.mark.parametrize(
    "variable",
    [
        pytest.param("PYTHONOPTIMIZE=2", marks=pytest.mark.slow),
        "PYTHONWARNINGS=error",
        "PYTHONSAFEPATH=1",
        "TERM=dumb",
        "COLUMNS=20",
        "NO_COLOR=1",
    ],
)
def test_the_users_environment_changes_nothing(variable: str, tmp_path: Path) -> None:
    name, value = variable.split("=")
    # Kernels without docstrings are compiled anew, and replace the others where these are kept.
    own = {"NUMBA_CACHE_DIR": str(tmp_path)} if name == "PYTHONOPTIMIZE" else {}
    command = [*SERAPHIM, "play", "tictactoe", "--human=none", "--readouts=4"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {name: value} | own, input=""
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_without_memory_says_so_in_one_line() -> None:
    program = "from seraphim import cli\ndef main(arguments):\n    b'x' * 2**62\ncli.run(main)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "not enough memory" in done.stderr


def test_a_model_is_made_where_warnings_are_errors(tmp_path: Path) -> None:
    command = [*SERAPHIM, "train", "odd", "--init", "--game=tictactoe", "--width=8"]
    environment = os.environ | {"PYTHONWARNINGS": "error"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("champion ")


def test_a_current_folder_that_was_removed_is_an_error_in_one_line(tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    command = ["sh", "-c", script, "sh", *SERAPHIM, "arena", "tictactoe", "random", "--games=2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (
        1,
        "seraphim arena: No such file or directory (.): fix that, then run again; finished work is not lost\n",
    )
