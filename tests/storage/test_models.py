"""Model folders: names, snapshots and the champion, and what a program killed at any moment leaves behind."""

import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seraphim.errors import ModelError, SettingsError
from seraphim.settings import default_settings
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.storage.snapshots import MAX_NAME, check_name, step_of

SETTINGS = default_settings("tictactoe")


def write(path: Path) -> None:
    (path / "variables").mkdir()
    (path / "variables" / "data").write_bytes(b"weights")
    (path / "saved_model.pb").write_bytes(b"graph")


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    """Return the folder of a model that was created and has no snapshot yet."""
    folder = ModelFolder(tmp_path, "first")
    folder.create(SETTINGS)
    return folder


def visible(folder: ModelFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir() if not path.name.startswith("."))


def leftovers(folder: ModelFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir() if path.name.startswith(".unfinished"))


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "0", "_x", "x" * 64, "v1.2"])
def test_names_of_letters_digits_and_a_few_signs_are_valid(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "-x", "a/b", "../a", "/etc", "a\\b", "a b", "a\n", "ä", "x\0", "~", "x" * 65]
)
def test_names_that_could_be_paths_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is not a valid model name: use up to 64 letters, digits"):
        ModelFolder(tmp_path, name)
    assert not list(tmp_path.iterdir())


def test_folders_lie_below_models_and_gamedata(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path, "first")
    assert folder.path == tmp_path / "models" / "first"
    assert folder.game_data == tmp_path / "gamedata" / "first"
    assert not list(tmp_path.iterdir())  # looking makes nothing


def test_created_model_has_its_settings(folder: ModelFolder) -> None:
    assert folder.settings() == SETTINGS
    assert visible(folder) == ["settings.json"]


def test_settings_of_another_game_are_refused(folder: ModelFolder) -> None:
    assert folder.settings("tictactoe") == SETTINGS
    expected = "model 'first' plays tictactoe, not connectfour: use seraphim train first, or choose another name"
    with pytest.raises(ModelError, match=f"^{expected}$"):
        folder.settings("connectfour")


def test_unknown_model_names_the_cure(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path, "first")
    cure = "create it with seraphim train first --init --game=GAME"
    message = f"model 'first' does not exist in {tmp_path / 'models'}/: {cure}"
    for method in (folder.settings, folder.champion, lambda: folder.publish(0, write)):
        with pytest.raises(ModelError, match=f"^{re.escape(message)}$"):
            method()
    assert folder.snapshots() == []
    assert not list(tmp_path.iterdir())


def test_missing_champion_names_the_cure(folder: ModelFolder) -> None:
    with pytest.raises(ModelError, match="^model 'first' has no champion: create it with seraphim train first --init"):
        folder.champion()


def test_dangling_champion_names_the_cure(folder: ModelFolder) -> None:
    folder.publish(1, write)
    (folder.path / "champion").symlink_to("00000007-20250101T000000Z")
    cure = f"leads nowhere; try: ln -sfn {folder.snapshots()[0].name} {folder.path / 'champion'}"
    with pytest.raises(ModelError, match=re.escape(cure)):
        folder.champion()


def test_dangling_champion_without_other_snapshots_names_the_cure(folder: ModelFolder) -> None:
    (folder.path / "champion").symlink_to("00000007-20250101T000000Z")
    cure = f"try: rm -r {folder.path}, then seraphim train first --init --game=GAME"
    with pytest.raises(ModelError, match=re.escape(cure)):
        folder.champion()


def test_what_must_be_removed_for_another_start_is_named_with_the_games(folder: ModelFolder) -> None:
    (folder.path / "champion").symlink_to("00000007-20250101T000000Z")
    folder.game_data.mkdir(parents=True)
    with pytest.raises(
        ModelError, match=re.escape(f"try: rm -r {folder.path} {folder.game_data}, then seraphim train ")
    ):
        folder.champion()
    with pytest.raises(ModelError, match=re.escape(f"or remove {folder.path} and {folder.game_data}") + "$"):
        folder.check_new()


def test_champion_that_is_not_a_link_is_refused(folder: ModelFolder) -> None:
    (folder.path / "champion").mkdir()
    snapshot = folder.publish(1, write)
    with pytest.raises(ModelError, match="must be a symbolic link to a snapshot: remove it, then run again"):
        folder.promote(snapshot)
    with pytest.raises(ModelError, match="leads nowhere"):
        folder.champion()


