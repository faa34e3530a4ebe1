"""The programs as a person runs them; bad input gives one line, exit code 1, and no traceback."""

import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import programs
import pytest
from mlflow.tracking import MlflowClient

from seraphim.game import load_game
from seraphim.options import NetworkOptions
from seraphim.records.files import published_files, read_examples
from seraphim.storage.models import ModelFolder
from seraphim.tracking.mlflow import local_store

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(root: Path) -> Run:
    """Return a function that runs a program with the test's data root."""

    def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "SERAPHIM_DATA": str(root), **environment}
        return programs.run([sys.executable, program, *arguments], env=variables, timeout=120)

    return run


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the single line of a program's error."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.slow
def test_each_part_of_the_loop_runs_by_itself(run: Run, root: Path) -> None:
    quick = ("--depth=1", "--width=16", "--steps=4", "--readouts=10", "--games_per_file=10")
    for program, *arguments in (
        ("tictactoe/train.py", "mine", "--init", *quick),
        ("bin/generate_games.py", "mine", "--games=25"),
        ("tictactoe/train.py", "mine"),
        ("bin/generate_games.py", "mine", "--games=5", "--readouts=5", "--workers=1"),
        ("bin/tfrecord_viewer.py", str(root / "gamedata/mine"), "--summary"),
        ("bin/tfrecord_viewer.py", "mine"),
        ("bin/learn.py", "mine", "--generations=1", "--games_per_generation=10", "--goal=none"),
        ("bin/evaluate.py", "mine", "--searches=0", "--max_positions=50"),
    ):
        done = run(program, *arguments, MLFLOW_TRACKING_URI=local_store(root))
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    folder = ModelFolder(root, "mine")
    assert folder.champion().step == 8
    assert [path.name for path in sorted(folder.game_data.glob("*.tfrecord"))][:3] == [
        "batch-0000001.tfrecord",
        "batch-0000002.tfrecord",
        "batch-0000003.tfrecord",
    ]
    client = MlflowClient(local_store(root))
    experiment = client.get_experiment_by_name("mine")
    runs = client.search_runs([experiment.experiment_id], order_by=["attributes.start_time"])
    assert [one.data.tags["program"] for one in runs] == ["generate", "train", "generate", "learn", "evaluate"]
    assert all(one.data.metrics and one.info.status == "FINISHED" for one in runs)
    assert runs[2].data.params["search.readouts"] == "5"
    # Flags given with --init are stored; flags of one run are not.
    assert json.loads((folder.path / "settings.json").read_text())["search"]["readouts"] == 10


@pytest.mark.slow
def test_plain_search_flags_override_the_options_of_self_play(run: Run, root: Path) -> None:
    path = root / "models/fresh/settings.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "self_play_search": {"root": "gumbel", "readouts": 8}}))

    def games(*flags: str) -> list[bytes]:
        done = run("bin/generate_games.py", "fresh", "--games=12", "--seed=1", "--workers=1", *flags)
        assert done.returncode == 0, done.stderr
        found = sorted(example for file in published_files(root / "gamedata/fresh") for example in read_examples(file))
        shutil.rmtree(root / "gamedata/fresh")
        return found

    different = [games(*flags) for flags in ((), ("--readouts=20",), ("--root=puct",), ("--root=puct", "--cpuct=4"))]
    assert all(one != other for one, other in itertools.combinations(different, 2))
    assert games() == different[0]


