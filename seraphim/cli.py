"""What the commands share: flags from the option classes, model names, and errors in one line.

It defines no flag by itself: commands call its `define_` functions.
"""

import contextlib
import dataclasses
import difflib
import errno
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from absl import app, flags, logging

from seraphim.effects import find_idle, is_read
from seraphim.errors import FileError, SeraphimError, SettingsError, shown
from seraphim.inference import Runtime
from seraphim.machine import INTERRUPTED, leave_closed_pipe, leave_interrupted, prepare_streams, raise_interrupts
from seraphim.options import MOST, MOST_SEED, Part
from seraphim.settings import OPTIONS, PREFIX, REMOVED, SECTIONS, SELF_PLAY_SEARCH, Settings, option_meanings, removal
from seraphim.storage.atomic import check_file_name
from seraphim.storage.models import ModelFolder
from seraphim.storage.shipped import data_root, find_model, own_model
from seraphim.tracking.mlflow import Program, Tracking, local_store

if TYPE_CHECKING:
    from seraphim.players.model import Model

FLAGS = flags.FLAGS

_DEFINE: dict[Any, Any] = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float}

# How to fix an error of the operating system, by its number.
_CURES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free the disk"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "fix the permissions"),
}
_NOT_A_NUMBER = re.compile(r"(?:invalid literal for int\(\) with base 10|could not convert string to float): (.*)")


def define_options(parts: Collection[Part]) -> None:
    """Define a flag for each option of the settings, which overrides it for one run.

    --help shows only those that the parts of a run read; `with_flags` refuses the others with an explanation.
    """
    for name, section in OPTIONS.items():
        option = name.removeprefix(PREFIX) if section == SELF_PLAY_SEARCH else name
        kind = SECTIONS[section]
        if section == SELF_PLAY_SEARCH:
            initially = Settings("").self_play_overrides.get(option)
            text = f"--{option} for self-play alone. Default: the model's setting, else that of the other searches"
            text += f" (initially {initially})." if initially else "."
        else:
            default = next(field.default for field in dataclasses.fields(kind) if field.name == option)
            text = f"{option_meanings(kind)[option]} Default: the model's setting (initially {default})."
        # By its path, absl knows the program's own module, whose flags --help shows.
        module = sys.argv[0] if is_read(name, parts) else "options without effect here"
        type_ = get_type_hints(kind)[option]
        if get_args(type_):
            flags.DEFINE_enum(name, None, list(get_args(type_)), text, module_name=module)
        else:
            _DEFINE[type_](name, None, text, module_name=module)


def define_game() -> flags.FlagHolder[str | None]:
    """Define --game, for programs that make a model of any game."""
    text = "Package or module of the game of a new model, for instance tictactoe."
    return flags.DEFINE_string("game", None, text, module_name=sys.argv[0])


def define_choice(name: str, choices: Any, default: str, text: str) -> flags.FlagHolder[Any]:
    """Define a flag that takes one of the strings of a `Literal` type."""
    return flags.DEFINE_enum(name, default, list(get_args(choices)), text, module_name=sys.argv[0])


def define_workers() -> tuple[flags.FlagHolder[Any], flags.FlagHolder[int]]:
    """Define --runtime and --workers, for programs whose worker processes play."""
    runtime = define_choice(
        "runtime", Runtime, "auto", "What runs the network; auto takes a GPU, else what suits the network."
    )
    text = "Worker processes; 0: one for each processor core, or one for a GPU."
    return runtime, flags.DEFINE_integer("workers", 0, text, 0, 1024, module_name=sys.argv[0])


def define_cluster() -> flags.FlagHolder[Any]:
    """Define --cluster, for programs whose workers may be on other machines."""
    text = (
        "Run workers on all machines of a Ray cluster: the address of its head; or auto: RAY_ADDRESS, else the Ray of "
        "this machine, else a new one. --workers limits them. See docs/cluster.md."
    )
    return flags.DEFINE_string("cluster", None, text, module_name=sys.argv[0])


def define_tracking() -> None:
    """Define --mlflow, for programs whose runs are tracked."""
    text = (
        "Track the run with MLflow as well as TensorBoard, in mlflow/mlflow.db below the data root. Not needed where "
        "MLFLOW_TRACKING_URI is set."
    )
    flags.DEFINE_bool("mlflow", False, text, module_name=sys.argv[0])


