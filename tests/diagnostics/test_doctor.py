"""The doctor: an intact folder has no problem, and each problem comes with what to do."""

import fcntl
import json
import os
import re
import site
import subprocess
import sys
from pathlib import Path

import programs
import pytest
from rich.console import Console

from seraphim.diagnostics import doctor, installation
from seraphim.diagnostics.data_checks import Diagnosis, check_disk, check_game_data, check_model
from seraphim.errors import SettingsError
from seraphim.options import RecordOptions, SearchOptions, SelfPlayOptions
from seraphim.records.examples import encode
from seraphim.records.files import read_examples
from seraphim.records.index import total_positions
from seraphim.records.schema import END_OF_FILE, with_end
from seraphim.records.tfrecord import Feature, frame, parse_example, to_example
from seraphim.records.writer import GameWriter
from seraphim.search.evaluator import Uniform
from seraphim.selfplay.games import SelfPlay
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.storage.shipped import SHIPPED
from tictactoe.game import GAME

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests/support"
FREE = 1 << 40


def add_games(folder: ModelFolder, count: int = 6) -> list[Path]:
    player = SelfPlay(GAME, Uniform(GAME), SearchOptions(readouts=4), SelfPlayOptions(concurrent_games=2), "doctor")
    with GameWriter(folder.game_data, RecordOptions(games_per_file=2)) as writer:
        for game in player.play(iter(range(count))):
            writer.add(encode(GAME, game))
    return sorted(folder.game_data.glob("*.tfrecord"))


def run(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "SERAPHIM_DATA": str(root), **environment}
    return programs.run([sys.executable, "bin/doctor.py", *arguments], env=given, cwd=ROOT)


# ---------------------------------------------------------------- models


def test_a_healthy_model_has_no_problem(folder: ModelFolder) -> None:
    add_games(folder)
    report = check_model(folder, FREE, True)
    assert report.problems == []
    assert report.facts["champion"] == folder.champion().name
    assert report.facts["game data"].startswith("3 files, ")
    assert re.match(r"LiteRT .*, chosen for an mlp in batches of 8$", report.facts["self-play by"])


@pytest.mark.parametrize("name", ["cube", "pig", "twenty48-2x3"])
def test_a_model_of_a_game_with_chance_has_no_problem(name: str) -> None:
    diagnosis = check_model(ModelFolder(SHIPPED, name), 1 << 40, thorough=True)
    assert diagnosis.problems == []
    assert "disk" in diagnosis.facts  # the size of a position is known


def test_damaged_record_files_are_named(folder: ModelFolder) -> None:
    first, _, third = add_games(folder)
    content = bytearray(first.read_bytes())
    content[-100] ^= 1
    first.write_bytes(content)
    third.write_bytes(third.read_bytes()[:-5])
    thorough, quick = check_model(folder, FREE, True), check_model(folder, FREE, False)
    assert [problem.partition(" is damaged (")[0] for problem in thorough.problems] == [str(first), str(third)]
    assert "the checksum of the record at byte" in thorough.problems[0]
    # Without reading them, only their lengths tell.
    assert [problem.partition(" is damaged (")[0] for problem in quick.problems] == [str(third)]


def test_a_dangling_champion_is_a_problem(folder: ModelFolder) -> None:
    folder.champion().path.rename(folder.path / "elsewhere")
    (problem,) = check_model(folder, FREE, True).problems
    assert "leads nowhere" in problem


def test_a_damaged_snapshot_is_a_problem(folder: ModelFolder) -> None:
    weights = next((folder.champion().path / "variables").glob("*.data*"))
    content = bytearray(weights.read_bytes())
    content[100] ^= 1
    weights.write_bytes(content)
    (problem,) = check_model(folder, FREE, True).problems
    assert f"snapshot {folder.champion().path} is damaged (variables/{weights.name} is damaged: its checks" in problem
    assert check_model(folder, FREE, False).problems == []


def test_a_champion_that_no_runtime_loads_is_a_problem(folder: ModelFolder) -> None:
    graph = folder.champion().path / "saved_model.pb"
    graph.write_bytes(bytes(graph.stat().st_size))
    assert any("damaged" in problem for problem in check_model(folder, FREE, False).problems)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search": {"readuots": 3}}, "unknown setting 'readuots'"),
        ({"game": "chess9000"}, "there is no game 'chess9000'"),
    ],
)
def test_invalid_settings_are_a_problem(folder: ModelFolder, change: dict[str, object], message: str) -> None:
    path = folder.path / "settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    (problem,) = check_model(folder, FREE, True).problems
    assert message in problem


