"""Makes the files of this process behave as those of a bucket that is mounted as a folder.

A rename is a copy and a removal, and others look at the copy when it is half written; folders cannot be renamed, and
there are no links and no locks.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

CALLS = ("rename", "replace", "link", "symlink")


def mount() -> None:
    """Do it, for all files, until the process ends."""
    os.rename = os.replace = rename
    os.link = refuse(errno.EPERM)
    os.symlink = refuse(errno.EPERM)
    fcntl.flock = refuse(errno.ENOLCK)


def rename(source, target, **_) -> None:
    if Path(source).is_dir():
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    content = Path(source).read_bytes()
    copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(copy, content[: len(content) // 2])
    os.write(copy, content[len(content) // 2 :])
    os.close(copy)
    Path(source).unlink()


def refuse(number: int) -> Callable[..., None]:
    def call(*arguments, **options) -> None:
        raise OSError(number, os.strerror(number))

    return call


def let_a_day_pass(folder) -> None:
    """After which nobody is thought to be at work any more at the files of a folder."""
    for path in folder.glob("*"):
        old = path.lstat().st_mtime - 25 * 3600
        os.utime(path, (old, old), follow_symlinks=False)
