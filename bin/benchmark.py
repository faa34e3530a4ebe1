"""Measures the search and self-play on this machine: readouts/s, games/h, and where the time goes.

    seraphim benchmark [GAME ...]

uses the settings of each GAME (by default all games that come with Seraphim) and a network with random weights.

    seraphim benchmark --gpu

measures a GPU instead: network, self-play and training in connect four, and mctx beside them. That and --peers need a
clone of Seraphim with its packages for developers: pip install -e '.[bench]'.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from absl import flags

from seraphim import cli

GAMES = ("tictactoe", "connectfour")

SECONDS = flags.DEFINE_float("seconds", 6.0, "Duration of each measurement.", lower_bound=0.1)
RUNTIME, WORKERS = cli.define_workers()
PEERS = flags.DEFINE_bool("peers", False, "Also run OpenSpiel and mctx on connect four.")
GPU = flags.DEFINE_bool("gpu", False, "Measure what a GPU does, instead of the games.")
JSON = flags.DEFINE_string("json", None, "Also write every figure to this file.")


def main(arguments: Sequence[str]) -> None:
    """Measure."""
    from seraphim.diagnostics.benchmark import Figures, benchmark
    from seraphim.errors import CLONE, SettingsError
    from seraphim.game import load_game_module

    if CLONE is None and (GPU.value or PEERS.value):
        raise SettingsError("--gpu and --peers need a clone of Seraphim: its folder benchmarks/ is not installed")
    sys.path.append(str(CLONE))  # benchmarks/ is not installed
    measured: dict[str, Figures] = {}
    if GPU.value:
        check_alone(arguments)
        from benchmarks.gpu import gpu_runtime, measure

        runtime = gpu_runtime() if RUNTIME.value == "auto" else RUNTIME.value
        measured["gpu"] = measure(runtime, WORKERS.value, SECONDS.value)
        show(measured["gpu"])
        write(measured)
        return
    packages = {game: load_game_module(game).__name__.partition(".")[0] for game in arguments[1:] or GAMES}
    for game, package in packages.items():
        print(f"{game}:")
        plain = f"{package}.plain" if find_spec(f"{package}.plain") else None
        measured[game] = benchmark(game, plain, RUNTIME.value, WORKERS.value, SECONDS.value)
        show(measured[game])
    if PEERS.value:
        from benchmarks.peers import NOTES, peers

        print(NOTES)
        measured["peers"] = peers(RUNTIME.value, WORKERS.value, SECONDS.value)
        show(measured["peers"])
    write(measured)


def check_alone(arguments: Sequence[str]) -> None:
    """Raise a SettingsError if --gpu is not alone."""
    from seraphim.errors import SettingsError

    if len(arguments) > 1 or PEERS.value:
        raise SettingsError("--gpu measures connect four, and mctx beside it: leave GAME and --peers out")


def write(measured: Mapping[str, Mapping[str, float]]) -> None:
    """Write the figures to the file that --json names."""
    if JSON.value:
        Path(JSON.value).write_text(json.dumps(measured, indent=2, ensure_ascii=False) + "\n")


def show(figures: Mapping[str, float]) -> None:
    """Print one figure per line."""
    for name, value in figures.items():
        digits = 0 if value >= 100 or float(value).is_integer() else 3
        print(f"{name:88} {value:14,.{digits}f}", flush=True)


if __name__ == "__main__":
    cli.run(main)
