"""Peers beside Seraphim, in turns and in the same run: OpenSpiel's C++ search, and mctx with the rules of pgx.

Knows what is compared and in which order; each peer has a module of its own, which imports it when it is measured.
"""

import math
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks import mctx_peer, openspiel_peer
from seraphim.benchmark import Figures, measure_uniform, measure_workers
from seraphim.errors import SettingsError
from seraphim.game import load_game
from seraphim.inference import Runtime
from seraphim.networks import NetworkOptions
from seraphim.retraining import bootstrap
from seraphim.settings import Settings, default_settings
from seraphim.store import ModelFolder

GAME = "connectfour"
PACKAGES = {"pyspiel": "open_spiel", "jax": "jax", "mctx": "mctx", "pgx": "pgx"}  # module: package
FEW_READOUTS = 32  # a move of a Gumbel search, which is meant for few

NOTES = f"""\
What is compared, all in {GAME} self-play, in turns; each ratio is the median of those of the rounds:
- One thread without a network: OpenSpiel's C++ MCTSBot (PUCT) values a leaf by one random playout, which it plays with
  the bare rules, and begins each move with an empty tree. Seraphim values it with 0 and believes all moves equal, or,
  with playouts, reads on by its own search to the end of the game and keeps every position on the way in the tree:
  more than a playout is, and slower. It searches 64 games at a time and keeps the tree from move to move; its cache is
  off, because there is no evaluation to be saved.
- All cores with a residual network of 64 filters and 5 blocks with random weights: mctx computes it in float32 and
  {mctx_peer.GAMES} games at a time as one program; Seraphim in bfloat16 where the processor has it, in one process a
  core. mctx keeps neither tree nor evaluations from move to move; Seraphim keeps both, and without its cache only the
  tree. A readout of mctx that meets the end of the game costs an evaluation as well, one of Seraphim does not. mctx's
  Gumbel search has {FEW_READOUTS} readouts a move, the others all have the same number. Nothing is written to disk;
  Seraphim encodes its records."""


def peers(runtime: Runtime = "auto", num_workers: int = 0, seconds: float = 6.0, rounds: int = 3) -> Figures:
    """Measure Seraphim and its peers in turns; `NOTES` says what is compared, and what differs.

    Args:
        runtime: what runs Seraphim's network.
        num_workers: Seraphim's processes, where all cores are compared; 0 is one for each.
        seconds: how long each is measured in each round.
        rounds: how often; the medians count.

    Returns:
        Readouts/s of each, and how many times as many Seraphim makes.

    Raises:
        SettingsError: a peer is not installed.
    """
    missing = [package for module, package in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise SettingsError(
            f"the peers need {', '.join(missing)}, which cannot be found: "
            "install the extra with pip install -e '.[bench]'"
        )
    settings = default_settings(GAME)
    settings = replace(settings, network=NetworkOptions(kind="resnet", filters=64, blocks=5))
    return {
        **_without_network(settings, seconds, rounds),
        **_with_network(settings, runtime, num_workers, seconds, rounds),
    }


def _without_network(settings: Settings, seconds: float, rounds: int) -> Figures:
    game, readouts = load_game(GAME), settings.search.readouts
    settings = replace(settings, search=replace(settings.search, cache_megabytes=0))
    playouts = replace(settings, search=replace(settings.search, leaf="playout"))
    bot = openspiel_peer.Bot("connect_four", readouts, settings.search.cpuct)
    rates = in_turns(
        {
            "OpenSpiel, C++, random playouts": lambda: bot.measure(seconds),
            "Seraphim, uniform priors": lambda: measure_uniform(game, settings, 64, seconds),
            "Seraphim, uniform priors, playouts": lambda: measure_uniform(game, playouts, 64, seconds),
        },
        rounds,
    )
    return _ratios("one thread", rates)


def _with_network(settings: Settings, runtime: Runtime, num_workers: int, seconds: float, rounds: int) -> Figures:
    uncached = replace(settings, search=replace(settings.search, cache_megabytes=0))
    readouts = settings.search.readouts
    muzero, gumbel = (
        mctx_peer.SelfPlay("connect_four", policy, number, settings.network)
        for policy, number in (("muzero_policy", readouts), ("gumbel_muzero_policy", FEW_READOUTS))
    )
    with tempfile.TemporaryDirectory() as folder:
        snapshot = bootstrap(ModelFolder(Path(folder), "benchmark"), load_game(GAME), settings, seed=0).path

        def ours(options: Settings) -> float:
            return measure_workers(options, snapshot, runtime, num_workers, seconds)["readouts/s"]

        rates = in_turns(
            {
                "mctx, muzero_policy": lambda: muzero.measure(seconds),
                f"mctx, gumbel_muzero_policy, {FEW_READOUTS} readouts": lambda: gumbel.measure(seconds),
                "Seraphim": lambda: ours(settings),
                "Seraphim, no cache": lambda: ours(uncached),
            },
            rounds,
        )
    return _ratios("all cores", rates)


def in_turns(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Call every measure once in each round, in their order; return what each gave."""
    rates: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            rates[name].append(measure())
    return rates


def _ratios(setting: str, rates: Mapping[str, list[float]]) -> Figures:
    # The median rate of each, and of each of ours the median ratio to each of theirs.
    ours = [name for name in rates if name.startswith("Seraphim")]
    theirs = [name for name in rates if name not in ours]
    figures = {f"{setting}: {name}: readouts/s": statistics.median(rates[name]) for name in rates}
    for name in ours:
        for peer in theirs:
            ratios = [mine / other if other else math.inf for mine, other in zip(rates[name], rates[peer], strict=True)]
            figures[f"{setting}: {name} / {peer}"] = statistics.median(ratios)
    return figures
