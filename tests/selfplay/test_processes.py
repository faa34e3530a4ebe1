"""Worker processes play the same games, however many there are, and nothing hangs when one dies."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seraphim.errors import ModelError, RecordError, WorkerError
from seraphim.game import load_game
from seraphim.jit import UNCACHED
from seraphim.options import RecordOptions
from seraphim.records.files import published_files, read_examples, whole_games
from seraphim.records.index import played_numbers, total_positions
from seraphim.records.tfrecord import parse_example
from seraphim.records.window import read_window
from seraphim.records.writer import GameWriter
from seraphim.selfplay import generate, processes
from seraphim.selfplay.generate import generate_games
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import Settings
from seraphim.storage.atomic import seal
from seraphim.storage.models import ModelFolder


def test_one_process_plays_the_same_games_as_two(folder: ModelFolder, small_settings: Settings) -> None:
    found = []
    for num_workers in (1, 2):
        with WorkerPool(small_settings, num_workers=num_workers) as pool:
            games = list(pool.play(folder.champion().path, "a", end=40))
        assert sorted(game.number for game in games) == list(range(40))
        found.append(sorted(games))
    assert found[0] == found[1]


@pytest.fixture
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "uses_gpu", lambda runtime: True)
    monkeypatch.setattr(processes, "count_cores", lambda: 3)


@pytest.mark.usefixtures("_gpu")
def test_for_a_gpu_one_more_process_serves_the_workers(folder: ModelFolder, small_settings: Settings) -> None:
    found = []
    for num_workers in (0, 1):
        with WorkerPool(small_settings, num_workers=num_workers) as pool:
            assert (pool.num_workers, len(pool.process_ids())) == ((2, 3) if num_workers == 0 else (1, 2))
            games = [sorted(pool.play(folder.champion().path, stream, end=20)) for stream in ("a", "b")]
            assert pool.work().runtime.startswith("LiteRT")
            assert len(list(pool.play(None, "c", end=3))) == 3  # needs no network
        assert [[game.number for game in stream] for stream in games] == [list(range(20))] * 2
        found.append(games)
    assert found[0] == found[1]


@pytest.mark.usefixtures("_gpu")
def test_the_error_of_the_process_that_serves_is_raised(
    folder: ModelFolder, small_settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="holds no SavedModel"), WorkerPool(small_settings) as pool:
        list(pool.play(tmp_path, "a", end=5))
    with WorkerPool(small_settings, num_workers=1) as pool:
        games = pool.play(folder.champion().path, "a")
        next(games)
        os.kill(pool.process_ids()[-1], signal.SIGKILL)
        with pytest.raises(WorkerError, match="the process that runs the network died"):
            list(games)


def test_the_readouts_grow_with_the_steps_of_the_snapshot(
    folder: ModelFolder, small_settings: Settings, tmp_path: Path
) -> None:
    settings = small_settings.override({"readouts": 10, "self_play_readouts": 6, "readouts_growth_steps": 4})
    trained = tmp_path / "trained"
    shutil.copytree(folder.champion().path, trained)
    seal(trained, {"step": 10})  # 6·(1 + 10 / 4)
    with WorkerPool(settings, num_workers=1) as pool:
        for snapshot, expected in ((trained, 21), (folder.champion().path, 6), (None, 6)):
            games = list(pool.play(snapshot, "a", end=10))
            assert pool.work().readouts == expected * sum(len(game.examples) for game in games)


def test_games_that_are_there_already_are_left_out(small_settings: Settings) -> None:
    with WorkerPool(small_settings, num_workers=1) as pool:
        games = list(pool.play(None, "a", first=3, end=20, skip={5, 6, 19}))
    assert sorted(game.number for game in games) == [n for n in range(3, 20) if n not in (5, 6, 19)]


def test_a_pool_plays_again_and_reports_its_work(folder: ModelFolder, small_settings: Settings) -> None:
    with WorkerPool(small_settings, num_workers=2) as pool:
        for stream in ("a", "b"):
            games = list(pool.play(folder.champion().path, stream, end=10))
            positions = sum(len(game.examples) for game in games)
            assert pool.work().readouts == positions * small_settings.search.readouts
            assert 0 < pool.work().evaluations <= pool.work().readouts + positions
            assert set(pool.work().seconds) == {"network", "rules", "search", "other"}
            assert re.match(r"LiteRT \d.*, chosen for an mlp in batches of 8$", pool.work().runtime)


def test_an_error_of_a_worker_is_the_parents_error(tmp_path: Path, small_settings: Settings) -> None:
    with pytest.raises(ModelError, match="holds no SavedModel"), WorkerPool(small_settings, num_workers=2) as pool:
        list(pool.play(tmp_path, "a", end=10))


def test_a_worker_that_fails_is_reported_with_its_traceback(small_settings: Settings) -> None:
    broken = replace(small_settings, game="no_such_game")
    with pytest.raises(Exception, match="there is no game 'no_such_game'"), WorkerPool(broken, num_workers=1) as pool:
        list(pool.play(None, "a", end=10))


def test_a_worker_that_was_killed_while_idle_is_reported(small_settings: Settings) -> None:
    with WorkerPool(small_settings, num_workers=2) as pool:
        assert len(list(pool.play(None, "a", end=5))) == 5
        victim = pool.process_ids()[1]
        os.kill(victim, signal.SIGKILL)
        while (stat := Path(f"/proc/{victim}/stat")).exists() and ") Z " not in stat.read_text():
            time.sleep(0.01)
        with pytest.raises(WorkerError, match="worker 1 died with exit code -9"):
            list(pool.play(None, "b", end=5))


def test_a_killed_worker_ends_the_program_within_seconds(small_settings: Settings) -> None:
    with WorkerPool(small_settings, num_workers=2) as pool:
        games = pool.play(None, "a")
        next(games)
        os.kill(pool.process_ids()[0], signal.SIGKILL)
        killed = time.perf_counter()
        with pytest.raises(WorkerError, match="died with exit code -9"):
            list(games)
        assert time.perf_counter() - killed < 10


HALF_A_MESSAGE = """
import contextlib, gc, os, signal, struct
from multiprocessing.connection import Connection

