"""A snapshot as one value, for machines that share no disk with the learner.

A bundle has all files of the snapshot. Each machine unpacks it once, into a folder that is named after its content.
"""

import contextlib
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from seraphim.errors import ModelError

_MAX_UNPACKED = 8  # snapshots on a machine: those of a few learners, and the ones before


def pack(snapshot: Path) -> bytes:
    """Return the files of a snapshot; the same files give the same bytes.

    Raises:
        ModelError: the snapshot is gone.
    """
    buffer = io.BytesIO()
    try:
        if not snapshot.is_dir():
            raise FileNotFoundError
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path in sorted(path for path in snapshot.rglob("*") if path.is_file()):
                entry = tarfile.TarInfo(str(path.relative_to(snapshot)))
                entry.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(entry, file)
    except FileNotFoundError as error:
        raise ModelError(f"{snapshot} is gone: another program removed it; run again") from error
    return buffer.getvalue()


def unpack(bundle: bytes, parent: Path | None = None) -> Path:
    """Return a folder with the files of a bundle; many processes of a machine may call this at the same time.

    The folder is in `parent`, by default a temporary folder of this user, which keeps the latest few.
    """
    parent = parent or _temporary_folder()
    folder = parent / hashlib.sha256(bundle).hexdigest()[:32]
    if not folder.is_dir():
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=parent))
        with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
            archive.extractall(unfinished, filter="data")
        try:
            unfinished.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
        with contextlib.suppress(FileNotFoundError):  # another process removes them as well
            for old in sorted(parent.iterdir(), key=lambda path: path.stat().st_mtime)[:-_MAX_UNPACKED]:
                shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.utime(folder)
    return folder


def _temporary_folder() -> Path:
    # No other user may write there: a SavedModel is a program.
    folder = Path(tempfile.gettempdir()) / f"seraphim-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ModelError(f"{folder} must be accessible to this user only: remove it, then run again")
    return folder
