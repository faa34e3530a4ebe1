"""Checks the installation, this machine, and every model and its game data; says what is wrong and how to fix it.

    seraphim doctor                 # all models
    seraphim doctor NAME --quick    # one model; no speed is measured, and files are not read completely
    seraphim doctor --require_gpu   # it is a problem if no GPU is used

Its last line is "no problem found", or the number of problems; in that case the exit code is 1.
"""

from collections.abc import Sequence

from absl import flags

from seraphim import cli

QUICK = flags.DEFINE_bool("quick", False, "Measure no speed, and compare the lengths of files but not their checksums.")
REQUIRE_GPU = flags.DEFINE_bool("require_gpu", False, "It is a problem if no GPU is used.")
cli.define_trust()

_SEARCH = "one connect four position, 800 readouts"


def main(arguments: Sequence[str]) -> int:
    """Check."""
    from rich.console import Console

    from seraphim.diagnostics import doctor
    from seraphim.errors import SeraphimError, SettingsError
    from seraphim.storage.shipped import find_model

    if len(arguments) > 2:
        raise SettingsError(f"expected one model NAME or none, not {len(arguments) - 1} arguments")
    console = Console(highlight=False)
    problems = doctor.check_installation(console, REQUIRE_GPU.value)
    if not QUICK.value:
        speed = {
            f"{title}, uniform priors, one process, 64 games": f"{doctor.self_play_rate(game):,.0f} readouts/s"
            for title, game in (("tic-tac-toe", "tictactoe"), ("connect four", "connectfour"))
        }
        shipped = find_model(cli.data_root(), "connectfour", cli.FLAGS.trust)
        try:
            speed[_SEARCH] = f"{doctor.search_milliseconds(shipped):,.0f} ms"
        except SeraphimError as error:
            speed[_SEARCH] = f"not measured: {error}"
        doctor.print_facts(console, "speed", speed)
    problems += doctor.check_folders(console, cli.data_root(), arguments[1:], not QUICK.value, cli.FLAGS.trust)
    return doctor.conclude(console, problems)


if __name__ == "__main__":
    cli.run(main)
