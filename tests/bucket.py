"""Makes the files of this process behave as those of a bucket that is mounted as a folder.

A rename is a copy and a removal, and others look at the copy when it is half written; folders cannot be renamed, and
there are no hard links and no locks. As where s3fs mounts a bucket, symbolic links lead on to where they led after they
were replaced, a file that is removed while it is open is there again when it is closed, and one to which something was
written is not cut short before it was synced.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

_open: dict[int, str] = {}  # the files that are open to be written
_removed: set[str] = set()  # of these
_unsynced: set[int] = set()


def mount() -> None:
    """Do it, for all files, until the process ends."""
    os.open, os.close, os.unlink = open_file(os.open), close(os.close), unlink(os.unlink)
    os.write, os.fsync, os.ftruncate = write(os.write), fsync(os.fsync), ftruncate(os.ftruncate)
    os.rename = os.replace = rename
    os.link = refuse(errno.EPERM)
    fcntl.flock = refuse(errno.ENOLCK)


def rename(source, target, **_) -> None:
    if Path(source).is_symlink():
        if not Path(target).is_symlink():
            Path(target).unlink(missing_ok=True)
            Path(target).symlink_to(Path(source).readlink())
    elif Path(source).is_dir():
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    else:
        content = Path(source).read_bytes()
        copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.write(copy, content[: len(content) // 2])
        os.write(copy, content[len(content) // 2 :])
        os.close(copy)
    Path(source).unlink()


def open_file(real: Callable[..., int]) -> Callable[..., int]:
    def call(path, flags, *arguments, **options) -> int:
        file = real(path, flags, *arguments, **options)
        if flags & os.O_CREAT:
            _open[file] = str(path)
        return file

    return call


def close(real: Callable[[int], None]) -> Callable[[int], None]:
    def call(file: int) -> None:
        real(file)
        _unsynced.discard(file)
        path = _open.pop(file, None)
        if path in _removed:
            _removed.remove(path)
            Path(path).touch()

    return call


def unlink(real: Callable[..., None]) -> Callable[..., None]:
    def call(path, **options) -> None:
        real(path, **options)
        if str(path) in _open.values():
            _removed.add(str(path))

    return call


def write(real: Callable[..., int]) -> Callable[..., int]:
    def call(file: int, content: bytes) -> int:
        _unsynced.add(file)
        return real(file, content)

    return call


def fsync(real: Callable[[int], None]) -> Callable[[int], None]:
    def call(file: int) -> None:
        real(file)
        _unsynced.discard(file)

    return call


def ftruncate(real: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def call(file: int, size: int) -> None:
        if file not in _unsynced:
            real(file, size)

    return call


def refuse(number: int) -> Callable[..., None]:
    def call(*arguments, **options) -> None:
        raise OSError(number, os.strerror(number))

    return call


def let_a_day_pass(folder) -> None:
    """After which nobody is thought to be at work any more at the files of a folder."""
    for path in folder.glob("*"):
        old = path.lstat().st_mtime - 25 * 3600
        os.utime(path, (old, old), follow_symlinks=False)
