"""Folders from model hubs: what is read of them, and what is refused in a sentence."""

import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import seraphim
from seraphim.errors import ModelError, SeraphimError, SettingsError
from seraphim.network.saved_model import ARCHIVE
from seraphim.players import hub
from seraphim.storage import atomic
from seraphim.storage.models import ModelFolder

SECRET = "secret.txt"  # beside the folder


@pytest.fixture
def downloaded(folder: ModelFolder, tmp_path: Path) -> Path:
    """Return a folder as an export writes it, without ONNX and card."""
    path = tmp_path / "downloaded"
    shutil.copytree(folder.champion().path, path)
    shutil.copyfile(folder.path / "settings.json", path / "settings.json")
    (path / "README.md").write_text("# A card\n")
    (path / ".git").mkdir()
    (path / ".git/link").symlink_to("nowhere")  # what downloads keep for themselves is left alone
    (tmp_path / SECRET).write_text("secret")
    return path


def test_a_folder_is_loaded_from_anywhere_and_needs_no_trust(downloaded: Path, folder: ModelFolder) -> None:
    model = seraphim.load(downloaded)
    assert model.analyze("b2") == seraphim.load(folder.path).analyze("b2")
    assert seraphim.load(downloaded, readouts=7, runtime="litert").analyze("b2").readouts == 7
    (downloaded / "README.md").write_text("# Another card\n")  # as people do on a hub
    assert seraphim.load(str(downloaded)).step == model.step


def test_a_link_to_a_folder_is_as_good_as_the_folder(downloaded: Path) -> None:
    (downloaded.parent / "link").symlink_to(downloaded)
    assert seraphim.load(downloaded.parent / "link").game.name == "tictactoe"


def change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def list_file(path: Path, name: str) -> None:
    files = json.loads((path / atomic.MANIFEST).read_text())["files"]
    change(path / atomic.MANIFEST, files={**files, name: {"size": 6, "crc32c": "00000000"}})


def link(path: Path, name: str) -> None:
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(path.parent / SECRET)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def reseal(path: Path) -> None:
    """Make the manifest fit, as an attacker does."""
    manifest = json.loads((path / atomic.MANIFEST).read_text())
    shutil.move(path / ".git", path.parent / "git")
    atomic.seal(path, {"step": manifest["step"]})


def with_other_classes(path: Path) -> None:
    with zipfile.ZipFile(path / ARCHIVE) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries["config.json"] = entries["config.json"].replace(b'"Dense"', b'"Lambda"')
    with zipfile.ZipFile(path / ARCHIVE, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    reseal(path)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda path: (path / "saved_model.pb").unlink(),
            "does not hold settings.json and the files that snapshot.json",
        ),
        (lambda path: (path / ARCHIVE).unlink(), "does not hold settings.json and the files"),
        (lambda path: (path / "settings.json").unlink(), "does not hold settings.json and the files"),
        (
            lambda path: (path / "snapshot.json").unlink(),
            "is not the path of a model: expected models/NAME, or the name",
        ),
        (lambda path: (path / "snapshot.json").write_text("[]"), "does not hold settings.json and the files"),
        (lambda path: change(path / "snapshot.json", files=["saved_model.pb"]), "does not hold settings.json"),
        (lambda path: list_file(path, f"../{SECRET}"), "does not hold settings.json and the files"),
        (lambda path: list_file(path, str(path.parent / SECRET)), "does not hold settings.json and the files"),
        (lambda path: list_file(path, "README.md"), "is damaged: README.md has 9 bytes, not 6"),
        (lambda path: (path / "variables/more").write_text("x"), "does not hold settings.json and the files"),
        (lambda path: flip(path / "saved_model.pb"), "is damaged: saved_model.pb is damaged: its checksum is wrong"),
        (lambda path: link(path, "saved_model.pb"), "saved_model.pb is a link or no file: get plain files"),
        (lambda path: link(path, "notes.txt"), "notes.txt is a link or no file"),
        (lambda path: (path / "variables/loop").symlink_to(path), "loop is a link or no file"),
        (lambda path: os.mkfifo(path / "notes.txt"), "notes.txt is a link or no file"),
        (lambda path: [(path / f"{number}.txt").touch() for number in range(100)], "has over 100 files or 4 GiB"),
        (lambda path: huge(path / "extra.bin"), "has over 100 files or 4 GiB"),
        (lambda path: (path / "settings.json").write_text("{"), "settings.json is not valid JSON"),
        (lambda path: change(path / "settings.json", network={"width": -1}), "settings.json: width must be"),
        (lambda path: change(path / "settings.json", game="connectfour"), "connectfour"),
        (lambda path: change(path / "settings.json", game="../tictactoe"), "is not a game"),
        (with_other_classes, "model.keras holds Lambda, which no network of Seraphim does"),
        (lambda path: [(path / ARCHIVE).write_bytes(b"no archive"), reseal(path)], "model.keras is damaged"),
    ],
)
def test_a_folder_that_others_changed_is_refused(
    downloaded: Path, spoil: Callable[[Path], object], sentence: str
) -> None:
    spoil(downloaded)
    with pytest.raises(SeraphimError, match=re.escape(sentence)) as error:
        seraphim.load(downloaded)
    assert "\n" not in str(error.value)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(5 << 30)  # takes no room


def test_no_module_is_imported_by_the_name_in_a_folder(
    downloaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "foreign_rules.py"
    module.write_text("from tictactoe import GAME\nprint('run')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    change(downloaded / "settings.json", game="foreign_rules")
    with pytest.raises(ModelError, match="'foreign_rules', which does not come with Seraphim: import its module first"):
        seraphim.load(downloaded)
    assert "foreign_rules" not in sys.modules
    import foreign_rules  # noqa: F401

    try:
        assert seraphim.load(downloaded).play("a1 b1 a2 b2") == "a3"
    finally:
        del sys.modules["foreign_rules"]


def test_trust_imports_the_game_that_a_folder_names(
    downloaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trusted_rules.py").write_text("from tictactoe import GAME\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    change(downloaded / "settings.json", game="trusted_rules")
    assert seraphim.load(downloaded, trust=True).game.name == "tictactoe"
    del sys.modules["trusted_rules"]


def test_a_folder_has_one_snapshot(downloaded: Path) -> None:
    with pytest.raises(SettingsError, match="holds one snapshot: leave snapshot='newest' out"):
        seraphim.load(downloaded, snapshot="newest")


def test_folders_of_models_are_none_of_a_hub(folder: ModelFolder) -> None:
    assert not hub.is_hub_folder(folder.path)
    assert not hub.is_hub_folder(folder.champion().path)