def test_leftovers_of_a_killed_writer_are_reported_but_no_problem(folder: ModelFolder) -> None:
    program = """
import os, sys
from pathlib import Path
import test_doctor as t
player = t.SelfPlay(t.GAME, t.Uniform(t.GAME), t.SearchOptions(readouts=4), t.SelfPlayOptions(concurrent_games=2), "x")
writer = t.GameWriter(Path(sys.argv[1]), t.RecordOptions())
for game in player.play(iter(range(2))):
    writer.add(t.encode(t.GAME, game))
os._exit(9)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (Path(__file__).parent, SUPPORT, ROOT)))}
    assert subprocess.run([sys.executable, "-c", program, folder.game_data], env=environment).returncode == 9
    (folder.path / ".unfinished-00000007-20250101T000000Z").mkdir()
    report = check_model(folder, FREE, True)
    assert report.problems == []
    assert report.facts["left by a killed writer"].startswith("2 games, ")
    assert report.facts["unfinished"].startswith("00000007-20250101T000000Z: ")


def test_pipes_in_a_model_are_not_waited_for(folder: ModelFolder) -> None:
    add_games(folder)
    os.mkfifo(folder.game_data / ".x.partial")
    os.mkfifo(folder.game_data / "batch-0000099.tfrecord")
    for thorough in (False, True):
        (problem,) = check_model(folder, FREE, thorough).problems
        assert "batch-0000099.tfrecord is damaged" in problem


def test_a_running_program_is_reported(folder: ModelFolder) -> None:
    folder.recover()
    with (folder.path / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert check_model(folder, FREE, False).facts["at work"] == f".lock is held by process {os.getpid()}"
    assert "at work" not in check_model(folder, FREE, False).facts


def test_settings_that_would_fill_the_disk_are_a_problem(folder: ModelFolder, small_settings: Settings) -> None:
    files = add_games(folder)
    positions = total_positions(folder.game_data)
    settings = small_settings.override({"max_window": 10 * positions, "max_snapshots": 1})
    report = Diagnosis()
    check_disk(folder, settings, GAME, FREE, report)
    assert report.problems == []
    # Of games, ten times as many positions are kept, and a tenth more before they go; one snapshot is there, and three
    # may be for a moment.
    snapshot = sum(path.stat().st_size for path in folder.champion().path.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in files)
    growth = 10 * size + 2 * snapshot
    for free, problems in ((growth, 0), (growth - 1, 1)):
        report = Diagnosis()
        check_disk(folder, settings, GAME, free, report)
        assert len(report.problems) == problems
    assert re.search(r"may grow by .* MiB, but .* MiB are free: make room, or lower max_window", report.problems[0])


def test_the_size_of_games_is_estimated_before_there_are_any(folder: ModelFolder, small_settings: Settings) -> None:
    settings = small_settings.override({"max_window": 200_000, "max_snapshots": 1})
    estimates = []
    for _ in range(2):
        report = Diagnosis()
        check_disk(folder, settings, GAME, 0, report)
        estimates.append(float(re.search(r"grow by ([\d,]+) MiB", report.facts["disk"])[1].replace(",", "")))
        assert len(report.problems) == 1
        add_games(folder)
    assert 0.5 < estimates[0] / estimates[1] < 2


def test_numbers_out_of_range_are_found_in_a_thorough_check(folder: ModelFolder) -> None:
    file = add_games(folder)[0]
    *others, last = read_examples(file)
    last = to_example({**parse_example(last), "value": Feature("float_list", [5.0])})
    file.write_bytes(b"".join(map(frame, [*others, with_end(last, END_OF_FILE)])))
    problem = f"{file} is damaged (a record has no value from -1 to 1): training skips it; remove it"
    assert check_model(folder, FREE, True).problems == [problem]


def test_games_of_another_game_are_a_problem(folder: ModelFolder) -> None:
    file = add_games(folder)[0]
    *others, last = read_examples(file)
    last = to_example({**parse_example(last), "game": Feature("bytes_list", [b"pairs"])})
    file.write_bytes(b"".join(map(frame, [*others, with_end(last, END_OF_FILE)])))
    problem = f"{file} holds positions of pairs, but the game is tictactoe: use another folder or game"
    assert check_model(folder, FREE, True).problems == [problem]


def test_games_without_a_model_are_checked(folder: ModelFolder) -> None:
    (file, *_) = add_games(folder)
    file.write_bytes(b"")
    report = Diagnosis()
    check_game_data(folder.game_data, True, report)
    assert f"{file} is damaged (truncated: the file is empty)" in report.problems[0]


def test_a_folder_that_cannot_be_a_models_is_a_problem_and_the_others_are_checked(
    root: Path, folder: ModelFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "models/a copy of fresh").mkdir()
    (problem,) = doctor.check_folders(Console(width=200), root, [], thorough=False)
    assert problem.startswith("'a copy of fresh' is not a valid model name: ")
    assert folder.champion().name in capsys.readouterr().out
    with pytest.raises(SettingsError, match="is not a valid model name"):
        doctor.check_folders(Console(), root, ["a copy of fresh"], thorough=False)


# ---------------------------------------------------------------- the installation and the machine


def test_a_gpu_that_is_not_used_is_a_problem() -> None:
    assert installation.unused_gpu(["H100"], True) is None
    assert installation.unused_gpu([], False) is None
    assert str(installation.unused_gpu(["H100"], False)).startswith(
        "H100 is not used, because TensorFlow cannot use it"
    )


def test_facts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.print_facts(Console(), "speed", {"a rate": "12,500 readouts/s", "a time": "80 ms"})
    text = re.sub(" +", " ", capsys.readouterr().out)
    assert "a rate 12,500 readouts/s" in text
    assert "a time 80 ms" in text


def test_figures_are_measured(folder: ModelFolder) -> None:
    assert doctor.self_play_rate("tictactoe", 0.1) > 100
    assert doctor.search_milliseconds(folder) > 0


# ---------------------------------------------------------------- the program


@pytest.mark.slow
def test_the_program_finds_no_problem_and_measures(root: Path) -> None:
    done = run(root)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines()[-1] == "no problem found"
    assert re.search(r"connect four, uniform priors, one process, 64 games +[1-9][\d,]+ readouts/s", done.stdout)
    assert "fresh" in done.stdout


def test_a_champion_that_cannot_be_loaded_ends_nothing(root: Path) -> None:
    (root / "models/connectfour").mkdir()
    (root / "models/connectfour/settings.json").write_text('{"game": "connectfour"}')
    (root / "models/connectfour/champion").symlink_to("00000007-20250101T000000Z")
    program = (
        "import runpy, sys; from seraphim.diagnostics import doctor; doctor.self_play_rate = lambda game: 1e6;"
        "sys.argv = ['bin/doctor.py', 'fresh']; runpy.run_path('bin/doctor.py', run_name='__main__')"
    )
    environment = os.environ | {"SERAPHIM_DATA": str(root), "COLUMNS": "300"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"800 readouts +not measured: the champion of model 'connectfour' is gone", done.stdout)
    assert done.stdout.splitlines()[-1] == "no problem found"


def test_a_model_that_lies_elsewhere_is_a_problem_unless_it_is_trusted(root: Path, tmp_path: Path) -> None:
    (root / "models/fresh").rename(tmp_path / "given")
    (root / "models/fresh").symlink_to(tmp_path / "given")
    done = run(root, "fresh", "--quick", COLUMNS="500")
    assert (done.returncode, done.stderr) == (1, "")
    assert "if you trust the source, add --trust" in done.stdout
    done = run(root, "fresh", "--quick", "--trust")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "no problem found"


def test_the_program_counts_problems(root: Path, folder: ModelFolder) -> None:
    add_games(folder)[0].write_bytes(b"x")
    (folder.path / "settings.json").write_text("{")
    done = run(root, "fresh", "--quick")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1] == "2 problems found"
    assert "speed" not in done.stdout


def test_without_a_gpu_one_can_be_required(root: Path) -> None:
    if installation.gpus():
        pytest.skip("there is a GPU")
    done = run(root, "--quick", "--require_gpu")
    assert done.returncode == 1
    assert "no GPU is used" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 problem found"


def test_an_unknown_model_is_a_problem(root: Path) -> None:
    done = run(root, "nobody", "--quick")
    assert done.returncode == 1
    assert "model 'nobody' does not exist" in re.sub(r"\s+", " ", done.stdout)
    assert done.stdout.splitlines()[-1] == "1 problem found"
    assert not (root / "models/nobody").exists()


def test_a_missing_extra_is_reported_with_its_command_but_no_problem(root: Path, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    for path in Path(site.getsitepackages()[0]).iterdir():
        if not path.name.startswith(("tensor", "keras", "distutils", "__editable__", "_distutils")):
            (packages / path.name).symlink_to(path)
    done = subprocess.run(
        [sys.executable, "-S", "bin/doctor.py", "--quick"],
        env={**os.environ, "SERAPHIM_DATA": str(root), "PYTHONPATH": os.pathsep.join([str(ROOT), str(packages)])},
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "missing for train: pip install -e '.[train]'" in done.stdout
    assert re.search(r"tensorflow +missing +train", done.stdout)
    assert done.stdout.splitlines()[-1] == "no problem found"
