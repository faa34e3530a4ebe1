"""How kernels are compiled, and where their machine code is kept between runs."""

import functools
import os
import shutil
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from numba import config as numba_config
from numba import njit

config: Any = numba_config  # a module that makes its attributes when it is imported


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; later processes load the machine code from a cache.

    `nogil` lets threads overlap. Divisions follow IEEE 754 rather than raise: a function that can raise counts
    references to its arrays at every call, which took half the time of an expansion. For the same reason kernels copy
    rows with loops, as an assignment of slices can raise, and their helpers take arrays rather than tuples of them.

    Numba looks for changes in the function's own file only, but its code holds that of the kernels it calls: so the
    cache is in a folder that is named by the state of all source files beside it.
    """
    before = config.CACHE_DIR
    config.CACHE_DIR = _cache_folder(Path(function.__code__.co_filename).parent)
    try:
        return njit(cache=True, nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before


@functools.cache
def _cache_folder(sources: Path) -> str:
    states = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(sources.glob("*.py"))]
    # Code with and without checks of array bounds is not told apart by Numba's cache either.
    key = repr((str(sources), states, config.BOUNDSCHECK))
    name = f"kernels-{blake2b(key.encode(), digest_size=8).hexdigest()}"
    if config.CACHE_DIR:  # NUMBA_CACHE_DIR, such as an image sets
        return str(Path(config.CACHE_DIR) / name)
    beside = sources / "__pycache__"
    if not os.access(beside if beside.exists() else sources, os.W_OK):
        return str(Path.home() / ".cache" / "seraphim" / name)
    if not (beside / name).exists():
        for outdated in beside.glob("kernels-*"):
            shutil.rmtree(outdated, ignore_errors=True)
    return str(beside / name)
