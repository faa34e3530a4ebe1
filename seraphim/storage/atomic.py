"""Crash-safe files: manifests, atomic replacement, locks.

    a folder   is published by a rename once all of it is on disk; its manifest lists its files with their sizes and
               checksums, so that later damage is found
    a file     is written beside the old one, and a rename replaces that
    a lock     is held on a file and ends with its process

This needs atomic renames, links and `flock`: a local disk, or NFS 4. `lock_file` refuses a file system without locks,
and Windows, which has other ones; `check_links` refuses a file system without links. What else differs between systems
is here as well. Knows files, not what they are for.
"""

import contextlib
import errno
import json
import os
import platform
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import google_crc32c

from seraphim.errors import SettingsError, shown
from seraphim.settings import read_json_if_valid

try:
    import fcntl
except ModuleNotFoundError:  # on Windows
    fcntl = None  # type: ignore[assignment]

MANIFEST = "snapshot.json"
"""The manifest of a folder; `files` in it has the size and the CRC32C of each file."""

_CHUNK = 1 << 20
_LONGEST_NAME = 200  # bytes; file systems take 255
_LONGEST_INSIDE = 200  # bytes of the longest path inside a folder
# What file systems answer that have no links or no locks.
_UNSUPPORTED = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENOLCK)


class HeldError(Exception):
    """Another process holds the file; the text names it."""


# ---------------------------------------------------------------- folders


