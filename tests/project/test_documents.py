"""The commands of all documents and docstrings: programs that exist, flags that they take, files that are there."""

import ast
import configparser
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
import programs
import pytest
from tutorials import Tutorial

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("README.md", "CONTRIBUTING.md", "docs/*.md", "notebooks/*.md", "models/*/README.md")
    for path in ROOT.glob(pattern)
)
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
SOURCES = sorted(
    path for folder in ("seraphim/commands", "benchmarks", "docs") for path in ROOT.glob(f"{folder}/[!_]*.py")
)
SOURCES += sorted(ROOT.glob("*/train.py"))
OTHERS = {  # programs that are not ours, whose arguments nobody checks here
    *("git", "source", "ray", "scp", "export", "tensorboard", "gcloud", "aws", "jupyter", "apt", "gogui-twogtp"),
    *("mkdir", "cp", "taskset"),
}
OURS = {"python", "seraphim", "make", "pip", "uv", "pipx", "docker"}
FOUND_BY_PIP = {"jupyterlab", "tensorflow[and-cuda]"}  # in the index, by their owners
WITHOUT_FLAGS = {"browser", "solver", "crashing_store", "crashing_writer"}  # programs with plain arguments
MODULES = {"http.server", "pytest", "venv"}  # of python -m


class Command(NamedTuple):
    """A command as a document has it."""

    where: str
    line: str
    words: list[str]  # without the variables before it
    variables: dict[str, str]

    @property
    def program(self) -> str:
        return _bare(self.words[0])


def _bare(word: str) -> str:
    return word.removeprefix(".venv/bin/").removeprefix("%")  # which is a notebook's


def commands_in(where: str, line: str) -> Iterator[Command]:
    """The commands of a line, if it begins with a program that is known."""
    line = re.sub(r"(--\w+)=[A-Z](?=\W|$)", r"\1=2", line)  # a number that the reader chooses
    optional = re.compile(r"\[([^]\s'\"]+ [^]]*|[A-Z]+|--[^]]*)\]")  # of a synopsis: only its flags are checked
    line = optional.sub(lambda found: " ".join(re.findall(r"--\S+", found[1])), line.removeprefix("$ "))
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # a sentence with an apostrophe
        return
    if not words or not (OURS | OTHERS) & {_bare(each) for each in words[:2]}:
        return
    for part in " ".join(shlex.quote(word) for word in words if word != "…").split(" '&&' "):
        rest, variables = shlex.split(part), {}
        while rest and re.match(r"[A-Za-z_]+=", rest[0]):
            name, _, variables[name] = rest.pop(0).partition("=")
        if rest[:2] == ["taskset", "-c"]:
            rest = rest[3:]
        if rest and _bare(rest[0]) in OURS | OTHERS:
            yield Command(where, line, rest, variables)


def texts(page: Path) -> Iterator[str]:
    """What a page shows as code: the lines of its blocks, then what stands in its sentences."""
    text = page.read_text()
    for kind, block in re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        if kind in ("", "sh"):
            lines = block.replace("\\\n", " ").splitlines()
            typed = [line for line in lines if line.startswith("$ ")]
            yield from typed or lines
    yield from inline(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def inline(text: str) -> list[str]:
    """The code in sentences, which may go on in another line."""
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"(?<!\n)\n(?!\n)", " ", text))
    return [span for span in spans if " " in span]


def all_commands() -> list[Command]:
    """Every command of every document."""
    lines = [(page, line) for page in PAGES for line in texts(page)]
    for path in NOTEBOOKS:
        cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
        lines += [(path, line) for line in inline("\n".join(cells))]
    for path in SOURCES:
        docstring = (ast.get_docstring(ast.parse(path.read_text())) or "").replace("\\\n", " ")
        lines += [(path, line.strip()) for line in docstring.splitlines() if line.startswith("    ")]
        lines += [(path, line) for line in inline(docstring)]
    return [each for path, line in lines for each in commands_in(str(path.relative_to(ROOT)), line)]


COMMANDS = all_commands()


def of(*programs: str) -> list[Command]:
    return [command for command in COMMANDS if command.program in programs]


def called(command: Command) -> tuple[str, list[str]] | None:
    """The file and the arguments of a program of ours; None for a module that Python runs."""
    first, *rest = command.words[1:]
    if command.program == "seraphim":
        return (programs.FILES[first], rest) if not first.startswith("--") else None
    if command.program == "docker":  # what follows the image's name is for the program of the image
        image = next(each for each in command.words[2:] if each in ("train", "play"))
        (entry,) = re.findall(r"^ENTRYPOINT (.*)$", (ROOT / image / "Dockerfile").read_text(), re.MULTILINE)
        return json.loads(entry)[1].removeprefix("/seraphim/"), command.words[command.words.index(image) + 1 :]
    return None if first == "-m" else (first, rest)


def test_the_documents_have_commands_of_every_kind() -> None:
    assert len(COMMANDS) > 150
    pages = {command.where for command in COMMANDS}
    documents = {"README.md", "docs/commands.md", "docs/install.md", "notebooks/README.md"}
    assert pages >= documents | {"seraphim/commands/learn.py"}
    assert {command.program for command in COMMANDS} >= OURS
    assert set(programs.FILES.values()) <= {
        call[0] for command in of("python", "seraphim") if len(command.words) > 1 and (call := called(command))
    }


