"""Ray nodes for measurements and tests: each a group of processes on this machine, in a cluster with its own token."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

RAY = Path(sys.executable).with_name("ray")
STORE_BYTES = 80_000_000


def ray_environment() -> dict[str, str]:
    """Return the variables of a private cluster that notices within seconds when a node is gone."""
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_failure_threshold": "3",
        "PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]),
    }


class Node:
    """A node of a cluster; its processes form a process group."""

    def __init__(self, *arguments: str, environment: Mapping[str, str], folder: Path, cores: int) -> None:
        command = [str(RAY), "start", *arguments, f"--num-cpus={cores}", f"--object-store-memory={STORE_BYTES}"]
        self._log = folder / f"ray-start-{secrets.token_hex(4)}.log"
        with self._log.open("w") as log:
            started = subprocess.Popen(
                [*command, "--include-log-monitor=false"],
                env={**os.environ, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,
            )
        self._group = started.pid
        if started.wait(timeout=120):
            self.kill()
            raise RuntimeError(self._log.read_text())

    def kill(self) -> None:
        """Kill all its processes at once, as a power cut would."""
        # Actors' processes have their own groups; their parents are in the node's.
        for process in [each for each in processes() if self._group in (_group(each), _group(_parent(each)))]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@contextlib.contextmanager
def running_head(environment: Mapping[str, str], cores: int = 2) -> Iterator[str]:
    """Run the first node of a cluster in its own folder; yield its address."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # short, as paths of sockets must be
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        port, client_port = one.getsockname()[1], two.getsockname()[1]
    ports = f"--port={port}", f"--ray-client-server-port={client_port}"
    arguments = ("--head", *ports, "--include-dashboard=false", f"--temp-dir={folder}")
    node = Node(*arguments, environment=environment, folder=folder, cores=cores)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        node.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def another_node(address: str, folder: Path, environment: Mapping[str, str], cores: int = 1) -> Iterator[Node]:
    """Add a node to a cluster."""
    node = Node(f"--address={address}", environment=environment, folder=folder, cores=cores)
    try:
        yield node
    finally:
        node.kill()


def actors() -> set[int]:
    """Return the ids of the processes of our actors, in any cluster."""
    return {process for process in processes() if _title(process).startswith("ray::Actor")}


def processes() -> set[int]:
    """Return the ids of all running processes."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _alive(int(entry.name)):
            found.add(int(entry.name))
    return found


def _stat(process: int) -> list[str]:
    # The fields after the name: state, parent, group.
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return ["Z", "0", "0"]


def _alive(process: int) -> bool:
    return _stat(process)[0] != "Z"


def _parent(process: int) -> int:
    return int(_stat(process)[1])


def _group(process: int) -> int:
    return int(_stat(process)[2])


def _title(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""
