"""Compares Seraphim with its peers, in turns within one run: OpenSpiel's C++ search, and mctx with the rules of pgx.

Defines what is compared and in which order; each peer has its own module, which imports it when it is measured. The
options of all searches are set here, independent of a game's settings.
"""

import math
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks import mctx_peer, openspiel_peer
from seraphim.diagnostics.benchmark import Figures, measure_uniform, measure_workers, precision_of
from seraphim.errors import NotInstalledError
from seraphim.game import load_game
from seraphim.inference import Precision, Runtime, load_inference
from seraphim.options import NetworkOptions, SearchOptions, SelfPlayOptions
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training.trainer import bootstrap

GAME = "connectfour"
PACKAGES = {"pyspiel": "open_spiel", "jax": "jax", "mctx": "mctx", "pgx": "pgx"}  # module: package
NETWORK = NetworkOptions(kind="resnet", filters=64, blocks=5, activation="relu")
# The constants are mctx's defaults, whose c grows by 1 % in 200 readouts; ours is constant. As in mctx, all moves are
# drawn in proportion to visits.
PUCT = SearchOptions(
    readouts=200,
    cpuct=1.25,
    dirichlet_alpha=0.3,
    noise_coefficient=0.25,
    tempering_point=42,
    solver=False,
)
GUMBEL = SearchOptions(readouts=32, root="gumbel", gumbel_actions=16, solver=False)
# Seraphim's search, and mctx's counterpart.
SEARCHES = ((PUCT, "muzero_policy"), (GUMBEL, "gumbel_muzero_policy"))

_SIZE = f"{NETWORK.filters} filters and {NETWORK.blocks} blocks"
NOTES = f"""\
All comparisons are {GAME} self-play from the empty board, in turns; each ratio is the median over rounds. On each line
both sides use the same search and the same number of readouts per move. Seraphim's proven results and random openings
are off.
- One thread without a network, PUCT. OpenSpiel's C++ MCTSBot values a leaf by one random playout with the bare rules,
  and begins each move with an empty tree. Seraphim with playouts continues by its own search to the end of the game and
  keeps every position on the way in the tree; without playouts it values a leaf with 0, which is less work. It searches
  64 games at a time and keeps the tree between moves; its cache is off, since there are no evaluations to cache. It has
  noise at the root and draws its moves by visits, so that its games differ.
- All cores with a residual network of {_SIZE} with random weights, in the precision in parentheses.
  mctx plays {mctx_peer.GAMES} games at a time in one process; Seraphim as many in each process, one per core. It keeps
  tree and evaluations between moves, without its cache only the tree; mctx keeps neither. A readout that reaches the
  end of the game costs mctx an evaluation, but not Seraphim. mctx's muzero_policy rescales values between the minimum
  and the maximum of a node. Nothing is written to disk; Seraphim encodes its records."""


class Turns(NamedTuple):
    """How measurements are made."""

    seconds: float  # of each
    rounds: int
    report: Callable[[Figures], None]

    def measure(self, setting: str, measures: Mapping[str, Callable[[], float]]) -> Figures:
        """Call each measure once in every round, in order; return the medians and the ratios."""
        rates: dict[str, list[float]] = {name: [] for name in measures}
        for number in range(1, 1 + self.rounds):
            for name, measure in measures.items():
                rates[name].append(measure())
                self.report({f"round {number}, {setting}: {name}: readouts/s": rates[name][-1]})
        figures = _ratios(setting, rates)
        self.report(figures)
        return figures


def peers(
    runtime: Runtime = "auto",
    num_workers: int = 0,
    seconds: float = 6.0,
    rounds: int = 2,
    report: Callable[[Figures], None] = lambda _: None,
) -> Figures:
    """Measure Seraphim and its peers in turns; `NOTES` says what is compared, and what differs.

    Args:
        runtime: what runs Seraphim's network.
        num_workers: Seraphim's processes in comparisons on all cores; 0 is one for each core.
        seconds: duration of each measurement.
        rounds: number of rounds; the median counts.
        report: receives each rate when it is measured, and then the medians and ratios of a comparison.

    Returns:
        Readouts/s of each, and Seraphim's ratios to its peers.

    Raises:
        NotInstalledError: a peer is not installed.
    """
    missing = [package for module, package in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise NotInstalledError(
            f"the peers need {', '.join(missing)}, which cannot be found: "
            "install the extra with pip install -e '.[bench]'"
        )
    turns = Turns(seconds, rounds, report)
    figures = _without_network(turns)
    with tempfile.TemporaryDirectory() as folder:
        game, settings = load_game(GAME), settings_of(PUCT, cache=True)
        snapshot = bootstrap(ModelFolder(Path(folder), "benchmark"), game, settings, seed=0).path
        precision = precision_of(load_inference(snapshot, game, runtime))

        def ours(search: SearchOptions, cache: bool) -> float:
            settings = settings_of(search, cache)
            return measure_workers(settings, snapshot, runtime, num_workers, seconds)["readouts/s"]

        for search, policy in SEARCHES:
            figures |= _with_network(search, policy, precision, ours, turns)
    return figures


def settings_of(search: SearchOptions, cache: bool) -> Settings:
    """Return settings of self-play from the empty board that differ from the defaults only in search and network."""
    search = search if cache else replace(search, cache_megabytes=0)
    self_play = SelfPlayOptions(mctx_peer.GAMES, random_plies=0)
    return Settings(GAME, network=NETWORK, search=search, self_play_overrides={}, self_play=self_play)


def _without_network(turns: Turns) -> Figures:
    game = load_game(GAME)
    bot = openspiel_peer.Bot("connect_four", PUCT.readouts, PUCT.cpuct)
    playouts, zeros = (settings_of(replace(PUCT, leaf=leaf), cache=False) for leaf in ("playout", "value"))
    return turns.measure(
        f"one thread, {_title(PUCT)}",
        {
            "OpenSpiel C++ with playouts": lambda: bot.measure(turns.seconds),
            "Seraphim with playouts": lambda: measure_uniform(game, playouts, 64, turns.seconds),
            "Seraphim without playouts": lambda: measure_uniform(game, zeros, 64, turns.seconds),
        },
    )


def _with_network(
    search: SearchOptions,
    policy: str,
    precision: Precision,
    ours: Callable[[SearchOptions, bool], float],
    turns: Turns,
) -> Figures:
    theirs = mctx_peer.SelfPlay("connect_four", policy, search.readouts, NETWORK)
    return turns.measure(
        f"all cores, {_title(search)}",
        {
            f"mctx {policy} ({mctx_peer.PRECISION})": lambda: theirs.measure(turns.seconds),
            f"Seraphim ({precision})": lambda: ours(search, True),
            f"Seraphim ({precision}), no cache": lambda: ours(search, False),
        },
    )


def _title(search: SearchOptions) -> str:
    return f"{'PUCT' if search.root == 'puct' else 'Gumbel'} with {search.readouts}"


def _ratios(setting: str, rates: Mapping[str, list[float]]) -> Figures:
    # The median rate of each, and the median ratio of each of ours to each of theirs.
    ours = [name for name in rates if name.startswith("Seraphim")]
    theirs = [name for name in rates if name not in ours]
    figures = {f"{setting}: {name}: readouts/s": statistics.median(rates[name]) for name in rates}
    for name in ours:
        for peer in theirs:
            ratios = [mine / other if other else math.inf for mine, other in zip(rates[name], rates[peer], strict=True)]
            figures[f"{setting}: {name} / {peer}"] = statistics.median(ratios)
    return figures
