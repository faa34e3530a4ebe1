"""The command `seraphim`, and how programs end."""

import os
import re
import subprocess
import sys
from pathlib import Path

import programs
import pytest
from one_of_each import first_of, one_of_each

from seraphim import __main__, cli
from seraphim.__main__ import COMMANDS
from seraphim.errors import SettingsError

ROOT = Path(__file__).parents[1]
SERAPHIM = [sys.executable, *programs.SERAPHIM]

RAISES = {
    "raise KeyboardInterrupt": "",
    "raise SettingsError('TensorFlow does not start') from KeyboardInterrupt()": "",
    "raise SystemError('in C code') from KeyboardInterrupt()": "",
    "raise SystemError('in C code') from RuntimeError()": "SystemError: in C code\n",
}


@pytest.mark.parametrize("statement", RAISES)
def test_ctrl_c_ends_a_program_without_a_traceback_even_inside_of_c_code(statement: str) -> None:
    imports = "from seraphim import cli\nfrom seraphim.errors import SettingsError"
    program = f"{imports}\ndef main(arguments):\n    {statement}\ncli.run(main)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == ""
    assert done.stderr.endswith(RAISES[statement])
    assert (done.returncode, bool(done.stderr)) == ((1, True) if RAISES[statement] else (130, False))


DROPS = """
import gc, signal, time
from seraphim import cli

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def main(arguments):
    {drop}
    time.sleep(60)

cli.run(main)
"""


@pytest.mark.parametrize(
    "drop",
    ["Finalized()", "gc.callbacks.append(lambda *_: gc.callbacks.clear() or signal.raise_signal(2)); gc.collect()"],
)
def test_ctrl_c_that_python_drops_ends_a_program(drop: str) -> None:
    program = DROPS.format(drop=drop)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


# Ctrl-C while numpy, and so all that a program needs, is being imported.
INTERRUPTED_IMPORT = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.parametrize(
    "program", ["bin/learn.py", "bin/check_proof.py", "bin/train.py", "tictactoe/train.py", "seraphim/__main__.py"]
)
def test_ctrl_c_ends_a_program_that_is_imported_without_a_traceback(program: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_IMPORT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, ROOT / program, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("arguments", "buffering"),
    one_of_each(["--version", "--help", "prove --help", "check-game tictactoe --games=3"], ["1", ""]),
)
def test_output_that_cannot_be_written_is_an_error_in_one_line(arguments: str, buffering: str) -> None:
    command, environment = [*SERAPHIM, *arguments.split()], os.environ | {"PYTHONUNBUFFERED": buffering}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, timeout=300)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "No space left on device" in done.stderr
    assert str(Path.cwd()) not in done.stderr or buffering  # it is not the disk of the data that is full


@pytest.mark.parametrize("arguments", ["--version", "--help", "prove --help"])
def test_a_reader_that_left_ends_a_program_without_a_word(arguments: str) -> None:
    script = '"$@" | (exec <&-; sleep 1); exit ${PIPESTATUS[0]}'
    command = ["bash", "-c", script, "bash", *SERAPHIM, *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert done.returncode in (0, 1, 141)  # it may have written before the reader left


def seraphim(*arguments: str) -> subprocess.CompletedProcess[str]:
    return programs.run([*SERAPHIM, *arguments], cwd=ROOT)


def test_every_program_is_a_command() -> None:
    modules = {path.stem.replace("_", "-") for path in (ROOT / "seraphim" / "commands").glob("[!_]*.py")}
    assert set(programs.FILES) == set(COMMANDS) == modules
    assert len(programs.FILES) == len(list(ROOT.glob("bin/*.py")))


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_alone_it_lists_its_commands(arguments: list[str]) -> None:
    done = seraphim(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^  ([a-z-]+)  +[A-Z]", done.stdout, re.MULTILINE) == list(COMMANDS)


def test_it_tells_its_version() -> None:
    done = seraphim("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"version: {done.stdout.removeprefix('seraphim ')}" in (ROOT / "CITATION.cff").read_text()


def test_a_flag_of_earlier_versions_is_refused_with_the_reason() -> None:
    done = programs.run([sys.executable, "bin/generate_games.py", "x", "--self_play_fpu=parent"], timeout=100)
    reason = "--fpu is no longer an option: delete it; an action without a visit has a value of 0"
    assert (done.returncode, done.stderr) == (1, f"seraphim generate: {reason}\n")


def test_an_unknown_command_is_refused_in_one_line() -> None:
    done = seraphim("lern", "mine")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "seraphim: there is no command 'lern': did you mean learn?\n"
    done = seraphim("xyz", "mine")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("seraphim: there is no command 'xyz': expected one of learn, generate, ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--reodouts=3", "unknown flag --reodouts: did you mean --readouts?"),
        ("--xyz", "unknown flag --xyz"),
        ("--readouts=ten", "--readouts=ten: 'ten' is not a number"),
        ("--hours=x", "--hours=x: 'x' is not a number"),
        ("--goal=x", "--goal=x: value should be one of <search|network|none>"),
        ("--preset", "Missing value for flag --preset"),
    ],
)
def test_a_wrong_flag_is_refused_in_one_line(flag: str, message: str) -> None:
    done = seraphim("learn", "nobody", flag)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"seraphim learn: {message}\n")


def test_a_command_explains_itself() -> None:
    short, long = seraphim("prove", "-h"), seraphim("prove", "--help")
    assert (short.returncode, long.returncode) == (0, 0)
    assert short.stdout == long.stdout and "--position" in long.stdout


