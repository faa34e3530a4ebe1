"""The evaluation cache: entries are exact, and belong to one model."""

import numpy as np
import pytest
from reference import ArbitraryNetwork, random_states

from seraphim.options import SearchOptions
from seraphim.search.cache import MISS, Cache, allocate_cache, find_slot, first_slot, num_slots, store_row
from seraphim.search.search import Search
from tictactoe.game import TicTacToe

pytestmark = pytest.mark.kernels

GAME = TicTacToe()


def entries(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = np.where(rng.random((count, 5)) < 0.7, rng.normal(size=(count, 5)), -np.inf)
    values = rng.normal(size=(count, 2)).astype(np.float32)
    return rng.integers(-(2**62), 2**62, (count, 3)), logits.astype(np.float32), values


def slots(cache: Cache, states: np.ndarray) -> list[int]:
    firsts = [first_slot(states, row, cache.keys) for row in range(len(states))]
    return [find_slot(cache.keys, first, states, row) for row, first in enumerate(firsts)]


def store(cache: Cache, states: np.ndarray, logits: np.ndarray, values: np.ndarray) -> None:
    for row in range(len(states)):
        store_row(*cache, first_slot(states, row, cache.keys), states, logits, values, row)


def test_what_was_stored_is_found_and_nothing_else() -> None:
    cache = allocate_cache(4096, 7, 3)
    states, logits, values = entries(300)
    assert set(slots(cache, states)) == {MISS}
    store(cache, states, logits, values)
    found = slots(cache, states)
    assert cache.outputs[found, :5].tolist() == logits.tolist()
    assert cache.outputs[found, 5:].tolist() == values.tolist()
    for word in range(3):
        others = states.copy()
        others[:, word] ^= 1
        assert set(slots(cache, others)) == {MISS}


def test_a_cache_keeps_within_its_memory() -> None:
    for megabytes, num_actions, words in ((1, 7, 2), (3, 9, 2), (16, 4674, 80)):
        cache = allocate_cache(num_slots(megabytes, num_actions, words), num_actions, words)
        assert megabytes * 2**20 / 2.1 < sum(array.nbytes for array in cache) <= megabytes * 2**20 + 8


def test_without_memory_nothing_is_kept() -> None:
    cache = allocate_cache(num_slots(0, 7, 3), 7, 3)
    states, logits, values = entries(10)
    store(cache, states, logits, values)
    assert set(slots(cache, states)) == {MISS}


def test_a_full_table_keeps_the_newest() -> None:
    cache = allocate_cache(4096, 7, 3)
    size = len(cache.keys)
    states, logits, values = entries(4 * size)
    store(cache, states, logits, values)
    assert np.mean([slot != MISS for slot in slots(cache, states[-size // 4 :])]) > 0.95
    assert np.mean([slot != MISS for slot in slots(cache, states[:size])]) < 0.1


def test_an_entry_stored_again_is_replaced_not_doubled() -> None:
    cache = allocate_cache(4, 7, 3)
    states, logits, values = entries(1)
    for _ in range(10):
        store(cache, states, logits, values)
    others = entries(3, seed=1)
    store(cache, *others)
    assert MISS not in slots(cache, np.concatenate([states, others[0]]))


@pytest.mark.parametrize("leaf", ["value", "playout"])
def test_a_search_with_a_cache_equals_one_without(leaf: str) -> None:
    states = random_states(GAME, 40, 1)
    found, asked = [], []
    for megabytes in (0, 1):
        network = ArbitraryNetwork(GAME)
        options = SearchOptions(readouts=80, leaf=leaf, cache_megabytes=megabytes, solver=False)  # type: ignore[arg-type]
        search = Search(GAME, network, options, 40)
        search.begin(np.arange(40), states)
        search.run()
        found.append(search.result(np.arange(40)))
        assert network.positions == search.counters.evaluations
        asked.append(search.counters.evaluations + search.counters.cache_hits)
    assert found[0].visits.tolist() == found[1].visits.tolist()
    assert found[0].values.tolist() == found[1].values.tolist()
    assert asked[0] == asked[1]
    assert search.counters.cache_hits > 0


def test_another_model_starts_with_an_empty_cache() -> None:
    options = SearchOptions(readouts=50, cache_megabytes=1, solver=False)
    visits = {}
    for order in ((1, 2), (2, 1)):
        for seed in order:
            search = Search(GAME, ArbitraryNetwork(GAME, seed), options, 1)
            search.begin(np.array([0]), GAME.initial(1))
            search.run()
            visits.setdefault(seed, []).append(search.result(np.array([0])).visits.tolist())
    assert visits[1][0] == visits[1][1] != visits[2][0] == visits[2][1]