@pytest.mark.slow
def test_a_new_model_stores_plain_flags_for_all_searches_and_self_play_flags_for_self_play(
    run: Run, root: Path
) -> None:
    quick = ("--blocks=0", "--filters=2")
    for name, flag, readouts, own in (
        ("both", "--readouts=50", 50, {"root": "gumbel"}),
        ("own", "--self_play_readouts=40", 200, {"root": "gumbel", "readouts": 40}),
    ):
        done = run("connectfour/train.py", name, "--init", flag, *quick)
        assert done.returncode == 0, done.stderr
        content = json.loads((root / "models" / name / "settings.json").read_text())
        assert (content["search"]["readouts"], content["self_play_search"]) == (readouts, own)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("tictactoe/train.py new --init --mlflow", "mlflow changes nothing here: making a model is not tracked"),
        (
            "bin/learn.py new --game=tictactoe.plain --goal=search",
            "goal changes nothing here: tictactoe.plain offers no",
        ),
        ("bin/evaluate.py fresh --out=a.csv", "out changes nothing here: it is for --positions"),
        (
            "bin/evaluate.py fresh --positions=a.txt --max_positions=3",
            "max_positions changes nothing here: --positions repl",
        ),
        ("bin/evaluate.py fresh --positions=a.txt --split=test", "split changes nothing here: --positions replaces"),
        (
            "bin/arena.py fresh random --from_start --opening_plies=3",
            "opening_plies changes nothing here: --from_start has no ratings",
        ),
        (
            "bin/arena.py fresh random --from_start --csv=a.csv",
            "csv changes nothing here: --from_start has no ratings",
        ),
        (
            "bin/arena.py fresh:raw random --readouts=9",
            "readouts changes nothing here: no player searches",
        ),
        (
            "bin/arena.py random minimax:1 --game=tictactoe --runtime=litert",
            "runtime changes nothing here: no player has a network",
        ),
        (
            "bin/tfrecord_viewer.py gamedata/fresh --summary --record=1 --limit=2 --game_id=x",
            "record, --limit, --game_id changes nothing here: --summary counts all records",
        ),
    ],
)
def test_a_flag_without_effect_is_refused(run: Run, root: Path, arguments: str, message: str) -> None:
    program, *others = arguments.split()
    before = sorted(root.rglob("*"))
    assert refused(run(program, *others)).startswith(f"{programs.command_of(program)}: --{message}")
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "bin/evaluate.py fresh --positions=FILE --out=nodir/x.csv",
            "cannot write nodir/x.csv: there is no folder nodir",
        ),
        ("bin/arena.py fresh random --csv=nodir/x.csv", "cannot write nodir/x.csv: there is no folder nodir"),
        ("bin/arena.py fresh random --plot=nodir/x.png", "cannot write nodir/x.png: there is no folder nodir"),
    ],
)
def test_a_folder_that_is_missing_is_reported_before_any_work(
    run: Run, tmp_path: Path, arguments: str, message: str
) -> None:
    (tmp_path / "positions.txt").write_text("a1 b2\n")
    program, *others = arguments.replace("FILE", str(tmp_path / "positions.txt")).split()
    done = run(program, *others)
    assert refused(done) == f"{programs.command_of(program)}: {message}"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--searches=", "--searches must be whole numbers separated by commas"),
        ("--searches=0,-1", "--searches must be whole numbers separated by commas, not '0,-1'"),
        ("--snapshot=~no-such-user/x", "~no-such-user/x lies outside "),
        ("--snapshot=~no-such-user/x --trust", "~no-such-user/x is not a snapshot: "),
    ],
)
def test_an_evaluation_that_cannot_be_made_is_refused(run: Run, arguments: str, message: str) -> None:
    assert refused(run("bin/evaluate.py", "fresh", *arguments.split())).startswith(f"seraphim evaluate: {message}")


def test_a_model_of_a_game_with_options_is_named_without_a_colon() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SERAPHIM_MODEL_NAME"}
    for game, name in (("hex:5", "my-hex-5"), ("connectfour:5x6", "my-connectfour-5x6"), ("othello", "my-othello")):
        command = ["make", "--dry-run", "learn", f"GAME={game}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert f"bin/learn.py {name} --game={game}\n" in done.stdout


def test_the_name_may_come_from_the_environment(run: Run) -> None:
    done = run("bin/generate_games.py", "--games=3", "--workers=1", SERAPHIM_MODEL_NAME="fresh")
    assert done.returncode == 0, done.stderr
    assert "3 games" in done.stdout


@pytest.mark.parametrize("program", ["bin/generate_games.py", "tictactoe/train.py", "bin/learn.py"])
def test_a_missing_name_is_an_error(run: Run, program: str) -> None:
    done = run(program, SERAPHIM_MODEL_NAME="")
    assert "which model? Try:" in refused(done)
    assert "NAME, or set SERAPHIM_MODEL_NAME" in done.stderr


@pytest.mark.parametrize(
    ("program", "cure"),
    [
        ("bin/generate_games.py", "seraphim train nobody --init --game=GAME"),
        ("bin/train.py", "seraphim train nobody --init --game=GAME"),
        ("bin/train.py --game=hex", "seraphim train nobody --init --game=hex"),
        ("tictactoe/train.py", "seraphim train nobody --init --game=tictactoe"),
        ("bin/learn.py", "seraphim learn nobody --game=GAME"),
    ],
)
def test_an_unknown_model_is_reported_with_its_cure(run: Run, root: Path, program: str, cure: str) -> None:
    program, *flags = program.split()
    message = f"{programs.command_of(program)}: model 'nobody' does not exist in {root}/models/: create it with {cure}"
    assert refused(run(program, "nobody", *flags)) == message


@pytest.mark.slow
def test_the_first_games_say_that_kernels_are_compiled(run: Run, tmp_path: Path) -> None:
    said = []
    for _ in range(2):
        done = run("bin/generate_games.py", "fresh", "--games=3", "--workers=1", NUMBA_CACHE_DIR=str(tmp_path))
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines()[0])
    assert said[0] == "compiling the kernels, once; up to a minute"
    assert said[1].startswith("self-play: ")