def test_published_snapshot_has_a_name_of_step_and_time_and_its_figures(folder: ModelFolder) -> None:
    snapshot = folder.publish(1000, write, {"loss": 0.5})
    assert re.fullmatch(r"00001000-\d{8}T\d{6}Z", snapshot.name)
    assert snapshot.path == folder.path / snapshot.name
    assert (snapshot.path / "variables" / "data").read_bytes() == b"weights"
    facts = json.loads((snapshot.path / "snapshot.json").read_text())
    assert facts["step"] == 1000
    assert facts["metrics"] == {"loss": 0.5}
    assert facts["created"].endswith("+00:00")
    assert folder.snapshots() == [snapshot]


def test_failed_write_publishes_nothing_and_leaves_nothing(folder: ModelFolder) -> None:
    def fail(path: Path) -> None:
        write(path)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        folder.publish(1, fail)
    assert visible(folder) == ["settings.json"]
    assert leftovers(folder) == []


def test_snapshots_of_one_step_and_second_get_distinct_names(folder: ModelFolder) -> None:
    published = [folder.publish(5, write) for _ in range(3)]
    assert len({snapshot.name for snapshot in published}) == 3
    assert len(folder.snapshots()) == 3
    assert {snapshot.step for snapshot in folder.snapshots()} == {5}


def test_snapshots_sort_by_step_whatever_their_times(folder: ModelFolder) -> None:
    for name in ("99999999-20200101T000000Z", "00000100-20300101T000000Z", "100000000-20190101T000000Z"):
        (folder.path / name).mkdir()
        (folder.path / name / "snapshot.json").write_text("{}")
    assert [snapshot.step for snapshot in folder.snapshots()] == [100, 99_999_999, 100_000_000]


def test_other_files_are_not_taken_for_snapshots(folder: ModelFolder) -> None:
    for name in ("logs", ".unfinished-abc", "old-00000200-20200101T000000Z", "00000200"):
        (folder.path / name).mkdir()
    (folder.path / "00000300-20200101T000000Z").write_text("a file")
    assert folder.snapshots() == []


def test_promoted_snapshot_is_the_champion_by_a_relative_link(folder: ModelFolder) -> None:
    first, second = folder.publish(1, write), folder.publish(2, write)
    folder.promote(first)
    assert folder.champion() == first
    folder.promote(second)
    assert folder.champion() == second
    assert (folder.path / "champion").readlink() == Path(second.name)
    assert (folder.path / "champion" / "saved_model.pb").is_file()


def test_champion_survives_a_move_of_the_data(folder: ModelFolder, tmp_path: Path) -> None:
    folder.promote(folder.publish(1, write))
    (tmp_path / "models").rename(tmp_path / "elsewhere")
    (tmp_path / "new").mkdir()
    (tmp_path / "elsewhere").rename(tmp_path / "new" / "models")
    assert ModelFolder(tmp_path / "new", "first").champion().step == 1


def test_snapshot_that_is_gone_is_not_promoted(folder: ModelFolder) -> None:
    folder.promote(folder.publish(1, write))
    with pytest.raises(ModelError, match="is gone: another program removed it; train again"):
        folder.promote(Snapshot(folder.path / "00000002-20250101T000000Z", 2))
    assert folder.champion().step == 1


def test_pruning_keeps_the_newest_and_the_champion(folder: ModelFolder) -> None:
    snapshots = [folder.publish(step, write) for step in range(6)]
    folder.promote(snapshots[1])
    removed = folder.prune(2)
    assert removed == [snapshots[0], snapshots[2], snapshots[3]]
    assert folder.snapshots() == [snapshots[1], snapshots[4], snapshots[5]]
    assert folder.champion() == snapshots[1]
    assert leftovers(folder) == []


def test_pruning_spares_a_snapshot(folder: ModelFolder) -> None:
    snapshots = [folder.publish(step, write) for step in range(4)]
    folder.promote(snapshots[3])
    assert folder.prune(1, spared=snapshots[1].name) == [snapshots[0], snapshots[2]]


def test_existing_model_is_not_created_again(folder: ModelFolder) -> None:
    folder.promote(folder.publish(0, write))
    message = f"model 'first' exists: go on with it (omit --init), or choose another name, or remove {folder.path}"
    with pytest.raises(ModelError, match=f"^{re.escape(message)}$"):
        folder.create(default_settings("tictactoe").override({"readouts": 7}))
    assert folder.settings() == SETTINGS


