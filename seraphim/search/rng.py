"""Random numbers as a function of (key, counter), so that a game's random choices depend only on its own number.

A stream is a 64-bit key; its n-th number is a hash of key and n (SplitMix64: Steele, Lea, Flood, "Fast splittable
pseudorandom number generators", 2014). There is no state: games in a batch do not affect each other, any process may
play any game, and a run resumes from the game's number alone.
"""

import hashlib
import math

import numpy as np

from seraphim.game import Array
from seraphim.jit import kernel

_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_MANTISSA_SHIFT = np.uint64(11)
_BELOW_ONE = 1.0 - 2.0**-53


@kernel
def _hash(key: np.uint64, counter: np.uint64) -> np.uint64:
    bits = key + (counter + np.uint64(1)) * _INCREMENT
    bits = (bits ^ (bits >> _SHIFTS[0])) * _FIRST
    bits = (bits ^ (bits >> _SHIFTS[1])) * _SECOND
    return bits ^ (bits >> _SHIFTS[2])


@kernel
def fork_key(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Return the key of a new stream for a key and a counter."""
    return _hash(_hash(key, counter), _FIRST)


@kernel
def fork(keys: Array, counters: Array) -> Array:
    """Return the key of a new stream for each pair of a key and a counter, uint64 [B], [B] -> uint64 [B]."""
    forked = np.empty(len(keys), np.uint64)
    for row in range(len(keys)):
        forked[row] = fork_key(keys[row], counters[row])
    return forked


@kernel
def uniform(key: np.uint64, counter: np.uint64) -> float:
    """Return the stream's number at `counter`, uniform in the open interval (0, 1)."""
    # The greatest of the 2^53 numbers would round to 1.
    return min((float(_hash(key, counter) >> _MANTISSA_SHIFT) + 0.5) * 2.0**-53, _BELOW_ONE)


@kernel
def uniform_of(keys: Array) -> Array:
    """Return the first number of each stream uint64 [B], as float64 [B]."""
    numbers = np.empty(len(keys), np.float64)
    for row in range(len(keys)):
        numbers[row] = uniform(keys[row], np.uint64(0))
    return numbers


@kernel
def _log_gamma_variate(alpha: float, key: np.uint64, counter: np.uint64) -> tuple[float, np.uint64]:
    # Marsaglia & Tsang, "A simple method for generating gamma variables", 2000: for shape alpha + 1, then scaled down
    # to alpha by a factor U^(1/alpha), in logarithms because that factor underflows for small alpha.
    one = np.uint64(1)
    d = alpha + 2.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        radius = math.sqrt(-2.0 * math.log(uniform(key, counter)))
        normal = radius * math.cos(2.0 * math.pi * uniform(key, counter + one))
        accept = uniform(key, counter + one + one)
        counter += one + one + one
        v = 1.0 + c * normal
        if v > 0.0 and math.log(accept) < 0.5 * normal**2 + d - d * v**3 + 3.0 * d * math.log(v):
            boost = math.log(uniform(key, counter)) / alpha
            return math.log(d * v**3) + boost, counter + one


@kernel
def dirichlet(alpha: float, key: np.uint64, draw: Array) -> None:
    """Fill float64 `draw` [K] with one draw from the symmetric Dirichlet distribution of concentration `alpha`."""
    counter = np.uint64(0)
    largest = -np.inf
    for k in range(len(draw)):
        draw[k], counter = _log_gamma_variate(alpha, key, counter)
        largest = max(largest, draw[k])
    total = 0.0
    for k in range(len(draw)):
        draw[k] = math.exp(draw[k] - largest)
        total += draw[k]
    for k in range(len(draw)):
        draw[k] /= total


def draw_actions(weights: Array, keys: Array) -> Array:
    """Draw one action for each row in proportion to weights [K, A], int32 [K], by streams of uint64 [K] keys."""
    cumulated = np.cumsum(weights, axis=1, dtype=np.float64)
    # A number in (0, total) falls into the interval of exactly one action with a weight.
    return (cumulated <= (uniform_of(keys) * cumulated[:, -1])[:, None]).sum(axis=1).astype(np.int32)


def stream_key(name: str) -> np.uint64:
    """Return the key of the stream with this name."""
    return np.frombuffer(hashlib.blake2b(name.encode(), digest_size=8).digest(), np.dtype("<u8"))[0]
