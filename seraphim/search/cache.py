"""The evaluation cache: the network's output by a position's exact state, player to move included.

The words of a state that say what is banked are left out. A cache belongs to one `Search` and so to one model: it
cannot outlive a change of model.
"""

from typing import Any, NamedTuple

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel, prefetch
from seraphim.search.tree import zeros

MISS = -1

_PROBES = 4  # slots where a state may be stored
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


class Cache(NamedTuple):
    """A table of evaluated positions with `C` slots, 0 or a power of two; new entries replace the oldest."""

    keys: Array  # int64 [C, 1 + W]: the clock when the entry was stored (0: an empty slot), and the state's words
    outputs: Array  # float32 [C, A + V]: logits, -inf where an action is illegal, and the values
    clock: Array  # int64 [1]: entries stored so far


def num_slots(megabytes: int, num_outputs: int, state_words: int) -> int:
    """Return how many slots fit into this memory: a power of two, at least 4; 0 without memory."""
    entry_bytes = 4 * num_outputs + 8 * (state_words + 1)
    return max(_PROBES, 1 << max(0, (megabytes * 2**20 // entry_bytes).bit_length() - 1)) if megabytes else 0


def allocate_cache(slots: int, num_outputs: int, state_words: int) -> Cache:
    """Return an empty cache for states of W words, and A + V outputs of the network."""
    return Cache(
        keys=zeros((slots, state_words + 1), np.int64),
        outputs=zeros((slots, num_outputs), np.float32),
        clock=np.zeros(1, np.int64),
    )


@kernel
def first_slot(states: Array, index: int, keys: Array) -> Any:
    """Return the first of the slots where `states[index]` may be stored, in a table of these keys."""
    bits = np.uint64(0)
    for word in range(keys.shape[1] - 1):
        bits = (bits ^ np.uint64(states[index, word])) * _MULTIPLIER
        bits ^= bits >> _SHIFT
    return np.int64(bits & np.uint64(max(len(keys), 1) - 1))


@kernel
def prefetch_slot(keys: Array, outputs: Array, slot: int) -> None:
    """Prefetch what is likely to be read at a slot."""
    prefetch(keys.ctypes.data + slot * keys.shape[1] * keys.itemsize)
    prefetch(outputs.ctypes.data + slot * outputs.shape[1] * outputs.itemsize)


@kernel
def _is_at(keys: Array, slot: int, states: Array, index: int) -> bool:
    for word in range(keys.shape[1] - 1):
        if keys[slot, word + 1] != states[index, word]:
            return False
    return keys[slot, 0] != 0


@kernel
def find_slot(keys: Array, first: int, states: Array, index: int) -> int:
    """Return the slot of `states[index]`, whose first slot is `first`, or MISS."""
    if len(keys) == 0:
        return MISS
    for probe in range(_PROBES):
        slot = (first + probe) & (len(keys) - 1)
        if _is_at(keys, slot, states, index):
            return slot
    return MISS


@kernel
def store_row(
    keys: Array, outputs: Array, clock: Array, first: int, states: Array, logits: Array, values: Array, index: int
) -> None:
    """Store the network's output for `states[index]`, whose `first_slot` is `first`.

    That is `logits[index]`, of float32 [B, A] with -inf where an action is illegal, and `values[index]`, of [B, V].
    """
    if len(keys) == 0:
        return
    chosen = first
    for probe in range(_PROBES):
        slot = (first + probe) & (len(keys) - 1)
        if _is_at(keys, slot, states, index):
            chosen = slot
            break
        if keys[slot, 0] < keys[chosen, 0]:
            chosen = slot
    clock[0] += 1
    keys[chosen, 0] = clock[0]
    for word in range(keys.shape[1] - 1):
        keys[chosen, word + 1] = states[index, word]
    for action in range(logits.shape[1]):
        outputs[chosen, action] = logits[index, action]
    for column in range(values.shape[1]):
        outputs[chosen, logits.shape[1] + column] = values[index, column]