def seal(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the manifest of a folder, with these facts and the folder's files, and sync everything to disk.

    Raises:
        OSError: the disk is full, for example.
    """
    (folder / MANIFEST).unlink(missing_ok=True)  # a copy of another folder may bring one along
    files = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "crc32c": _checksum(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    for path in folder.rglob("*"):
        sync(path)
    write_file(folder / MANIFEST, json.dumps({**facts, "files": files}, indent=2).encode() + b"\n")
    sync(folder)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the facts in a folder's manifest; None if it is missing or incomplete."""
    return read_json_if_valid(folder / MANIFEST)


def find_damage(folder: Path, thorough: bool = False) -> str | None:
    """Return what is wrong with a published folder, as the end of a sentence; None if nothing is.

    Compares sizes, and checksums if `thorough`.
    """
    facts = read_manifest(folder)
    if facts is None:
        return f"{MANIFEST} is missing or incomplete"
    files = facts.get("files", {})  # manifests used to have none
    if not isinstance(files, dict):
        return f"{MANIFEST} lists no files"
    for name, expected in files.items():
        try:
            damage = _find_damage_of_file(folder / name, expected["size"], expected["crc32c"] if thorough else None)
        except FileNotFoundError:
            damage = "is missing"
        except OSError as error:
            damage = f"cannot be read ({error.strerror})"
        except (KeyError, TypeError, ValueError):
            return f"{MANIFEST} is not valid"
        if damage:
            return f"{name} {damage}"
    return None


def _find_damage_of_file(path: Path, size: int, checksum: str | None) -> str | None:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_size != size:
        return f"has {status.st_size:,} bytes, not {size:,}"
    if checksum is not None and _checksum(path) != checksum:
        return "is damaged: its checksum is wrong"
    return None


def _checksum(path: Path) -> str:
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = google_crc32c.extend(checksum, chunk)
    return f"{checksum:08x}"


# ---------------------------------------------------------------- files


def check_path(**given: object) -> None:
    """Check that the system takes each path, a name of one line, also for what is inside if it is a folder.

    Raises:
        SettingsError: it does not; with the name of the argument.
    """
    for argument, path in given.items():
        if not isinstance(path, str | Path) or not _is_path(path):
            raise SettingsError(f"{argument} must be the name of a file or folder, not {shown(path)}")


def _is_path(path: str | Path) -> bool:
    try:
        os.lstat(Path(path, _LONGEST_INSIDE * "x"))
    except ValueError:  # a NUL, or a character that no name has
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
    return len(str(path).splitlines()) <= 1


def check_file_name(path: Path) -> None:
    """Check that a path can be that of a file to write, which has a longer name until it is complete.

    Raises:
        SettingsError: it has no name, or a longer one.
    """
    if not _is_path(path) or path.name in ("", "..") or len(os.fsencode(path.name)) > _LONGEST_NAME:
        raise SettingsError(f"{shown(str(path))} is not the name of a file: expected one of 1 to {_LONGEST_NAME} bytes")


def write_file(path: Path, content: bytes) -> None:
    """Write a file and sync it to disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
    try:
        write(file, content)
        os.fsync(file)
    finally:
        os.close(file)


def replace_file(path: Path, content: bytes, unfinished: str | None = None) -> None:
    """Write a file, atomically replacing an older one; readers see the old content or the new, never a mixture.

    Until it is complete, it is named `unfinished`, by default after the file.

    Raises:
        OSError: the disk is full, for example, the old file is still there; or that is a folder or a device.
    """
    with replacing(path, unfinished) as file:
        write(file.fileno(), content)


@contextlib.contextmanager
def replacing(path: Path, unfinished: str | None = None) -> Iterator[BinaryIO]:
    """Yield a file to write; as `replace_file`, when the block ends without an error."""
    temporary = path.with_name(unfinished or f".{path.name}.unfinished")
    check_regular(path)
    check_regular(temporary)
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def check_regular(path: Path, pipes: bool = False) -> None:
    """Raise an OSError if a path is a folder or a device, which may have no end, and which no file should replace.

    One that is not there passes, and so do `pipes` where they may be read.
    """
    if path.exists() and not (path.is_file() or (pipes and path.is_fifo())):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def write(file: int, content: bytes) -> None:
    """Write all of `content` to an open file."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def sync(path: Path) -> None:
    """Wait until a file, or the listing of a folder, is on disk; not on Windows, which opens no folders."""
    if os.name == "nt":
        return
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


# ---------------------------------------------------------------- locks, and what the file system must offer


def lock_file(file: int, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file until it is closed; several processes may hold a `shared` lock.

    Raises:
        BlockingIOError: another process holds the lock, and this one does not `wait`.
        SettingsError: the file system has no locks, or this is Windows.
    """
    if fcntl is None:
        raise SettingsError("models and games are not written on Windows, which has no flock: run Seraphim in WSL")
    with _required("locks (flock)"):
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


@contextlib.contextmanager
def locked(path: Path, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file, which is created if necessary, during the block; see `lock_file`."""
    check_regular(path)
    file = os.open(path, os.O_CREAT | (os.O_RDONLY if shared else os.O_RDWR), 0o666)
    try:
        lock_file(file, shared, wait)
        yield
    finally:
        os.close(file)


@contextlib.contextmanager
def hold(path: Path, remove: bool = False) -> Iterator[None]:
    """Hold a file during the block, with the name of this process in it; a second process is refused, not delayed.

    Args:
        path: the file.
        remove: whether to remove it in the end.

    Raises:
        HeldError: another process holds it, or this one already does.
        OSError: the file cannot be written.
    """
    check_regular(path)
    with path.open("a+", encoding="utf-8", errors="backslashreplace") as file:  # of arguments that may be anything
        try:
            lock_file(file.fileno(), wait=False)
        except BlockingIOError:
            file.seek(0)
            raise HeldError(file.read().strip() or "a process that is just starting") from None
        if not (path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))):
            raise HeldError("a process that is just ending")  # it removed this file
        command = f"{sys.argv[0]} {shlex.join(sys.argv[1:])}"
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()} ({command}), since {datetime.now(UTC):%F %T} UTC\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
            if remove:
                path.unlink(missing_ok=True)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock of a file; a file that cannot be read counts as free."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            lock_file(file.fileno(), shared=True, wait=False)
    except BlockingIOError:
        return True
    except (OSError, SettingsError):  # it is a folder, gone, or not readable
        return False
    return False


def check_links(folder: Path) -> None:
    """Check that the file system has links, and renames that replace them; the caller holds a lock of the folder.

    Mounted buckets have no hard links, and their renames are copies that other programs can see half-written.

    Raises:
        SettingsError: it lacks one of them.
    """
    link, target = folder / ".check-link", folder / ".check-target"
    link.unlink(missing_ok=True)
    target.unlink(missing_ok=True)
    with _required("symbolic links that are replaced by a rename"):
        link.symlink_to("nowhere")
        target.touch()
        link.replace(target)
    with _required("hard links"):
        target.unlink()
        target.touch()
        os.link(target, link)
    link.unlink()
    target.unlink()


@contextlib.contextmanager
def _required(what: str) -> Iterator[None]:
    # Names what the file system lacks; other errors pass through.
    try:
        yield
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        raise SettingsError(
            f"this file system has no {what}: keep models and game data on a local disk or NFS 4, "
            "see docs/storage.md (SERAPHIM_DATA names the folder)"
        ) from error
