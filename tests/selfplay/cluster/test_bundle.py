"""A snapshot on its way to another machine: it plays there as it does here, and is unpacked once."""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from seraphim.errors import ModelError
from seraphim.inference import Runtime, load_inference
from seraphim.selfplay.cluster.bundle import pack, unpack
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME

RUNTIMES: list[Runtime] = ["openvino", "litert", "tensorflow"]


def test_an_unpacked_snapshot_evaluates_as_the_original_does(folder: ModelFolder, tmp_path: Path) -> None:
    snapshot = folder.champion().path
    unpacked = unpack(pack(snapshot), tmp_path)
    observations = np.random.default_rng(0).integers(0, 2, (9, *GAME.observation_shape)).astype(np.uint8)
    for runtime in RUNTIMES:
        here, there = (load_inference(path, GAME, runtime).infer(observations) for path in (snapshot, unpacked))
        assert all(np.array_equal(one, two) for one, two in zip(here, there, strict=True))


def test_the_same_files_make_the_same_bundle_and_are_unpacked_once(folder: ModelFolder, tmp_path: Path) -> None:
    snapshot = folder.champion().path
    shutil.copytree(snapshot, tmp_path / "copy")
    os.utime(tmp_path / "copy" / "saved_model.pb", (1, 1))
    bundle = pack(snapshot)
    assert pack(tmp_path / "copy") == bundle
    unpacked = unpack(bundle, tmp_path)
    inode = (unpacked / "saved_model.pb").stat().st_ino
    assert unpack(bundle, tmp_path) == unpacked
    assert (unpacked / "saved_model.pb").stat().st_ino == inode


def test_only_the_latest_few_are_kept(folder: ModelFolder, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder.champion().path, copy)
    (tmp_path / "there").mkdir()
    unpacked = []
    for number in range(10):
        (copy / "snapshot.json").write_text(str(number))
        unpacked.append(unpack(pack(copy), tmp_path / "there"))
        os.utime(unpacked[-1], (time.time(), number))
    assert [path.is_dir() for path in unpacked] == [False] * 2 + [True] * 8


def test_a_folder_that_others_can_write_is_not_trusted(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    unpacked = unpack(pack(folder.champion().path))
    assert unpacked.is_relative_to(tmp_path)
    assert unpacked.parent.stat().st_mode & 0o077 == 0
    unpacked.parent.chmod(0o777)
    with pytest.raises(ModelError, match="must be accessible to this user only"):
        unpack(pack(folder.champion().path))


def test_a_snapshot_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is gone: another program removed it"):
        pack(tmp_path / "removed")
