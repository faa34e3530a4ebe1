"""Joins a Ray cluster, or starts one on this machine. The only module that imports Ray."""

import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seraphim.errors import SettingsError, WorkerError, how_to_install
from seraphim.machine import count_cores, needed

AUTO = "auto"

_STORE_BYTES = 200_000_000  # for snapshots on their way, where we start Ray
_SECONDS_TO_CONNECT = 5.0
_MAX_REASON = 200  # characters
_NONE_RUNS = "Could not find any running Ray instance"  # part of an error of Ray


def import_ray() -> Any:
    """Import and return Ray, with as little output as possible.

    Raises:
        NotInstalledError: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # 15 by default, below any other program
    named = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if named or (Path.home() / ".ray" / "auth_token").is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # as a head does if there is a token
    with needed(f"--cluster needs Ray: {how_to_install('cluster')}", ImportError):
        import ray
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Ray reports each lost worker and node at length, which no option prevents; our own pool reports them.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None
    return ray


def connect(ray: Any, address: str, num_workers: int) -> str:
    """Join a cluster, or start one on this machine, and return a line that describes it.

    `address` is that of the head; AUTO is RAY_ADDRESS, else a Ray that runs on this machine, else one that is started,
    with room for `num_workers`, or for one per core if that is 0.

    Raises:
        SettingsError: the address is not valid.
        WorkerError: there is no cluster, or this machine is not part of it.
    """
    quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
    if address == AUTO:
        address = os.environ.get("RAY_ADDRESS", AUTO)
    if address != AUTO:
        _check_address(address)
        _check_node(address)
    try:
        ray.init(address=address, **quiet)
    except Exception as error:
        ray.shutdown()
        if address != AUTO or _NONE_RUNS not in str(error):
            raise WorkerError(
                f"cannot join the Ray cluster ({shorten_reason(error)}): this machine must be part of it (ray start "
                f"--address={'…' if address == AUTO else address}), with the same Ray, Python and token as the head"
            ) from error
        num_cpus = num_workers or count_cores()
        options = {"num_cpus": num_cpus, "object_store_memory": _STORE_BYTES, "include_dashboard": False}
        ray.init(address="local", **options, **quiet)
        return f"started Ray {ray.__version__} on this machine, {num_cpus} cores"
    nodes = [node for node in ray.nodes() if node["Alive"]]
    cores = sum(int(node["Resources"].get("CPU", 0)) for node in nodes)
    return f"joined the Ray cluster at {ray.get_runtime_context().gcs_address}: {len(nodes)} machines, {cores} cores"


def _check_address(address: str) -> None:
    # Ray itself would wait for minutes.
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise SettingsError(f"--cluster must be auto or the address of a head, such as 10.0.0.1:6379, not {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise WorkerError(
            f"there is no Ray at {address} ({error}): start one there with: ray start --head --port={port}"
        ) from error


def _check_node(address: str) -> None:
    # Without a local node, Ray itself crashes. Only Linux can tell whether there is one.
    if Path("/proc/self/cmdline").exists() and not any(map(_is_node, Path("/proc").glob("[0-9]*/cmdline"))):
        raise WorkerError(f"this machine is not part of the cluster yet: ray start --address={address}, then run again")


def _is_node(command_line: Path) -> bool:
    try:
        return command_line.read_bytes().partition(b"\0")[0].endswith(b"/raylet")
    except OSError:  # the process has ended
        return False


def shorten_reason(error: Exception) -> str:
    """Return the essence of an error of Ray: the first sentence of its last line, or how a process ended."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1].rpartition("Worker exit detail: ")[2].partition(". ")[0][:_MAX_REASON]


@contextlib.contextmanager
def preserved_signals() -> Iterator[None]:
    """Restore the program's signal handler, which Ray replaces, after the block."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
