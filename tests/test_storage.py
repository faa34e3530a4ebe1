"""Manifests, pointers and locks: what counts as published, on a local disk and on a bucket mounted as a folder.

That nothing half is ever seen, whatever call a program is killed at, is checked by `crashing_store` and
`crashing_writer`, in test_store.py and test_records.py.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from seraphim import storage
from seraphim.errors import ModelError
from seraphim.settings import default_settings
from seraphim.store import ModelFolder, Snapshot

HERE = Path(__file__).parent


def write(path: Path) -> None:
    (path / "variables").mkdir()
    (path / "variables" / "data").write_bytes(b"weights")


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """Return a folder that was published."""
    folder = tmp_path / "sealed"
    folder.mkdir()
    write(folder)
    storage.seal(folder, {"step": 3})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    """Return the folder of a model with three snapshots, of which the second is the champion."""
    folder = ModelFolder(tmp_path, "first")
    folder.create(default_settings("tictactoe"))
    for step in range(3):
        folder.publish(step, write, promote=partial(step.__eq__, 1))
    return folder


def test_a_manifest_lists_every_file_with_its_size_and_checksum(sealed: Path) -> None:
    assert json.loads((sealed / "snapshot.json").read_text()) == {
        "step": 3,
        "files": {"variables/data": {"size": 7, "crc32c": crc32c(b"weights")}},
    }
    assert crc32c(b"123456789") == "e3069283"  # as in the definition of CRC32C
    assert storage.fault(sealed, thorough=True) is None


def crc32c(content: bytes) -> str:
    """The slow and obvious form, a bit at a time."""
    checksum = 0xFFFFFFFF
    for byte in content:
        checksum ^= byte
        for _ in range(8):
            checksum = checksum >> 1 ^ (0x82F63B78 if checksum & 1 else 0)
    return f"{checksum ^ 0xFFFFFFFF:08x}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "variables/data is missing"),
        (b"weight", "variables/data has 6 bytes, not 7"),
        (b"WEIGHTS", "variables/data is damaged: its checksum is wrong"),
    ],
)
def test_a_file_that_does_not_match_is_named(sealed: Path, content: bytes | None, message: str) -> None:
    (sealed / "variables/data").unlink()
    if content is not None:
        (sealed / "variables/data").write_bytes(content)
    assert storage.fault(sealed, thorough=True) == message
    # Without reading the file, only its size tells.
    assert (storage.fault(sealed) is None) == (content == b"WEIGHTS")


def test_a_manifest_cut_short_anywhere_publishes_nothing(sealed: Path) -> None:
    whole = (sealed / "snapshot.json").read_bytes()
    for length in range(len(whole.rstrip())):
        (sealed / "snapshot.json").write_bytes(whole[:length])
        assert storage.fault(sealed) is not None, length
    (sealed / "snapshot.json").unlink()
    assert storage.fault(sealed) == "snapshot.json is missing or not whole"


@pytest.mark.parametrize("files", [[], {"variables/data": 7}, {"variables/data": {"size": 7}}, {"\0": {"size": 1}}])
def test_a_manifest_of_nonsense_is_no_manifest(sealed: Path, files: object) -> None:
    (sealed / "snapshot.json").write_text(json.dumps({"files": files}))
    assert storage.fault(sealed, thorough=True)


def test_a_manifest_cannot_make_us_read_a_device(sealed: Path) -> None:
    files = {"/dev/zero": {"size": 0, "crc32c": ""}}
    (sealed / "snapshot.json").write_text(json.dumps({"files": files}))
    assert storage.fault(sealed, thorough=True) == "/dev/zero is no file"


def test_a_snapshot_with_a_missing_file_is_none(folder: ModelFolder) -> None:
    first, champion, last = folder.snapshots()
    (last.path / "variables/data").unlink()
    assert folder.snapshots() == [first, champion]
    assert folder.folders() == [first, champion, last]
    with pytest.raises(ModelError, match="has no snapshot"):
        folder.snapshot(last.name)
    (champion.path / "variables/data").write_bytes(b"half")
    with pytest.raises(
        ModelError, match=f"is damaged: .*: variables/data has 4 bytes, not 7; try: ln -sfn {first.name}"
    ):
        folder.champion()


def test_a_snapshot_from_before_there_were_lists_of_files_counts(folder: ModelFolder) -> None:
    champion = folder.champion()
    (champion.path / "snapshot.json").write_text('{"step": 1, "metrics": {"loss": 0.5}}')
    assert folder.champion() == champion
    assert champion.metrics() == {"loss": 0.5}


def test_a_file_may_be_the_pointer_as_git_writes_it_where_there_are_no_links(folder: ModelFolder) -> None:
    champion = folder.champion()
    (folder.path / "champion").unlink()
    (folder.path / "champion").write_text(champion.name)
    assert folder.champion() == champion
    folder.promote(folder.snapshots()[2])
    assert folder.champion().step == 2
    assert not folder.is_new()


def test_the_cure_of_a_pointer_in_a_file_is_a_file(folder: ModelFolder) -> None:
    (folder.path / "champion").unlink()
    (folder.path / "champion").write_text("00000009-20250101T000000Z\n")
    with pytest.raises(ModelError, match=f"leads nowhere; try: echo {folder.snapshots()[2].name} > "):
        folder.champion()


@pytest.mark.parametrize("torn", ["", "0000", None])
def test_while_the_pointer_is_replaced_the_next_one_counts(folder: ModelFolder, torn: str | None) -> None:
    champion, after = folder.snapshots()[1:]
    (folder.path / "champion").unlink()
    (folder.path / ".next-champion").write_text(f"{after.name}\n")
    if torn is not None:
        (folder.path / "champion").write_text(torn)
    assert folder.champion() == after
    # As long as the old one can be read, it counts; the next that writes finishes the rest.
    (folder.path / "champion").write_text(champion.name)
    assert folder.champion() == champion
    folder.recover()
    assert folder.champion() == after
    assert not (folder.path / ".next-champion").exists()


def test_what_is_being_written_is_left_alone_for_a_day_where_there_are_no_locks(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
import bucket
from seraphim.settings import default_settings
from seraphim.store import ModelFolder
bucket.mount()
folder = ModelFolder(Path(sys.argv[1]), "first")
if folder.is_new():
    folder.create(default_settings("tictactoe"))
    folder.publish(1, lambda path: os._exit(9))
folder.publish(2, lambda path: (path / "weights").write_text("weights"), promote=lambda: True)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])}
    command = [sys.executable, "-c", program, tmp_path]
    assert subprocess.run(command, env=environment, check=False).returncode == 9
    folder = ModelFolder(tmp_path, "first")
    (unfinished,) = folder.folders()
    shutil.copytree(folder.path, tmp_path / "models" / "later")
    subprocess.run(command, env=environment, check=True)
    assert [each.step for each in folder.folders()] == [1, 2]
    assert folder.snapshots() == [folder.champion()]
    assert (folder.path / "champion").read_text() == f"{folder.champion().name}\n"  # no link
    marker = folder.path / f".unfinished-{unfinished.name}"
    os.utime(marker, (time.time() - 90_000,) * 2)
    subprocess.run(command, env=environment, check=True)
    assert [each.step for each in folder.folders()] == [2, 2]


def test_a_marker_does_not_remove_what_was_published(folder: ModelFolder) -> None:
    first = folder.snapshots()[0]
    (folder.path / f".unfinished-{first.name}").touch()  # killed between the manifest and this
    folder.recover()
    assert first in folder.snapshots()
    assert not list(folder.path.glob(".unfinished*"))


def test_what_another_machine_writes_is_left_alone_for_a_day(folder: ModelFolder) -> None:
    # Whose locks may be unknown here, as on most mounted buckets.
    name = "00000007-20250101T000000Z"
    (folder.path / name).mkdir()
    marker = folder.path / f".unfinished-{name}"
    marker.write_text("elsewhere")
    folder.recover()
    assert (folder.path / name).is_dir()
    os.utime(marker, (time.time() - 90_000,) * 2)
    folder.recover()
    assert not (folder.path / name).exists()
    assert not marker.exists()


def test_a_marker_removes_nothing_but_snapshots(folder: ModelFolder) -> None:
    (folder.path / "logs").mkdir()
    (folder.path / ".unfinished-logs").touch()
    (folder.path / ".unfinished-settings.json").touch()
    folder.recover()
    assert (folder.path / "logs").is_dir()
    assert folder.settings() == default_settings("tictactoe")


def test_figures_that_are_cut_short_are_none(folder: ModelFolder) -> None:
    snapshot = folder.snapshots()[0]
    (snapshot.path / "figures.json").write_text('{"wrong": 7')
    assert Snapshot(snapshot.path, 0).metrics() == {}
    folder.annotate(snapshot, {"wrong": 8})
    assert snapshot.metrics() == {"wrong": 8}


def test_a_snapshot_that_is_being_removed_is_none(folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    first = folder.snapshots()[0]
    (first.path / "snapshot.json").write_text('{"step": 0}')  # which lists no files that could be missing

    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", interrupt)
        with pytest.raises(KeyboardInterrupt):
            folder.prune(1)
    assert first not in folder.snapshots()
    assert first in folder.folders()
    folder.recover()
    assert first not in folder.folders()


def test_a_copy_of_a_snapshot_is_published_as_any_other(folder: ModelFolder) -> None:
    first = folder.snapshots()[0]
    copy = folder.publish(9, lambda path: shutil.copytree(first.path, path, dirs_exist_ok=True))
    folder.promote(copy)
    assert folder.champion() == copy


def test_what_is_not_whole_does_not_become_the_champion(folder: ModelFolder) -> None:
    champion, snapshot = folder.champion(), folder.publish(9, lambda path: (path / "weights").write_text("w"))
    (snapshot.path / "weights").write_text("longer")
    with pytest.raises(ModelError, match="cannot become the champion: weights has 6 bytes, not 1; train again"):
        folder.promote(snapshot)
    assert folder.champion() == champion