def test_trained_model_that_lost_its_champion_is_not_created_again(folder: ModelFolder) -> None:
    folder.publish(1000, write)
    with pytest.raises(ModelError, match="exists"):
        folder.create(SETTINGS)


def test_start_killed_before_it_was_promoted_is_replaced(folder: ModelFolder) -> None:
    folder.publish(0, write)
    other = SETTINGS.override({"readouts": 7})
    folder.create(other)
    assert folder.settings() == other
    assert folder.snapshots() == []


def test_leftovers_of_a_killed_program_are_removed_by_the_next_that_publishes(folder: ModelFolder) -> None:
    program = f"""
import os, signal
from pathlib import Path
from seraphim.storage.models import ModelFolder
def write(path):
    (path / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
ModelFolder(Path({str(folder.path.parent.parent)!r}), "first").publish(1, write)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    assert folder.snapshots() == []
    assert (len(folder.folders()), len(leftovers(folder))) == (0, 1)
    snapshot = folder.publish(1, write)
    assert leftovers(folder) == []
    assert folder.folders() == [snapshot]
    assert not (snapshot.path / "half").exists()


def test_publisher_at_work_is_waited_for_and_its_folder_not_removed(folder: ModelFolder) -> None:
    program = f"""
import sys
from pathlib import Path
from seraphim.storage.models import ModelFolder
def write(path):
    print("writing", flush=True)
    sys.stdin.readline()
    (path / "late").write_text("late")
ModelFolder(Path({str(folder.path.parent.parent)!r}), "first").publish(1, write)
"""
    quick = f"""
from pathlib import Path
from seraphim.storage.models import ModelFolder
ModelFolder(Path({str(folder.path.parent.parent)!r}), "first").publish(2, lambda path: None)
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True) as slow:
        assert slow.stdout
        assert slow.stdout.readline() == "writing\n"
        with subprocess.Popen([sys.executable, "-c", quick]) as other:
            with pytest.raises(subprocess.TimeoutExpired):
                other.wait(2)
            assert len(leftovers(folder)) == 1
            slow.communicate("go on\n", timeout=20)
    assert (slow.returncode, other.returncode) == (0, 0)
    assert [snapshot.step for snapshot in folder.snapshots()] == [1, 2]
    assert (folder.snapshots()[0].path / "late").read_text() == "late"


CYCLE = """
import sys
from pathlib import Path
from seraphim.errors import ModelError
from seraphim.settings import default_settings
from seraphim.storage.models import ModelFolder

folder = ModelFolder(Path(sys.argv[1]), "first")
def write(path):
    for number in range(5):
        (path / str(number)).write_bytes(b"weights")
print("ready", flush=True)
while True:
    try:
        step = folder.champion().step + 1
    except ModelError:
        step = 0
        with folder.lock():
            folder.create(default_settings("tictactoe"))
            folder.promote(folder.publish(0, write))
    else:
        folder.promote(folder.publish(step, write))
        folder.prune(2)
    if len(sys.argv) == 3:
        break
"""


def steps_of(folder: ModelFolder) -> list[int]:
    """Return the champion's step, if there is a champion."""
    return [folder.champion().step] if (folder.path / "champion").is_symlink() else []


