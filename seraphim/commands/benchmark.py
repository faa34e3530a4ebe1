"""Measures the search and self-play on this machine: readouts/s, games/h, and where the time goes.

    seraphim benchmark [GAME ...]

uses the settings of each GAME (by default tic-tac-toe and connect four), but PUCT in self-play, and a network with
random weights. Flags change the settings: `seraphim benchmark othello --filters=64 --blocks=5`.

    seraphim benchmark --gpu

measures a GPU instead: network, self-play and training in connect four, and mctx beside them; benchmarks/gpu.sh starts
it where there is no index of packages.

    seraphim benchmark --peers

compares self-play in connect four with OpenSpiel's C++ search and with mctx, in five minutes. That and --gpu need a
clone of Seraphim with its packages for developers: pip install -e '.[bench]'.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

from absl import flags

from seraphim import cli
from seraphim.options import Part

GAMES = ("tictactoe", "connectfour")
PARTS: list[Part] = ["creation", "self_play"]  # which read the settings
IDLE = ("l2", "optimizer", "games_per_file", "readouts_growth_steps")

SECONDS = flags.DEFINE_float("seconds", 6.0, "Duration of each measurement.", lower_bound=0.1)
RUNTIME, WORKERS = cli.define_workers()
PEERS = flags.DEFINE_bool("peers", False, "Compare with OpenSpiel and mctx, beside the GAMEs that are named.")
GPU = flags.DEFINE_bool("gpu", False, "Measure what a GPU does, instead of the games.")
cli.define_options(PARTS)
JSON = flags.DEFINE_string("json", None, "Also write every figure to this file.")


def main(arguments: Sequence[str]) -> None:
    """Measure."""
    from seraphim.diagnostics.benchmark import Figures, benchmark, show, write
    from seraphim.errors import CLONE, NotInstalledError, SettingsError
    from seraphim.game.loading import plain_form
    from seraphim.settings import OPTIONS, default_settings

    cli.refuse_flags(True, *IDLE, because="no weights are learned and no files written")
    if CLONE is None and (GPU.value or PEERS.value):
        raise NotInstalledError("--gpu and --peers need a clone of Seraphim: its folder benchmarks/ is not installed")
    sys.path.append(str(CLONE))  # benchmarks/ is not installed
    measured: dict[str, Figures] = {}
    names = arguments[1:] or (() if GPU.value or PEERS.value else GAMES)
    cli.refuse_flags(not names, *OPTIONS, because=f"--{'gpu' if GPU.value else 'peers'} has settings of its own")
    if GPU.value:
        if len(arguments) > 1 or PEERS.value:
            raise SettingsError("--gpu measures connect four, and mctx beside it: leave GAME and --peers out")
        from benchmarks.gpu import gpu_runtime, measure

        runtime = gpu_runtime() if RUNTIME.value == "auto" else RUNTIME.value
        measure(runtime, WORKERS.value, SECONDS.value, lambda figures: write({"gpu": figures}, JSON.value))
        return
    games = [cli.with_flags(replace(default_settings(game), self_play_overrides={}), PARTS) for game in names]
    for settings in games:
        game = settings.game
        print(f"{game}:")
        measured[game] = benchmark(settings, plain_form(game), RUNTIME.value, WORKERS.value, SECONDS.value)
        show(measured[game])
    if PEERS.value:
        from benchmarks.peers import NOTES, peers

        print(NOTES, flush=True)
        measured["peers"] = peers(RUNTIME.value, WORKERS.value, SECONDS.value, report=show)
    write(measured, JSON.value)
