"""The command `seraphim`, as `python -m seraphim` too; and each of its commands, for the programs of a clone."""

import ast
import importlib
import sys
from pathlib import Path

from seraphim.errors import CLONE, how_to_install, version
from seraphim.machine import end_on_interrupt, prepare_streams

COMMANDS = (
    *("learn", "generate", "train", "view", "play", "review", "serve", "engine", "evaluate", "arena", "curve", "prove"),
    *("check-proof", "export", "doctor", "benchmark", "check-game", "generate-positions"),
)
"""Each is a module of `seraphim.commands`."""

_CURE = "source .venv/bin/activate, or run make setup first" if CLONE else how_to_install()


def main() -> int:
    """Run the command that the command line names, such as `seraphim learn NAME`.

    Returns:
        The exit code of `seraphim` alone; a command exits by itself.
    """
    end_on_interrupt()
    prepare_streams()
    command, *arguments = sys.argv[1:] or ["--help"]
    if command in ("--version", "--help", "-h", "help"):
        from seraphim import cli

        with cli.unwritten_refused():
            print(f"seraphim {version()}" if command == "--version" else _summary(), flush=True)
        return 0
    if command not in COMMANDS:
        from seraphim.cli import did_you_mean

        hint = did_you_mean(command, COMMANDS) or f": expected one of {', '.join(COMMANDS)}"
        print(f"seraphim: there is no command {command!r}{hint}", file=sys.stderr)
        return 2
    sys.argv[:] = ["seraphim", *arguments]
    run(command)
    return 0


def run(command: str, **defaults: str) -> None:
    """Run a command on the arguments of this program, and exit.

    Args:
        command: one of `COMMANDS`.
        defaults: of its flags, for a program whose own docstring --help shows.
    """
    end_on_interrupt()
    sys.argv[0] = f"seraphim {command}"  # what it prints about itself says so, in a clone and elsewhere
    try:
        module = importlib.import_module(f"seraphim.commands.{command.replace('-', '_')}")
        from seraphim import cli
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "seraphim":  # which no installation repairs
            raise
        raise SystemExit(f"{Path(sys.argv[0]).name}: {error}: {_CURE}") from None
    for name, value in defaults.items():
        cli.FLAGS.set_default(name, value)
    if not defaults:
        sys.modules["__main__"].__doc__ = module.__doc__
    cli.run(module.main)


def _summary() -> str:
    # Without importing the commands: each defines flags.
    lines = ["usage: seraphim COMMAND …; seraphim COMMAND --help explains its flags", ""]
    for name in COMMANDS:
        file = Path(__file__).parent / "commands" / f"{name.replace('-', '_')}.py"
        docstring = ast.get_docstring(ast.parse(file.read_bytes())) or ""
        lines.append(f"  {name:18}  {docstring.splitlines()[0]}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
