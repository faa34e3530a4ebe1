"""Keras archives, taken apart and changed."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seraphim.network import saved_model


def parts_of(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(file: Path, parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def with_config(snapshot: Path, change: Callable[[dict[str, Any]], object]) -> None:
    parts = parts_of(snapshot / saved_model.ARCHIVE)
    config = json.loads(parts["config.json"])
    change(config)
    write_parts(snapshot / saved_model.ARCHIVE, {**parts, "config.json": json.dumps(config).encode()})