@pytest.mark.parametrize(
    "delays",
    [
        (0.0, 0.003, 0.021),
        pytest.param((0.0, 0.001, 0.002, 0.003, 0.005, 0.008, 0.013, 0.021, 0.034, 0.055), marks=pytest.mark.slow),
    ],
)
def test_program_killed_at_any_moment_continues_when_run_again(delays: tuple[float, ...], tmp_path: Path) -> None:
    """Kill a program that starts and retrains a model, again and again; whatever is visible must be whole."""
    folder = ModelFolder(tmp_path, "first")
    steps = []
    for delay in (*delays, None):
        with subprocess.Popen([sys.executable, "-c", CYCLE, tmp_path], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            if delay is None:  # at last, let it come as far as a trained champion
                deadline = time.perf_counter() + 30
                while time.perf_counter() < deadline and not (steps_of(folder) and steps_of(folder)[-1] > 0):
                    time.sleep(0.01)
            else:
                time.sleep(delay)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        for snapshot in folder.snapshots():
            expected = ["0", "1", "2", "3", "4", "snapshot.json"]
            assert sorted(path.name for path in snapshot.path.iterdir()) == expected
        steps += steps_of(folder)
    assert steps == sorted(steps)
    assert steps[-1] > 0
    subprocess.run([sys.executable, "-c", CYCLE, tmp_path, "once"], check=True)
    assert folder.champion().step == steps[-1] + 1
    assert leftovers(folder) == []


def test_a_program_killed_at_any_call_leaves_complete_snapshots_and_continues(tmp_path: Path) -> None:
    command = [sys.executable, Path(__file__).parents[1] / "support" / "crashing_store.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    calls = {"open", "write", "mkdir", "rmdir", "unlink", "rename", "replace", "link", "symlink"}
    assert {line.split()[0] for line in lines} >= calls
    assert [line for line in lines if line.split()[1:] != ["kept"]] == []


def test_a_snapshot_that_is_not_to_be_promoted_leaves_the_champion(folder: ModelFolder) -> None:
    first = folder.publish(0, write, promote=lambda: True)
    folder.publish(1, write, promote=lambda: False)
    folder.publish(2, write)
    assert folder.champion() == first


def test_readers_need_no_right_to_write(folder: ModelFolder) -> None:
    folder.promote(folder.publish(1, write))
    (folder.path / ".lock").unlink()
    assert folder.champion().step == 1
    assert folder.settings() == SETTINGS
    assert len(folder.snapshots()) == 1
    assert not (folder.path / ".lock").exists()


def test_importing_the_store_does_not_import_tensorflow() -> None:
    program = "import sys; import seraphim.storage.models; print('tensorflow' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
    assert MAX_NAME == 64


def test_figures_are_added_to_those_of_a_snapshot(folder: ModelFolder) -> None:
    snapshot = folder.publish(5, write, {"loss": 1.0})
    folder.annotate(snapshot, {"wrong": 7})
    folder.annotate(snapshot, {"wrong": 8})
    assert snapshot.metrics() == {"loss": 1.0, "wrong": 8}
    assert json.loads((snapshot.path / "snapshot.json").read_text())["metrics"] == {"loss": 1.0}
    folder.annotate(Snapshot(folder.path / "gone", 6), {"wrong": 8})  # removed by another program
    assert [each.name for each in folder.snapshots()] == [snapshot.name]


@pytest.mark.parametrize("file", ["snapshot.json", "figures.json"])
def test_only_numbers_count_as_figures(folder: ModelFolder, file: str) -> None:
    snapshot = folder.publish(5, write)
    known = json.loads((snapshot.path / "snapshot.json").read_text())
    wrong = [None, True, "abc", [1], {"a": 1}, 10**400, math.inf, -math.inf]
    for metrics in ({**{f"wrong {place}": value for place, value in enumerate(wrong)}, "loss": 1.5}, [1], "abc", None):
        (snapshot.path / file).write_text(json.dumps(known | {"metrics": metrics} if file[0] == "s" else metrics))
        assert snapshot.metrics() == ({"loss": 1.5} if isinstance(metrics, dict) else {})


@pytest.mark.parametrize("content", [200_000 * "[", "[]", "\x00", '{"step": "x", "metrics": "y"}'])
def test_a_manifest_of_any_content_gives_no_figures(folder: ModelFolder, content: str) -> None:
    snapshot = folder.publish(5, write)
    for name in ("snapshot.json", "figures.json"):
        (snapshot.path / name).write_text(content)
    assert (snapshot.metrics(), step_of(snapshot.path)) == ({}, 0)
    assert len(folder.snapshots()) == content.startswith("{")


@pytest.mark.parametrize("step", ["x", None, True, -1, 1.5, []])
def test_a_step_that_is_none_is_0(folder: ModelFolder, step: object) -> None:
    snapshot = folder.publish(5, write)
    (snapshot.path / "snapshot.json").write_text(json.dumps({"step": step}))
    assert step_of(snapshot.path) == 0


def test_a_snapshot_is_found_by_its_name(folder: ModelFolder) -> None:
    snapshot = folder.publish(5, write)
    assert folder.snapshot(snapshot.name) == snapshot
    with pytest.raises(ModelError, match=f"no snapshot 'other': expected one of {snapshot.name}"):
        folder.snapshot("other")


def test_the_home_of_an_unknown_user_holds_no_snapshot(folder: ModelFolder) -> None:
    trusting = ModelFolder(folder.path.parents[1], "first", trust=True)
    with pytest.raises(ModelError, match="^~no-such-user/x is not a snapshot: "):
        trusting.choose("~no-such-user/x")
    with pytest.raises(ModelError, match="^~no-such-user/x lies outside "):
        folder.choose("~no-such-user/x")
