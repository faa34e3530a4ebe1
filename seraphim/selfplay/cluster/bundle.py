"""A snapshot as one value, for machines that share no disk with the learner.

A parcel has all files of the snapshot. It is unpacked once on a machine, into a folder that is named by its content.
Knows snapshots as folders of files.
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

_KEPT = 8  # unpacked snapshots on a machine: those of a few learners, and the ones before


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


def unpack(parcel: bytes, parent: Path | None = None) -> Path:
    """Return a folder with the files of a parcel; many processes of a machine may ask for it at the same time.

    Args:
        parcel: what `pack` returned.
        parent: where to look for the folder, and to make it if it is not there; by default a temporary folder of this
            user, in which the latest few are kept.
    """
    parent = parent or _temporary_folder()
    folder = parent / hashlib.sha256(parcel).hexdigest()[:32]
    if not folder.is_dir():
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=parent))
        with tarfile.open(fileobj=io.BytesIO(parcel)) as archive:
            archive.extractall(unfinished, filter="data")
        try:
            unfinished.rename(folder)
        except OSError:  # another process was quicker
            shutil.rmtree(unfinished)
        _prune(parent)
    with contextlib.suppress(FileNotFoundError):
        os.utime(folder)
    return folder


def _temporary_folder() -> Path:
    # Nobody else may write there: a SavedModel is a program.
    folder = Path(tempfile.gettempdir()) / f"seraphim-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ModelError(f"{folder} must be a folder that only this user can reach: remove it, then run again")
    return folder


def _prune(parent: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # another process removes them too
        folders = sorted(parent.iterdir(), key=lambda path: path.stat().st_mtime)
        for folder in folders[:-_KEPT]:
            shutil.rmtree(folder, ignore_errors=True)
