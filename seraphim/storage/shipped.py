"""What comes with Seraphim: the trained models in `models/`.

A clone has them beside the package, an installation inside of it, in `seraphim/shipped/`, which nothing writes.
"""

import shlex
from pathlib import Path

from seraphim.errors import CLONE, ModelError
from seraphim.storage.models import ModelFolder

SHIPPED = CLONE or Path(__file__).parents[1] / "shipped"
"""The folder that holds `models/`."""


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
