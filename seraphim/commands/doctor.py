"""Checks the installation, this machine, and every model and its game data; says what is wrong and how to fix it.

    seraphim doctor                 # all models
    seraphim doctor NAME --quick    # one model; no speed is measured, and files are not read completely
    seraphim doctor --require_gpu   # it is a problem if no GPU is used

Its last line is "no problem found", or the number of problems; in that case the exit code is 1. Where packages are
missing or cannot be imported, it says which, by the standard library alone.
"""

import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from seraphim.errors import CLONE, how_to_install, read_setup


def tell_what_is_broken(error: Exception) -> int:
    """Print which packages are missing here, and why one cannot be imported; return the exit code."""
    needed = read_setup().get("options", "install_requires", fallback="").split()
    names = [line.partition(">")[0] for line in needed]
    print(f"Python {platform.python_version()} at {sys.executable}")
    for name in names:
        try:
            print(f"{name} {version(name)}")
        except PackageNotFoundError:
            print(f"{name} is missing")
    cure = "source .venv/bin/activate, or run make setup first" if CLONE else how_to_install()
    if CLONE and sys.prefix != sys.base_prefix:  # an environment is active
        cure = "pip install -e . in the clone, or rm -r .venv and make setup"
    print(f"{error}: {cure}\n1 problem found")
    return 1


try:
    from absl import flags

    from seraphim import cli
except (ImportError, OSError) as error:
    raise SystemExit(tell_what_is_broken(error)) from None

QUICK = flags.DEFINE_bool("quick", False, "Measure no speed, and compare the lengths of files but not their checksums.")
REQUIRE_GPU = flags.DEFINE_bool("require_gpu", False, "It is a problem if no GPU is used.")
cli.define_trust()

_SEARCH = "one connect four position, 800 readouts"


def main(arguments: Sequence[str]) -> int:
    """Check."""
    try:
        from rich.console import Console

        from seraphim.diagnostics import doctor
    except (ImportError, OSError) as error:
        raise SystemExit(tell_what_is_broken(error)) from None
    from seraphim.errors import SeraphimError, SettingsError
    from seraphim.storage.shipped import data_root, find_model

    if len(arguments) > 2:
        raise SettingsError(f"expected one model NAME or none, not {len(arguments) - 1} arguments")
    console = Console(highlight=False)
    problems = doctor.check_installation(console, REQUIRE_GPU.value)
    if not QUICK.value:
        speed = {
            f"{title}, uniform priors, one process, 64 games": f"{doctor.self_play_rate(game):,.0f} readouts/s"
            for title, game in (("tic-tac-toe", "tictactoe"), ("connect four", "connectfour"))
        }
        shipped = find_model(data_root(), "connectfour", cli.FLAGS.trust)
        try:
            speed[_SEARCH] = f"{doctor.search_milliseconds(shipped):,.0f} ms"
        except SeraphimError as error:
            speed[_SEARCH] = f"not measured: {error}"
        doctor.print_facts(console, "speed", speed)
    problems += doctor.check_folders(console, data_root(), arguments[1:], not QUICK.value, cli.FLAGS.trust)
    return doctor.conclude(console, problems)