def tracking(name: str, program: Program, settings: Settings, **facts: object) -> Tracking:
    """Return the tracking of a run as --mlflow and MLFLOW_TRACKING_URI say; `facts` are additional parameters.

    Figures go below the data root, where the folder of a model that comes with Seraphim is not.
    """
    folder = ModelFolder(data_root(), name, FLAGS.trust)
    server = os.environ.get("MLFLOW_TRACKING_URI") or (local_store(data_root()) if FLAGS.mlflow else None)
    return Tracking(folder, program, settings, facts, server, lambda warning: print(warning, file=sys.stderr))


def define_trust() -> None:
    """Define --trust, for programs that load models."""
    text = (
        "Load models from outside models/ too, and let TensorFlow run a SavedModel without a Keras archive: "
        "it can do anything that its maker put into it (docs/security.md)."
    )
    flags.DEFINE_bool("trust", False, text, module_name=sys.argv[0])


def define_model() -> None:
    """Define --snapshot, --runtime and --trust, for programs that use `load_model`."""
    text = "A snapshot of models/NAME, or a path to one. Default: the champion."
    flags.DEFINE_string("snapshot", None, text, module_name=sys.argv[0])
    define_choice("runtime", Runtime, "auto", "What runs the network.")
    define_trust()


def load_model(arguments: Sequence[str], parts: Collection[Part] = ()) -> "Model":
    """Return the model of `model_to_read` by --snapshot, --runtime and the flags of options; see `with_flags`.

    Its network is loaded when it is first asked for.
    """
    from seraphim.players.model import open_model

    folder = model_to_read(arguments)
    settings = with_flags(folder.settings(), parts)
    return open_model(folder, folder.choose(FLAGS.snapshot), settings, FLAGS.runtime)


def model_to_read(arguments: Sequence[str]) -> ModelFolder:
    """Return the folder of the model named by `model_name`, or of the one that comes with Seraphim.

    Raises:
        SettingsError: the name is not valid.
    """
    return find_model(data_root(), model_name(arguments), FLAGS.trust)


def model_to_write(arguments: Sequence[str], new: bool = False) -> ModelFolder:
    """Return the folder of the model named by `model_name`, which may be a `new` one.

    Raises:
        SettingsError: the name is not valid.
        ModelError: it is a model that comes with Seraphim.
    """
    find = ModelFolder if new else own_model
    return find(data_root(), model_name(arguments), FLAGS.trust)


def is_own(folder: ModelFolder) -> bool:
    """Return whether a model is below the data root, and may be written."""
    return folder.path.parents[1] == data_root()


def define_preset() -> flags.FlagHolder[str]:
    """Define --preset, for programs that make new models."""
    text = (
        "Settings that a new model starts from, such as deepfour for connectfour. They replace the game's own "
        "settings; flags override them."
    )
    return flags.DEFINE_string("preset", "", text, module_name=sys.argv[0])


def check_preset(settings: Settings, preset: str) -> Settings:
    """Return the settings of a model; raise a SettingsError if it did not start from the preset that is asked for."""
    if preset and preset != settings.preset:
        made = f"started from the preset {settings.preset!r}" if settings.preset else "started from no preset"
        raise SettingsError(f"this model {made}: leave --preset={preset} out, or make another model")
    return settings


def with_flags(settings: Settings, parts: Collection[Part]) -> Settings:
    """Return the settings of a model, overridden by the option flags.

    Args:
        settings: of the model.
        parts: what the program is about to do.

    Raises:
        SettingsError: an option is out of range, or a flag was given that changes nothing.
    """
    given = {name: FLAGS[name].value for name in OPTIONS if name in FLAGS and FLAGS[name].value is not None}
    changed = settings.override(given)
    idle = find_idle(given, changed, parts)
    if idle:
        raise SettingsError(
            "; ".join(f"--{name} changes nothing here: it needs {needs}" for name, needs in idle.items())
        )
    return changed


def refuse_flags(idle: bool, *names: str, because: str) -> None:
    """Raise a SettingsError if one of some flags was given although `idle` is true: it would change nothing."""
    given = [f"--{name}" for name in names if FLAGS[name].present]
    if idle and given:
        raise SettingsError(f"{', '.join(given)} changes nothing here: {because}")


