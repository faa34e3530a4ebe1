"""Snapshots of models: their names, their metrics, and where they may lie."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seraphim.errors import SettingsError, shown
from seraphim.settings import read_json_if_valid
from seraphim.storage import atomic

MAX_NAME = 64
FIGURES = "figures.json"

_LARGEST = sys.float_info.max
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SNAPSHOT = re.compile(r"([0-9]{8,})-[0-9]{8}T[0-9]{6}Z(-[0-9]+)?")


def check_name(name: str) -> str:
    """Return a model's name if it is valid: letters, digits, `-`, `_` and `.`, not starting with `.` or `-`.

    Raises:
        SettingsError: it is not.
    """
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise SettingsError(
            f"{shown(name)} is not a valid model name: use up to {MAX_NAME} letters, digits, '-', '_' and '.', "
            "not starting with '.' or '-'"
        )
    return name


def step_of(path: Path | None) -> int:
    """Return how many batches the snapshot in a folder was trained on, as its manifest says; 0 without either."""
    step = (atomic.read_manifest(path) or {}).get("step") if path else None
    return step if type(step) is int and step >= 0 else 0


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
        """Return the metrics of its training and those added later; none if the files are missing or damaged."""
        return _numbers((atomic.read_manifest(self.path) or {}).get("metrics")) | self._added_metrics()

    def annotate(self, metrics: Mapping[str, float]) -> None:
        """Add metrics to the snapshot.

        Raises:
            FileNotFoundError: it is gone.
        """
        content = json.dumps({**self._added_metrics(), **metrics}, indent=2)
        atomic.replace_file(self.path / FIGURES, content.encode() + b"\n")

    def _added_metrics(self) -> dict[str, float]:
        return _numbers(read_json_if_valid(self.path / FIGURES))


def _numbers(metrics: object) -> dict[str, float]:
    # Those of the metrics that are numbers; others may have written the file.
    items = metrics.items() if isinstance(metrics, dict) else ()
    return {name: value for name, value in items if type(value) in (int, float) and not abs(value) > _LARGEST}


def to_snapshot(path: Path) -> Snapshot | None:
    """Return a folder as a snapshot; None if it is not named like one."""
    match = _SNAPSHOT.fullmatch(path.name)
    return Snapshot(path, int(match[1])) if match else None
