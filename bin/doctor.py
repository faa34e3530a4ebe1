"""Examines the installation, this machine, and every model and its game data; tells what is wrong and how to cure it.

    python bin/doctor.py                 # all models
    python bin/doctor.py NAME --quick    # one; nothing is measured, and files are not read whole
    python bin/doctor.py --require-gpu   # it is a problem if no GPU is used

Its last line is "no problem found", or how many there are; then the exit code is not 0.
"""

from collections.abc import Sequence
from pathlib import Path

from absl import flags

from seraphim import cli

QUICK = flags.DEFINE_bool("quick", False, "Measure no speed, and compare lengths of files only, not checksums.")
REQUIRE_GPU = flags.DEFINE_bool("require-gpu", False, "It is a problem if no GPU is used.")

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str]) -> int:
    """Examine."""
    from rich.console import Console

    from seraphim.diagnostics import doctor
    from seraphim.errors import SettingsError
    from seraphim.storage.models import ModelFolder

    if len(arguments) > 2:
        raise SettingsError(f"expected one model NAME or none, not {len(arguments) - 1} arguments")
    console = Console(highlight=False)
    problems = doctor.check_installation(console, REQUIRE_GPU.value)
    if not QUICK.value:
        figures = [
            doctor.rules_and_search("tic-tac-toe, uniform priors, one process, 64 games", "tictactoe"),
            doctor.rules_and_search("connect four, uniform priors, one process, 64 games", "connectfour"),
        ]
        shipped = ModelFolder(ROOT, "connectfour")
        if not shipped.is_new():
            figures.append(doctor.one_search("one connect four position, 800 readouts", shipped))
        doctor.print_speed(console, figures)
    problems += doctor.check_folders(console, cli.data_root(), arguments[1:], thorough=not QUICK.value)
    return doctor.conclude(console, problems)


if __name__ == "__main__":
    cli.run(main)
