"""What befalls a run from outside: a full disk, one that cannot be written, a clock put back, rivals, damaged files.

The shortened form of tests/support/faults.py (`make faults`); kills are in tests/training/test_resume.py, and a
tracking server that is gone in tests/tracking/test_mlflow.py.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from damaging import every_byte, every_length, look_at, random_flips, write_games
from disks import Disk, NoDiskError
from event_files import shown
from killing import games_of
from programs import command_of

from seraphim.records.files import published_files, read_examples
from seraphim.storage.models import ModelFolder
from seraphim.tracking.tensorboard import ScalarLog

pytestmark = pytest.mark.slow

GENERATE = ("bin/generate_games.py", "fresh", "--workers=1", "--seed=1", "--games_per_file=50")
TRAIN = ("tictactoe/train.py", "fresh")
LEARN = ("bin/learn.py", "fresh", "--workers=1", "--goal=none", "--generations=1", "--games_per_file=50")
ROOMY = 20_000  # kilobytes


@pytest.fixture
def disk(root: Path, tmp_path: Path) -> Iterator[Disk]:
    """Return a disk that holds the model `fresh`."""
    try:
        disk = Disk(tmp_path, ROOMY)
    except NoDiskError as error:
        pytest.skip(str(error))
    with disk:
        # The mount hides the folder in which `root` lies from the programs on it.
        shutil.copytree(root, disk.path, symlinks=True, dirs_exist_ok=True)
        yield disk


def on(disk: Disk) -> ModelFolder:
    return ModelFolder(disk.path, "fresh")


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of a program that refused; those before it may tell of figures that are lost."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    *before, last = done.stderr.splitlines()
    assert all(line.startswith("no figures for TensorBoard") for line in before), done.stderr
    return last


def check_games(folder: ModelFolder, expected: list[str]) -> None:
    assert sorted(games_of(folder)) == sorted(expected)
    assert not [path.name for path in folder.game_data.iterdir() if path.suffix in (".partial", ".new")]


def test_games_that_were_finished_when_the_disk_was_full_are_there_when_it_has_room(disk: Disk) -> None:
    assert disk.run(*GENERATE, "--games=100").returncode == 0  # however busy the machine is, some are published
    disk.resize(disk.used() + 200)
    said = refusal(disk.run(*GENERATE, "--games=1000"))
    assert re.fullmatch(r"seraphim generate: No space left on device \(.*\): free the disk, then run again; .*", said)
    before = [read_examples(path)[:-1] for path in published_files(on(disk).game_data)]
    assert before
    disk.resize(ROOMY)
    done = disk.run(*GENERATE, "--games=1000")
    assert done.returncode == 0, done.stderr
    after = [read_examples(path) for path in published_files(on(disk).game_data)]
    assert [examples[: len(earlier)] for examples, earlier in zip(after, before, strict=False)] == before
    check_games(on(disk), [f"1-{number}" for number in range(1000)])


def test_a_training_that_finds_no_room_for_its_snapshot_leaves_the_champion_and_is_made_up_for(disk: Disk) -> None:
    assert disk.run(*GENERATE, "--games=20").returncode == 0
    champion, used = on(disk).champion(), disk.used()
    for room in (8, 90):  # for a part of the SavedModel, and of the Keras archive
        disk.resize(used + room)
        said = refusal(disk.run(*TRAIN))
        assert re.fullmatch(
            r"seraphim train: No space left on device.* \(.*\): free the disk, then run again; .*", said
        )
        assert on(disk).snapshots() == [champion]
        assert on(disk).champion() == champion
    disk.resize(ROOMY)
    done = disk.run(*TRAIN)
    assert done.returncode == 0, done.stderr
    assert [snapshot.step for snapshot in on(disk).snapshots()] == [0, on(disk).champion().step]
    assert not list(on(disk).path.glob(".unfinished*"))


def test_learning_that_fills_the_disk_goes_on_when_it_has_room(disk: Disk) -> None:
    disk.resize(disk.used() + 24)
    said = refusal(disk.run(*LEARN))
    assert re.fullmatch(r"seraphim learn: No space left on device.* \(.*\): free the disk, then run again; .*", said)
    disk.resize(ROOMY)
    done = disk.run(*LEARN)
    assert done.returncode == 0, done.stderr
    check_games(on(disk), [f"0-0-{number}" for number in range(30)])
    assert on(disk).champion().step == 8


def test_a_disk_that_is_read_only_is_told_by_every_program_that_writes(disk: Disk) -> None:
    before = sorted(disk.path.rglob("*"))
    disk.allow_writing(False)
    for program, *arguments in ((*GENERATE, "--games=5"), TRAIN, LEARN, ("tictactoe/train.py", "new", "--init")):
        said = refusal(disk.run(program, *arguments))
        assert re.fullmatch(rf"{command_of(program)}: Read-only file system \(.+\): fix the permissions, .*", said)
    assert sorted(disk.path.rglob("*")) == before


def test_a_second_learner_is_refused_with_the_name_of_the_first_while_games_may_be_generated(
    root: Path, folder: ModelFolder
) -> None:
    environment = {"SERAPHIM_DATA": str(root), "PYTHONPATH": ".", "PATH": ""}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, timeout=600)

    with folder.learner():
        for command in (TRAIN, LEARN):
            done = run(*command)
            assert done.returncode == 1
            holder = rf"process {os.getpid()} on \S+ \(.+\), since 20.* UTC"
            assert re.fullmatch(
                rf"seraphim (train|learn): model 'fresh' is being trained by {holder}: wait .*\n", done.stderr
            )
        assert run(*GENERATE, "--games=5").returncode == 0


AT_ANOTHER_TIME = """
import datetime, sys, time
from pathlib import Path

