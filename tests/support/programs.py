"""Runs programs as `subprocess.run` does, each in a process of its own that is forked where Python has started already.

A start of Python with NumPy, Numba and the kernels' machine code takes a second of processor time. The processes are
forked from one that has all of these and has started no thread; everything else is as if Python ran the file: the main
module, arguments, environment, folder, streams and the end of the process.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import re
import runpy
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
FILES = {
    re.findall(r'^    run\("([a-z-]+)"\)$', path.read_text(), re.MULTILINE)[0]: str(path.relative_to(ROOT))
    for path in sorted(ROOT.glob("bin/*.py"))
}
"""The program of each command."""


def command_of(program: str | Path) -> str:
    """What the program of a command calls itself: `seraphim generate`, of bin/generate_games.py."""
    (command,) = re.findall(r'^    run\("([a-z-]+)"', (ROOT / program).read_text(), re.MULTILINE)
    return f"seraphim {command}"


# The command `seraphim`, as arguments of Python.
SERAPHIM = ("-c", "import sys; from seraphim.__main__ import main; sys.exit(main())")
_IMPORTED = (
    "numpy",
    "seraphim.cli",
    "seraphim.evaluation.tournament",
    "seraphim.terminal.terminal",
    "seraphim.selfplay.processes",
    "seraphim.records.viewer",
    "seraphim.storage.models",
    "seraphim.training.loop",
    "tictactoe.game",
)
_PASSED_ON = "SERAPHIM_"  # Python and libraries read other variables when they start


def run(
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    input: str = "",  # noqa: A002  # as in subprocess.run
    timeout: float = 300,
) -> "subprocess.CompletedProcess[str]":
    """Run a Python program to its end: `command` is sys.executable, a file or SERAPHIM, and arguments."""
    python, *arguments = map(str, command)
    variables = dict(os.environ if env is None else env)
    differing = {name for name, value in variables.items() ^ os.environ.items()}
    is_program = arguments[0].endswith(".py") or arguments[:2] == list(SERAPHIM)
    if python != sys.executable or not is_program or any(not name.startswith(_PASSED_ON) for name in differing):
        return subprocess.run(
            [python, *arguments], env=variables, cwd=cwd, input=input, capture_output=True, text=True, timeout=timeout
        )
    with tempfile.TemporaryDirectory() as folder:
        streams = [str(Path(folder) / name) for name in ("stdin", "stdout", "stderr")]
        Path(streams[0]).write_text(input)
        request = {"arguments": arguments, "variables": variables, "folder": str(cwd or Path.cwd()), "streams": streams}
        code = _Forker.get().ask(request, timeout)
        # Line ends become \n, as where a pipe is read as text.
        said, errors = (Path(stream).read_text(errors="backslashreplace") for stream in streams[1:])
    return subprocess.CompletedProcess([python, *arguments], code, said, errors)


class _Forker:
    # The process that forks, for this one.

    def __init__(self) -> None:
        # A library for linear algebra would start threads, which no fork has.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._end)

    @classmethod
    @functools.cache
    def get(cls) -> "_Forker":
        return cls()

    def _end(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def ask(self, request: dict[str, Any], timeout: float) -> int:
        # The exit code of a program, negative for a signal.
        requests, answers = self._process.stdin, self._process.stdout
        assert requests and answers
        requests.write(f"{json.dumps(request)}\n")
        requests.flush()
        if not select.select([answers], [], [], timeout)[0]:
            self._process.kill()
            type(self).get.cache_clear()  # type: ignore[attr-defined]
            raise subprocess.TimeoutExpired(request["arguments"], timeout)
        return int(answers.readline())


def _serve(requests: IO[str], answers: IO[str]) -> dict[str, Any] | None:
    # Forks a process for each request. Returns it in that process; None where there are no more.
    for line in requests:
        process = os.fork()
        if not process:
            return dict(json.loads(line))
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}\n")
        answers.flush()
    return None


def _become(request: dict[str, Any]) -> None:
    # Runs a program in this process.
    for number, stream in enumerate(request["streams"]):
        file = os.open(stream, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["variables"])
    os.chdir(request["folder"])
    program, *arguments = request["arguments"]
    if program == "-c":
        from seraphim.__main__ import main

        sys.argv = ["-c", *arguments[1:]]
        sys.exit(main())
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).parent.resolve())
    runpy.run_path(program, run_name="__main__")


def _warm_up() -> None:
    # Loads the machine code of the kernels that most programs call.
    from seraphim.game.saved_games import Position
    from seraphim.proof.proving import Limits, prove
    from seraphim.search.evaluator import Uniform
    from tictactoe.game import GAME

    for _ in prove(
        "tictactoe", Position(None, [], []), "result", [Uniform(GAME)], Limits(60, 8), None, lambda *_: None
    ):
        pass


if __name__ == "__main__":
    for name in _IMPORTED:
        importlib.import_module(name)
    _warm_up()
    gc.freeze()  # or the first collection of each process would copy all memory
    asked = _serve(os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"))
    if asked:
        _become(asked)