def test_games_without_end_say_how_they_end(run: Run, root: Path) -> None:
    variables = {**os.environ, "SERAPHIM_DATA": str(root)}
    command = [sys.executable, "bin/generate_games.py", "fresh", "--workers=1"]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as playing:
        assert playing.stdout is not None
        assert (
            playing.stdout.readline() == "playing until Ctrl-C, which loses no finished game; --games=N sets a limit\n"
        )
        assert any(line.startswith("self-play: ") for line in playing.stdout)  # the first game is there
        playing.send_signal(signal.SIGINT)
        said = playing.stdout.read()
    assert said.splitlines()[-1] == f"game data: {root}/gamedata/fresh"


@pytest.mark.parametrize("program", ["bin/generate_games.py", "tictactoe/train.py", "bin/learn.py"])
@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", "-dash", "", "x" * 300, "nul\x01"])
def test_names_cannot_leave_their_folder(run: Run, program: str, name: str, root: Path) -> None:
    before = sorted(root.rglob("*"))
    assert "model" in refused(run(program, "--", name))
    assert sorted(root.rglob("*")) == before


def test_the_address_of_a_bucket_is_refused(run: Run, tmp_path: Path) -> None:
    message = refused(run("bin/generate_games.py", "fresh", SERAPHIM_DATA="gs://bucket/data"))
    assert "SERAPHIM_DATA must be a folder, not gs://bucket/data: buckets are for copies" in message


def test_missing_game_data_is_an_error(run: Run) -> None:
    assert "run seraphim generate fresh first" in refused(run("tictactoe/train.py", "fresh"))


def test_an_existing_model_is_not_made_again(run: Run) -> None:
    assert "model 'fresh' exists" in refused(run("tictactoe/train.py", "fresh", "--init"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search": {"readuots": 3}}, "unknown setting 'readuots': expected one of"),
        ({"records": {"max_files": 3}}, "max_files is no longer an option: delete it; games are kept as long as"),
        ({"searching": {}}, "unknown section 'searching': expected one of"),
        ({"search": {"readouts": "many"}}, "readouts must be int, not 'many'"),
        ({"search": {"readouts": 0}}, "readouts must be at least 1, not 0"),
        ({"search": {"leaf": "guess"}}, "leaf must be one of value, playout, not 'guess'"),
        ({"game": "chess9000"}, "there is no game 'chess9000'"),
    ],
)
def test_bad_settings_are_reported(run: Run, root: Path, change: dict[str, object], message: str) -> None:
    path = root / "models/fresh/settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert message in refused(run("bin/generate_games.py", "fresh", "--games=1"))


def test_settings_that_are_not_json_are_reported(run: Run, root: Path) -> None:
    (root / "models/fresh/settings.json").write_text("{")
    assert "is not valid JSON" in refused(run("bin/generate_games.py", "fresh"))


def test_a_flag_out_of_range_is_reported(run: Run) -> None:
    assert "noise_coefficient must be from 0 to 1, not 2.0" in refused(
        run("bin/generate_games.py", "fresh", "--noise_coefficient=2")
    )


def test_a_model_of_another_game_is_refused(run: Run, root: Path) -> None:
    path = root / "models/fresh/settings.json"
    path.write_text(path.read_text().replace('"tictactoe"', '"tictactoe.plain"'))
    assert "plays tictactoe.plain, not tictactoe" in refused(run("tictactoe/train.py", "fresh"))


def test_a_damaged_champion_is_reported_by_the_worker_that_loads_it(run: Run, folder: ModelFolder) -> None:
    (folder.champion().path / "saved_model.pb").write_bytes(b"garbage")
    assert "is damaged" in refused(run("bin/generate_games.py", "fresh", "--games=1"))


