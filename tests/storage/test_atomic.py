"""Manifests, links and locks: what counts as published, and which file systems are refused.

That nothing incomplete is ever visible, at whichever call a program is killed, is checked by `crashing_store` and
`crashing_writer`, in storage/test_models.py and records/test_records.py.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from seraphim.errors import ModelError, SettingsError
from seraphim.records.files import reading
from seraphim.settings import default_settings
from seraphim.storage import atomic
from seraphim.storage.models import ModelFolder, Snapshot


def write(path: Path) -> None:
    (path / "variables").mkdir()
    (path / "variables" / "data").write_bytes(b"weights")


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """Return a folder that was published."""
    folder = tmp_path / "sealed"
    folder.mkdir()
    write(folder)
    atomic.seal(folder, {"step": 3})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    """Return the folder of a model with three snapshots; the second is the champion."""
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
    assert atomic.find_damage(sealed, thorough=True) is None


def crc32c(content: bytes) -> str:
    """Compute the checksum in the slow and obvious way, a bit at a time."""
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
    assert atomic.find_damage(sealed, thorough=True) == message
    # Without reading the file, only its size tells.
    assert (atomic.find_damage(sealed) is None) == (content == b"WEIGHTS")


def test_a_manifest_cut_short_anywhere_publishes_nothing(sealed: Path) -> None:
    whole = (sealed / "snapshot.json").read_bytes()
    for length in range(len(whole.rstrip())):
        (sealed / "snapshot.json").write_bytes(whole[:length])
        assert atomic.find_damage(sealed) is not None, length
    (sealed / "snapshot.json").unlink()
    assert atomic.find_damage(sealed) == "snapshot.json is missing or incomplete"


@pytest.mark.parametrize("files", [[], {"variables/data": 7}, {"variables/data": {"size": 7}}, {"\0": {"size": 1}}])
def test_an_invalid_manifest_counts_as_damage(sealed: Path, files: object) -> None:
    (sealed / "snapshot.json").write_text(json.dumps({"files": files}))
    assert atomic.find_damage(sealed, thorough=True)


def test_a_manifest_cannot_make_us_read_a_device(sealed: Path) -> None:
    files = {"/dev/zero": {"size": 0, "crc32c": ""}}
    (sealed / "snapshot.json").write_text(json.dumps({"files": files}))
    assert atomic.find_damage(sealed, thorough=True) == "/dev/zero is not a regular file"


def test_a_snapshot_with_a_missing_file_does_not_count(folder: ModelFolder) -> None:
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


def test_a_champion_that_is_a_file_is_read_and_replaced(folder: ModelFolder) -> None:
    # As Git writes a link where there are none, and as a wheel has it.
    champion, other = folder.champion(), folder.snapshots()[2]
    (folder.path / "champion").unlink()
    (folder.path / "champion").write_text(champion.name)
    assert folder.champion() == champion
    assert not folder.is_new()
    folder.promote(other)
    assert folder.champion() == other
    assert (folder.path / "champion").is_symlink()


@pytest.mark.parametrize("content", [b"", b"garbage", b"../other/00000001-20250101T000000Z", b"\xff\0"])
def test_a_champion_that_names_no_snapshot_is_reported(folder: ModelFolder, content: bytes) -> None:
    (folder.path / "champion").unlink()
    (folder.path / "champion").write_bytes(content)
    with pytest.raises(ModelError, match=f"leads nowhere; try: ln -sfn {folder.snapshots()[2].name} "):
        folder.champion()
    assert not folder.is_new()


def test_without_flock_writing_is_refused_and_reading_goes_on(
    folder: ModelFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "fcntl", None)  # as on Windows
    champion = folder.champion()
    with pytest.raises(SettingsError, match="not written on Windows, which has no flock: run Seraphim in WSL"):
        folder.promote(champion)
    with pytest.raises(SettingsError, match="run Seraphim in WSL"), folder.learner():
        pass
    assert not atomic.is_locked(folder.path / ".lock")
    with reading(folder.path):
        assert folder.champion() == champion


def test_the_announced_champion_counts_once_its_snapshot_is_there(folder: ModelFolder) -> None:
    champion, after = folder.snapshots()[1:]
    for name, expected in (("00000009-20250101T000000Z", champion), (after.name, after)):
        (folder.path / ".next-champion").symlink_to(name)
        assert folder.champion() == champion  # until a program writes
        folder.recover()
        assert folder.champion() == expected
        assert not (folder.path / ".next-champion").is_symlink()


MISSING = [
    ("link", errno.EPERM, "hard links"),  # a bucket
    ("symlink", errno.EPERM, "symbolic links that are replaced by a rename"),  # exFAT, SMB without extensions
    ("replace", errno.ENOSYS, "symbolic links that are replaced by a rename"),
]


@pytest.mark.parametrize(("call", "number", "missing"), MISSING)
def test_a_file_system_without_links_is_refused_before_anything_is_written(
    call: str, number: int, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, refuse)
    folder = ModelFolder(tmp_path, "first")
    with pytest.raises(SettingsError, match=f"file system has no {re.escape(missing)}: keep models and game data on a"):
        folder.create(default_settings("tictactoe"))
    assert [path.name for path in folder.path.iterdir() if path.name[0] != "."] == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_refused(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for use in (ModelFolder(tmp_path, "first").recover, ModelFolder(tmp_path, "first").learner().__enter__):
        with pytest.raises(SettingsError, match=r"this file system has no locks \(flock\): keep .*SERAPHIM_DATA"):
            use()


def test_other_errors_of_a_file_system_pass_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "symlink", refuse)
    with pytest.raises(OSError, match="No space left on device"):
        ModelFolder(tmp_path, "first").recover()


def test_the_check_of_links_leaves_nothing_and_ignores_leftovers(tmp_path: Path) -> None:
    atomic.check_links(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".check-link").symlink_to("nowhere")
    (tmp_path / ".check-target").touch()
    atomic.check_links(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_replaced_file_is_the_old_one_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "figures"
    atomic.replace_file(file, b"old")
    calls: list[str] = []

    def watched(name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*arguments: object, **options: object) -> object:
            calls.append(name)
            assert file.read_bytes() == (b"old" if "replace" not in calls[:-1] else b"the new one")
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("write", "fsync", "replace"):
            patch.setattr(os, name, watched(name))
        atomic.replace_file(file, b"the new one")
    # The content is on the disk before the name is, and the name before the call returns.
    assert calls == ["write", "fsync", "replace", "fsync"]
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]


def test_a_file_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "figures"
    atomic.replace_file(file, b"old")

    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left on device"):
        atomic.replace_file(file, b"the new one")
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]


RIVAL = """
import sys
from pathlib import Path
from seraphim.storage.models import ModelFolder
def write(path):
    for number in range(20):
        (path / str(number)).write_text(path.name)