seconds, root, step = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
real_time, real_datetime = time.time, datetime.datetime

class Shifted(real_datetime):
    @classmethod
    def now(cls, tz=None):
        return real_datetime.now(tz) + datetime.timedelta(seconds=seconds)

datetime.datetime, time.time = Shifted, lambda: real_time() + seconds

from seraphim.tracking.tensorboard import ScalarLog
from seraphim.storage.models import ModelFolder

folder = ModelFolder(root, "fresh")
folder.publish(step, lambda path: (path / "weights").write_text("weights") and None, promote=lambda: True)
folder.prune(3)
ScalarLog(folder.path / "logs" / "train").write(step, {"loss": step})
"""


def test_a_clock_that_is_put_back_changes_no_order(folder: ModelFolder) -> None:
    days = (0, -400, 5, -30, -30)
    for number, shift in enumerate(days, start=1):
        command = [sys.executable, "-c", AT_ANOTHER_TIME, str(86_400 * shift), folder.path.parents[1], str(8 * number)]
        subprocess.run(command, check=True)
    assert [snapshot.step for snapshot in folder.snapshots()] == [24, 32, 40]
    years = [datetime.strptime(each.name[9:17], "%Y%m%d").replace(tzinfo=UTC) for each in folder.snapshots()]
    assert years[0] - years[1] > timedelta(days=30)
    assert folder.champion().step == 40
    ScalarLog(folder.path / "logs" / "train").write(48, {"loss": 48})
    assert sorted(shown(folder.path / "logs" / "train")["loss"]) == [(step, step) for step in (8, 16, 24, 32, 40, 48)]


def test_a_damaged_file_is_named_and_nothing_of_it_is_read(tmp_path: Path) -> None:
    good, victim = write_games(tmp_path)
    content = victim.read_bytes()
    samples = [*every_length(content)[::97], *every_byte(content, 0)[::97], *random_flips(content, 25, 0)]
    assert [fault for damaged in samples if (fault := look_at(good, victim, damaged))] == []
