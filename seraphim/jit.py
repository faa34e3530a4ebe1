"""Compiles kernels, and keeps their machine code between runs."""

import functools
import os
import shutil
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba import config as numba_config
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, is_jitted, overload

config: Any = numba_config  # sets its attributes when it is imported


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; later processes load the machine code from a cache.

    `nogil` lets threads overlap. Divisions follow IEEE 754 rather than raise: a function that can raise counts
    references to its arrays at every call, which took half the time of an expansion. For the same reason kernels copy
    rows with loops, because assignments of slices can raise, and their helpers take arrays rather than tuples of them.

    Numba notices changes in the function's own file only, but the code includes that of the kernels it calls: so the
    name of the cache's folder depends on the state of all source files beside it.
    """
    before = config.CACHE_DIR
    config.CACHE_DIR = _cache_folder(Path(function.__code__.co_filename).parent)
    try:
        return njit(cache=True, nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before


def compiled_like(example: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """Return a function compiled, without a cache on disk, if `example` is compiled; else as it is."""
    return njit(nogil=True, error_model="numpy")(function) if is_jitted(example) else function


def with_function(kernel: Any, name: str, called: Callable[..., Any]) -> Any:
    """Return a kernel that calls another function where it calls the one of this name; the kernel itself is unchanged.

    It is compiled if that function is. A parameter for it would keep Numba from caching the kernel's machine code.
    """
    function = getattr(kernel, "py_func", kernel)
    return compiled_like(called, FunctionType(function.__code__, {**function.__globals__, name: called}))


def prefetch(address: Any) -> None:
    """Start loading the cache line at an address, without waiting for it; does nothing when interpreted.

    A search uses far more memory than the processor's caches hold, and the network evicts it between two steps: kernels
    prefetch what each row needs next, and process the other rows meanwhile.
    """


@overload(prefetch)
def _compiled_prefetch(address):  # type: ignore[no-untyped-def]  # the same parameters as the lambda's
    return lambda address: _prefetch_instruction(address)  # type: ignore[call-arg]


@intrinsic
def _prefetch_instruction(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        instruction_type = ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag])
        instruction = cgutils.get_or_insert_function(builder.module, instruction_type, "llvm.prefetch.p0")
        # For reading, into all levels of the cache, data.
        builder.call(instruction, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.none(types.intp), generate


def borrowed(array: Any) -> Any:
    """Return an argument of a kernel as an array without reference counting, which is faster.

    The caller of the kernel owns the memory. When interpreted, this is the array itself.
    """
    return array


@overload(borrowed)
def _compiled_borrowed(array):  # type: ignore[no-untyped-def]
    return lambda array: _without_owner(array)  # type: ignore[call-arg]


@intrinsic
def _without_owner(typing_context: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        borrowed = context.make_array(signature.return_type)(context, builder, arguments[0])
        borrowed.meminfo = borrowed.meminfo.type(None)
        borrowed.parent = borrowed.parent.type(None)
        return borrowed._getvalue()

    return array(array), generate


@functools.cache
def _cache_folder(sources: Path) -> str:
    states = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(sources.glob("*.py"))]
    # Numba's cache does not distinguish code with and without checks of array bounds either.
    key = repr((str(sources), states, config.BOUNDSCHECK))
    name = f"kernels-{blake2b(key.encode(), digest_size=8).hexdigest()}"
    if config.CACHE_DIR:  # NUMBA_CACHE_DIR, which the container images set
        return str(Path(config.CACHE_DIR) / name)
    beside = sources / "__pycache__"
    if not os.access(beside if beside.exists() else sources, os.W_OK):
        return str(Path.home() / ".cache" / "seraphim" / name)
    if not (beside / name).exists():
        for outdated in beside.glob("kernels-*"):
            shutil.rmtree(outdated, ignore_errors=True)
    return str(beside / name)