def test_only_a_missing_package_is_cured_by_an_installation(tmp_path: Path) -> None:
    for name, has_cure in (("numpy", True), ("seraphim.machine.x", False)):
        program = (
            "from seraphim import __main__\n"
            f"def fail(*_): raise ModuleNotFoundError('gone', name={name!r})\n"
            "__main__.importlib.import_module = fail\n__main__.run('learn')"
        )
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1
        assert (__main__._CURE in done.stderr) == has_cure


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
        assert done.stderr == alone.stderr
        assert done.stdout.partition("µs")[0] == alone.stdout.partition("µs")[0]


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


@pytest.mark.parametrize(("encoding", "command"), first_of(3, ["ascii", "latin-1", "cp437"], SAYS), ids=str)
def test_a_terminal_gets_what_it_can_show(encoding: str, command: list[str], tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    arguments = {"capture_output": True, "cwd": tmp_path, "timeout": 300, "input": "board\nboàrd ✓\nq\nquit\n".encode()}
    done = subprocess.run([*SERAPHIM, *command], env=environment, **arguments)  # type: ignore[call-overload]
    assert b"Error" not in done.stderr
    assert done.returncode == (1 if command[0] == "view" else 0)
    assert done.stdout.decode("utf-8" if command[0] == "engine" else encoding) or command[0] == "view"


@pytest.mark.parametrize(("closed", "command"), first_of(2, ["<&-", "<&- >&- 2>&-", ">&-", "2>&-"], SAYS[:2]), ids=str)
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


@pytest.mark.slow
def test_a_width_of_nothing_is_none(tmp_path: Path) -> None:
    nothing = ["0", "00", ""]
    command = [*SERAPHIM, "play", "tictactoe", "--human=none", "--readouts=4"]
    plain, *narrow = (
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | size, input="")
        for size in [{"COLUMNS": "80", "LINES": "25"}, *({"COLUMNS": size, "LINES": size} for size in nothing)]
    )
    assert len(plain.stdout) > 100
    for size, done in zip(nothing, narrow, strict=True):
        assert (done.returncode, done.stderr) == (0, ""), repr(size)
        assert done.stdout.splitlines()[-1] == plain.stdout.splitlines()[-1], repr(size)


@pytest.mark.parametrize(
    "variable",
    [
        pytest.param("PYTHONOPTIMIZE=2", marks=pytest.mark.slow),
        "PYTHONWARNINGS=error",
        "PYTHONSAFEPATH=1",
        pytest.param("TERM=dumb", marks=pytest.mark.slow),
        pytest.param("COLUMNS=20", marks=pytest.mark.slow),
        pytest.param("NO_COLOR=1", marks=pytest.mark.slow),
    ],
)
def test_the_users_environment_changes_nothing(variable: str, tmp_path: Path) -> None:
    name, value = variable.split("=")
    # Kernels without docstrings are compiled anew, and replace the others where these are kept.
    own = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"} if name == "PYTHONOPTIMIZE" else {}
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


@pytest.mark.slow
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
        "seraphim arena: No such file or directory (the current folder): fix that, then run again; "
        "finished work is not lost\n",
    )


@pytest.mark.parametrize("name", ["/", ".", "..", "a/..", 201 * "x", 5000 * "x", "a\nb", "a\0b", "\ud800"])
def test_what_cannot_be_the_name_of_a_file_is_refused_before_any_work(name: str) -> None:
    with pytest.raises(SettingsError, match="name of a file") as refused:
        cli.check_folders(name)
    assert "\n" not in str(refused.value)


ODD = os.fsdecode(b"\xff")  # no UTF-8


def test_a_proof_may_have_any_name(tmp_path: Path) -> None:
    prove = [*SERAPHIM, "prove", "--game=tictactoe", "--position=a1 b1 a2 b2"]
    ascii_only = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for name, environment in ((f"{ODD}.proof", os.environ), ("é ü.proof", ascii_only)):
        done = subprocess.run(
            [*prove, f"--out={name}"], cwd=tmp_path, capture_output=True, env=environment, timeout=300
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert (tmp_path / name).is_file()


def test_a_data_root_that_tensorflow_cannot_be_given_is_refused(tmp_path: Path) -> None:
    (tmp_path / ODD).mkdir()
    command = [*SERAPHIM, "learn", "mine", "--game=tictactoe", "--generations=1"]
    environment = os.environ | {"SERAPHIM_DATA": ODD}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=300)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "seraphim learn: SERAPHIM_DATA is '\\udcff', which is not UTF-8: rename it, or set LC_ALL=C.UTF-8\n"
    )


@pytest.mark.parametrize(
    "command",
    [
        "prove --game=tictactoe --position=a1b1a2b2 --out=device",
        "evaluate tictactoe --positions=device",
        "arena random mcts:2 --game=tictactoe --games=2 --csv=/",
        *(
            pytest.param(command, marks=pytest.mark.slow)
            for command in (
                "prove --game=tictactoe --position=a1b1a2b2 --out=.",
                "play tictactoe --proof=device",
                "check-proof device",
                "arena random mcts:2 --game=tictactoe --games=2 --csv=device",
            )
        ),
    ],
)
def test_a_device_or_a_folder_in_place_of_a_file_is_refused_and_stays(command: str, tmp_path: Path) -> None:
    # By links, lest a program that fails this test replaces a device of the machine.
    (tmp_path / "device").symlink_to("/dev/zero")
    limited = ["sh", "-c", 'ulimit -v 8000000; exec "$@"', "sh", *SERAPHIM, *command.split()]
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, timeout=300, input="")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    refusals = ("not a regular file", "a device", "is a folder", "is not the name of a file")
    assert any(each in done.stderr for each in refusals), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["device"]
    assert (tmp_path / "device").is_symlink()
