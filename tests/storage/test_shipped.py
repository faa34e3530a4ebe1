"""What comes with Seraphim is found from any folder, and never written."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from seraphim import errors
from seraphim.errors import ModelError, version
from seraphim.players.roster import Roster
from seraphim.storage.models import ModelFolder
from seraphim.storage.shipped import SHIPPED, find_model, own_model


def test_a_model_that_comes_with_it_is_found_where_there_is_none_of_that_name(tmp_path: Path) -> None:
    assert find_model(tmp_path, "tictactoe").path == SHIPPED / "models" / "tictactoe"
    (tmp_path / "models/tictactoe/logs").mkdir(parents=True)  # which evaluating it makes
    assert find_model(tmp_path, "tictactoe").path == SHIPPED / "models" / "tictactoe"
    assert find_model(tmp_path, "nobody").path == tmp_path / "models" / "nobody"


def test_an_own_model_of_that_name_comes_first(root: Path) -> None:
    shutil.move(root / "models/fresh", root / "models/tictactoe")
    assert find_model(root, "tictactoe").path == own_model(root, "tictactoe").path == root / "models" / "tictactoe"


def test_a_damaged_own_model_is_not_replaced_by_another(root: Path) -> None:
    own = root / "models" / "tictactoe"
    shutil.move(root / "models/fresh", own)
    (own / "champion").unlink()
    for manifest in own.glob("*/snapshot.json"):
        manifest.unlink()
    assert find_model(root, "tictactoe").path == own


def test_who_writes_is_told_how_to_copy_it(tmp_path: Path) -> None:
    root = tmp_path / "a folder"
    root.mkdir()
    with pytest.raises(ModelError, match="model 'tictactoe' is bundled and read-only: copy it first") as error:
        own_model(root, "tictactoe")
    assert not list(root.iterdir())
    subprocess.run(str(error.value).rpartition(": ")[2], shell=True, check=True)
    copied = own_model(root, "tictactoe")
    assert copied.champion().name == ModelFolder(SHIPPED, "tictactoe").champion().name
    assert shlex.quote(str(root / "models")) in str(error.value)


def test_a_standing_tournament_does_not_write_into_it(tmp_path: Path) -> None:
    roster = Roster(tmp_path, None, games=2)
    assert [entrant.name for entrant in roster.entrants(["tictactoe", "random"])] == ["tictactoe", "random"]
    with pytest.raises(ModelError, match="is bundled and read-only: copy it first"):
        roster.folder_of(["tictactoe", "random"])


def test_an_installation_has_its_version_from_its_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    here = version()
    assert f"\nversion = {here}\n" in (SHIPPED / "setup.cfg").read_text()
    monkeypatch.setattr(errors, "CLONE", None)
    monkeypatch.setattr(errors, "DISTRIBUTION", "numpy")
    assert version() != here
