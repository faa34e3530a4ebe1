"""Compiles kernels, and keeps their machine code between runs."""

import contextlib
import functools
import inspect
import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import config as numba_config
from numba import njit, types
from numba.core import cgutils
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.extending import intrinsic, is_jitted, overload

from seraphim.errors import version

config: Any = numba_config  # sets its attributes when it is imported

UNCACHED = "SERAPHIM_UNCACHED"
"""Environment variable of the processes that need not say that no machine code is kept, as another one does."""

_VERSIONED = {*sys.stdlib_module_names, "llvmlite", "numba", "numpy"}  # what does not change while its version stays


_CONSTANTS = (bool, int, float, complex, str, bytes, tuple, list, np.ndarray, np.generic)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; later processes load the machine code from a cache.

    `nogil` lets threads overlap. Divisions follow IEEE 754 rather than raise: a function that can raise counts
    references to its arrays at every call, which took half the time of an expansion. For the same reason kernels copy
    rows with loops, because assignments of slices can raise, and their helpers take arrays rather than tuples of them.

    Numba's own cache notices changes in the function's file only, but the code includes that of the kernels it calls,
    wherever they are; and it looks for a folder to write to as soon as the function is defined.
    """
    compiled: Any = njit(nogil=True, error_model="numpy")(function)
    if is_jitted(compiled):
        compiled._cache = _Cache(compiled)  # type: ignore[attr-defined]  # where Numba keeps its own
    return compiled


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


class _Cache(NullCache):
    # Where Numba looks for the machine code of a kernel, and puts it: a file for each signature of the kernel.

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._source = Path(kernel.py_func.__code__.co_filename)
        with contextlib.suppress(OSError):  # the current folder was deleted
            self._source = self._source.absolute()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        for file in self._files(sig, target_context.codegen()):
            with contextlib.suppress(Exception):  # it is missing, or damaged in whatever way: compile again
                return CompileResult._rebuild(target_context, *pickle.loads(_opened(file.read_bytes())))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if data.library.has_dynamic_globals or not all(each.can_cache for each in data.lifted):
            return  # it holds addresses of this process
        problem = ""
        for file in self._files(sig, data.codegen):
            try:
                _write(file, _sealed(dumps(data._reduce())))
                return
            except (OSError, ValueError) as error:  # a name that the file system cannot write is a ValueError
                problem = problem or f"{file.parent}: {getattr(error, 'strerror', None) or error}"
        if problem and not os.environ.get(UNCACHED):
            os.environ[UNCACHED] = "1"
            cure = "set NUMBA_CACHE_DIR to a folder that can be written"
            with contextlib.suppress(OSError, AttributeError):  # nobody reads it, or there is no stderr
                message = f"seraphim: machine code cannot be kept ({problem}), so each start compiles: {cure}\n"
                sys.stderr.write(message)

    @functools.cached_property
    def _ingredients(self) -> "_Ingredients":
        return _Ingredients(self._kernel)

    def _files(self, sig: Any, codegen: Any) -> list[Path]:
        # In each of the folders. Code without a file, such as that of a notebook, is not kept.
        function, made_of = self._kernel.py_func, self._ingredients
        values = [*made_of.values, *map(_describe, getattr(sig, "args", sig))]
        # An object may be known by its address; and Numba crashes when it loads kernels that call each other.
        if not self._source.is_file() or any(" at 0x" in value for value in values) or made_of.has_circle:
            return []
        code = _digest([version(), numba.__version__, *made_of.code])
        # Numba does not distinguish code with and without checks of array bounds.
        variant = _digest([*values, repr(codegen.magic_tuple()), str(config.BOUNDSCHECK)])
        name = f"{function.__module__}.{function.__qualname__}-{code}-{variant}.{sys.implementation.cache_tag}"
        return [folder / name for folder in _folders(self._source.parent)]


class _Ingredients:
    # What the machine code of a kernel is made of, besides the types of its arguments: in the state in which it was
    # imported, as the files may have changed since then.

    def __init__(self, kernel: Any) -> None:
        self.code: list[str] = []  # of the kernel and of all functions that it refers to, directly or not
        self.values: list[str] = []  # that they refer to
        self.has_circle = False  # of functions that call each other; one may call itself
        self._seen: set[Any] = set()  # functions, and attributes
        self._callers: list[FunctionType] = []
        self._add(kernel, [])

    def _add(self, value: Any, names: list[str]) -> None:
        # `names` are those in the code that refers to the value, those of its attributes among them.
        inner = inspect.unwrap(value) if callable(value) else value  # of a kernel, its function
        if isinstance(inner, FunctionType | ModuleType | type):
            name = f"{getattr(inner, '__module__', '')}.{inner.__name__}".lstrip(".")
            self.values.append(name)
            if name.partition(".")[0] in _VERSIONED:
                return
        if isinstance(inner, FunctionType):
            self.values.append(repr(getattr(value, "targetoptions", "")))
            self._add_function(inner, is_compiled=inner is not value)
        elif isinstance(value, ModuleType | type):
            self.values.append(repr(getattr(value, "_fields", "")))  # of a named tuple
            for name in names:
                if name in vars(value) and (value, name) not in self._seen:
                    self._seen.add((value, name))
                    self._add(vars(value)[name], names)
        elif isinstance(value, tuple | list):
            self.values.append(f"{type(value).__name__} {len(value)} {getattr(value, '_fields', '')}")
            for each in value:
                self._add(each, [])
        else:
            self.values.append(
                f"{value.dtype} {value.shape} {value.tolist()}" if isinstance(value, np.ndarray) else repr(value)
            )

    def _add_function(self, function: FunctionType, is_compiled: bool) -> None:
        if function in self._seen:
            self.has_circle |= is_compiled and function in self._callers[:-1]
            return
        self._seen.add(function)
        self._callers.append(function)
        self.code.append(_text(function.__code__))
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        scope = function.__globals__ | dict(zip(function.__code__.co_freevars, cells, strict=True))
        names = _names(function.__code__)
        for name in names:
            if name in scope and (is_compiled or is_jitted(scope[name]) or isinstance(scope[name], _CONSTANTS)):
                self._add(scope[name], names)
        self._add((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()), [])
        if not is_compiled:  # what is compiled in its place is an overload, in the same module
            for each in [*function.__globals__.values()]:
                other = inspect.unwrap(each) if callable(each) else each
                if isinstance(other, FunctionType) and other.__module__ == function.__module__:
                    self._add_function(other, is_compiled=False)
        self._callers.pop()


def _names(code: CodeType) -> list[str]:
    # All names in a function, in a fixed order.
    inner = [name for each in code.co_consts if isinstance(each, CodeType) for name in _names(each)]
    return sorted({*code.co_names, *code.co_freevars, *inner})


def _text(code: CodeType) -> str:
    # All of a function's code but for the lines where it stands.
    constants = [
        _text(each) if isinstance(each, CodeType) else sorted(map(repr, each)) if isinstance(each, frozenset) else each
        for each in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount
    return repr((code.co_code, code.co_exceptiontable, constants, names))


def _describe(kind: Any) -> str:
    # A type of Numba, of whose named tuples the text leaves out the fields.
    inner = [_describe(each) for each in getattr(kind, "types", ())]
    return f"{kind} {getattr(kind, 'fields', '')} {inner}"


def _digest(parts: Sequence[str]) -> str:
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def _folders(sources: Path) -> Iterator[Path]:
    # The folders in which machine code may be; new code is kept in the first that can be written.
    name = f"kernels-{_digest([str(sources)])}"
    if config.CACHE_DIR:  # NUMBA_CACHE_DIR, which the container images set
        yield Path(config.CACHE_DIR) / name
        return
    yield sources / "__pycache__" / "kernels"
    with contextlib.suppress(RuntimeError):  # a user without a home
        yield Path.home() / ".cache" / "seraphim" / name


def _sealed(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest() + content


def _opened(sealed: bytes) -> bytes:
    # Damaged machine code would crash the process.
    if _sealed(sealed[16:]) != sealed:
        raise ValueError("the file is damaged")
    return sealed[16:]


def _write(file: Path, content: bytes) -> None:
    # Under its name when it is whole; then the files of earlier versions of the kernel go.
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{uuid.uuid4().hex}.part")
    try:
        part.write_bytes(content)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    name, code, _ = file.stem.rsplit("-", 2)
    for other in file.parent.glob(f"{name}-*{file.suffix}"):
        if not other.name.startswith(f"{name}-{code}-"):
            other.unlink(missing_ok=True)
