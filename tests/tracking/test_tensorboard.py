"""Figures for TensorBoard: written without TensorFlow, read by TensorBoard itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from event_files import shown

from seraphim.tracking.tensorboard import ScalarLog


def test_tensorboard_shows_what_was_written(tmp_path: Path) -> None:
    log = ScalarLog(tmp_path / "logs")
    log.write(0, {"größe/of ü": -1.5, "self_play/readouts_per_second": 1e6})
    log.write(2**40, {"größe/of ü": 0})
    assert shown(tmp_path / "logs") == {
        "größe/of ü": [(0, -1.5), (2**40, 0.0)],
        "self_play/readouts_per_second": [(0, 1e6)],
    }


@pytest.mark.parametrize("room", [10, 100, 1000])
def test_figures_that_find_no_room_on_the_disk_do_not_hide_later_ones(room: int, tmp_path: Path) -> None:
    program = f"""
import resource
from pathlib import Path
from seraphim.tracking.tensorboard import ScalarLog
log, written = ScalarLog(Path({str(tmp_path)!r})), []
for limit in ({room}, resource.RLIM_INFINITY):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for step in range(100):
        try:
            log.write(step, {{"figure": step}})
            written.append((step, float(step)))
        except OSError:
            break
print(written)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown(tmp_path)["figure"] == ast.literal_eval(done.stdout)


def test_many_names_and_points_are_kept(tmp_path: Path) -> None:
    log = ScalarLog(tmp_path)
    for step in range(0, 2000, 100):
        log.write(step, {f"figure/{number}": step + number for number in range(30)})
    found = shown(tmp_path)
    assert len(found) == 30
    assert found["figure/7"] == [(step, step + 7.0) for step in range(0, 2000, 100)]


def test_logs_of_one_folder_have_a_file_each_that_appears_with_the_first_figure(tmp_path: Path) -> None:
    first, second, _ = (ScalarLog(tmp_path) for _ in range(3))
    assert not list(tmp_path.iterdir())
    first.write(1, {"a": 1.0})
    second.write(2, {"a": 2.0})
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 2


def test_what_was_written_is_on_disk_when_the_program_is_killed(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from seraphim.tracking.tensorboard import ScalarLog
ScalarLog(Path({str(tmp_path)!r})).write(7, {{"a": 3.0}})
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert shown(tmp_path) == {"a": [(7, 3.0)]}


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    with pytest.raises(OSError, match="logs"):
        ScalarLog(tmp_path / "logs").write(1, {"a": 1.0})
