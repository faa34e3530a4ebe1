"""A folder as `seraphim export --format=hub` writes it, read from anywhere: checked, and nothing of it is run."""

import sys
from itertools import islice
from pathlib import Path

from seraphim.errors import ModelError, shown
from seraphim.network import safety, saved_model
from seraphim.settings import Settings, load_settings
from seraphim.storage import atomic
from seraphim.storage.shipped import SHIPPED
from seraphim.storage.snapshots import Snapshot, step_of

_SETTINGS = "settings.json"
_MOST_FILES = 100  # a folder has about fifteen
_MOST_BYTES = 4 << 30  # AlphaGo Zero's network has 0.5 GB with its optimizer's state
_READ = {"saved_model.pb", "variables", "assets", "assets.extra"}  # what a network is loaded from


def is_hub_folder(path: Path) -> bool:
    """Return whether a path is meant as such a folder: it has a snapshot's manifest, and lies in no model."""
    parent = path.absolute().parent
    in_model = parent.name in ("models", "gamedata") or (parent / _SETTINGS).is_file()
    return (path / atomic.MANIFEST).is_file() and not in_model


def read_hub(path: Path, trust: bool = False) -> tuple[Settings, Snapshot]:
    """Return the settings and the snapshot in a folder after checking its files.

    Args:
        path: of the folder.
        trust: whether its game may be any module, which is imported when the model is made.

    Raises:
        ModelError: it holds anything but plain files, too many or too large ones, others than its manifest lists, an
            archive that `safety` refuses, or the settings of a game that does not come with Seraphim.
        SettingsError: its settings are not valid.
    """
    root = path.resolve()
    present = _plain_files(root)
    files = (atomic.read_manifest(root) or {}).get("files")
    listed = set(files) if isinstance(files, dict) else set()
    used = {name for name in present if name.split("/")[0] in _READ} | {str(saved_model.ARCHIVE)}
    if _SETTINGS not in present or not used <= listed <= present:
        raise ModelError(f"{path} does not hold {_SETTINGS} and the files that {atomic.MANIFEST} lists: get it again")
    if damage := atomic.find_damage(root, thorough=True):
        raise ModelError(f"{path} is damaged: {damage}: get it again")
    settings = load_settings(root / _SETTINGS)
    game = settings.game
    # The function of a family, such as openspiel:chess, is installed; any other name may be of any module there is.
    if not (trust or ":" in game or game in sys.modules or (SHIPPED / "models" / game).is_dir()):
        raise ModelError(
            f"{path} names the game {shown(game)}, which does not come with Seraphim: import its module first, or add "
            "trust=True if you trust the source"
        )
    safety.check_archive(root / saved_model.ARCHIVE)
    return settings, Snapshot(root, step_of(root))


def _plain_files(root: Path) -> set[str]:
    # The names of the files, without those in hidden folders, where programs that download keep theirs.
    paths = (each for each in root.rglob("*") if not each.relative_to(root).parts[0].startswith("."))
    found = list(islice(paths, _MOST_FILES + 1))
    for each in found:
        if each.is_symlink() or not (each.is_file() or each.is_dir()):
            raise ModelError(f"{each} is a link or no file: get plain files, as hf download --local-dir does")
    files = [each for each in found if each.is_file()]
    if len(found) > _MOST_FILES or sum(each.stat().st_size for each in files) > _MOST_BYTES:
        raise ModelError(
            f"{root} has over {_MOST_FILES} files or {_MOST_BYTES >> 30} GiB: no exported model is so large"
        )
    return {each.relative_to(root).as_posix() for each in files}
