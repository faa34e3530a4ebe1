"""The evaluation cache: what the network said of a position, by the position's exact state.

A cache belongs to one `Search` and so to one model: it cannot outlive a change of model. The player to move is part of
the state, and so of the key.
"""

from typing import Any

import numpy as np

from seraphim.compiled import kernel
from seraphim.game import Array

MISS = -1

_PROBES = 4  # slots in which a state may stand
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


class EvaluationCache:
    """A table of evaluated positions with a fixed number of slots; where it is full, the newest replaces the oldest."""

    def __init__(self, num_slots: int, num_actions: int, state_words: int) -> None:
        """Allocate the table.

        Args:
            num_slots: rounded down to a power of two, at least 4.
            num_actions: `A`.
            state_words: `W`.
        """
        num_slots = max(_PROBES, 1 << (num_slots.bit_length() - 1))
        self.hits = 0
        self.misses = 0
        self._states = np.zeros((num_slots, state_words), np.int64)
        self._logits = np.zeros((num_slots, num_actions), np.float32)  # -inf where an action is illegal
        self._values = np.zeros(num_slots, np.float32)
        self._stamps = np.zeros(num_slots, np.int64)  # when the entry was stored; 0 for an empty slot
        self._clock = np.zeros(1, np.int64)

    def find(self, states: Array) -> Array:
        """Return the slot of each state int64 [B, W], or MISS; int64 [B]."""
        slots = _find(self._states, self._stamps, states)
        missed = int(np.count_nonzero(slots == MISS))
        self.misses += missed
        self.hits += len(slots) - missed
        return slots

    def read(self, slots: Array) -> tuple[Array, Array, Array]:
        """Return legal actions bool [K, A], logits float32 [K, A] and values float32 [K] of slots that were found."""
        logits = self._logits[slots]
        return logits > -np.inf, logits, self._values[slots]

    def store(self, states: Array, legal: Array, logits: Array, values: Array) -> None:
        """Store evaluations.

        Args:
            states: int64 [B, W].
            legal: bool [B, A].
            logits: float32 [B, A], finite where legal.
            values: float32 [B].
        """
        _store(self._states, self._stamps, self._logits, self._values, self._clock, states, legal, logits, values)


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
def _find(table: Array, stamps: Array, states: Array) -> Array:
    slots = np.full(len(states), MISS, np.int64)
    for row in range(len(states)):
        first = _first_slot(states[row], len(stamps))
        for probe in range(_PROBES):
            slot = (first + probe) & (len(stamps) - 1)
            if stamps[slot] and _is_at(table, slot, states[row]):
                slots[row] = slot
                break
    return slots


@kernel
def _store(
    table: Array,
    stamps: Array,
    table_logits: Array,
    table_values: Array,
    clock: Array,
    states: Array,
    legal: Array,
    logits: Array,
    values: Array,
) -> None:
    for row in range(len(states)):
        first = _first_slot(states[row], len(stamps))
        oldest = first
        for probe in range(_PROBES):
            slot = (first + probe) & (len(stamps) - 1)
            if stamps[slot] and _is_at(table, slot, states[row]):
                oldest = slot
                break
            if stamps[slot] < stamps[oldest]:
                oldest = slot
        clock[0] += 1
        stamps[oldest] = clock[0]
        table_values[oldest] = values[row]
        for word in range(table.shape[1]):
            table[oldest, word] = states[row, word]
        for action in range(table_logits.shape[1]):
            table_logits[oldest, action] = logits[row, action] if legal[row, action] else -np.inf
