"""The images contain what they run, and the compose file fits them; checked without a container engine."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from disks import run_read_only
from packaging.requirements import Requirement

from seraphim.records.window import read_window
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME

ROOT = Path(__file__).parents[2]
IMAGES = ["play", "train"]


class Step(NamedTuple):
    """One instruction of a Dockerfile."""

    verb: str
    rest: str


def steps(image: str) -> list[Step]:
    text = (ROOT / image / "Dockerfile").read_text()
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "")
    return [Step(*line.split(maxsplit=1)) for line in text.splitlines() if line]


def rests(image: str, verb: str) -> list[str]:
    return [step.rest for step in steps(image) if step.verb == verb]


def environment(image: str) -> dict[str, str]:
    return dict(rest.split("=", 1) for rest in rests(image, "ENV"))


def copied(image: str) -> list[str]:
    return [source for rest in rests(image, "COPY") for source in rest.split()[:-1]]


def program(image: str) -> Path:
    """The program that an image runs, here."""
    (entry,) = rests(image, "ENTRYPOINT")
    python, path = json.loads(entry)
    assert python == "python"
    return ROOT / Path(path).relative_to("/seraphim")


def setup() -> dict[str, str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return dict(parser["options"]) | dict(parser["options.packages.find"]) | dict(parser["options.extras_require"])


def run_as_in(image: str, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with an image's environment, but with the data below `tmp_path`."""
    given = os.environ | environment(image) | {"SERAPHIM_DATA": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, env=given)


# ---------------------------------------------------------------- the images


@pytest.mark.parametrize("image", IMAGES)
def test_copied_files_exist_and_reach_the_build(image: str) -> None:
    ignored, *allowed = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] in "*!"]
    assert ignored == "*"
    for source in copied(image):
        assert (ROOT / source).exists()
        assert f"!{source}" in allowed


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_holds_all_packages(image: str) -> None:
    packages = {pattern.strip("* ") for pattern in setup()["include"].split(",")}
    games = {"backgammon", "connectfour", "cube", "hex", "othello", "pig", "threes", "tictactoe", "twenty48"}
    assert packages == {"seraphim", *games}
    assert packages <= set(copied(image))


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_runs_a_program_that_it_holds(image: str, tmp_path: Path) -> None:
    path = program(image)
    assert path.relative_to(ROOT).parts[0] in copied(image)
    done = run_as_in(image, tmp_path, str(path), "nosuchmodel")
    assert "model 'nosuchmodel' does not exist" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("image", IMAGES)
def test_data_folders_are_writable_and_where_mounts_go(image: str) -> None:
    root = Path(environment(image)["SERAPHIM_DATA"])
    usage = (ROOT / image / "Dockerfile").read_text()
    (prepare,) = [rest for rest in rests(image, "RUN") if "chown" in rest]
    for folder in (root / "models", root / "gamedata"):
        assert f"src=$PWD{folder},destination={folder} " in usage.replace("\n", " ")
        assert str(folder) in prepare.partition("chown $UID ")[2].split()


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_does_not_run_as_root(image: str) -> None:
    last = steps(image)[-2]
    assert last == Step("USER", "seraphim")


def compiling(image: str) -> list[str]:
    """The command that compiles the kernels while an image is built, but for `python`."""
    (command,) = [rest for rest in rests(image, "RUN") if rest.startswith("python ")]
    return shlex.split(command)[1:]


def test_both_images_compile_the_same_kernels() -> None:
    assert compiling("play") == compiling("train")


def test_play_needs_no_tensorflow(tmp_path: Path) -> None:
    block = "import sys; sys.modules.update(tensorflow=None, keras=None, tensorboard=None); "
    _, code = compiling("play")
    assert run_as_in("play", tmp_path, "-c", block + code).stdout == "[8, 8, 8, 8] games played\n"
    assert "[train]" not in "".join(rests("play", "RUN"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of an image."""
    folder = tmp_path_factory.mktemp("cache")
    given = {"PATH": os.environ["PATH"], **environment("play"), "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, *compiling("play")], cwd=ROOT, env=given, capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "[8, 8, 8, 8] games played\n")
    return folder


def run_in_the_sandbox(compiled: Path, data: Path, command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program where the files of the image and the models can only be read, as a user without a name."""
    for folder in (data / "gamedata", data / "tmp"):
        folder.mkdir(parents=True)
    shutil.copytree(ROOT / "models/tictactoe", data / "models/tictactoe", symlinks=True)
    given = {"PATH": os.environ["PATH"], **environment("play"), "NUMBA_CACHE_DIR": str(compiled)}
    given |= {"SERAPHIM_DATA": str(data), "TMPDIR": str(data / "tmp"), **more}
    read_only = [ROOT, compiled, *([] if "new" in command else [data / "models"])]
    return run_read_only(read_only, command.replace("OUT", str(data)).split(), given)


@pytest.mark.slow
def test_the_sandbox_of_the_documentation_plays_at_once(compiled: Path, tmp_path: Path) -> None:
    text = (ROOT / "docs/security.md").read_text().replace('"', "")
    for part in ("--read-only --tmpfs=/tmp", "destination=/models,readonly", "destination=/gamedata play NAME"):
        assert part in text
    done = run_in_the_sandbox(compiled, tmp_path, f"{program('play')} tictactoe --games=20")
    assert done.returncode == 0, done.stderr
    assert "20 games, " in done.stdout
    assert done.stderr.startswith("no figures for TensorBoard: ")  # as the models are read-only
    assert len(done.stderr.splitlines()) == 1  # and nothing had to be compiled
    assert read_window(tmp_path / "gamedata/tictactoe", GAME, 1000)[1].games == 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "bin/arena.py tictactoe random --games=2",
        "bin/evaluate.py tictactoe",
        "bin/learn.py new --game=tictactoe --width=16 --games_per_generation=20 --steps=4 --generations=1",
        "bin/export_model.py tictactoe --out=OUT/page",
        "bin/doctor.py",
    ],
)
def test_programs_run_without_a_home_where_little_can_be_written(command: str, compiled: Path, tmp_path: Path) -> None:
    done = run_in_the_sandbox(compiled, tmp_path, command)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert sum("machine code cannot be kept" in line for line in done.stderr.splitlines()) <= 1


