"""Parses command lines by the programs that they name, without running these; prints what a program refuses.

Reads a JSON list of [id, search path or "", program, arguments] and writes a JSON object: the refusals by id. A program
is executed up to where it parses its flags, in a process of its own, forked before anything starts a thread.
"""

import argparse
import contextlib
import importlib
import io
import itertools
import json
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from absl import app, flags

Call = tuple[int, list[str]]  # an id, and arguments


def refusals(program: str, path: str, calls: list[Call]) -> dict[int, str]:
    """Return what a program says of the arguments that it does not take."""
    found: dict[int, str] = {}

    def try_all(parse: Callable[[list[str]], Any]) -> None:
        for number, arguments in calls:
            with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
                try:
                    parse([each for each in arguments if each != "--help"])
                except (flags.Error, SystemExit) as error:
                    found[number] = said.getvalue() or str(error)
        raise KeyboardInterrupt  # which no program takes for an error

    def parse_by_absl(arguments: list[str]) -> None:
        flags.FLAGS.unparse_flags()
        flags.FLAGS([program, *arguments])

    app.run = lambda *_, **__: try_all(parse_by_absl)
    for name in ("parse_args", "parse_known_args"):
        parse = getattr(argparse.ArgumentParser, name)
        setattr(argparse.ArgumentParser, name, lambda self, *_, parse=parse: outside(parse, self))

    def outside(parse: Callable[..., Any], parser: argparse.ArgumentParser) -> None:
        for name, original in originals.items():
            setattr(argparse.ArgumentParser, name, original)
        try_all(lambda arguments: parse(parser, arguments))

    sys.argv = [program]
    sys.path = [str(Path(program).parent.resolve()), *([path] if path else []), *sys.path[1:]]
    try:
        runpy.run_path(program, run_name="__main__")
    except KeyboardInterrupt:
        return found
    except (ImportError, SystemExit) as error:
        return {number: f"{program}: {error}" for number, _ in calls}
    return {number: f"{program} parses no flags" for number, _ in calls}


originals = {name: getattr(argparse.ArgumentParser, name) for name in ("parse_args", "parse_known_args")}


def main() -> None:
    """Parse them all."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a thread would not survive the forks
    importlib.import_module("numba")  # once, rather than in each program
    found: dict[str, str] = {}
    lines = sorted(json.load(sys.stdin), key=lambda line: (line[2], line[1]))
    for (program, path), group in itertools.groupby(lines, key=lambda line: (line[2], line[1])):
        calls = [(number, arguments) for number, _, _, arguments in group]
        reading, writing = os.pipe()
        if not os.fork():
            with os.fdopen(writing, "w") as file:
                json.dump(refusals(program, path, calls), file)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as file:
            found |= json.load(file)
        os.wait()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