def refusals(calls: list[tuple[int, str, str, list[str]]]) -> dict[int, str]:
    """What programs say of calls that they refuse, by the number of the call; see parse_flags.py."""
    done = subprocess.run(
        [sys.executable, ROOT / "tests/support/parse_flags.py"],
        input=json.dumps(calls),
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return {int(number): said for number, said in json.loads(done.stdout).items()}


def test_flags_that_a_program_does_not_take_are_found() -> None:
    wrong = [
        (str(ROOT), "bin/learn.py NAME --hour=2", "Unknown command line flag 'hour'"),
        (str(ROOT), "bin/arena.py NAME random --games=many", "invalid literal for int()"),
        (str(ROOT), "bin/engine.py NAME --protocol=xboard", "value should be one of"),
        (str(ROOT), "tictactoe/train.py NAME --preset", "Missing value for flag --preset"),
        (str(ROOT), "benchmarks/players.py --player=2 --readout=5 --what", "unrecognized arguments: --what"),
        ("", "benchmarks/cluster.py connectfour", "No module named 'benchmarks'"),
        ("", "benchmarks/mctx_peer.py", "parses no flags"),
    ]
    said = refusals([(number, path, *_split(line)) for number, (path, line, _) in enumerate(wrong)])
    assert [expected in said[number] for number, (*_, expected) in enumerate(wrong)] == [True] * len(wrong), said
    assert refusals([(0, "", "bin/learn.py", ["NAME", "--hours=2"]), (1, "", "bin/learn.py", ["NAME", "--help"])]) == {}


def _split(line: str) -> tuple[str, list[str]]:
    program, *arguments = line.split()
    return program, arguments


def test_every_program_exists_and_takes_its_flags() -> None:
    calls = []
    for number, command in enumerate(COMMANDS):
        is_ours = command.program in ("python", "seraphim") or command.words[:2] == ["docker", "run"]
        if is_ours and len(command.words) > 1 and (call := called(command)):
            file, arguments = call
            if file in Tutorial(command.where).files:  # which the page says to write
                continue
            assert (ROOT / file).is_file(), f"{command.where}: {command.line}"
            if Path(file).stem not in WITHOUT_FLAGS:
                path = str(ROOT) if command.variables.get("PYTHONPATH") == "." else ""
                calls.append((number, path, file, arguments))
    assert len(calls) > 100
    wrong = [f"{COMMANDS[number].where}: {COMMANDS[number].line}: {said}" for number, said in refusals(calls).items()]
    assert not wrong, "\n".join(wrong)


def test_python_runs_modules_that_it_has() -> None:
    ours = {f"benchmarks.{path.stem}" for path in ROOT.glob("benchmarks/*.py")}
    assert {command.words[2] for command in of("python") if command.words[1] == "-m"} <= MODULES | ours


def test_make_has_the_targets_and_variables() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in of("make"):
        for word in command.words[1:]:
            name, equals, _ = word.partition("=")
            assert re.search(rf"^{name} \??=" if equals else rf"^{name}:", makefile, re.MULTILINE), command
    assert len(of("make")) > 15


def test_what_is_installed_can_be_found() -> None:
    """A name that nobody owns in the index may be somebody else's tomorrow."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    version, extras = setup["metadata"]["version"], set(setup["options.extras_require"])
    for command in of("pip", "uv", "pipx"):
        named = [each for each in command.words[1:] if not each.startswith("-") and "=" not in each]
        for word in named[1:] if command.program != "uv" else named[2:3]:
            what, _, wanted = word.rstrip("]").partition("[")
            if word not in FOUND_BY_PIP:
                wheels = (".", f"seraphim_zero-{version}-py3-none-any.whl")
                assert what.removeprefix("dist/").removeprefix("./") in wheels, f"{command.where}: {command.line}"
                assert set(filter(None, wanted.split(","))) <= extras, f"{command.where}: {command.line}"
    assert len(of("pip")) > 5


def test_images_are_built_from_files_that_exist() -> None:
    for command in of("docker"):
        if command.words[1] == "build":
            assert (ROOT / command.words[command.words.index("-f") + 1]).is_file()
        else:
            assert command.words[1] in ("run", "compose")


def test_files_that_commands_name_exist() -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"dist"}
    checked = 0
    for command in COMMANDS:
        for word in command.words[1:]:
            path = re.split("[=:]", word)[-1].removeprefix("./")
            if "/" in path and path.split("/")[0] in folders and not re.search(r"[A-Z]{4}|[*$,]", path):
                assert (ROOT / path).exists(), f"{command.where}: {command.line}"
                checked += 1
    assert checked > 50


def test_games_that_commands_name_exist() -> None:
    games = {path.parent.name for path in ROOT.glob("*/game.py")}
    for command in COMMANDS:
        text = (ROOT / command.where).read_text()
        for word in command.words[1:]:
            if word.startswith("--game="):
                game = word.removeprefix("--game=").split(":")[0]
                made = re.search(rf"^```python {game}\.py$|`{game}\.py`|writefile {game}\.py", text, re.MULTILINE)
                assert game in {*games, "openspiel", "GAME"} or made, f"{command.where}: {command.line}"


@pytest.mark.slow
def test_the_game_of_the_readme_is_checked_and_learned_by_its_commands(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    (name,) = re.findall(r"Save it as `(\w+\.py)`", text)
    (tmp_path / name).write_text(code)
    commands = [each.words for each in COMMANDS if each.where == "README.md" and "nim" in each.line]
    assert len(commands) == 2
    small = ["--generations=1", "--games_per_generation=10", "--steps=2", "--workers=1"]
    for (program, *arguments), more in zip(commands, ([], small), strict=True):
        assert program == "seraphim"
        done = subprocess.run(
            [Path(sys.executable).with_name(program), *arguments, *more],
            cwd=tmp_path,
            env={**os.environ, "SERAPHIM_DATA": ""},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "models/my-nim/champion").exists()
