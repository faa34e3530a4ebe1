"""What is installed, and on which machine it runs; found out without importing anything heavy."""

import configparser
import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from seraphim.inference import tensorflow
from seraphim.machine import count_cores, cpu_quota, processor_name

CORE = "core"
"""The needs of every program; what else is needed has the name of an extra."""

_DISTRIBUTION = "seraphim"
_FOR_DEVELOPERS = ("dev", "bench")
# Whose module is not the distribution's name with underscores.
_MODULES = {
    "absl-py": "absl",
    "mlflow-skinny": "mlflow",
    "open-spiel": "pyspiel",
    "protobuf": "google.protobuf",
}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)")
_EXTRA = re.compile(r"extra == ['\"](\w+)['\"]")


class Package(NamedTuple):
    """A package that Seraphim uses."""

    name: str
    needed_for: str  # CORE, or an extra
    version: str | None  # None if it is missing
    broken: bool  # it is installed, but its module is not there

    @property
    def usable(self) -> bool:
        """Return whether it can be imported, as far as one can tell without doing it."""
        return self.version is not None and not self.broken


def packages() -> list[Package]:
    """Return what Seraphim uses: first what every program needs, then the extras, but for those of developers."""
    return [_look_up(name, needed_for) for name, needed_for in _requirements() if needed_for not in _FOR_DEVELOPERS]


def how_to_install(needed_for: str) -> str:
    """Return the command that installs what is needed for something."""
    return "pip install -e ." if needed_for == CORE else f"pip install -e '.[{needed_for}]'"


def machine() -> dict[str, str]:
    """Return what there is to know about this machine, by name."""
    quota = cpu_quota()
    cores = f"{count_cores()} of {os.cpu_count() or 1} cores may be used"
    if quota is not None:
        cores += f"; a container's quota is {quota:g} processors"
    return {
        "Seraphim": metadata.version(_DISTRIBUTION) if _is_installed(_DISTRIBUTION) else "not installed",
        "Python": f"{platform.python_version()} at {sys.executable}",
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "processor": f"{processor_name()}, {cores}",
        "memory": _memory(),
        "GPUs": ", ".join(gpus()) or "none found",
    }


def gpus() -> list[str]:
    """Return the names of the GPUs that the system knows, whether or not a runtime can use them."""
    found = [
        line.partition(":")[2].strip()
        for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
        for line in file.read_text().splitlines()
        if line.startswith("Model:")
    ]
    return found or (["a GPU of unknown name"] if tensorflow.gpu_is_likely() else [])


def unused_gpu(found: list[str], usable: bool) -> str | None:
    """Return a sentence if there are GPUs, by their names, but no runtime can use one."""
    if not found or usable:
        return None
    return (
        f"{', '.join(found)} is not used, because TensorFlow {_why_not()}: "
        "pip install 'tensorflow[and-cuda]', or look at the driver"
    )


def _why_not() -> str:
    return "is not installed" if find_spec("tensorflow") is None else "cannot use it"


def _requirements() -> Iterator[tuple[str, str]]:
    # From setup.cfg, where the code was checked out: what is installed may be older than that.
    setup = configparser.ConfigParser()
    if setup.read(Path(__file__).parents[2] / "setup.cfg") and setup.get("metadata", "name", fallback="") == "seraphim":
        needs = {CORE: setup["options"]["install_requires"], **setup["options.extras_require"]}
        for needed_for, text in needs.items():
            yield from ((_name(line), needed_for) for line in text.splitlines() if line and line[0] != "#")
    elif _is_installed(_DISTRIBUTION):
        for line in metadata.requires(_DISTRIBUTION) or []:
            extra = _EXTRA.search(line)
            yield _name(line), extra[1] if extra else CORE


def _name(requirement: str) -> str:
    match = _REQUIREMENT.match(requirement)
    return match[1] if match else requirement


def _look_up(name: str, needed_for: str) -> Package:
    version = _version(name)
    module = _MODULES.get(name, name.replace("-", "_").lower())
    return Package(name, needed_for, version, version is not None and not _is_there(module))


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a package above it is missing, or it says so itself
        return False


def _is_installed(distribution: str) -> bool:
    return _version(distribution) is not None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _memory() -> str:
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return "unknown"
    return f"{pages * size / 2**30:.1f} GiB"
