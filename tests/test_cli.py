"""The command `seraphim`, and how programs end."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from seraphim.cli import PROGRAMS

ROOT = Path(__file__).parents[1]
SERAPHIM = [sys.executable, "-c", "import sys; from seraphim.cli import main; sys.exit(main())"]

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
    return subprocess.run([*SERAPHIM, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=300)


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
        alone = subprocess.run([*file, *arguments], capture_output=True, text=True, cwd=ROOT)
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