def test_a_missing_champion_is_reported(run: Run, folder: ModelFolder) -> None:
    folder.champion().path.rename(folder.path / "elsewhere")
    assert "champion" in refused(run("bin/generate_games.py", "fresh"))


@pytest.mark.slow
def test_a_damaged_record_file_is_reported_and_skipped(run: Run, folder: ModelFolder) -> None:
    assert run("bin/generate_games.py", "fresh", "--games=30", "--games_per_file=10").returncode == 0
    damaged = folder.game_data / "batch-0000002.tfrecord"
    damaged.write_bytes(damaged.read_bytes()[:-7])
    done = run("tictactoe/train.py", "fresh")
    assert done.returncode == 0, done.stderr
    assert "batch-0000002.tfrecord" in done.stdout
    assert "truncated" in done.stdout
    assert "20 games in 2 files" in done.stdout


def test_a_folder_that_cannot_be_created_is_reported(run: Run, root: Path, folder: ModelFolder) -> None:
    # Root ignores permissions, so a file stands where the folder should be.
    (root / "gamedata").write_text("in the way")
    message = refused(run("bin/generate_games.py", "fresh", "--games=1"))
    assert str(folder.game_data) in message


@pytest.mark.slow
def test_a_full_disk_is_reported_and_loses_nothing(run: Run, root: Path, folder: ModelFolder) -> None:
    assert run("bin/generate_games.py", "fresh", "--games=20", "--games_per_file=10", "--seed=1").returncode == 0
    before = {path: path.read_bytes() for path in folder.game_data.glob("*.tfrecord")}
    # A limit on file sizes fails writes as a full disk does.
    program = (
        "import resource, runpy, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); sys.argv = sys.argv[1:];"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "bin/generate_games.py", "fresh", "--games=500", "--games_per_file=400"],
        # Without coverage, whose own file would be the first to be full.
        env={**{name: value for name, value in os.environ.items() if "COV" not in name}, "SERAPHIM_DATA": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "free the disk" in refused(done)
    assert before.items() <= {path: path.read_bytes() for path in folder.game_data.glob("*.tfrecord")}.items()
    assert run("bin/generate_games.py", "fresh", "--games=5", "--seed=2").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("chess9000",), "there is no game 'chess9000'"),
        (("../x",), "is not a game"),
        (("seraphim.errors",), "offers no GAME"),
    ],
)
def test_an_unknown_game_is_reported(run: Run, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(run("bin/check_game.py", *arguments))
    assert message in refused(run("bin/learn.py", "new", f"--game={arguments[0]}"))


@pytest.mark.slow
def test_the_benchmark_prints_its_figures_and_writes_them(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    done = run("bin/benchmark.py", "tictactoe", "--seconds=0.4", "--depth=1", "--width=32", f"--json={file}")
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())["tictactoe"]
    game = load_game("tictactoe")
    value_width = NetworkOptions().value_width
    products = 32 * (math.prod(game.observation_shape) + game.num_actions + value_width) + value_width
    assert figures["network's multiply-adds: M a position"] == pytest.approx(products / 1e6)  # of the flags' network
    assert figures["readouts/s"] > 0
    shares = [value for name, value in figures.items() if name.startswith("share in ")]
    assert sum(shares) == pytest.approx(1.0)
    assert "plain-Python rules: readouts/s" in done.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["othello", "--l2=1"], "--l2 changes nothing here: no weights are learned"),
        (
            ["tictactoe", "othello", "--filters=64"],
            "--filters changes nothing here: it needs a new model with kind=resnet",
        ),
        (["--gpu", "--readouts=50"], "--readouts changes nothing here: --gpu has settings of its own"),
        (["--peers", "--filters=8"], "--filters changes nothing here: --peers has settings of its own"),
    ],
)
def test_the_benchmark_refuses_flags_that_it_would_not_use(run: Run, flags: list[str], message: str) -> None:
    assert message in refused(run("bin/benchmark.py", *flags))


@pytest.mark.parametrize(
    "command",
    [
        "PYTHONPATH=tests/support PYTHON bin/check_game.py games",
        "PYTHON bin/arena.py --help",
        "PYTHON -c 'from seraphim.__main__ import main; raise SystemExit(main())' --help",
    ],
)
def test_a_program_ends_silently_when_its_output_pipe_is_closed(command: str) -> None:
    command = f"{command.replace('PYTHON ', f'{sys.executable} ')} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")
