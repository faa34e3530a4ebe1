"""How the kernels are compiled."""

from numba import njit

# `nogil` lets threads overlap. Divisions follow IEEE 754 rather than raise: a function that can raise must count
# references to its arrays at every call, which took half the time of an expansion. For the same reason kernels copy
# rows with loops: an assignment of slices can raise.
kernel = njit(cache=True, nogil=True, error_model="numpy")
