"""A small disk that only the programs run on it can see; needs no privileges."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]


class NoDiskError(Exception):
    """This system does not allow mounting one."""


class Disk:
    """A file system in memory, mounted in its own namespace (`unshare`, `nsenter`); a context manager."""

    def __init__(self, folder: Path, kilobytes: int) -> None:
        """Mount it at `folder`; raise NoDiskError if that is not allowed."""
        self._folder = folder
        try:
            self._keeper = subprocess.Popen(
                ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "echo ready; exec sleep 1000"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except FileNotFoundError as error:
            raise NoDiskError("there is no command unshare") from error
        ready = self._keeper.stdout.readline() if self._keeper.stdout else ""
        mounted = ready and self._run("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder))
        if not mounted or mounted.returncode:
            self.__exit__()
            reason = mounted.stderr if mounted else "unshare is not allowed"
            raise NoDiskError(f"no file system can be mounted (a container needs --privileged for that): {reason}")
        self.path = Path(f"/proc/{self._keeper.pid}/root{folder}")  # as others see it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._keeper.kill()
        self._keeper.communicate()

    def resize(self, kilobytes: int) -> None:
        """Change its size, which must hold what is on it."""
        self._remount(f"size={kilobytes}k")

    def allow_writing(self, allowed: bool) -> None:
        """Make it writable or read-only."""
        self._remount("rw" if allowed else "ro")

    def used(self) -> int:
        """Return the kilobytes in use."""
        state = os.statvfs(self.path)
        return (state.f_blocks - state.f_bfree) * state.f_frsize // 1024

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program with this disk as its data root."""
        return self._run(sys.executable, *command)

    def _remount(self, options: str) -> None:
        done = self._run("mount", "-o", f"remount,{options}", str(self._folder))
        assert done.returncode == 0, done.stderr

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", f"--target={self._keeper.pid}", "--user", "--mount", "--preserve-credentials"]
        # Without coverage, whose files are outside.
        environment = {name: value for name, value in os.environ.items() if "COV" not in name}
        return subprocess.run(
            [*enter, f"--wd={ROOT}", *command],
            env={**environment, "SERAPHIM_DATA": str(self._folder)},
            capture_output=True,
            text=True,
            timeout=600,
        )
