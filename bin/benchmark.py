"""Measures self-play on this machine: readouts/s, games/h, and where the time goes.

    python bin/benchmark.py [GAME]

uses the game's own settings (default tictactoe) and a network of random weights.
"""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from absl import flags

from seraphim import programs
from seraphim.errors import SettingsError

SECONDS = flags.DEFINE_float("seconds", 6.0, "How long each figure is measured.", lower_bound=0.1)
RUNTIME, WORKERS = programs.define_workers()
PEERS = flags.DEFINE_bool("peers", False, "Also run OpenSpiel and mctx on connect four (pip install -e '.[bench]').")
JSON = flags.DEFINE_string("json", None, "Also write every figure to this file.")


def main(arguments: Sequence[str]) -> None:
    """Measure."""
    from seraphim.benchmark import benchmark
    from seraphim.game import load_game_module

    if len(arguments) > 2:
        raise SettingsError(f"expected one GAME, not {len(arguments) - 1} arguments")
    game = arguments[1] if len(arguments) == 2 else "tictactoe"
    package = load_game_module(game).__name__.partition(".")[0]
    plain = f"{package}.plain" if find_spec(f"{package}.plain") else None
    figures = benchmark(game, plain, RUNTIME.value, WORKERS.value, SECONDS.value)
    if PEERS.value:
        from benchmarks.peers import NOTES, peers

        print(NOTES)
        figures |= peers(RUNTIME.value, WORKERS.value, SECONDS.value)
    for name, value in figures.items():
        print(f"{name:60} {value:14,.3f}" if value < 100 else f"{name:60} {value:14,.0f}")
    if JSON.value:
        Path(JSON.value).write_text(json.dumps({game: figures}, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    programs.run(main)
