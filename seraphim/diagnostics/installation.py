"""What is installed, and on which machine; found without importing anything heavy."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from seraphim.errors import CLONE, DISTRIBUTION, how_to_install, read_setup, version
from seraphim.inference import tensorflow
from seraphim.machine import count_cores, cpu_quota, processor_name

CORE = "core"
"""Packages that every program needs; other packages belong to an extra."""

_FOR_DEVELOPERS = ("dev", "bench")
_NAME = re.compile(r"[A-Za-z0-9._-]+")  # of a requirement
_EXTRA = re.compile(r"extra == ['\"](\w+)['\"]")


class Package(NamedTuple):
    """A package that Seraphim uses."""

    name: str
    needed_for: str  # CORE, or an extra
    version: str | None  # None if it is missing


def packages() -> list[Package]:
    """Return the packages that every program needs, then those of the extras, except for developers."""
    return [Package(name, extra, _version(name)) for name, extra in _requirements() if extra not in _FOR_DEVELOPERS]


def machine() -> dict[str, str]:
    """Return facts about this machine, by name."""
    quota = cpu_quota()
    cores = f"{count_cores()} of {os.cpu_count() or 1} cores may be used"
    if quota is not None:
        cores += f"; a container's quota is {quota:g} processors"
    return {
        "Seraphim": version(),
        "Python": f"{platform.python_version()} at {sys.executable}",
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "processor": f"{processor_name()}, {cores}",
        "memory": _memory(),
        "GPUs": ", ".join(gpus()) or "none found",
    }


def gpus() -> list[str]:
    """Return the names of the GPUs that the system finds, whether or not a runtime can use them."""
    files = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    found = [name.strip() for file in files for name in re.findall("^Model:(.*)", file.read_text(), re.MULTILINE)]
    return found or (["a GPU of unknown name"] if tensorflow.gpu_is_likely() else [])


def unused_gpu(found: list[str], usable: bool) -> str | None:
    """Return a problem if there are GPUs, by their names, but no runtime can use one; else None."""
    if not found or usable:
        return None
    reason = "is not installed" if find_spec("tensorflow") is None else "cannot use it, nor can JAX"
    return (
        f"{', '.join(found)} is not used, because TensorFlow {reason}: "
        f"{how_to_install('train,gpu')}, or 'tensorflow[and-cuda]', or check the driver"
    )


def _requirements() -> Iterator[tuple[str, str]]:
    # From setup.cfg in a clone, as the installed metadata may be older.
    if CLONE:
        setup = read_setup()
        needs = {CORE: setup["options"]["install_requires"], **setup["options.extras_require"]}
        for needed_for, text in needs.items():
            yield from ((match[0], needed_for) for line in text.splitlines() if (match := _NAME.match(line)))
    else:
        for line in metadata.requires(DISTRIBUTION) or []:
            extra = _EXTRA.search(line)
            if match := _NAME.match(line):
                yield match[0], extra[1] if extra else CORE


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB"
    except (AttributeError, OSError, ValueError):  # Windows has no such function
        return "unknown"
