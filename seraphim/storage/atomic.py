"""How files appear whole: manifests, pointers, files that are replaced, locks.

    a folder    is published by a rename when all of it is on the disk. Its manifest lists its files, with their sizes
                and checksums, so that damage is seen later
    a pointer   is a symbolic link, which a rename replaces
    a file      is written beside the old one, which a rename replaces
    a lock      is held on a file, and ends with its process

This takes a file system with atomic renames, links and `flock`: a local disk, or NFS 4. `locked` refuses one without
locks, `check_links` one without links. Knows files, not what they are for.
"""

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import google_crc32c

from seraphim.errors import SettingsError

MANIFEST = "snapshot.json"
"""The manifest of a folder; `files` in it has the size and the CRC32C of each file."""

_FILES = "files"
_CHUNK = 1 << 20
# What file systems answer that have no links, or no locks.
_MISSING = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENOLCK)


# ---------------------------------------------------------------- folders


def seal(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the manifest of a folder, with these facts and the folder's files, and wait until all is on the disk.

    Raises:
        OSError: the disk is full, say.
    """
    (folder / MANIFEST).unlink(missing_ok=True)  # which a copy of another folder may bring along
    files = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "crc32c": _checksum(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    for path in folder.rglob("*"):
        sync(path)
    write_file(folder / MANIFEST, json.dumps({**facts, _FILES: files}, indent=2).encode() + b"\n")
    sync(folder)


def move(folder: Path, target: Path) -> None:
    """Give a folder another name beside its own, at once, and wait until that is on the disk."""
    folder.rename(target)
    sync(target.parent)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the facts in a folder's manifest; None if it is missing or not whole."""
    try:
        facts = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def fault(folder: Path, thorough: bool = False) -> str | None:
    """Return what is wrong with a published folder, as the end of a sentence; None if nothing is.

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
    """A symbolic link to one of the folders beside it."""

    def __init__(self, path: Path, is_published: Callable[[str], bool]) -> None:
        """Prepare.

        Args:
            path: of the link.
            is_published: returns whether there is a folder of a name, and it is whole.
        """
        self._path = path
        self._next = path.with_name(f".next-{path.name}")
        self._is_published = is_published

    def read(self) -> str | None:
        """Return the name of the folder that the link leads to, nothing if it is no link; None if there is none."""
        return _read_link(self._path)

    def announce(self, name: str) -> None:
        """Say where the link is to lead, which it does after `succeed`; the folder need not be there yet."""
        self._next.unlink(missing_ok=True)
        self._next.symlink_to(name)
        sync(self._next.parent)

    def succeed(self) -> None:
        """Lead where it was announced, if that folder was published; can be broken off anywhere, and done again."""
        following = _read_link(self._next)
        if following is None:
            return
        if self._is_published(following):
            self._next.replace(self._path)
        else:
            self._next.unlink()
        sync(self._path.parent)


def _read_link(path: Path) -> str | None:
    if path.is_symlink():
        return str(path.readlink())
    return "" if path.exists() else None


# ---------------------------------------------------------------- files and locks


def write_file(path: Path, content: bytes) -> None:
    """Write a file, and wait until it is on the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write(file, content)
        os.fsync(file)
    finally:
        os.close(file)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in place of an older one, if there is one; whoever looks sees the old one or all of the new one.

    Raises:
        OSError: the disk is full, say; the old file is still there.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        write_file(unfinished, content)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write(file: int, content: bytes) -> None:
    """Write all of `content` to an open file."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def sync(path: Path) -> None:
    """Wait until a file, or what a folder lists, is on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def lock_file(file: int, how: int = fcntl.LOCK_EX) -> None:
    """Lock an open file until it is closed.

    Raises:
        BlockingIOError: somebody else holds the lock, and `how` says not to wait.
        SettingsError: the file system has no locks.
    """
    with _needed("locks (flock)"):
        fcntl.flock(file, how)


@contextlib.contextmanager
def locked(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """While the block runs, hold the lock of a file, made if need be; see `lock_file`."""
    file = os.open(path, os.O_CREAT | (os.O_RDONLY if how & fcntl.LOCK_SH else os.O_RDWR), 0o666)
    try:
        lock_file(file, how)
        yield
    finally:
        os.close(file)


def check_links(folder: Path) -> None:
    """Check that a file system has links, and renames that replace them; the caller holds a lock of the folder.

    Buckets that are mounted as folders have no hard links, and their renames are copies, which others see half-written.

    Raises:
        SettingsError: it has not.
    """
    link, target = folder / ".check-link", folder / ".check-target"
    link.unlink(missing_ok=True)
    target.unlink(missing_ok=True)
    with _needed("symbolic links that are replaced by a rename"):
        link.symlink_to("nowhere")
        target.touch()
        link.replace(target)
    with _needed("hard links"):
        target.unlink()
        target.touch()
        os.link(target, link)
    link.unlink()
    target.unlink()


@contextlib.contextmanager
def _needed(what: str) -> Iterator[None]:
    # Tells what a file system lacks; other errors pass.
    try:
        yield
    except OSError as error:
        if error.errno not in _MISSING:
            raise
        raise SettingsError(
            f"this file system has no {what}: keep models and game data on a local disk or NFS 4, "
            "see docs/storage.md (SERAPHIM_DATA names the folder)"
        ) from error


def _checksum(path: Path) -> str:
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = google_crc32c.extend(checksum, chunk)
    return f"{checksum:08x}"
