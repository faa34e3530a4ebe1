"""The evaluation cache: what it knows is exact, and it never outlives its model."""

import numpy as np
import pytest
from reference import ArbitraryNetwork, random_states

from seraphim.search.cache import MISS, EvaluationCache
from seraphim.search.options import SearchOptions
from seraphim.search.search import Search
from tictactoe.game import TicTacToe

pytestmark = pytest.mark.kernels

GAME = TicTacToe()


def entries(count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    legal = rng.random((count, 5)) < 0.7
    logits, values = rng.normal(size=(count, 5)).astype(np.float32), rng.normal(size=count).astype(np.float32)
    return rng.integers(-(2**62), 2**62, (count, 3)), legal, logits, values


def test_what_was_stored_is_found_and_nothing_else() -> None:
    cache = EvaluationCache(1 << 12, 5, 3)
    states, legal, logits, values = entries(300)
    assert (cache.find(states) == MISS).all()
    cache.store(states, legal, logits, values)
    slots = cache.find(states)
    assert (slots != MISS).all()
    found_legal, found_logits, found_values = cache.read(slots)
    assert found_legal.tolist() == legal.tolist()
    assert found_logits[legal].tolist() == logits[legal].tolist()
    assert found_values.tolist() == values.tolist()
    for word in range(3):
        others = states.copy()
        others[:, word] ^= 1
        assert (cache.find(others) == MISS).all()
    assert (cache.hits, cache.misses) == (300, 300 * 4)


def test_a_full_table_keeps_the_newest() -> None:
    cache = EvaluationCache(64, 5, 3)
    states, *rest = entries(1000)
    for row in range(1000):
        cache.store(*(column[row : row + 1] for column in (states, *rest)))
        assert cache.find(states[row : row + 1])[0] != MISS
    assert (cache.find(states[-20:]) != MISS).mean() > 0.7
    assert (cache.find(states[:800]) == MISS).all()


def test_an_entry_stored_again_is_replaced_not_doubled() -> None:
    cache = EvaluationCache(4, 5, 3)
    states, legal, logits, values = entries(1)
    for _ in range(10):
        cache.store(states, legal, logits, values)
    others = entries(3, seed=1)
    cache.store(*others)
    assert (cache.find(np.concatenate([states, others[0]])) != MISS).all()


@pytest.mark.parametrize("leaf", ["value", "playout"])
def test_a_search_with_a_cache_equals_one_without(leaf: str) -> None:
    states = random_states(GAME, 40, 1)
    found, asked = [], []
    for megabytes in (0, 1):
        network = ArbitraryNetwork(GAME)
        options = SearchOptions(readouts=80, leaf=leaf, cache_megabytes=megabytes)  # type: ignore[arg-type]
        search = Search(GAME, network, options, 40)
        search.begin(np.arange(40), states)
        search.run()
        found.append(search.result(np.arange(40)))
        assert network.positions == search.evaluations
        asked.append(search.evaluations + search.cache_hits)
    assert found[0].visits.tolist() == found[1].visits.tolist()
    assert found[0].values.tolist() == found[1].values.tolist()
    assert asked[0] == asked[1]
    assert search.cache_hits > 0


def test_another_model_starts_with_an_empty_cache() -> None:
    options = SearchOptions(readouts=50, cache_megabytes=1)
    visits = {}
    for order in ((1, 2), (2, 1)):
        for seed in order:
            search = Search(GAME, ArbitraryNetwork(GAME, seed), options, 1)
            search.begin(np.array([0]), GAME.initial(1))
            search.run()
            visits.setdefault(seed, []).append(search.result(np.array([0])).visits.tolist())
    assert visits[1][0] == visits[1][1] != visits[2][0] == visits[2][1]