def check_folders(*files: str | None) -> None:
    """Raise a FileError, before any work, if a file cannot be written: it is a folder, or in none."""
    for file in filter(None, files):
        check_file_name(Path(file))
        if Path(file).is_dir():
            raise FileError(f"cannot write {file}: it is a folder")
        if not Path(file).parent.is_dir():
            raise FileError(f"cannot write {file}: there is no folder {Path(file).parent}")


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
        raise SettingsError(f"which model? Try: {program} NAME, or set SERAPHIM_MODEL_NAME")
    return name


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Return the end of a message about an unknown word, which names the known one that is most like it, if any is."""
    found = difflib.get_close_matches(word, known, 1)
    return f": did you mean {prefix}{found[0]}?" if found else ""


def show_match(unfinished: int, plies: int) -> None:
    """Tell at a terminal how far a match is, until the next line of output: a `seraphim.evaluation.match.OnPly`."""
    if sys.stdout.isatty():
        text = f"{unfinished:,} unfinished, the longest after {plies} plies" if unfinished else ""
        print(f"\r{text:60}\r", end="", flush=True)


def run(main: Callable[[Sequence[str]], int | None]) -> None:
    """Parse the flags, and exit with the code that `main(arguments)` returns, or print an error in one line."""

    def guarded(arguments: Sequence[str]) -> int | None:
        logging.set_verbosity(logging.WARNING)
        raise_interrupts()
        try:
            _check_numbers()
            code = main(arguments)
            sys.stdout.flush()
            return code
        except SeraphimError as error:
            return INTERRUPTED if _is_interruption(error) else _failed(arguments, str(error))
        except BrokenPipeError:  # the reader of the output, such as `head`, has stopped reading
            return leave_closed_pipe()
        except OSError as error:  # a full disk, a read-only folder
            where = error.filename
            try:
                sys.stdout.flush()
            except OSError:  # it cannot be written when Python ends, either
                leave_closed_pipe()
                where = where or "the output"
            if not where and error.errno in _CURES:  # of the disk
                where = data_root().resolve()
            elif not where and error.errno == errno.ENOENT:
                where = "the current folder"
            place, cure = f" ({where})" if where else "", _CURES.get(error.errno or 0, "fix that")
            message = f"{error.strerror or error}{place}: {cure}, then run again; finished work is not lost"
            return _failed(arguments, message)
        except MemoryError as error:
            return _failed(arguments, f"not enough memory ({error}): ask for less")
        except KeyboardInterrupt:
            return INTERRUPTED
        except Exception as error:  # Ctrl-C inside of Numba's C code, or of an import
            if not _is_interruption(error):
                raise
            return INTERRUPTED

    prepare_streams()
    for flag in FLAGS.get_key_flags_for_module(main.__module__):  # which --help shows
        FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    for argument in sys.argv[1:]:
        option, _, value = argument.lstrip("-").removeprefix(PREFIX).partition("=")
        if argument.startswith("-") and option in REMOVED:
            sys.exit(_failed(sys.argv, f"--{removal(option, value)}"))
    if "" not in sys.path:
        sys.path.append("")  # a game in the current folder needs no installation
    app.define_help_flags()
    flags.DEFINE_alias("h", "help")
    with unwritten_refused():
        try:
            app.run(guarded, flags_parser=_parse)
        except SystemExit as end:
            if end.code == INTERRUPTED:
                leave_interrupted()
            sys.stdout.flush()
            raise


@contextlib.contextmanager
def unwritten_refused() -> Iterator[None]:
    """End the program if what is printed during the block, such as --help, cannot be written."""
    try:
        yield
    except OSError as error:
        code = leave_closed_pipe()
        sys.exit(code if isinstance(error, BrokenPipeError) else f"cannot write: {error.strerror}")


def _parse(arguments: list[str]) -> list[str]:
    # absl's own refusals have two lines, and its --help ends as an error does.
    try:
        return FLAGS(arguments)
    except SystemExit:
        sys.exit(0)
    except flags.UnrecognizedFlagError as error:
        message = f"unknown flag --{error.flagname}{did_you_mean(error.flagname, FLAGS, '--')}"
    except flags.Error as error:
        message = _NOT_A_NUMBER.sub(r"\1 is not a number", " ".join(str(error).removeprefix("flag ").split()))
    sys.exit(_failed(arguments, message))


def _check_numbers() -> None:
    # Options, and some flags, have ranges of their own.
    for name in set(FLAGS) - OPTIONS.keys():
        value, most = FLAGS[name].value, MOST_SEED if name == "seed" else MOST
        if isinstance(value, int | float) and not value <= most:  # a NaN, too
            raise SettingsError(f"--{name} must be a number of at most {most:,}, not {shown(value)}")


def _is_interruption(error: BaseException | None) -> bool:
    # Whether Ctrl-C caused an error.
    return isinstance(error, KeyboardInterrupt) or (
        error is not None and _is_interruption(error.__cause__ or error.__context__)
    )


def _failed(arguments: Sequence[str], message: str) -> int:
    print(f"{arguments[0]}: {message}", file=sys.stderr)
    return 1
