"""How files appear whole on any file system: manifests, pointers, locks.

A local disk renames a folder at once, links, and locks. A bucket mounted as a folder may do none of these: a rename is
a copy and a removal there, and others look in between. So nothing here relies on them:

    a folder    counts from the moment its manifest, which is written last, is there and all files that it lists match
    a pointer   is a symbolic link or, where there are no links, a file that holds the name; before it is replaced, the
                new one lies beside it, which counts as long as the pointer itself cannot be read
    a lock      is held where the file system has locks; elsewhere nobody waits. Unless a lock keeps all others away,
                only what was not changed for a day counts as left behind

Knows files, not what they are for.
"""

import contextlib
import errno
import fcntl
import json
import os
import platform
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import google_crc32c

MANIFEST = "snapshot.json"
"""The manifest of a folder; `files` in it has the size and the CRC32C of each file."""

_FILES = "files"
_CHUNK = 1 << 20
_LONGEST_NAME = 4096
_ABANDONED = 24 * 3600.0  # seconds without a change
# What file systems answer that have no links, and no locks.
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


# ---------------------------------------------------------------- folders


def seal(folder: Path, facts: Mapping[str, Any]) -> None:
    """Publish a folder: when all of it is on the disk, write a manifest of these facts and of its files.

    Raises:
        OSError: the disk is full, say; the folder is not published.
    """
    unseal(folder)  # which a copy of another folder may bring along
    files = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "crc32c": _checksum(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    for path in folder.rglob("*"):
        sync(path)
    write_file(folder / MANIFEST, json.dumps({**facts, _FILES: files}, indent=2).encode() + b"\n")
    sync(folder)
    sync(folder.parent)


def unseal(folder: Path) -> None:
    """Take a folder back, before it is removed: from now on nobody counts it."""
    (folder / MANIFEST).unlink(missing_ok=True)
    sync(folder)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the facts in a folder's manifest; None if it is missing or not whole."""
    try:
        facts = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def fault(folder: Path, thorough: bool = False) -> str | None:
    """Return what keeps a folder from being published, as the end of a sentence; None if it is.

    Args:
        folder: with a manifest; one without a list of files was made when there was none, and counts.
        thorough: compare the checksums too; otherwise only the sizes.
    """
    facts = read_manifest(folder)
    if facts is None:
        return f"{MANIFEST} is missing or not whole"
    files = facts.get(_FILES, {})
    if not isinstance(files, dict):
        return f"{MANIFEST} lists no files"
    for name, expected in files.items():
        try:
            found = _fault_of_file(folder / name, expected["size"], expected["crc32c"] if thorough else None)
        except FileNotFoundError:
            found = "is missing"
        except OSError as error:
            found = f"cannot be read ({error.strerror})"
        except (KeyError, TypeError, ValueError):
            return f"{MANIFEST} is not valid"
        if found:
            return f"{name} {found}"
    return None


def _fault_of_file(path: Path, size: int, checksum: str | None) -> str | None:
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        return "is no file"
    if about.st_size != size:
        return f"has {about.st_size:,} bytes, not {size:,}"
    if checksum is not None and _checksum(path) != checksum:
        return "is damaged: its checksum is wrong"
    return None


# ---------------------------------------------------------------- pointers


class Pointer:
    """A file that points at one of the folders beside it."""

    def __init__(self, path: Path, counts: Callable[[str], bool]) -> None:
        """Prepare.

        Args:
            path: of the pointer.
            counts: says of a name whether there is such a folder.
        """
        self._path = path
        self._next = path.with_name(f".next-{path.name}")
        self._probe = path.with_name(f".next-{path.name}-link")
        self._counts = counts

    def read(self) -> str | None:
        """Return the name that the pointer holds, nothing if it holds none; None if there is no pointer."""
        name = _read_name(self._path)
        if name is None or not self._counts(name):
            # It is being replaced, maybe.
            following = _read_name(self._next)
            if following is not None and self._counts(following):
                return following
        return name

    def announce(self, name: str) -> None:
        """Say where the pointer is to point, which it does after `succeed`; the folder need not be there yet."""
        write_file(self._next, f"{name}\n".encode())
        if self._has_links():
            self._next.unlink()
            self._next.symlink_to(name)
        sync(self._next.parent)

    def succeed(self) -> None:
        """Point where it was announced, if that folder got there; can be broken off anywhere, and done again."""
        following = _read_name(self._next)
        if following is None:
            return
        self._probe.unlink(missing_ok=True)
        if self._counts(following):
            self._next.replace(self._path)
        else:
            self._next.unlink()
        sync(self._path.parent)

    def _has_links(self) -> bool:
        # Hard links are asked for. Buckets mounted by s3fs have symbolic links too, but after one was replaced, the
        # mount goes on to tell for minutes where it led before.
        self._probe.unlink(missing_ok=True)
        try:
            os.link(self._next, self._probe)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            return False
        self._probe.unlink()
        return True


def _read_name(path: Path) -> str | None:
    try:
        if path.is_symlink():
            return str(path.readlink())
        # Where there are no links, git too writes such a file in place of one.
        return path.read_bytes()[:_LONGEST_NAME].decode().strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return ""


# ---------------------------------------------------------------- files and locks


def write_file(path: Path, content: bytes) -> None:
    """Write a file, and wait until it is on the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write(file, content)
        os.fsync(file)
    finally:
        os.close(file)


def write(file: int, content: bytes) -> None:
    """Write all of `content` to an open file."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def sync(path: Path) -> None:
    """Wait until a file, or what a folder lists, is on the disk; folders of some file systems cannot do that."""
    file = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError) if path.is_dir() else contextlib.nullcontext():
            os.fsync(file)
    finally:
        os.close(file)


def lock_file(file: int, how: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file until it is closed; return whether the file system has locks.

    Raises:
        BlockingIOError: somebody else holds the lock, and `how` says not to wait.
    """
    try:
        fcntl.flock(file, how)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


@contextlib.contextmanager
def locked(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[bool]:
    """While the block runs, hold the lock of a file, made if need be; see `lock_file`."""
    file = os.open(path, os.O_CREAT | (os.O_RDONLY if how & fcntl.LOCK_SH else os.O_RDWR), 0o666)
    try:
        yield lock_file(file, how)
    finally:
        os.close(file)


def sign(path: Path) -> None:
    """Write a file that says which machine is at work."""
    write_file(path, platform.node().encode())


def is_left_behind(path: Path, alone: bool) -> bool:
    """Return whether nobody is at work any more where a file is.

    Args:
        path: of what was left.
        alone: whether a lock keeps all others away.
    """
    with contextlib.suppress(FileNotFoundError):  # its owner has just removed it
        return alone or time.time() - path.stat().st_mtime > _ABANDONED
    return False


def is_signed_elsewhere(path: Path) -> bool:
    """Return whether another machine has signed a file. Locks in a mounted folder may say nothing about that one."""
    with contextlib.suppress(OSError):
        return not platform.node().encode().startswith(path.read_bytes())
    return False


def _checksum(path: Path) -> str:
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = google_crc32c.extend(checksum, chunk)
    return f"{checksum:08x}"
