"""Where models are: below the data root; and the trained ones that come with Seraphim, in its own `models/`.

A clone has them beside the package, an installation inside of it, in `seraphim/shipped/`, which nothing writes.
"""

import os
import shlex
from pathlib import Path

from seraphim.errors import CLONE, ModelError, SettingsError, shown
from seraphim.storage.models import ModelFolder

SHIPPED = CLONE or Path(__file__).parents[1] / "shipped"
"""The folder that holds `models/`."""


def data_root(folder: str | Path | None = None) -> Path:
    """Return the folder that holds `models/` and `gamedata/`: this one, else SERAPHIM_DATA, else the current folder.

    Raises:
        SettingsError: it is a URL, such as that of a bucket; or a name that TensorFlow cannot be given.
    """
    if folder is not None:
        return Path(folder)
    root = os.environ.get("SERAPHIM_DATA") or "."
    if root.encode(errors="ignore").decode() != root:
        raise SettingsError(f"SERAPHIM_DATA is {shown(root)}, which is not UTF-8: rename it, or set LC_ALL=C.UTF-8")
    if "://" in root:
        raise SettingsError(f"SERAPHIM_DATA must be a folder, not {root}: buckets are for copies, see docs/storage.md")
    return Path(root)


def find_model(root: Path, name: str, trust: bool = False) -> ModelFolder:
    """Return the folder of a model below `root`, or else that of the one that comes with Seraphim, to read it.

    Raises:
        SettingsError: the name is not valid.
    """
    own, shipped = ModelFolder(root, name, trust), ModelFolder(SHIPPED, name, trust)
    return own if _exists(own) or not _exists(shipped) else shipped


def own_model(root: Path, name: str, trust: bool = False) -> ModelFolder:
    """Return the folder of a model below `root`, to write it.

    Raises:
        SettingsError: the name is not valid.
        ModelError: the model is not there, but comes with Seraphim.
    """
    own, found = ModelFolder(root, name, trust), find_model(root, name, trust)
    if found.path != own.path:
        models = shlex.quote(str(own.path.parent))
        copy = f"mkdir -p {models} && cp -R {shlex.quote(str(found.path))} {models}"
        raise ModelError(f"model {name!r} is bundled and read-only: copy it first: {copy}")
    return own


def _exists(folder: ModelFolder) -> bool:
    return not folder.is_new() or bool(folder.folders())
