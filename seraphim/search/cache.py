"""The evaluation cache: what the network said of a position, by the position's exact state.

A cache belongs to one `Search` and so to one model: it cannot outlive a change of model. The player to move is part of
the state, and so of the key.
"""

from typing import Any, NamedTuple

import numpy as np

from seraphim.compiled import kernel
from seraphim.game import Array

MISS = -1

_PROBES = 4  # slots in which a state may stand
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


class Cache(NamedTuple):
    """A table of evaluated positions with `C` slots, a power of two; where it is full, the oldest go."""

    states: Array  # int64 [C, W]
    logits: Array  # float32 [C, A]; -inf where an action is illegal
    values: Array  # float32 [C]
    stamps: Array  # int64 [C]: when the entry was stored; 0 for an empty slot
    clock: Array  # int64 [1]: entries stored so far


def allocate_cache(megabytes: int, num_actions: int, state_words: int) -> Cache:
    """Return an empty cache that takes no more than so much memory; without any, it holds next to nothing."""
    entry_bytes = 4 * num_actions + 8 * state_words + 12
    slots = max(_PROBES, 1 << max(0, (megabytes * 2**20 // entry_bytes).bit_length() - 1))
    return Cache(
        states=np.zeros((slots, state_words), np.int64),
        logits=np.zeros((slots, num_actions), np.float32),
        values=np.zeros(slots, np.float32),
        stamps=np.zeros(slots, np.int64),
        clock=np.zeros(1, np.int64),
    )


@kernel
def _first_slot(state: Array, num_slots: int) -> Any:  # an index
    bits = np.uint64(0)
    for word in state:
        bits = (bits ^ np.uint64(word)) * _MULTIPLIER
        bits ^= bits >> _SHIFT
    return np.int64(bits & np.uint64(num_slots - 1))


@kernel
def _is_at(states: Array, slot: int, state: Array) -> bool:
    for word in range(len(state)):
        if states[slot, word] != state[word]:
            return False
    return True


@kernel
def find_slot(cached_states: Array, stamps: Array, state: Array) -> int:
    """Return the slot of a state int64 [W], or MISS."""
    first = _first_slot(state, len(stamps))
    for probe in range(_PROBES):
        slot = (first + probe) & (len(stamps) - 1)
        if stamps[slot] and _is_at(cached_states, slot, state):
            return slot
    return MISS


@kernel
def store(cache: Cache, states: Array, logits: Array, values: Array) -> None:
    """Store evaluations.

    Args:
        cache: changed in place.
        states: int64 [B, W].
        logits: float32 [B, A], -inf where an action is illegal.
        values: float32 [B].
    """
    for row in range(len(states)):
        first = _first_slot(states[row], len(cache.stamps))
        chosen = first
        for probe in range(_PROBES):
            slot = (first + probe) & (len(cache.stamps) - 1)
            if cache.stamps[slot] and _is_at(cache.states, slot, states[row]):
                chosen = slot
                break
            if cache.stamps[slot] < cache.stamps[chosen]:
                chosen = slot
        cache.clock[0] += 1
        cache.stamps[chosen] = cache.clock[0]
        cache.values[chosen] = values[row]
        for word in range(states.shape[1]):
            cache.states[chosen, word] = states[row, word]
        for action in range(logits.shape[1]):
            cache.logits[chosen, action] = logits[row, action]
