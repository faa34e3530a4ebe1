"""What the programs share: flags made of the option classes, model names, and errors as one sentence.

The only module that imports absl. It defines no flag by itself: a program calls `define_options`.
"""

import ast
import dataclasses
import inspect
import itertools
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

from absl import app, flags, logging

from seraphim.errors import SeraphimError, SettingsError
from seraphim.inference import Runtime
from seraphim.settings import SECTIONS, Settings

FLAGS = flags.FLAGS


def define_options(*sections: str) -> None:
    """Define one flag for each option of these sections of the settings; a flag not given leaves the setting."""
    main = sys.argv[0]  # as absl calls the program's own module: its flags are the ones that --help shows
    for section in sections:
        kind = SECTIONS[section]
        hints = get_type_hints(kind)
        meanings = option_meanings(kind)
        for option in dataclasses.fields(kind):
            text = f"{meanings[option.name]} Default: settings.json, which starts at {option.default}."
            choices = get_args(hints[option.name])
            if choices:
                flags.DEFINE_enum(option.name, None, list(choices), text, module_name=main)
            elif hints[option.name] is bool:
                flags.DEFINE_bool(option.name, None, text, module_name=main)
            elif hints[option.name] is int:
                flags.DEFINE_integer(option.name, None, text, module_name=main)
            elif hints[option.name] is float:
                flags.DEFINE_float(option.name, None, text, module_name=main)
            else:
                flags.DEFINE_string(option.name, None, text, module_name=main)


def define_choice(name: str, choices: Any, default: str, text: str) -> flags.FlagHolder[Any]:
    """Define a flag that takes one of the strings of a `Literal` type."""
    return flags.DEFINE_enum(name, default, list(get_args(choices)), text, module_name=sys.argv[0])


def define_workers() -> tuple[flags.FlagHolder[Any], flags.FlagHolder[int]]:
    """Define --runtime and --workers, for programs whose worker processes play."""
    runtime = define_choice(
        "runtime", Runtime, "auto", "What runs the network; auto takes a GPU, else what is fastest here."
    )
    text = "Worker processes; 0 is one for each processor core."
    return runtime, flags.DEFINE_integer("workers", 0, text, lower_bound=0, module_name=sys.argv[0])


def with_flags(settings: Settings) -> Settings:
    """Return the settings with every option flag that was given put in its place."""
    given = {
        name: FLAGS[name].value
        for kind in SECTIONS.values()
        for name in get_type_hints(kind)
        if name in FLAGS and FLAGS[name].value is not None
    }
    return settings.override(given)


def option_meanings(kind: type) -> dict[str, str]:
    """Return the docstring below each field of an option class, by the field's name."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
    meanings = {}
    for field, text in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            meanings[field.target.id] = " ".join(text.value.value.split())  # type: ignore[union-attr, attr-defined]
    return meanings


def data_root() -> Path:
    """Return the folder that holds `models/` and `gamedata/`: SERAPHIM_DATA, by default the current folder."""
    return Path(os.environ.get("SERAPHIM_DATA") or ".")


def model_name(arguments: Sequence[str]) -> str:
    """Return the model's name: the only positional argument, else SERAPHIM_MODEL_NAME.

    Raises:
        SettingsError: neither was given, or there are more arguments.
    """
    program, *names = arguments
    if len(names) > 1:
        raise SettingsError(f"expected one model NAME, not {len(names)} arguments: {' '.join(names)}")
    name = names[0] if names else os.environ.get("SERAPHIM_MODEL_NAME", "")
    if not name:
        raise SettingsError(f"which model? Try: {Path(program).name} NAME, or set SERAPHIM_MODEL_NAME")
    return name


def run(main: Callable[[Sequence[str]], int | None]) -> None:
    """Run a program: parse the flags, call `main(arguments)`, and print an error that a person can cure in one line.

    What `main` returns is the exit code; None is 0.
    """

    def guarded(arguments: Sequence[str]) -> int | None:
        logging.set_verbosity(logging.WARNING)
        # A container stops its program with SIGTERM: end as cleanly as on Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return main(arguments)
        except SeraphimError as error:
            return _failed(arguments, str(error))
        except OSError as error:  # a full disk, a read-only folder
            where = f" ({error.filename})" if error.filename else ""
            return _failed(
                arguments, f"{error.strerror or error}{where}: free the disk or mend the permissions, then run again"
            )
        except KeyboardInterrupt:
            return 130

    app.run(guarded)


def _failed(arguments: Sequence[str], message: str) -> int:
    print(f"{Path(arguments[0]).name}: {message}", file=sys.stderr)
    return 1
