"""Learning that is killed and goes on: nothing is lost or counts twice, and it learns what it would have learnt."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from seraphim.curve import read_curve
from seraphim.examples import end_of
from seraphim.gamefiles import published_files, read_examples
from seraphim.networks import load_model
from seraphim.store import ModelFolder, Snapshot
from seraphim.tfrecord import parse_example

KILLS = 10
GAMES, STEPS = 40, 8  # of a generation
SMALL = ("--depth=1", "--width=16", "--readouts=10", f"--games_per_generation={GAMES}", "--games_per_file=7")


def start(root: Path, *flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "bin/learn.py", "killed", "--game=tictactoe", "--goal=none", "--workers=2", *SMALL]
    return subprocess.Popen(
        [*command, f"--steps={STEPS}", "--max_snapshots=100", *flags],
        env={**os.environ, "SERAPHIM_DATA": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # a process group of its own, with its workers
    )


def learn_to_the_end(root: Path, generations: int) -> None:
    with start(root, f"--generations={generations}") as program:
        output, _ = program.communicate(timeout=600)
    assert program.returncode == 0, output


def game_ids(folder: ModelFolder) -> list[str]:
    """The ids of all finished games, in the order in which they are stored."""
    last = (one for path in published_files(folder.game_data) for one in read_examples(path) if end_of(one))
    return [parse_example(example)["game_id"].values[0].decode() for example in last]


def check_what_is_visible(folder: ModelFolder, loaded: set[Snapshot]) -> None:
    """Check what another program may find at any moment; snapshots that are `loaded` already are not again."""
    ids = game_ids(folder)
    assert len(ids) == len(set(ids)), "a game is stored twice"
    steps = [snapshot.step for snapshot in folder.snapshots()]
    assert len(steps) == len(set(steps)), "a snapshot was published twice"
    for snapshot in set(folder.snapshots()) - loaded:
        load_model(snapshot.path)
        loaded.add(snapshot)


@pytest.mark.slow
def test_killed_ten_times_and_resumed_it_learns_what_it_would_have_learnt(tmp_path: Path) -> None:
    began = time.perf_counter()
    learn_to_the_end(tmp_path / "once", 2)
    seconds = time.perf_counter() - began
    folder, rng, loaded, files = ModelFolder(tmp_path, "killed"), np.random.default_rng(5), set(), {}
    for _ in range(KILLS):
        with start(tmp_path) as program:
            time.sleep(rng.uniform(0.2, 1.2) * seconds)
            assert program.poll() is None
            os.killpg(program.pid, signal.SIGKILL)
        check_what_is_visible(folder, loaded)
        assert files.items() <= {path: path.read_bytes() for path in published_files(folder.game_data)}.items()
        files = {path: path.read_bytes() for path in published_files(folder.game_data)}
    learn_to_the_end(tmp_path, 1)
    check_what_is_visible(folder, loaded)
    assert not [path for path in folder.path.iterdir() if path.name.startswith((".unfinished", ".next-champion"))]

    steps = [snapshot.step for snapshot in folder.snapshots()]
    assert steps == list(range(0, steps[-1] + 1, STEPS))
    assert folder.champion().step == steps[-1] >= 2 * STEPS
    assert game_ids(folder) == [f"0-{step}-{number}" for step in steps[:-1] for number in range(GAMES)]
    curve = read_curve(folder.path / "curve.csv")
    assert [(line["step"], line["games"]) for line in curve] == [(step, step // STEPS * GAMES) for step in steps[1:]]

    learn_to_the_end(tmp_path / "whole", steps[-1] // STEPS)
    whole = ModelFolder(tmp_path / "whole", "killed")
    mine, other = (load_model(each.champion().path).get_weights() for each in (folder, whole))
    assert all(np.array_equal(one, two) for one, two in zip(mine, other, strict=True))