GAME = None
for connection in [each for each in gc.get_objects() if isinstance(each, Connection)]:
    with contextlib.suppress(OSError):
        os.write(connection.fileno(), struct.pack("!i", 1000) + b"half of it")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_that_is_killed_in_the_middle_of_a_message_is_reported(
    small_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_a_message.py").write_text(HALF_A_MESSAGE)
    monkeypatch.syspath_prepend(tmp_path)
    settings = replace(small_settings, game="half_a_message")
    with (
        WorkerPool(settings, num_workers=1) as pool,
        pytest.raises(WorkerError, match="worker 0 died with exit code -9; finished games are kept"),
    ):
        list(pool.play(None, "a", end=10))


def test_no_game_waits_for_one_with_a_lower_number(small_settings: Settings) -> None:
    with WorkerPool(small_settings, num_workers=2) as pool:
        games = pool.play(None, "a")
        next(games)
        halted = pool.process_ids()[0]
        os.kill(halted, signal.SIGSTOP)
        numbers = [next(games).number for _ in range(500)]
        os.kill(halted, signal.SIGKILL)
    assert len(set(numbers)) == 500


def test_a_finished_game_waits_for_no_other_one(small_settings: Settings) -> None:
    # Of two games at a time, the second one takes much longer than the first.
    slow = small_settings.override({"readouts": 4000, "concurrent_games": 1})
    with WorkerPool(slow, num_workers=1) as pool:
        games = pool.play(None, "a", end=2)
        assert next(games).number == 0
        before = pool.work().readouts
        assert next(games).number == 1
        assert pool.work().readouts > before


SILENT_PARENT = """
import sys, time
from pathlib import Path
from seraphim.settings import default_settings
from seraphim.selfplay.processes import WorkerPool

if __name__ == "__main__":
    settings = default_settings("tictactoe").override({"readouts": 10, "concurrent_games": 8})
    with WorkerPool(settings, num_workers=2) as pool:
        for game in pool.play(None, "a", end=int(sys.argv[2]), journals=Path(sys.argv[1])):
            print(game.number, flush=True)
            time.sleep(1000)
"""


def games_in_journals(folder: Path) -> int:
    return sum(len(whole_games(path.read_bytes())) for path in folder.glob(".*.partial"))


def test_games_that_a_killed_parent_had_not_taken_are_on_disk(tmp_path: Path) -> None:
    script, data = tmp_path / "parent.py", tmp_path / "data"
    script.write_text(SILENT_PARENT)
    data.mkdir()
    with subprocess.Popen([sys.executable, str(script), str(data), "60"], stdout=subprocess.PIPE, text=True) as parent:
        wait_until(lambda: games_in_journals(data) == 60)
        parent.kill()
    with GameWriter(data, RecordOptions(), "a") as writer:  # which waits for the workers' end
        assert len(writer.rescued) == 60
    assert played_numbers(data, "a") == set(range(60))
    assert not list(data.glob(".*partial"))


def test_workers_pause_while_their_games_are_not_taken(tmp_path: Path) -> None:
    script, data = tmp_path / "parent.py", tmp_path / "data"
    script.write_text(SILENT_PARENT)
    data.mkdir()
    seen = [0]

    def pause() -> bool:
        seen.append(games_in_journals(data))
        time.sleep(1)
        return seen[-1] == seen[-2] > 0

    command = [sys.executable, str(script), str(data), str(10**9)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        wait_until(pause)
        parent.kill()
    assert seen[-1] < 2 * 1000


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < deadline
        time.sleep(0.05)


PARENT = """
import sys
from seraphim.settings import default_settings
from seraphim.selfplay.processes import WorkerPool

with WorkerPool(default_settings("tictactoe"), num_workers=2) as pool:  # a script needs no guard
    for game in pool.play(None, "a"):
        if game.number < 8:
            print(*pool.process_ids(), flush=True)
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(word) for word in parent.stdout.readline().split()]
        parent.kill()
    assert len(workers) == 2
    deadline = time.perf_counter() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.perf_counter() < deadline, "workers outlive their parent"
        time.sleep(0.05)


def test_workers_import_the_current_folder_last(tmp_path: Path) -> None:
    """A game there is found, and a module there does not stand in for one of Python's, as in the program itself."""
    (tmp_path / "signal.py").write_text("open('imported', 'a').write('once more ')\n")
    (tmp_path / "mine.py").write_text("from tictactoe.game import GAME\n")
    (tmp_path / "programs").mkdir()
    script = tmp_path / "programs/parent.py"
    script.write_text(
        "import sys\nfrom seraphim.selfplay.processes import WorkerPool\n"
        "from seraphim.settings import default_settings\n"
        "sys.path.append('')  # as the commands do\n"
        "with WorkerPool(default_settings('mine'), num_workers=1) as pool:\n"
        "    print(len(list(pool.play(None, 'a', end=3))))\n"
    )
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("3\n", "")
    assert not (tmp_path / "imported").exists()


def test_generated_games_are_recorded_once_each_and_not_played_again(
    folder: ModelFolder, small_settings: Settings
) -> None:
    said: list[str] = []
    with WorkerPool(small_settings, num_workers=2) as pool:
        for expected in (25, 0):
            generated = generate_games(pool, folder, small_settings, "7", 25, said.append)
            assert generated.games == expected
            assert not generated.interrupted
            assert played_numbers(folder.game_data, "7") == set(range(25))
    assert f"self-play: 2 workers, snapshot {folder.champion().name}, " in said[0]
    assert said[0].endswith(", 12 readouts a move")
    assert played_numbers(folder.game_data, "8") == set()


def finished_games(folder: ModelFolder) -> dict[str, list[bytes]]:
    """The examples of each game, without what tells that a file ends."""
    games: dict[str, list[bytes]] = {}
    for path in published_files(folder.game_data):
        for example in read_examples(path):
            identity = parse_example(example)["game_id"].values[0].decode()
            games.setdefault(identity, []).append(example[:-1])
    return games


def test_a_stream_is_the_same_games_once_each_however_often_it_is_interrupted_and_by_whatever_games(
    root: Path, folder: ModelFolder, small_settings: Settings
) -> None:
    shutil.copytree(folder.path, root / "models" / "whole", symlinks=True)
    whole = ModelFolder(root, "whole")
    for where, workers, plays in ((folder, 1, [("7", 12), ("8", 9), ("7", 25)]), (whole, 2, [("7", 25)])):
        with WorkerPool(small_settings, num_workers=workers) as pool:
            for stream, count in plays:
                generate_games(pool, where, small_settings, stream, count, notify=lambda _: None)
    assert sum(map(len, map(read_examples, published_files(folder.game_data)))) == sum(
        map(len, finished_games(folder).values())
    )
    games = finished_games(folder)
    assert len(games) == 25 + 9
    assert {name: games[name] for name in games if name.startswith("7-")} == finished_games(whole)


class Interrupted(WorkerPool):
    """Workers that are interrupted after some games."""

    def play(self, *arguments, **options):
        for games, game in enumerate(super().play(*arguments, **options)):
            yield game
            if games == 60:
                self.stop()


@pytest.mark.parametrize("interruptions", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupted_stream_gives_the_window_that_an_undisturbed_one_gives(
    root: Path, folder: ModelFolder, small_settings: Settings, interruptions: int
) -> None:
    shutil.copytree(folder.path, root / "models" / "whole", symlinks=True)
    whole = ModelFolder(root, "whole")
    for where, pools in ((folder, (*[Interrupted] * interruptions, WorkerPool)), (whole, (WorkerPool,))):
        for kind in pools:
            with kind(small_settings, num_workers=2) as pool:
                generate_games(pool, where, small_settings, "7", 200, lambda _: None)
    game = load_game("tictactoe")
    for size in (10_000, 700, 50):
        windows = [read_window(each.game_data, game, size)[0] for each in (folder, whole)]
        assert all(map(np.array_equal, *windows))
    assert total_positions(folder.game_data) == total_positions(whole.game_data)


def test_games_that_retention_removed_are_not_played_again(folder: ModelFolder, small_settings: Settings) -> None:
    settings = small_settings.override({"max_window": 100, "games_per_generation": 100})
    with WorkerPool(settings, num_workers=2) as pool:
        for count, expected in ((90, 90), (100, 10), (100, 0)):
            assert generate_games(pool, folder, settings, "7", count, lambda _: None).games == expected
    assert len(finished_games(folder)) < 60
    assert played_numbers(folder.game_data, "7") == set(range(100))


def test_a_second_program_that_plays_the_same_stream_is_refused(folder: ModelFolder, small_settings: Settings) -> None:
    with GameWriter(folder.game_data, RecordOptions(), "7"), WorkerPool(small_settings, num_workers=1) as pool:
        with pytest.raises(RecordError, match="another program writes the games of stream '7' .*: wait for it"):
            generate_games(pool, folder, small_settings, "7", 5)
        assert generate_games(pool, folder, small_settings, "8", 5).games == 5
        assert played_numbers(folder.game_data, "8") == set(range(5))
    assert not list(folder.game_data.glob(".*partial"))


def test_a_new_champion_takes_over_while_games_are_generated(folder: ModelFolder, small_settings: Settings) -> None:
    first = folder.champion()

    def write(path: Path) -> None:
        subprocess.run(["cp", "-r", f"{first.path}/.", str(path)], check=True)

    played_by = []

    class Watched(WorkerPool):
        def play(self, snapshot, *arguments, **options):
            played_by.append(snapshot.name)
            for games, game in enumerate(super().play(snapshot, *arguments, **options)):
                if games == 50 and len(played_by) == 1:
                    folder.promote(folder.publish(8, write))
                yield game

    with Watched(small_settings, num_workers=2) as pool:
        assert generate_games(pool, folder, small_settings, "7", 400, lambda _: None).games == 400
    assert played_by == [first.name, folder.champion().name]
    assert played_numbers(folder.game_data, "7") == set(range(400))


def interrupted_program(root: Path, first: signal.Signals) -> tuple[int, str]:
    environment = {**os.environ, "SERAPHIM_DATA": str(root), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "bin/generate_games.py", "fresh", "--seed=3"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        said = ""
        while "self-play: " not in said:  # which is said with the first game
            said += program.stdout.readline()
        time.sleep(0.5)
        program.send_signal(first)
        out, err = program.communicate(timeout=20)
    assert err == ""
    return program.returncode, said + out


@pytest.mark.parametrize("interrupt", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupt_publishes_all_finished_games(root: Path, folder: ModelFolder, interrupt: signal.Signals) -> None:
    code, output = interrupted_program(root, interrupt)
    assert code == 0
    (finished,) = re.findall(r"^([\d,]+) games, ", output, flags=re.MULTILINE)
    games = int(finished.replace(",", ""))
    assert games == len(played_numbers(folder.game_data, "3")) > 0
    assert not list(folder.game_data.glob(".*partial"))


def test_an_interrupt_before_the_first_game_ends_generating(
    folder: ModelFolder, small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return played_numbers(*arguments)

    monkeypatch.setattr(generate, "played_numbers", interrupted)
    with WorkerPool(small_settings, num_workers=1) as pool:
        generated = generate_games(pool, folder, small_settings, "a", 10)
    assert (generated.interrupted, generated.games) == (True, 0)


# Workers get Ctrl-C as well, as all of a terminal's process group does, at any time of their start.
STARTED = """
import signal, sys, time
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import default_settings
with WorkerPool(default_settings("tictactoe"), num_workers=2) as pool:
    print(*pool.process_ids(), flush=True)
    list(pool.play(None, "a", end=8))
"""


def test_workers_that_are_starting_ignore_an_interrupt() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        workers = [int(number) for number in program.stdout.readline().split()]
        for _ in range(20):
            for worker in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGINT)
            time.sleep(0.05)
        _, errors = program.communicate(timeout=120)
    assert (program.returncode, errors) == (0, "")


def test_a_pool_leaves_the_environment_and_signals_as_they_were(
    small_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(UNCACHED, raising=False)
    before = dict(os.environ), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with WorkerPool(small_settings, num_workers=2):
        pass
    assert (dict(os.environ), signal.pthread_sigmask(signal.SIG_BLOCK, [])) == before
