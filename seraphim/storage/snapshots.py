"""Snapshots of models: their names, their figures, and where they may lie."""

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seraphim.errors import ModelError, SettingsError
from seraphim.storage import atomic

MAX_NAME = 64
FIGURES = "figures.json"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SNAPSHOT = re.compile(r"([0-9]{8,})-[0-9]{8}T[0-9]{6}Z(-[0-9]+)?")


def check_name(name: str) -> str:
    """Return a model's name if it is one: letters, digits, `-`, `_` and `.`, not starting with `.` or `-`.

    Raises:
        SettingsError: it is not.
    """
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} cannot be the name of a model: use up to {MAX_NAME} letters, digits, '-', '_' and '.', "
            "not starting with '.' or '-'"
        )
    return name


@dataclass(frozen=True)
class Snapshot:
    """One trained generation of a model on disk."""

    path: Path
    """Its folder."""
    step: int
    """Batches that the model had been trained on."""

    @property
    def name(self) -> str:
        """Return the folder's name."""
        return self.path.name

    def metrics(self) -> dict[str, float]:
        """Return its figures, those of its training and those added later; none if the files are missing or damaged."""
        figures: dict[str, float] = {}
        with contextlib.suppress(KeyError, TypeError, ValueError):
            figures |= (atomic.read_manifest(self.path) or {})["metrics"]
        with contextlib.suppress(OSError, TypeError, ValueError):
            figures |= json.loads((self.path / FIGURES).read_text())
        return figures


def annotate(snapshot: Snapshot, metrics: Mapping[str, float]) -> None:
    """Add figures to those of a snapshot.

    Raises:
        FileNotFoundError: it is gone.
    """
    file = snapshot.path / FIGURES
    known: dict[str, float] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(file.read_text())
    atomic.replace_file(file, json.dumps({**known, **metrics}, indent=2).encode() + b"\n")


def check_inside(path: Path, models: Path) -> None:
    """Check that a folder lies in `models/`, after all links.

    Raises:
        ModelError: it does not.
    """
    if not path.resolve().is_relative_to(models.resolve()):
        raise ModelError(
            f"{path} lies outside {models.resolve()}, and a model can run what its maker put into it: "
            "if you trust that person, add --trust"
        )


def to_snapshot(path: Path) -> Snapshot | None:
    """Return a folder as a snapshot; None if it has not the name of one."""
    match = _SNAPSHOT.fullmatch(path.name)
    return Snapshot(path, int(match[1])) if match else None
