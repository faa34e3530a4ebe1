"""The wheel, installed where no clone is: its content, and its command in an empty folder."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import venv
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from seraphim.__main__ import COMMANDS
from seraphim.storage.models import ModelFolder

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("seraphim", "backgammon", "connectfour", "cube", "hex", "othello", "pig", "threes", "tictactoe", "twenty48"),
)
MODELS = ("connectfour", "hex", "othello", "pig", "threes", "tictactoe", "twenty48-2x3")
# All that the build reads.
FILES = ("setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", "LICENSE", "package.json", "docs/install.md")
FOLDERS = (*PACKAGES, *(f"models/{name}" for name in MODELS))
SMALL = ("--depth=1", "--width=16", "--steps=4", "--readouts=10", "--games_per_generation=20")
MOST_BYTES = 30_000_000
LIMIT = 600  # seconds, for a machine that does other things as well

Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


def build(source: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", out, source]
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clone in which somebody has worked."""
    folder = tmp_path_factory.mktemp("clone")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(folder / "models/tictactoe", folder / "models/mine", symlinks=True)
    model = ModelFolder(folder, "tictactoe")
    shutil.copytree(model.champion().path, model.path / "00009999-20990101T000000Z")
    (model.path / "logs").mkdir(exist_ok=True)
    (model.path / "logs" / "events").touch()
    (folder / "build/lib/seraphim").mkdir(parents=True)
    (folder / "build/lib/seraphim/removed.py").touch()
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and with the packages of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", f"--python={python}", "install", "--no-deps", "--no-index", wheel]
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT)
    # The .pth files of a folder that a .pth file names are not read: the clone, if one is installed there, stays out.
    (site,) = folder.glob("lib/*/site-packages")
    (site / "others.pth").write_text("\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    return folder


@pytest.fixture
def run(environment: Path, tmp_path: Path) -> Run:
    """Return a function that runs a command of the environment in an empty folder."""

    def run(command: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [environment / "bin" / command, *arguments],
            env=outside(),
            cwd=tmp_path,
            input=text,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )

    return run


def outside() -> dict[str, str]:
    """The environment variables without those that lead to the clone."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SERAPHIM", "COV"))}


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout.splitlines()


# ---------------------------------------------------------------- content


def test_it_holds_what_it_needs_and_nothing_else(wheel: Path, source: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for name in MODELS:
            champion = ModelFolder(source, name).champion()
            there = f"seraphim/shipped/models/{name}"
            assert archive.read(f"{there}/champion").decode() == champion.name
            snapshots = {each.split("/")[4] for each in names if each.startswith(f"{there}/0")}
            assert snapshots == {champion.name}
            card = archive.read(f"{there}/README.md").decode()
            assert {f"{there}/{picture}" for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", card)} <= names
    shipped = {name.removeprefix("seraphim/shipped/") for name in names if name.startswith("seraphim/shipped/")}
    assert {name.split("/")[0] for name in shipped} == {"models", "package.json"}
    assert {name.split("/")[1] for name in shipped if name.startswith("models/")} == set(MODELS)
    assert not [name for name in shipped if "logs" in name or ".." in name]
    assert {name.split("/")[0] for name in names} - set(PACKAGES) == {
        f"{wheel.name[: -len('-py3-none-any.whl')]}.dist-info"
    }
    there = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.split("/")[0] in PACKAGES and "/shipped/" not in name} == there


def test_a_source_distribution_builds_the_same(wheel: Path, source: Path, tmp_path: Path) -> None:
    code = "import sys, setuptools.build_meta as build; print(build.build_sdist(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=source, check=True, capture_output=True, timeout=LIMIT)
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path, filter="data")
    again = build(tmp_path / file.name.removesuffix(".tar.gz"), tmp_path / "wheel")
    with ZipFile(wheel) as one, ZipFile(again) as other:
        assert {each.filename: each.CRC for each in one.infolist()} == {
            each.filename: each.CRC for each in other.infolist()
        }


# ---------------------------------------------------------------- the command, in an empty folder


def test_the_wheel_answers_and_not_the_clone(run: Run, environment: Path) -> None:
    code = (
        f"import sys, {', '.join(PACKAGES)}; print(*[m.__file__ for m in [{', '.join(PACKAGES)}]], sys.path, sep='\\n')"
    )
    *files, path = lines(run("python", "-c", code))
    assert all(Path(file).is_relative_to(environment) for file in files)
    assert str(ROOT) + "'" not in path
    assert re.fullmatch(r"seraphim \d+\.\d+\.\d+", *lines(run("seraphim", "--version")))
    assert len(lines(run("seraphim"))) == 2 + len(COMMANDS)


def test_a_person_plays_against_the_model_that_comes_with_it(run: Run) -> None:
    columns = "\n".join("1234567" * 6)
    played = lines(run("seraphim", "play", "connectfour", "--readouts=30", "--seed=1", text=f"{columns}\nq\n"))
    assert played[0].startswith("connectfour: ")
    assert any("game over > " in line for line in played)
    assert re.fullmatch(r"moves: [1-7]{7,42}", played[-1])


def test_a_new_model_is_made_learns_and_is_used(run: Run, tmp_path: Path) -> None:
    assert lines(run("seraphim", "train", "mine", "--init", "--game=tictactoe", *SMALL))[0].startswith("champion 0000")
    learned = lines(run("seraphim", "learn", "mine", "--generations=1", "--goal=none", "--workers=1"))
    assert learned[-1].startswith("champion models/mine/00000004-")
    assert "30 of tictactoe" in "\n".join(
        lines(run("seraphim", "generate", "mine", "--games=10", "--workers=1"))
        and lines(run("seraphim", "view", "gamedata/mine", "--summary"))
    )
    assert lines(run("seraphim", "train", "mine"))[1].startswith("champion 00000008-")
    evaluated = lines(run("seraphim", "evaluate", "mine", "--searches=0", "--max_positions=50", "--workers=1"))
    assert evaluated[0].startswith("mine, 00000008-")
    rated = lines(run("seraphim", "arena", "mine", "random", "tictactoe", "--games=2"))
    assert rated[0].startswith("mine - random: ")
    assert lines(run("seraphim", "doctor", "--quick"))[-1] == "no problem found"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gamedata", "models"]
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["mine"]


def test_the_model_that_comes_with_it_stays_as_it_is(run: Run, tmp_path: Path, environment: Path) -> None:
    (shipped,) = environment.glob("lib/*/site-packages/seraphim/shipped/models")
    before = {path: path.stat().st_mtime_ns for path in shipped.rglob("*")}
    evaluated = lines(run("seraphim", "evaluate", "tictactoe", "--searches=0", "--max_positions=50", "--workers=1"))
    assert evaluated[0].startswith("tictactoe, ")
    proven = lines(run("seraphim", "prove", "tictactoe"))
    assert proven[-1] == "tictactoe-start.proof: seraphim check-proof checks it"
    assert lines(run("seraphim", "check-proof", "tictactoe-start.proof"))[-1].startswith("checked in ")
    assert [path.name for path in tmp_path.glob("models/tictactoe/*")] == ["logs"]
    for command in ("learn", "train", "generate"):
        refused = run("seraphim", command, "tictactoe")
        assert refused.returncode == 1
        assert refused.stderr.count("\n") == 1
        assert "tictactoe' is bundled and read-only: copy it first: mkdir" in refused.stderr
    assert {path: path.stat().st_mtime_ns for path in shipped.rglob("*")} == before
    subprocess.run(refused.stderr.rpartition(": ")[2], shell=True, cwd=tmp_path, check=True)
    learned = lines(run("seraphim", "learn", "tictactoe", "--generations=1", "--goal=none", "--workers=1", *SMALL[2:]))
    step = ModelFolder(ROOT, "tictactoe").champion().step
    assert learned[-1].startswith(f"champion models/tictactoe/{step + 4:08d}-")


def test_a_page_is_exported(run: Run, tmp_path: Path) -> None:
    exported = lines(run("seraphim", "export", "tictactoe", "--out=site"))
    assert "the page loads LiteRT.js" in exported[1]
    assert (tmp_path / "site/games/tictactoe.js").read_bytes() == (ROOT / "tictactoe/rules.js").read_bytes()
    assert {"index.html", "config.js", "models", "board"} <= {path.name for path in (tmp_path / "site").iterdir()}


def test_the_models_that_come_with_it_are_served(environment: Path, tmp_path: Path) -> None:
    command = [environment / "bin" / "seraphim", "serve", "--port=0"]
    pages = {"": b"<title>", "static/explorer/explorer.js": b"import", "api/models": b"tictactoe"}
    with subprocess.Popen(command, env=outside(), cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            names, address = server.stdout.readline().split(" (")[0].split(" at ")
            assert names == "connectfour, hex, othello, pig, threes, tictactoe, twenty48-2x3"
            for path, content in pages.items():
                with urllib.request.urlopen(address + path, timeout=LIMIT) as answer:
                    assert content in answer.read(), path
        finally:
            os.kill(server.pid, signal.SIGTERM)
    assert server.returncode == 0


def test_what_needs_a_clone_is_refused(run: Run) -> None:
    for command, message in (
        (["benchmark", "--gpu"], "--gpu and --peers need a clone of Seraphim"),
        (["generate-positions"], "the sets of an installed game stay as they are: add --folder=FOLDER"),
    ):
        done = run("seraphim", *command)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"seraphim {command[0]}: {message}")


@pytest.mark.parametrize("extra", ["train", "serve", "sgf"])
def test_the_line_that_installs_an_extra_asks_no_index_for_seraphim(environment: Path, extra: str) -> None:
    """All that an extra needs is there, so pip need not look for anything, least of all for a name that nobody owns."""
    python = environment / "bin" / "python"
    code = f"from seraphim.errors import how_to_install; print(how_to_install({extra!r}))"
    told = subprocess.run([python, "-c", code], env=outside(), cwd=environment, capture_output=True, text=True).stdout
    pip, install, what = shlex.split(told)
    assert (pip, install, what) == ("pip", "install", f"seraphim-zero[{extra}]")
    command = [sys.executable, "-m", "pip", f"--python={python}", "install", "--dry-run", "--no-index", what]
    done = subprocess.run(command, env=outside(), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr


def test_missing_packages_are_named_as_pip_knows_them(environment: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules.update(uvicorn=None, fastapi=None); from seraphim.__main__ import main; main()"
    command = [environment / "bin" / "python", "-c", code, "serve"]
    done = subprocess.run(command, env=outside(), cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert re.fullmatch(r"seraphim serve: serving needs \w+: pip install 'seraphim-zero\[serve\]'\n", done.stderr)
    assert shlex.split(done.stderr.rpartition(": ")[2])[-1] == "seraphim-zero[serve]"