def test_without_a_home_keras_makes_none_in_the_current_folder(tmp_path: Path) -> None:
    code = "from seraphim.network import architectures; architectures.tensorflow(); import keras"
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp")}
    for folder in (tmp_path / "tmp", tmp_path / "here"):
        folder.mkdir()
    done = run_read_only([ROOT], ["-c", f"import os; os.chdir({str(tmp_path / 'here')!r}); {code}"], given)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "here").iterdir())


@pytest.mark.slow
def test_workers_say_once_that_they_compile(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    command = f"{program('play')} tictactoe --games=20 --workers=2"
    done = run_in_the_sandbox(tmp_path / "empty", tmp_path / "data", command, HOME="/proc/nohome")
    assert "20 games, " in done.stdout, done.stderr
    first, second = done.stderr.splitlines()
    assert first.startswith(f"seraphim: machine code cannot be kept ({tmp_path}/empty/kernels-")
    assert second.startswith("no figures for TensorBoard: ")


def test_train_installs_tensorflow() -> None:
    assert "--editable=.[train]" in "".join(rests("train", "RUN"))
    assert "tensorflow" in setup()["train"]


# ---------------------------------------------------------------- pinned versions


@pytest.mark.parametrize("image", IMAGES)
def test_dependencies_are_installed_in_pinned_versions(image: str) -> None:
    (install,) = [rest for rest in rests(image, "RUN") if "pip install" in rest]
    assert "--constraint=constraints.txt" in install
    assert "constraints.txt" in copied(image)


@pytest.mark.parametrize("group", ["install_requires", "train", "dev"])
def test_pinned_versions_are_within_the_declared_ranges(group: str) -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pins = dict(line.replace("_", "-").lower().split("==") for line in lines)
    for requirement in map(Requirement, setup()[group].split()):
        assert requirement.specifier.contains(pins[requirement.name.lower()]), requirement


def test_an_audit_without_a_connection_is_skipped_with_a_reason() -> None:
    nowhere = {"https_proxy": "http://127.0.0.1:9", "no_proxy": "", "PYTHON": sys.executable}
    done = subprocess.run([ROOT / ".ci/audit"], env=os.environ | nowhere, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "audit skipped: the list of vulnerabilities at pypi.org cannot be reached\n"
    assert "\nmake audit" in (ROOT / ".ci/run").read_text()


# ---------------------------------------------------------------- the compose file


def learn_service() -> dict[str, Any]:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert list(services) == ["learn"]
    return services["learn"]


def test_the_service_is_built_from_its_dockerfile_in_the_whole_tree() -> None:
    build = learn_service()["build"]
    assert build == {"context": ".", "dockerfile": "train/Dockerfile", "args": {"UID": "${UID:-1000}"}}
    assert "UID=1000" in rests("train", "ARG")


def test_the_service_mounts_models_and_game_data() -> None:
    assert learn_service()["volumes"] == ["./models:/models", "./gamedata:/gamedata"]
    assert (ROOT / "models" / ".gitkeep").exists()
    assert (ROOT / "gamedata" / ".gitkeep").exists()


@pytest.mark.slow
def test_the_service_trains_no_more_often_than_its_champions_have_played(tmp_path: Path) -> None:
    python, program, *flags = (re.sub(r"\$\{\w+:-(.*)\}", r"\1", part) for part in learn_service()["entrypoint"])
    assert python == "python"
    path = Path(program).relative_to("/seraphim")
    assert path.parts[0] in copied("train")
    small = ("--depth=1", "--width=16", "--readouts=5", "--games_per_generation=20", "--steps=4", "--workers=1")
    done = run_as_in("train", tmp_path, str(ROOT / path), "new", *flags, *small, "--generations=2")
    assert done.returncode == 0, done.stderr
    folder = ModelFolder(tmp_path, "new")
    assert folder.champion().step == 2 * 4
    assert read_window(folder.game_data, GAME, 1_000_000)[1].games == 2 * 20
