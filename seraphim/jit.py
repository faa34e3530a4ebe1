"""Compiles kernels, and keeps their machine code between runs."""

import contextlib
import functools
import os
import pickle
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
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

# Folders of modules that change with a version alone, but for those that are installed.
_STANDARD = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
_INSTALLED = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
_VERSIONED = ("llvmlite", "numba", "numpy")  # packages of which the names of kept code hold the version


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; later processes load the machine code from a cache.

    `nogil` lets threads overlap. Divisions follow IEEE 754 rather than raise: a function that can raise counts
    references to its arrays at every call, which took half the time of an expansion. For the same reason kernels copy
    rows with loops, because assignments of slices can raise, and their helpers take arrays rather than tuples of them.

    Numba's own cache notices changes in the function's file only, but the code includes that of the kernels it calls,
    wherever they are; and it looks for a folder to write to as soon as the function is defined. This one compiles anew
    when any module has changed from which the function's module has something, directly or not, installed or not.
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

    @property
    def _made_of(self) -> tuple[list[str], list[str]] | None:
        # The sources of the kernel, and values, as they are now: modules it refers to may have been loaded again, and
        # it is compiled for a further type. None if machine code of them cannot be kept.
        try:
            function, values = self._kernel.py_func, _Values(self._kernel)
            sources = sorted({_source(str(module.__file__)) for module in _modules(function)})
        except Exception:  # noqa: BLE001 (a source is missing, such as a notebook's, or newer; a variable has no value)
            return None
        # An object may be known by its address; and Numba crashes when it loads kernels that call each other.
        is_fixed = not values.has_circle and not any(" at 0x" in value for value in values.found)
        return (sources, values.found) if is_fixed else None

    def _files(self, sig: Any, codegen: Any) -> list[Path]:
        # In each of the folders.
        made_of = self._made_of
        if made_of is None or not self._source.is_file():
            return []
        function, (sources, found) = self._kernel.py_func, made_of
        values = [*found, *map(_describe, getattr(sig, "args", sig))]
        code = _digest([version(), numba.__version__, np.__version__, *sources])
        # Numba does not distinguish code with and without checks of array bounds.
        variant = _digest([*values, repr(codegen.magic_tuple()), str(config.BOUNDSCHECK)])
        name = f"{function.__module__}.{function.__qualname__}-{code}-{variant}.{sys.implementation.cache_tag}"
        return [folder / name for folder in folders(self._source.parent)]


class _Values:
    # What a kernel is made of besides sources: what its free variables, defaults and globals hold, and those of the
    # kernels that it calls, as they may come from a factory's arguments or from a file.

    def __init__(self, kernel: Any) -> None:
        self.found: list[str] = []
        self.has_circle = False  # of kernels that call each other; one may call itself
        self._seen: set[FunctionType] = set()
        self._callers: list[FunctionType] = []
        self._add(kernel)

    def _add(self, value: Any) -> None:
        if is_jitted(value):
            function: Any = value
            self._add_function(function.py_func)
        elif isinstance(value, tuple | list):
            self.found.append(f"{type(value).__name__} {len(value)} {getattr(value, '_fields', '')}")
            for each in value:
                self._add(each)
        elif isinstance(value, np.ndarray | np.generic):
            self.found.append(f"{value.dtype} {value.shape} {value.tolist()}")
        elif isinstance(value, Enum):
            self.found.append(f"{type(value).__name__}.{value.name}")
            self._add(value.value)
        elif not isinstance(value, ModuleType | FunctionType | type):  # which are in the sources
            self.found.append(repr(value))

    def _add_function(self, function: FunctionType) -> None:
        if function in self._seen:
            self.has_circle |= function in self._callers[:-1]
            return
        self._seen.add(function)
        self._callers.append(function)
        self.found.append(f"{function.__module__}.{function.__qualname__}")
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        scopes = [function.__globals__ | dict(zip(function.__code__.co_freevars, cells, strict=True))]
        modules: set[ModuleType] = set()
        for scope in scopes:  # to which those of modules are added
            for value in [scope[name] for name in _names(function.__code__) if name in scope]:
                self._add(value)
                if isinstance(value, ModuleType) and value not in modules and not _is_versioned(value):
                    modules.add(value)
                    scopes.append(vars(value))
        self._add((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))
        self._callers.pop()


def _names(code: CodeType) -> list[str]:
    # All names in a function, in a fixed order.
    inner = [name for each in code.co_consts if isinstance(each, CodeType) for name in _names(each)]
    return sorted({*code.co_names, *code.co_freevars, *inner})


def _modules(function: FunctionType) -> list[ModuleType]:
    # The function's module, and those that something in its namespace comes from, directly or not.
    first = sys.modules.get(function.__module__)
    found = dict.fromkeys(filter(None, [first]))
    waiting = list(found)
    while waiting:
        for value in [*vars(waiting.pop()).values()]:
            name = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", None)
            module = sys.modules.get(name) if isinstance(name, str) else None
            if module is not None and module not in found and not _is_versioned(module):
                found[module] = None
                waiting.append(module)
    return [module for module in found if getattr(module, "__file__", None)]


def _is_versioned(module: ModuleType) -> bool:
    # Whether a module changes only with a version that the names of kept code hold.
    name = getattr(module, "__file__", None)
    if name is None or module.__name__.partition(".")[0] in _VERSIONED:
        return name is not None or not hasattr(module, "__path__")  # which a folder without an __init__.py has
    file = Path(name).resolve()
    return any(map(file.is_relative_to, _STANDARD)) and not any(map(file.is_relative_to, _INSTALLED))


def _start_of_process() -> int:
    # Rounded up to the system's unit, in which Python has read no source yet; elsewhere, about when it did.
    age = time.process_time_ns()
    with contextlib.suppress(OSError, AttributeError):  # there is no Linux
        unit = 10**9 // os.sysconf("SC_CLK_TCK")
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - (started + 1) * unit
    return time.time_ns() - age


_STARTED = _start_of_process()


def _source(file: str) -> str:
    # The digest of a source as this process imported it; raises an OSError if it may have changed since then.
    digest = _content(file)
    if Path(file).stat().st_ctime_ns > _STARTED:
        raise OSError(f"{file} is newer than this process")
    return digest


@functools.cache
def _content(file: str) -> str:
    return blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()


def _describe(kind: Any) -> str:
    # A type of Numba, of whose named tuples the text leaves out the fields.
    inner = [_describe(each) for each in getattr(kind, "types", ())]
    return f"{kind} {getattr(kind, 'fields', '')} {inner}"


def _digest(parts: Sequence[str]) -> str:
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def folders(sources: Path) -> Iterator[Path]:
    """Yield the folders in which machine code may be; new code is kept in the first that can be written."""
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
