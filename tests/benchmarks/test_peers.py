"""What `bin/benchmark.py --peers` compares is the same search on both sides, whatever the game's own settings are."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks import mctx_peer, openspiel_peer, peers
from seraphim.diagnostics.benchmark import Figures
from seraphim.game import Game, load_game
from seraphim.options import NetworkOptions, SearchOptions, SelfPlayOptions
from seraphim.search.evaluator import Uniform
from seraphim.selfplay.games import SelfPlay
from seraphim.settings import Settings


class Ours(NamedTuple):
    """How Seraphim was measured."""

    settings: Settings
    with_network: bool


class Bots(NamedTuple):
    """How OpenSpiel was measured."""

    readouts: int
    cpuct: float


class Theirs(NamedTuple):
    """How mctx was measured."""

    policy: str
    readouts: int
    network: NetworkOptions


class Comparison(NamedTuple):
    """What a run of `peers` measured, in turns, and what it reports."""

    measured: list[Any]
    figures: Figures


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """A run of `peers` with a rate of 1 instead of each measurement of some seconds."""
    found: list[Any] = []

    def rate(what: Any) -> float:
        found.append(what)
        return 1.0

    class Mctx:
        def __init__(self, game: str, policy: str, readouts: int, network: NetworkOptions) -> None:
            self._theirs = Theirs(policy, readouts, network)

        def measure(self, seconds: float) -> float:
            return rate(self._theirs)

    class Bot:
        def __init__(self, game: str, readouts: int, cpuct: float) -> None:
            self._bot = Bots(readouts, cpuct)

        def measure(self, seconds: float) -> float:
            return rate(self._bot)

    def measure_workers(settings: Settings, snapshot: Path, *_: object) -> dict[str, float]:
        return {"readouts/s": rate(Ours(settings, with_network=True))}

    def measure_uniform(game: Game, settings: Settings, *_: object) -> float:
        return rate(Ours(settings, with_network=False))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mctx_peer, "SelfPlay", Mctx)
        patch.setattr(openspiel_peer, "Bot", Bot)
        patch.setattr(peers, "measure_workers", measure_workers)
        patch.setattr(peers, "measure_uniform", measure_uniform)
        patch.setattr(peers, "PACKAGES", {})
        return Comparison(found, peers.peers(seconds=0, rounds=1))


def settings_beside(measured: list[Any], policy: str) -> list[Settings]:
    """The settings of Seraphim in the turns of one of mctx's policies."""
    turns = [one for one in measured if isinstance(one, Theirs) or (isinstance(one, Ours) and one.with_network)]
    policies = [one.policy for one in turns if isinstance(one, Theirs)]
    per_turn = len(turns) // len(policies)
    groups = [turns[start : start + per_turn] for start in range(0, len(turns), per_turn)]
    return [one.settings for group in groups if group[0].policy == policy for one in group[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "root", "readouts"), [("muzero_policy", "puct", 200), ("gumbel_muzero_policy", "gumbel", 32)]
)
def test_mctx_is_measured_beside_the_same_search(comparison: Comparison, policy: str, root: str, readouts: int) -> None:
    (theirs,) = [one for one in comparison.measured if isinstance(one, Theirs) and one.policy == policy]
    assert theirs.readouts == readouts
    ours = settings_beside(comparison.measured, policy)
    assert [settings.search.cache_megabytes for settings in ours] == [SearchOptions().cache_megabytes, 0]
    for settings in ours:
        assert (settings.search.root, settings.search.readouts) == (root, readouts)
        assert not settings.search.solver
        assert settings.network == theirs.network


@pytest.mark.slow
def test_nothing_but_search_and_network_differs_from_the_defaults(comparison: Comparison) -> None:
    all_settings = [one.settings for one in comparison.measured if isinstance(one, Ours)]
    assert len(all_settings) == 6
    self_play = SelfPlayOptions(concurrent_games=mctx_peer.GAMES, random_plies=0)
    expected = Settings(peers.GAME, self_play_overrides={}, self_play=self_play)
    for settings in all_settings:
        assert replace(settings, search=SearchOptions(), network=NetworkOptions()) == expected
        assert settings.self_play.random_plies == 0


@pytest.mark.slow
def test_openspiel_is_measured_beside_the_same_search_with_and_without_playouts(comparison: Comparison) -> None:
    bot, *ours = comparison.measured[:3]
    assert isinstance(bot, Bots)
    assert [one.settings.search.leaf for one in ours] == ["playout", "value"]
    for one in ours:
        search = one.settings.search
        assert (search.readouts, search.cpuct) == bot
        assert (search.root, search.solver, search.cache_megabytes) == ("puct", False, 0)
    title = "one thread, PUCT with 200: Seraphim"
    assert comparison.figures[f"{title} with playouts / OpenSpiel C++ with playouts"] == 1
    assert comparison.figures[f"{title} without playouts / OpenSpiel C++ with playouts"] == 1


@pytest.mark.slow
def test_rows_name_search_and_precision(comparison: Comparison) -> None:
    names = [name for name in comparison.figures if "mctx" in name and " / " in name]
    assert len(names) == 4
    for name in names:
        assert name.startswith(("all cores, PUCT with 200: ", "all cores, Gumbel with 32: "))
        assert name.count("float") == 2  # what each side computes in
        assert name.endswith("(float32)")


@pytest.mark.parametrize("search", [search for search, _ in peers.SEARCHES])
def test_each_move_takes_as_many_readouts_as_the_row_says_from_the_empty_board(search: SearchOptions) -> None:
    settings, game = peers.settings_of(search, cache=False), load_game(peers.GAME)
    few = replace(settings.self_play, concurrent_games=4)
    player = SelfPlay(game, Uniform(game), settings.search, few, "peers")
    games = list(player.play(iter(range(4))))
    assert player.search.counters.readouts == search.readouts * sum(len(one.actions) for one in games)
    for one in games:
        np.testing.assert_array_equal(one.states[0], game.initial(1)[0])
