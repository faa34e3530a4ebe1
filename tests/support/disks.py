"""A small disk, and folders that cannot be written, for the programs run on them alone; needs no privileges."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import pytest

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


# Makes the folders before "--" read-only, and runs what follows, by a user without a name.
_READ_ONLY = """
while [ "$1" != -- ]; do
    mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 200
    shift
done
shift
exec unshare --user --map-user=54321 --map-group=54321 "$@"
"""


def run_read_only(
    folders: Sequence[Path], command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a program of this Python that can only read some folders, as a user whom this system does not know.

    Skips the test where that is not allowed.
    """
    enter = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _READ_ONLY, "sh"]
    line = [*enter, *map(str, folders), "--", sys.executable, *command]
    if shutil.which("unshare") is None:
        pytest.skip("there is no command unshare")
    # Without coverage, whose files are among what cannot be written.
    given = {name: value for name, value in environment.items() if "COV" not in name}
    done = subprocess.run(line, env=given, cwd=ROOT, capture_output=True, text=True, timeout=600)
    if done.returncode == 200 or done.stderr.startswith("unshare: "):
        pytest.skip(f"no folder can be made read-only (a container needs --privileged for that): {done.stderr}")
    return done