folder = ModelFolder(Path(sys.argv[1]), "first")
print("ready", flush=True)
sys.stdin.readline()
for step in range(20):
    folder.publish(step, write, promote=lambda: True)
    folder.prune(1)
"""


def test_two_programs_that_publish_and_prune_at_once_lose_nothing(folder: ModelFolder, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        rivals = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", RIVAL, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(2)
        ]
        for rival in rivals:
            assert rival.stdout and rival.stdout.readline() == "ready\n"
        for rival in rivals:
            assert rival.stdin
            rival.stdin.write("\n")
            rival.stdin.flush()
    assert [rival.returncode for rival in rivals] == [0, 0]
    assert folder.unfinished() == []
    assert folder.folders() == folder.snapshots()
    (last,) = folder.snapshots()
    assert last == folder.champion()
    assert {path.read_text() for path in last.path.glob("[0-9]*")} == {f".unfinished-{last.name}"}


def test_truncated_metrics_are_ignored(folder: ModelFolder) -> None:
    snapshot = folder.snapshots()[0]
    (snapshot.path / "figures.json").write_text('{"wrong": 7')
    assert Snapshot(snapshot.path, 0).metrics() == {}
    folder.annotate(snapshot, {"wrong": 8})
    assert snapshot.metrics() == {"wrong": 8}


def test_a_snapshot_that_is_being_removed_does_not_count(folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    first = folder.snapshots()[0]

    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", interrupt)
        with pytest.raises(KeyboardInterrupt):
            folder.prune(1)
    assert first not in folder.folders()
    assert folder.unfinished() == [first.name]
    folder.recover()
    assert folder.unfinished() == []


def test_a_copy_of_a_snapshot_is_published_as_any_other(folder: ModelFolder) -> None:
    first = folder.snapshots()[0]
    copy = folder.publish(9, lambda path: shutil.copytree(first.path, path, dirs_exist_ok=True))
    folder.promote(copy)
    assert folder.champion() == copy


def test_a_damaged_snapshot_does_not_become_the_champion(folder: ModelFolder) -> None:
    champion, snapshot = folder.champion(), folder.publish(9, lambda path: (path / "weights").write_text("w"))
    (snapshot.path / "weights").write_text("longer")
    with pytest.raises(ModelError, match="cannot become the champion: weights has 6 bytes, not 1; train again"):
        folder.promote(snapshot)
    assert folder.champion() == champion
